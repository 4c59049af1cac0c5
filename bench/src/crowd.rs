//! Worlds of a requested size: users, markets and orders, the same in each run.

use crate::chance::Chance;
use crate::report::Size;
use crate::world::{BEST_BID, Out, Step, World};
use engine::id::{OrderId, UserId};
use engine::time::Timestamp;
use tools::machine;

/// Upper estimate of the memory of an order in bytes, with temporary copies; it keeps a world within the machine's
/// memory.
const BYTES_PER_ORDER: u64 = 800;
/// Share of the free memory that a scenario may use.
const MEMORY_PART: f64 = 0.6;
/// Most open orders of one user: slightly below the engine's own bound.
const OPEN_PER_USER_MAX: usize = 90_000;

/// The size of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    pub users: usize,
    pub markets: u32,
    /// Open orders.
    pub open: usize,
}

/// A resting order and its owner.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub trader: u32,
    pub order: OrderId,
}

impl Open {
    /// A placeholder for an order that does not exist yet.
    pub const NOTHING: Open = Open { trader: 0, order: OrderId(0) };
}

impl Crowd {
    /// Creates the world; `record` receives the records of a log.
    pub fn fill<F: FnMut(UserId, Timestamp, &[u8])>(self, mut record: F) -> (World, Out<F>, Vec<Open>) {
        let mut world = World::new(self.markets, &mut record);
        let mut out = Out::new(record);
        world.add_traders(self.users, &mut out);
        let open = self.rest(&mut world, &mut out);
        (world, out, open)
    }

    /// Places the open orders in a world that has its users and markets, and returns them.
    pub fn rest<F: FnMut(UserId, Timestamp, &[u8])>(self, world: &mut World, out: &mut Out<F>) -> Vec<Open> {
        assert!(self.open / self.users.max(1) <= OPEN_PER_USER_MAX, "a user would have too many open orders");
        let mut chance = Chance::seeded(29);
        let mut open = Vec::with_capacity(self.open);
        out.orders = vec![OrderId(0)];
        for number in 0..self.open {
            // Round robin over users; markets and prices are random.
            let trader = number % self.users;
            let step = Crowd::rest_step(trader, self.markets, &mut chance);
            let envelope = world.envelope(0, step, &[]);
            world.take(envelope, out);
            open.push(Open { trader: trader as u32, order: out.orders[0] });
        }
        assert_eq!(out.refused, 0, "every order rests");
        open
    }

    /// A bid below the book.
    pub fn rest_step(trader: usize, markets: u32, chance: &mut Chance) -> Step {
        let market = chance.below(markets.into()) as u32;
        Step::Rest { trader, market, cents: 1 + chance.below(u64::from(BEST_BID) - 1) as u16 }
    }
}

impl std::fmt::Display for Crowd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} users, {} markets, {} open orders", self.users, self.markets, self.open)
    }
}

/// The requested orders, or as many as the free memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitting {
    pub orders: usize,
    wished: usize,
}

impl Fitting {
    pub fn of(wished: usize, size: Size) -> Fitting {
        let free = machine::available_bytes().map_or(u64::MAX, |bytes| (bytes as f64 * MEMORY_PART) as u64);
        let orders = match size {
            Size::Small => wished,
            Size::Full => wished.min((free / BYTES_PER_ORDER) as usize),
        };
        Fitting { orders, wished }
    }

    /// Why the requested size was not reached; `None` if it was.
    pub fn refused(self) -> Option<String> {
        let Fitting { orders, wished } = self;
        (orders < wished).then(|| format!("refused: the free memory holds {orders} of {wished} orders"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_were_wished_for_prove_nothing_of_them() {
        let cases = [(9, 10, Some("refused: the free memory holds 9 of 10 orders")), (10, 10, None), (0, 0, None)];
        for (orders, wished, expected) in cases {
            assert_eq!(Fitting { orders, wished }.refused().as_deref(), expected);
        }
        assert_eq!(Fitting::of(usize::MAX, Size::Small).refused(), None, "tests are never shrunk");
        assert!(Fitting::of(usize::MAX, Size::Full).refused().is_some(), "no machine holds that many");
        println!("sizes: {} cases", cases.len() + 2);
    }
}
