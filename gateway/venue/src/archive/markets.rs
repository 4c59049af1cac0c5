//! Markets that only rows name, and files of market ids (gateway/docs/archive-tools.md §2). Those that the venue described
//! are in `known`.

use crate::ids;
use crate::tape::Origin;
use archive::row::{Condition, Event, Row};
use engine::amount::{Price, TickSize};
use engine::market::terms::{Category, Listing};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Largest file of market ids, in bytes.
const IDS_BYTES_MAX: u64 = 64 << 20;

/// What rows show of a market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub tokens: BTreeSet<Arc<str>>,
    /// The finest grid that its prices need.
    pub tick: TickSize,
    pub origin: Origin,
}

impl Found {
    /// Of a market of this venue of which no row was seen.
    pub fn of(origin: Origin) -> Found {
        Found { tokens: BTreeSet::new(), tick: COARSEST, origin }
    }

    /// Makes the grid as fine as these prices need it.
    pub fn prices(&mut self, prices: impl IntoIterator<Item = Price>) {
        let finest = prices.into_iter().map(grid_of).min();
        self.tick = finest.map_or(self.tick, |finest| self.tick.min(finest));
    }
}

/// The coarsest grid that prices alone can show.
const COARSEST: TickSize = TickSize(100);

/// What the rows of an hour show of its markets.
#[derive(Default)]
pub struct Finder {
    pub markets: BTreeMap<Condition, Found>,
    /// The market and token of the last row: files are sorted by both.
    last: Option<(Condition, Arc<str>)>,
}

impl Finder {
    /// Notes a row of a file of this venue.
    pub fn note(&mut self, row: &Row, origin: Origin) {
        let is_same = self.last.as_ref().is_some_and(|(market, token)| *market == row.market && *token == row.token);
        let found = self.markets.entry(row.market).or_insert_with(|| Found::of(origin));
        if !is_same {
            found.tokens.insert(row.token.clone());
            self.last = Some((row.market, row.token.clone()));
        }
        let needed = match &row.event {
            Event::Book { bids, asks } => {
                bids.iter().chain(asks).map(|(price, _)| grid_of(*price)).min().unwrap_or(COARSEST)
            }
            Event::PriceChange { price, .. } | Event::LastTradePrice { price, .. } => grid_of(*price),
            Event::TickSizeChange { old, new } => old.unwrap_or(*new).min(*new),
        };
        found.tick = found.tick.min(needed);
    }
}

/// The coarsest usual grid that has this price.
fn grid_of(price: Price) -> TickSize {
    let grids = [COARSEST, TickSize(10)];
    grids.into_iter().find(|tick| price.0.is_multiple_of(tick.0)).unwrap_or(TickSize(1))
}

/// A listing from rows alone: its texts are its ids. `None` if it has more than two tokens.
pub fn list_by_rows(market: Condition, found: &Found) -> Option<Listing> {
    let mut tokens: Vec<String> = found.tokens.iter().map(|token| token.to_string()).collect();
    // By value: ids are decimal numbers.
    tokens.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    if tokens.len() == 1 {
        // The other token has no row so far. Its true id is not known; this one is not in use.
        tokens.push(ids::token(&format!("complement:{}", tokens[0])));
    }
    let tokens: [String; 2] = tokens.try_into().ok()?;
    let condition = market.to_string();
    Some(Listing {
        venue: found.origin.registration().venue,
        venue_market_id: condition.clone(),
        tokens,
        outcomes: ["Token A".into(), "Token B".into()],
        slug: condition.clone(),
        question: condition.clone(),
        description: None,
        image: None,
        label: None,
        category: Category::Unknown,
        tags: Vec::new(),
        event: None,
        tick: found.tick,
        min_order_size: None,
        neg_risk: false,
        start: None,
        end: None,
        updown: None,
        sports: false,
        condition,
    })
}

