//! The state of a translator of a recording as bytes: what is made of the messages after them does not change.

use super::fees::Fees;
use super::recent::Change;
use super::recent::Recent;
use super::standing::Standing;
use super::translate::{Market, Token, Translate};
use crate::saved;
use engine::amount::TickSize;
use engine::id::Outcome;
use engine::market::terms::{MarketState, Resolution};
use engine::time::Timestamp;
use std::sync::Arc;
use wincode::{SchemaRead, SchemaWrite};

#[derive(SchemaWrite, SchemaRead)]
struct Saved {
    markets: Vec<SavedMarket>,
    tokens: Vec<SavedToken>,
    books_seen: u64,
}

#[derive(SchemaWrite, SchemaRead)]
struct SavedMarket {
    condition: String,
    tokens: [String; 2],
    tick: TickSize,
    untradable: bool,
    open_state: MarketState,
    state: MarketState,
    end: Option<Timestamp>,
    gamma_closed: bool,
    clob_closed: bool,
    gamma_prices: Option<Resolution>,
    clob_prices: Option<Resolution>,
    settled: bool,
    clob_winner: Option<Outcome>,
    announced: Option<Outcome>,
    tick_at: Timestamp,
    row_at: Timestamp,
    closed_at: Timestamp,
    resolved: Option<Resolution>,
    fees: Fees,
}

#[derive(SchemaWrite, SchemaRead)]
struct SavedToken {
    id: String,
    market: u32,
    connection: u8,
    snapshot_ts: Timestamp,
    last_ts: Timestamp,
    hash: String,
    hash_at: Timestamp,
    recent: Vec<Change>,
    dropped_to: Timestamp,
}

impl Translate {
    /// All that later messages of a recording depend on; `None`: it is too large. Announced markets do not belong to it,
    /// since a recording waits for no row.
    pub fn save(&self) -> Option<Vec<u8>> {
        saved::write(&Saved {
            markets: self.markets.iter().map(SavedMarket::of).collect(),
            tokens: self.tokens.iter().map(SavedToken::of).collect(),
            books_seen: self.books_seen,
        })
    }

    /// Continues after [`Translate::save`]; false: the bytes are not such.
    pub fn restore(&mut self, bytes: &[u8]) -> bool {
        let Some(Saved { markets, tokens, books_seen }) = saved::read::<Saved>(bytes) else { return false };
        if tokens.iter().any(|token| token.market as usize >= markets.len()) {
            return false;
        }
        self.markets = markets.into_iter().map(SavedMarket::restored).collect();
        self.tokens = tokens.into_iter().map(SavedToken::restored).collect();
        self.by_condition =
            self.markets.iter().enumerate().map(|(number, market)| (market.condition.clone(), number)).collect();
        self.by_token = self.tokens.iter().enumerate().map(|(number, token)| (token.id.clone(), number)).collect();
        self.books_seen = books_seen;
        true
    }
}

impl SavedMarket {
    fn of(market: &Market) -> SavedMarket {
        let Standing { gamma_closed, clob_closed, gamma_prices, clob_prices, settled, clob_winner, announced } =
            market.standing;
        SavedMarket {
            condition: market.condition.clone(),
            tokens: market.tokens.clone(),
            tick: market.tick,
            untradable: market.untradable,
            open_state: market.open_state,
            state: market.state,
            end: market.end,
            gamma_closed,
            clob_closed,
            gamma_prices,
            clob_prices,
            settled,
            clob_winner,
            announced,
            tick_at: market.tick_at,
            row_at: market.row_at,
            closed_at: market.closed_at,
            resolved: market.resolved,
            fees: market.fees,
        }
    }

    fn restored(self) -> Market {
        Market {
            condition: self.condition,
            tokens: self.tokens,
            tick: self.tick,
            untradable: self.untradable,
            open_state: self.open_state,
            state: self.state,
            end: self.end,
            standing: Standing {
                gamma_closed: self.gamma_closed,
                clob_closed: self.clob_closed,
                gamma_prices: self.gamma_prices,
                clob_prices: self.clob_prices,
                settled: self.settled,
                clob_winner: self.clob_winner,
                announced: self.announced,
            },
            tick_at: self.tick_at,
            row_at: self.row_at,
            closed_at: self.closed_at,
            resolved: self.resolved,
            fees: self.fees,
        }
    }
}

impl SavedToken {
    fn of(token: &Token) -> SavedToken {
        let (recent, dropped_to) = token.recent.parts();
        SavedToken {
            id: token.id.to_string(),
            market: token.market as u32,
            connection: token.connection,
            snapshot_ts: token.snapshot_ts,
            last_ts: token.last_ts,
            hash: token.hash.0.clone(),
            hash_at: token.hash.1,
            recent,
            dropped_to,
        }
    }

    fn restored(self) -> Token {
        Token {
            id: Arc::from(self.id),
            market: self.market as usize,
            connection: self.connection,
            snapshot_ts: self.snapshot_ts,
            last_ts: self.last_ts,
            hash: (self.hash, self.hash_at),
            recent: Recent::of_parts(self.recent, self.dropped_to),
        }
    }
}
