//! What the feed asks of the shards: settlements and matching cycles. It waits for their answers as long as the log has
//! room, for without room no shard goes on with either.

use super::{Desk, Links, Reply, STOP_CHECK, Stopped};
use engine::command::{Answer, Command, Envelope};
use engine::id::{MARKETS, MarketId};
use engine::ring::Ring;
use engine::shard::Room;
use engine::time::Timestamp;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

/// A command that every shard was asked, and the answers so far.
pub(super) struct Asked {
    waits: Vec<mpsc::Receiver<Answer>>,
    answers: Vec<Answer>,
}

/// A matching cycle under way.
pub(super) struct Cycling {
    pub(super) venue_now: Timestamp,
    /// Server time.
    pub(super) begun: Timestamp,
    pub(super) asked: Asked,
}

impl<L: Links> Desk<L> {
    /// Pays out every resolved market that is not marked settled, while there is room. Settling twice finds nothing to
    /// do.
    pub(super) fn settle_all(&mut self) -> Result<(), Stopped> {
        loop {
            let (market, mut asked) = match self.settling.take() {
                Some(settling) => settling,
                None => {
                    // A resolution that is not in the log is known to no shard.
                    let is_told = |market: &MarketId| {
                        self.catalog.market(*market).is_some_and(|market| market.resolution().is_some())
                    };
                    let next = self.markets.unsettled().find(is_told);
                    let Some(market) = next.filter(|_| self.room() != Room::None) else { break };
                    (market, self.ask_all(|| Command::Settle { market })?)
                }
            };
            if !self.finish(&mut asked)? {
                self.settling = Some((market, asked));
                break;
            }
            let fact = self.markets.settle(market, self.clock.now());
            self.decided(fact);
        }
        self.flush()
    }

    /// The matching cycle that is `due`, in every shard; the feed waits for it, so that no crossing is missed at any
    /// speed. Without room nothing could be matched: then the cycle is passed over, or goes on later if it was begun.
    /// Answers the venue time of the cycle that ended.
    pub(super) fn cycle(&mut self, due: Option<Timestamp>) -> Result<Option<Timestamp>, Stopped> {
        let mut matched = None;
        loop {
            let mut cycling = match (self.cycling.take(), due.filter(|due| matched != Some(*due))) {
                (Some(cycling), _) => cycling,
                (None, Some(venue_now)) if self.room() != Room::None => {
                    let sweeps = self.sweeps();
                    let asked = self.ask_all(|| Command::Cycle { venue_now, sweeps })?;
                    Cycling { venue_now, begun: self.clock.now(), asked }
                }
                _ => return Ok(matched),
            };
            if !self.finish(&mut cycling.asked)? {
                self.cycling = Some(cycling);
                return Ok(matched);
            }
            let Cycling { venue_now, begun, asked } = cycling;
            let pending = asked.answers.iter().map(|answer| match answer {
                Answer::Cycled { resting, .. } => *resting,
                _ => 0,
            });
            self.figures.pending_orders.store(pending.sum(), Ordering::Relaxed);
            self.figures.last_cycle_at.store(begun.0, Ordering::Relaxed);
            self.figures.last_cycle_us.store(self.clock.now().since(begun), Ordering::Relaxed);
            matched = Some(venue_now);
        }
    }

    pub(super) fn ask_all(&self, command: impl Fn() -> Command) -> Result<Asked, Stopped> {
        let waits = self.lane.inboxes.iter().map(|inbox| self.ask(inbox, command())).collect::<Result<_, _>>()?;
        Ok(Asked { waits, answers: Vec::new() })
    }

    /// Waits for the answers of all shards. False: the log has no room, so some will come only when it has.
    pub(super) fn finish(&self, asked: &mut Asked) -> Result<bool, Stopped> {
        while let Some(receiver) = asked.waits.get(asked.answers.len()) {
            let has_room = self.room() != Room::None;
            let patience = if has_room { STOP_CHECK } else { Duration::ZERO };
            match receiver.recv_timeout(patience) {
                Ok(answer) => asked.answers.push(answer),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) if self.stop.is_set() => return Err(Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) if !has_room => return Ok(false),
                // A shard that found no room sleeps until something is asked of it.
                Err(mpsc::RecvTimeoutError::Timeout) => self.lane.inboxes.iter().for_each(|inbox| inbox.wake()),
            }
        }
        Ok(true)
    }

    fn ask(&self, inbox: &Ring<Envelope<Reply>>, command: Command) -> Result<mpsc::Receiver<Answer>, Stopped> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let envelope =
            Envelope { owner: MARKETS, command, received_at: self.clock.now(), reply: Reply::Thread(sender) };
        let mut envelope = envelope;
        // Users fill the same inbox; the feed waits for a slot where they are refused.
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
