//! arc-swap: each change builds another book and swaps it in; readers keep the earlier one alive while they read it.

use super::{LEVELS, LadderPeer, Levels, SharedBook};
use arc_swap::ArcSwap;
use std::hint::black_box;
use std::sync::Arc;

pub const LADDER: LadderPeer = LadderPeer { name: "arc-swap", make };

fn make(levels: &Levels) -> Box<dyn SharedBook> {
    Box::new(Swapped(ArcSwap::from_pointee(*levels)))
}

struct Swapped(ArcSwap<Levels>);

impl SharedBook for Swapped {
    fn change(&self, level: usize, size: u64) {
        let mut levels = **self.0.load();
        levels[level].1 = size;
        self.0.store(Arc::new(levels));
    }

    fn top(&self, times: u64) -> u64 {
        let once = |_| {
            let levels = self.0.load();
            let ((bid, bid_size), (ask, ask_size)) = (levels[0], levels[LEVELS / 2]);
            bid + bid_size + ask + ask_size
        };
        (0..times).map(once).fold(0, |_, sum| black_box(sum))
    }

    fn sum(&self, times: u64) -> u64 {
        let once = |_| self.0.load().iter().map(|(price, size)| price + size).sum::<u64>();
        (0..times).map(once).fold(0, |_, sum| black_box(sum))
    }
}
