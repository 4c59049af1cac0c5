//! The count of cases. A table that was filtered down to nothing would pass silently; here it fails.

use std::cell::Cell;

/// Counts the cases of one test and prints at the end how many ran.
pub struct Cases {
    name: &'static str,
    ran: Cell<usize>,
}

impl Cases {
    pub fn of(name: &'static str) -> Cases {
        Cases { name, ran: Cell::new(0) }
    }

    /// One more case ran.
    pub fn one(&self) {
        self.add(1);
    }

    /// `count` more cases ran.
    pub fn add(&self, count: usize) {
        self.ran.set(self.ran.get() + count);
    }

    pub fn count(&self) -> usize {
        self.ran.get()
    }
}

impl Drop for Cases {
    fn drop(&mut self) {
        println!("{}: {} cases", self.name, self.ran.get());
        // A failing test has its own message.
        if !std::thread::panicking() {
            assert!(self.ran.get() > 0, "{}: no case ran", self.name);
        }
    }
}
