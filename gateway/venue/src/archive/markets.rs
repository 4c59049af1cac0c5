//! Which markets an archive has: those that the venue described, and those that only rows name
//! (gateway/docs/archive-tools.md §2).

use super::catalogue;
use crate::FeedUpdate;
use crate::category::Names;
use crate::ids;
use crate::replay::{Lines, Recording as _};
use crate::skips::Skips;
use crate::tape::{Origin, TapeError};
use archive::row::{Condition, Event, Row};
use engine::amount::{Price, TickSize};
use engine::backtest::Ends;
use engine::market::terms::{Category, Listing, MarketState, Resolution};
use engine::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Largest file of market ids, in bytes.
const IDS_BYTES_MAX: u64 = 64 << 20;

/// A market that the venue described.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub listing: Listing,
    /// Its end, as the venue stated it over time.
    pub ends: Ends,
    /// Its last state, apart from a result.
    pub state: MarketState,
    /// Its result, and since when the venue reports it.
    pub resolution: Option<(Resolution, Timestamp)>,
}

/// The markets of a venue's folder, by condition; empty if the folder has no lines about markets.
///
/// # Errors
/// The lines cannot be read.
pub fn known(venue_folder: &Path, names: &Names) -> Result<BTreeMap<String, Known>, TapeError> {
    known_before(venue_folder, names, Timestamp(u64::MAX))
}

/// The same, of the lines before a moment.
///
/// # Errors
/// As [`known`].
pub fn known_before(
    venue_folder: &Path,
    names: &Names,
    until: Timestamp,
) -> Result<BTreeMap<String, Known>, TapeError> {
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let Some(mut lines) = lines_of(venue_folder, names, &Arc::default())? else { return Ok(known) };
    let mut updates = Vec::new();
    let mut at = Timestamp::default();
    while let Some(next) = lines.line_at().filter(|next| *next < until) {
        at = at.max(next);
        updates.clear();
        lines.step(at, &mut updates);
        for update in updates.drain(..) {
            match update {
                FeedUpdate::Listed { listing, state } => {
                    let (condition, end) = (listing.condition.clone(), listing.end);
                    let (mut ends, resolution) = match known.remove(&condition) {
                        Some(earlier) => (earlier.ends, earlier.resolution),
                        None => (Ends::of(end), None),
                    };
                    ends.state(at, end);
                    known.insert(condition, Known { listing: *listing, ends, state, resolution });
                }
                FeedUpdate::StateChanged { condition, state } => {
                    known.entry(condition).and_modify(|market| market.state = state);
                }
                FeedUpdate::EndChanged { condition, end } => {
                    known.entry(condition).and_modify(|market| {
                        market.listing.end = end;
                        market.ends.state(at, end);
                    });
                }
                FeedUpdate::Resolved { condition, resolution, .. } => {
                    known.entry(condition).and_modify(|market| market.resolution = Some((resolution, at)));
                }
                _ => {}
            }
        }
    }
    Ok(known)
}

/// The lines about a venue's markets; `None` if there are none.
pub(super) fn lines_of(venue_folder: &Path, names: &Names, skips: &Arc<Skips>) -> Result<Option<Lines>, TapeError> {
    let folder = catalogue::folder(venue_folder);
    if !folder.is_dir() {
        return Ok(None);
    }
    match Lines::open(&folder, false, names, skips) {
        Ok(lines) => Ok(Some(lines)),
        Err(TapeError::Empty { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

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

    /// What the lines of a venue say about an end, and from when on.
    #[test]
    fn a_moved_end_keeps_the_time_of_its_statement() {
        let folder = tempfile::tempdir().expect("a folder");
        let condition = format!("0x{:064x}", 1);
        let line = |at: u64, end: &str| {
            format!(
                r#"{{"r":{at},"v":"polymarket","u":"/markets","s":200,"b":[{{"id":"1","conditionId":"{condition}","slug":"rain","question":"Rain?","outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"1001\",\"1002\"]","orderPriceMinTickSize":0.01,"active":true,"acceptingOrders":true,"endDate":"{end}"}}]}}"#
            )
        };
        let (first, moved) = ("2026-11-03T00:00:00Z", "2026-11-05T00:00:00Z");
        let lines = [line(1_790_000_000_000, first), line(1_790_000_060_000, first), line(1_790_000_120_000, moved)];
        let markets = catalogue::folder(folder.path());
        fs::create_dir_all(&markets).expect("a folder");
        fs::write(markets.join("2026-09-21.ndjson"), lines.join("\n") + "\n").expect("written");
        let known = known(folder.path(), &Names::default()).expect("read");
        let ends = &known[&condition].ends;
        let secs = |secs: u64| Some(Timestamp::from_secs(secs));
        let cases = [
            (1_780_000_000, secs(1_793_664_000)),
            (1_790_000_119, secs(1_793_664_000)),
            (1_790_000_120, secs(1_793_836_800)),
        ];
        for (moment, expected) in cases {
            assert_eq!(ends.known_at(Timestamp::from_secs(moment)), expected, "{moment}");
        }
        println!("moved ends: {} cases", cases.len());
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
