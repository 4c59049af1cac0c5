//! Worlds of a wanted size: so many users, markets and orders, the same in each run.

use crate::chance::Chance;
use crate::report::Size;
use crate::world::{BEST_BID, Out, Step, World};
use engine::id::{OrderId, UserId};
use engine::time::Timestamp;
use tools::machine;

/// Bytes of memory that an order may take here at most, copies that are made of it in passing among them; a guess from
/// above, to stay within what the machine has.
const BYTES_PER_ORDER: u64 = 800;
/// Part of the memory that is free which a scenario may take.
const MEMORY_PART: f64 = 0.6;
/// Most open orders of one user: a rule of the engine, with some room left.
const OPEN_PER_USER_MAX: usize = 90_000;

/// How large a world is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    pub users: usize,
    pub markets: u32,
    /// Open orders.
    pub open: usize,
}

/// An order that rests, and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub trader: u32,
    pub order: OrderId,
}

impl Open {
    /// Takes the place of one that is still to come.
    pub const NOTHING: Open = Open { trader: 0, order: OrderId(0) };
}

impl Crowd {
    /// Makes the world; `record` gets what a log would.
    pub fn fill<F: FnMut(UserId, Timestamp, &[u8])>(self, mut record: F) -> (World, Out<F>, Vec<Open>) {
        let mut world = World::new(self.markets, &mut record);
        let mut out = Out::new(record);
        world.add_traders(self.users, &mut out);
        let open = self.rest(&mut world, &mut out);
        (world, out, open)
    }

    /// The open orders of a world that has users and markets already.
    pub fn rest<F: FnMut(UserId, Timestamp, &[u8])>(self, world: &mut World, out: &mut Out<F>) -> Vec<Open> {
        assert!(self.open / self.users.max(1) <= OPEN_PER_USER_MAX, "nobody may have so many open orders");
        let mut chance = Chance::seeded(29);
        let mut open = Vec::with_capacity(self.open);
        out.orders = vec![OrderId(0)];
        for number in 0..self.open {
            // In turn, so that all have as many; their markets and prices by chance.
            let trader = number % self.users;
            let step = Crowd::rest_step(trader, self.markets, &mut chance);
            let envelope = world.envelope(0, step, &[]);
            world.take(envelope, out);
            open.push(Open { trader: trader as u32, order: out.orders[0] });
        }
        assert_eq!(out.refused, 0, "every order rests");
        open
    }

    /// A bid somewhere below the book.
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

/// As many orders as were wished for, or as the free memory holds.
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

    /// Why nothing may be said of the size that was wished for; `None` where it is there.
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
        assert!(Fitting::of(usize::MAX, Size::Full).refused().is_some(), "no machine holds so many");
        println!("sizes: {} cases", cases.len() + 2);
    }
}
