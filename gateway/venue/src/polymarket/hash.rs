//! Whether books carry the hash that their own fields make (venue.md §1.1): looked at now and then, told, never acted on.

use super::dto::HashedBook;
use super::translate::Translate;
use crate::loose::Loose;
use crate::skips::Skip;
use sha1::{Digest, Sha1};

/// One book in so many is looked at (upstream.md §5).
const LOOKED_AT: u64 = 100;

impl Translate {
    /// Sees every book; counts those looked at that differ. Books that lack one of the fields cannot be told.
    pub(super) fn look_at_hash(&mut self, text: &str) {
        self.books_heard += 1;
        if self.books_heard % LOOKED_AT != 1 {
            return;
        }
        if let Some(book) = Loose::of(text).object::<HashedBook<'_>>()
            && let (Some(told), Some(made)) = (book.hash.text(), made(&book))
            && *told != made
        {
            self.skips.count(Skip::HashDiffers, || format!("{told} of a book that makes {made}"));
        }
    }
}

/// The hash of a book, from the words it was written in.
fn made(book: &HashedBook<'_>) -> Option<String> {
    let fields = [
        ("market", book.market),
        ("asset_id", book.asset_id),
        ("timestamp", book.timestamp),
        ("hash", Loose::of("\"\"")),
        ("bids", book.bids),
        ("asks", book.asks),
        ("min_order_size", book.min_order_size),
        ("tick_size", book.tick_size),
        ("neg_risk", book.neg_risk),
        ("last_trade_price", book.last_trade_price),
    ];
    let mut text = String::with_capacity(1_024);
    for (name, field) in fields {
        if field.is_absent() {
            return None;
        }
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&format!("\"{name}\":"));
        // None of these texts holds a blank.
        text.extend(field.raw().chars().filter(|char| !char.is_ascii_whitespace()));
    }
    text.push('}');
    Some(Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
}