/// Reads market ids: one a line, blank lines and lines that begin with `#` left out.
///
/// # Errors
/// The file cannot be read or is too large, or a line is not an id; the text names it.
pub fn read_ids(path: &Path) -> Result<HashSet<Condition>, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let size = fs::metadata(path).map_err(|error| named(&error))?.len();
    if size > IDS_BYTES_MAX {
        return Err(named(&format!("larger than {IDS_BYTES_MAX} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    let mut ids = HashSet::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let id = Condition::parse(&line.to_ascii_lowercase());
        ids.insert(id.ok_or_else(|| named(&format!("line {}: {line:?} is not a condition id", number + 1)))?);
    }
    match ids.is_empty() {
        true => Err(named(&"no condition id in it")),
        false => Ok(ids),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::Qty;
    use engine::book::BookSide;
    use engine::time::Timestamp;

    fn row(token: &str, event: Event) -> Row {
        let at = Timestamp::from_secs(1_786_406_400);
        Row { received: at, source: at, market: Condition([7; 32]), token: token.into(), event }
    }

    fn change(price: u16) -> Event {
        let (side, best_bid, best_ask) = (BookSide::Bid, None, None);
        Event::PriceChange { price: Price(price), size: Qty(1), side, best_bid, best_ask }
    }

    #[test]
    fn rows_alone_list_a_market() {
        let cases = [
            // prices, tick
            (vec![change(4_000), change(9_900)], 100),
            (vec![change(4_000), change(4_010)], 10),
            (vec![change(4_000), change(9_999), change(4_010)], 1),
            (vec![Event::TickSizeChange { old: Some(TickSize(100)), new: TickSize(10) }], 10),
            (vec![Event::Book { bids: vec![(Price(100), Qty(1)), (Price(115), Qty(1))], asks: vec![] }], 1),
        ];
        for (events, tick) in &cases {
            let mut finder = Finder::default();
            for (number, event) in events.iter().enumerate() {
                finder.note(
                    &row(["10", "9"][number % 2], event.clone()),
                    Origin::of(engine::market::terms::Venue::Polymarket).expect("a live venue"),
                );
            }
            let found = &finder.markets[&Condition([7; 32])];
            let listing = list_by_rows(Condition([7; 32]), found).expect("a listing");
            assert_eq!(listing.tick, TickSize(*tick), "{events:?}");
            assert_eq!(listing.question, format!("0x{}", "07".repeat(32)));
            assert_eq!((listing.outcomes[0].as_str(), listing.category), ("Token A", Category::Unknown));
            match events.len() {
                1 => assert!(listing.tokens[0] == "10" && listing.tokens[1].len() > 60, "{:?}", listing.tokens),
                _ => assert_eq!(listing.tokens, ["9", "10"]),
            }
        }
        let mut finder = Finder::default();
        for token in ["1", "2", "3"] {
            finder.note(
                &row(token, change(4_000)),
                Origin::of(engine::market::terms::Venue::Polymarket).expect("a live venue"),
            );
        }
        assert_eq!(list_by_rows(Condition([7; 32]), &finder.markets[&Condition([7; 32])]), None);
        println!("listings: {} cases", cases.len() + 1);
    }

    #[test]
    fn files_of_ids() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("markets.txt");
        let id = format!("0x{}", "aB".repeat(32));
        let cases = [
            (format!("# mine\n\n {id} \n{id}\n"), Ok(1)),
            (format!("{id}\nslug\n"), Err("line 2: \"slug\" is not a condition id")),
            ("\n".into(), Err("no condition id in it")),
        ];
        for (text, expected) in &cases {
            fs::write(&path, text).expect("a file");
            match (read_ids(&path), expected) {
                (Ok(ids), Ok(count)) => assert_eq!(ids.len(), *count, "{text}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (read, _) => panic!("{text}: {read:?}"),
            }
        }
        println!("files of ids: {} cases", cases.len());
    }
}
