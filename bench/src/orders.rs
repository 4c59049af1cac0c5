//! The texts of orders, for every transport.

use std::fmt::Write as _;

/// One order in this many is filled immediately, the others rest.
pub const FILLS_EVERY: u64 = 10;

/// The orders of one user: bids below the book, and every so often one that is filled at the best ask.
pub struct Orders {
    /// Prefix of its client ids, unique for the user.
    name: String,
    token: String,
    /// One in this many is filled immediately.
    fills_every: u64,
    made: u64,
}

impl Orders {
    pub fn new(name: String, token: &str) -> Orders {
        Orders { name, token: token.to_owned(), fills_every: FILLS_EVERY, made: 0 }
    }

    /// Each of them is filled immediately.
    pub fn all_filled(self) -> Orders {
        Orders { fills_every: 1, ..self }
    }

    /// Writes the next one.
    pub fn write(&mut self, out: &mut String) {
        self.made += 1;
        let cents = if self.made.is_multiple_of(self.fills_every) { 51 } else { 1 + self.made * 7 % 40 };
        let Orders { name, token, made, .. } = self;
        write!(
            out,
            "{{\"token_id\":\"{token}\",\"side\":\"BUY\",\"order_type\":\"limit\",\"price\":\"0.{cents:02}\",\
             \"quantity\":\"5\",\"client_order_id\":\"bench-{name}-{made}\"}}"
        )
        .expect("writing to a string succeeds");
    }

    /// Writes as many of them as a batch has.
    pub fn write_batch(&mut self, count: usize, out: &mut String) {
        out.push_str("{\"orders\":[");
        for place in 0..count {
            out.push_str(if place > 0 { "," } else { "" });
            self.write(out);
        }
        out.push_str("]}");
    }
}
