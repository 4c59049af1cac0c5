//! An endless stream of orders: a world in which as many orders rest as are cancelled, and one command in ten takes.
//! User, command and market are seeded random numbers, so a large world is mostly cold memory.

use crate::chance::Chance;
use crate::crowd::{Crowd, Open};
use crate::report::{nanoseconds, timed};
use crate::world::{Out, Step, World};
use engine::command::{Command, Envelope};
use engine::id::{OrderId, UserId};
use engine::order::Side;
use engine::ring::Ring;
use engine::time::Timestamp;
use hdrhistogram::Histogram;
use std::time::Instant;

/// Commands that are made before the clock starts.
const CHUNK: usize = 4_096;
/// Most queued commands before a turn of the shard.
const RING_SLOTS: usize = 256;
/// Distance between the users of consecutive buys: large, and coprime to round numbers of users.
const TRADER_STRIDE: usize = 7_919;

/// A world in which as many orders rest as are cancelled.
pub struct Steady<F> {
    pub crowd: Crowd,
    pub world: World,
    out: Out<F>,
    open: Vec<Open>,
    /// The trader of the next sale, and its market.
    bought: Option<(usize, u32)>,
    /// Buys so far.
    taken: usize,
    /// Orders with a client's id so far; `None`: orders have none.
    named: Option<u64>,
    chance: Chance,
}

/// Durations of single commands.
pub struct Timings {
    /// Orders, whether they rest or fill.
    pub placements: Histogram<u64>,
    pub cancels: Histogram<u64>,
}

impl Timings {
    pub fn new() -> Timings {
        Timings { placements: nanoseconds(), cancels: nanoseconds() }
    }
}

/// What happens to an answer.
enum Then {
    Rests(u32),
    Nothing,
}

impl<F: FnMut(UserId, Timestamp, &[u8])> Steady<F> {
    pub fn new(crowd: Crowd, record: F) -> Steady<F> {
        let (world, mut out, open) = crowd.fill(record);
        out.orders = vec![OrderId(0); CHUNK];
        Steady { crowd, world, out, open, bought: None, taken: 0, named: None, chance: Chance::seeded(37) }
    }

    /// The same, and from here on each order has its own client id, as a bot's orders do.
    pub fn with_ids(self) -> Steady<F> {
        Steady { named: Some(0), ..self }
    }

    /// Seconds of `count` commands, passed through a ring as from another thread.
    pub fn go_by_turns(&mut self, count: usize) -> f64 {
        let ring = Ring::new(RING_SLOTS);
        let mut seconds = 0.0;
        self.chunks(count, |world, out, envelopes| seconds += timed(|| world.turn(&ring, envelopes, out)).0);
        seconds
    }

    /// Seconds of `count` commands, one at a time.
    pub fn go(&mut self, count: usize) -> f64 {
        let mut seconds = 0.0;
        self.chunks(count, |world, out, envelopes| {
            seconds += timed(|| envelopes.into_iter().for_each(|envelope| world.take(envelope, out))).0;
        });
        seconds
    }

    /// Records the duration of each of `count` commands; each includes reading the clock.
    pub fn go_one_by_one(&mut self, count: usize, timings: &mut Timings) {
        self.chunks(count, |world, out, envelopes| {
            for envelope in envelopes {
                let nanos = match envelope.command {
                    Command::Cancel { .. } => &mut timings.cancels,
                    _ => &mut timings.placements,
                };
                let begun = Instant::now();
                world.take(envelope, out);
                nanos.saturating_record(begun.elapsed().as_nanos() as u64);
            }
        });
    }

    fn chunks(&mut self, count: usize, mut take: impl FnMut(&mut World, &mut Out<F>, Vec<Envelope<usize>>)) {
        for first in (0..count).step_by(CHUNK) {
            let (envelopes, thens): (Vec<_>, Vec<_>) = (0..CHUNK.min(count - first)).map(|at| self.next(at)).unzip();
            take(&mut self.world, &mut self.out, envelopes);
            for (at, then) in thens.into_iter().enumerate() {
                if let Then::Rests(trader) = then {
                    self.open.push(Open { trader, order: self.out.orders[at] });
                }
            }
        }
        assert_eq!(self.out.refused, 0, "every command has an effect: {}", self.crowd);
    }

    fn next(&mut self, at: usize) -> (Envelope<usize>, Then) {
        let Crowd { users, markets, .. } = self.crowd;
        let chance = &mut self.chance;
        match chance.below(20) {
            0..=1 => {
                let (trader, market, side) = match self.bought.take() {
                    Some((trader, market)) => (trader, market, Side::Sell),
                    None => {
                        // A user may not take more than a book shows, and these books are constant: all pairs of user
                        // and market have their turn before one has it again.
                        let trader = self.taken * TRADER_STRIDE % users;
                        let market = ((self.taken / users + trader) % markets as usize) as u32;
                        self.taken += 1;
                        let bought = (trader, market);
                        self.bought = Some(bought);
                        (bought.0, bought.1, Side::Buy)
                    }
                };
                (self.placement(at, Step::Take { trader, market, side }), Then::Nothing)
            }
            2..=10 if !self.open.is_empty() => {
                let place = chance.below(self.open.len() as u64) as usize;
                let Open { trader, order } = self.open.swap_remove(place);
                let step = Step::Cancel { trader: trader as usize, of: 0 };
                (self.world.envelope(at, step, &[order]), Then::Nothing)
            }
            _ => {
                let trader = chance.below(users as u64) as usize;
                let step = Crowd::rest_step(trader, markets, chance);
                (self.placement(at, step), Then::Rests(trader as u32))
            }
        }
    }

    fn placement(&mut self, at: usize, step: Step) -> Envelope<usize> {
        match &mut self.named {
            None => self.world.envelope(at, step, &[]),
            Some(named) => {
                *named += 1;
                self.world.named_envelope(at, step, format!("steady-{named}"))
            }
        }
    }
}
