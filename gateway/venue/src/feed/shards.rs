//! Commands of the feed to all shards: settlements and matching cycles. The feed waits for the answers only while the
//! log has room, because without room no shard can finish them.

use super::{Desk, Links, Reply, STOP_CHECK, Stopped};
use engine::command::{Answer, Command, Envelope};
use engine::id::{MARKETS, MarketId};
use engine::ring::Ring;
use engine::shard::Room;
use engine::time::Timestamp;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

/// A command that was sent to every shard, and the answers so far.
pub(super) struct Broadcast {
    waits: Vec<mpsc::Receiver<Answer>>,
    answers: Vec<Answer>,
}

/// A running matching cycle.
pub(super) struct Cycling {
    pub(super) venue_now: Timestamp,
    /// Server time.
    pub(super) begun: Timestamp,
    pub(super) broadcast: Broadcast,
}

impl<L: Links> Desk<L> {
    /// Pays out every resolved market that is not marked settled, while there is room. A repeated settlement has no
    /// effect.
    pub(super) fn settle_all(&mut self) -> Result<(), Stopped> {
        loop {
            let (market, mut broadcast) = match self.settling.take() {
                Some(settling) => settling,
                None => {
                    // Shards know only resolutions that are in the log.
                    let is_published = |market: &MarketId| {
                        self.catalog.market(*market).is_some_and(|market| market.resolution().is_some())
                    };
                    let next = self.markets.unsettled().find(is_published);
                    let Some(market) = next.filter(|_| self.room() != Room::None) else { break };
                    (market, self.broadcast(|| Command::Settle { market })?)
                }
            };
            if !self.finish(&mut broadcast)? {
                self.settling = Some((market, broadcast));
                break;
            }
            let fact = self.markets.settle(market, self.clock.now());
            self.decided(fact);
        }
        self.flush()
    }

    /// Runs the matching cycle that is `due` in every shard, and waits for it, so that no crossing is missed at any
    /// speed. Without room nothing can be matched: the cycle is skipped, or finished later if it has begun. Returns the
    /// venue time of the last finished cycle.
    pub(super) fn cycle(&mut self, due: Option<Timestamp>) -> Result<Option<Timestamp>, Stopped> {
        let mut matched = None;
        loop {
            let mut cycling = match (self.cycling.take(), due.filter(|due| matched != Some(*due))) {
                (Some(cycling), _) => cycling,
                (None, Some(venue_now)) if self.room() != Room::None => {
                    let sweeps = self.sweeps();
                    let broadcast = self.broadcast(|| Command::Cycle { venue_now, sweeps })?;
                    Cycling { venue_now, begun: self.clock.now(), broadcast }
                }
                _ => return Ok(matched),
            };
            if !self.finish(&mut cycling.broadcast)? {
                self.cycling = Some(cycling);
                return Ok(matched);
            }
            let Cycling { venue_now, begun, broadcast } = cycling;
            let mut pending = 0;
            for answer in &broadcast.answers {
                if let Answer::Cycled { resting, fills, closed, .. } = answer {
                    pending += resting;
                    self.passed.fills += fills;
                    self.passed.closed += closed;
                }
            }
            self.passed.cycles += 1;
            self.figures.pending_orders.store(pending, Ordering::Relaxed);
            self.figures.last_cycle_at.store(begun.0, Ordering::Relaxed);
            self.figures.last_cycle_us.store(self.clock.now().since(begun), Ordering::Relaxed);
            matched = Some(venue_now);
        }
    }

    /// Sends a command to every shard.
    pub(super) fn broadcast(&self, command: impl Fn() -> Command) -> Result<Broadcast, Stopped> {
        let waits = self.lane.inboxes.iter().map(|inbox| self.send(inbox, command())).collect::<Result<_, _>>()?;
        Ok(Broadcast { waits, answers: Vec::new() })
    }

    /// Waits for the answers of all shards. False: the log has no room, so that some answers come only later.
    pub(super) fn finish(&self, broadcast: &mut Broadcast) -> Result<bool, Stopped> {
        while let Some(receiver) = broadcast.waits.get(broadcast.answers.len()) {
            let has_room = self.room() != Room::None;
            let patience = if has_room { STOP_CHECK } else { Duration::ZERO };
            match receiver.recv_timeout(patience) {
                Ok(answer) => broadcast.answers.push(answer),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) if self.stop.is_set() => return Err(Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) if !has_room => return Ok(false),
                // A shard that found no room sleeps until it is woken.
                Err(mpsc::RecvTimeoutError::Timeout) => self.lane.inboxes.iter().for_each(|inbox| inbox.wake()),
            }
        }
        Ok(true)
    }

    fn send(&self, inbox: &Ring<Envelope<Reply>>, command: Command) -> Result<mpsc::Receiver<Answer>, Stopped> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let envelope =
            Envelope { owner: MARKETS, command, received_at: self.clock.now(), reply: Reply::Thread(sender) };
        let mut envelope = envelope;
        // User requests fill the same inbox. They are refused when it is full; the feed waits for a slot.
        while let Err(back) = inbox.push(envelope) {
            if self.stop.is_set() {
                return Err(Stopped);
            }
            envelope = back;
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(receiver)
    }

    pub(super) fn wait(&self, receiver: &mpsc::Receiver<Answer>) -> Result<Answer, Stopped> {
        loop {
            match receiver.recv_timeout(STOP_CHECK) {
                Ok(answer) => return Ok(answer),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) if self.stop.is_set() => return Err(Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
