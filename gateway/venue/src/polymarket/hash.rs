//! Checks a sample of books against the hash that they state; a difference is counted and has no other effect.

use super::dto::HashedBook;
use super::translate::Translate;
use crate::loose::Loose;
use crate::skips::Skip;
use sha1::{Digest, Sha1};

/// One book of this many is checked.
const CHECK_EVERY: u64 = 100;

impl Translate {
    /// Sees every book, and counts checked books with another hash. A book that lacks a field of the hash is not
    /// checked.
    pub(super) fn check_hash(&mut self, text: &str) {
        self.books_seen += 1;
        if self.books_seen % CHECK_EVERY != 1 {
            return;
        }
        if let Some(book) = Loose::of(text).object::<HashedBook<'_>>()
            && let (Some(stated), Some(computed)) = (book.hash.text(), computed(&book))
            && *stated != computed
        {
            self.skips.count(Skip::HashDiffers, || format!("{stated} of a book with the hash {computed}"));
        }
    }
}

/// The hash of a book, computed from its text.
fn computed(book: &HashedBook<'_>) -> Option<String> {
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
        // None of these texts contains a blank.
        text.extend(field.raw().chars().filter(|char| !char.is_ascii_whitespace()));
    }
    text.push('}');
    Some(Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
}
