//! The state of a translator of a recording as bytes: what is made of the messages after them does not change.

use super::book::{Book, Fold, Grid, Range};
use super::listing::EventFacts;
use super::translate::{Market, Translate};
use crate::fees::Statement;
use crate::saved;
use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::{Category, MarketState, Resolution};
use engine::time::Timestamp;
use std::sync::Arc;
use wincode::{SchemaRead, SchemaWrite};

#[derive(SchemaWrite, SchemaRead)]
struct Saved {
    markets: Vec<SavedMarket>,
    events: Vec<SavedEvent>,
    series: Vec<(String, String)>,
    fees: Vec<(String, Statement)>,
    /// Connection, subscription, last number.
    sequences: Vec<(u8, u64, u64)>,
}

#[derive(SchemaWrite, SchemaRead)]
struct SavedMarket {
    ticker: String,
    condition: String,
    tokens: [String; 2],
    /// Start, end, tick, and whether levels are rounded.
    grid: Vec<(u16, u16, TickSize, bool)>,
    tick: TickSize,
    state: MarketState,
    end: Option<Timestamp>,
    determined: Option<Resolution>,
    resolved: Option<Resolution>,
    bids: [Vec<(Price, Qty)>; 2],
    /// The connection that its book follows; without one, the book may be that of a response.
    followed: Option<u8>,
    is_fetched: bool,
    series: Option<String>,
    fees: Statement,
}

#[derive(SchemaWrite, SchemaRead)]
struct SavedEvent {
    ticker: String,
    title: Option<String>,
    category: Option<Category>,
    end: Option<Timestamp>,
    series: Option<String>,
}

impl Translate {
    /// All that later messages of a recording depend on; `None`: it is too large.
    pub fn save(&self) -> Option<Vec<u8>> {
        let event = |(ticker, event): (&String, &EventFacts)| SavedEvent {
            ticker: ticker.clone(),
            title: event.title.clone(),
            category: event.category,
            end: event.end,
            series: event.series.clone(),
        };
        saved::write(&Saved {
            markets: self.markets.iter().map(|(ticker, market)| SavedMarket::of(ticker, market)).collect(),
            events: self.events.iter().map(event).collect(),
            series: self.series.iter().map(|(ticker, title)| (ticker.clone(), title.clone())).collect(),
            fees: self.fees.iter().map(|(ticker, stated)| (ticker.clone(), *stated)).collect(),
            sequences: self.sequences().collect(),
        })
    }

    /// Continues after [`Translate::save`]; false: the bytes are not such.
    pub fn restore(&mut self, bytes: &[u8]) -> bool {
        let Some(Saved { markets, events, series, fees, sequences }) = saved::read::<Saved>(bytes) else {
            return false;
        };
        if markets.iter().any(|market| market.grid.is_empty()) {
            return false;
        }
        self.markets = markets.into_iter().map(SavedMarket::restored).collect();
        let event = |event: SavedEvent| {
            let SavedEvent { ticker, title, category, end, series } = event;
            (ticker, EventFacts { title, category, end, series })
        };
        self.events = events.into_iter().map(event).collect();
        self.series = series.into_iter().collect();
        self.fees = fees.into_iter().collect();
        self.set_sequences(sequences);
        true
    }
}

impl SavedMarket {
    fn of(ticker: &str, market: &Market) -> SavedMarket {
        let range = |range: &Range| (range.start, range.end, range.tick, range.rounded);
        SavedMarket {
            ticker: ticker.to_owned(),
            condition: market.condition.clone(),
            tokens: market.tokens.each_ref().map(|token| token.to_string()),
            grid: market.grid.ranges().iter().map(range).collect(),
            tick: market.tick,
            state: market.state,
            end: market.end,
            determined: market.determined,
            resolved: market.resolved,
            bids: market.book.levels().clone(),
            followed: match market.book.fold {
                Fold::Followed(connection) => Some(connection),
                Fold::Lost | Fold::Fetched => None,
            },
            is_fetched: market.book.fold == Fold::Fetched,
            series: market.series.clone(),
            fees: market.fees,
        }
    }

    fn restored(self) -> (String, Market) {
        let range = |(start, end, tick, rounded)| Range { start, end, tick, rounded };
        let fold = match self.followed {
            Some(connection) => Fold::Followed(connection),
            None if self.is_fetched => Fold::Fetched,
            None => Fold::Lost,
        };
        let market = Market {
            condition: self.condition,
            tokens: self.tokens.map(Arc::from),
            grid: Grid::new(self.grid.into_iter().map(range).collect()),
            tick: self.tick,
            state: self.state,
            end: self.end,
            determined: self.determined,
            resolved: self.resolved,
            book: Book::of_levels(self.bids, fold),
            series: self.series,
            fees: self.fees,
        };
        (self.ticker, market)
    }
}
