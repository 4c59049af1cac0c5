//! What is traded: tokens of the server's own markets, with order bodies that fit their books.

use super::ask::Ask;
use engine::amount::Price;
use engine::time::Timestamp;
use serde::Deserialize;
use std::time::Duration;
use wire::decimal::Decimal;
use wire::{decimal, instant};

/// Most tokens that a run trades.
const INSTRUMENTS_MAX: usize = 16;
/// Markets from which they are chosen: the most traded ones.
const MARKETS_MAX: usize = 100;
/// Most markets whose books are read, and the size from which a book is not thin.
const OUTLIVING_MAX: usize = 40;
const DEEP_SHARES: f64 = 2_000.0;
/// Different prices of resting orders.
const RESTING_PRICES_MAX: u16 = 8;
/// Time that a market must stay open after the run.
const SPARE: Duration = Duration::from_secs(120);
/// Smallest order that every market accepts (engine/docs/execution.md §13), in shares.
const LOT_SHARES: u64 = 5;
/// A price of one dollar.
const ONE: u16 = 10_000;

/// One token, and the bodies of its orders up to the client's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    pub token: String,
    /// At several prices, all at most half of the best bid.
    rests: Vec<Vec<u8>>,
    /// Fill or kill, at any price.
    pub buy: Vec<u8>,
    pub sell: Vec<u8>,
}

impl Instrument {
    fn new(token: &str, tick: Price, best_bid: Price, shares: u64) -> Instrument {
        let body = |side: &str, order_type: &str, price: u16| {
            let price = decimal::text(|out| decimal::price(out, Price(price)));
            format!(
                "{{\"token_id\":\"{token}\",\"side\":\"{side}\",\"order_type\":\"{order_type}\",\
                 \"quantity\":\"{shares}\",\"price\":\"{price}\",\"client_order_id\":\""
            )
            .into_bytes()
        };
        let prices = (best_bid.0 / 2 / tick.0).clamp(1, RESTING_PRICES_MAX);
        Instrument {
            token: token.to_owned(),
            rests: (1..=prices).map(|step| body("BUY", "limit", step * tick.0)).collect(),
            buy: body("BUY", "market", ONE - tick.0),
            sell: body("SELL", "market", tick.0),
        }
    }

    /// The body of a resting order; its number selects the price.
    pub fn rest(&self, number: u32) -> &[u8] {
        &self.rests[number as usize % self.rests.len()]
    }

    #[cfg(test)]
    pub fn sample(token: &str) -> Instrument {
        Instrument::new(token, Price(100), Price(5_000), LOT_SHARES)
    }

    /// From a book; `None` if it has only one side, or no room far below the touch.
    fn of(book: &Book) -> Option<Instrument> {
        let price = |text: &String| Decimal::parse(text).ok()?.price_exact();
        let side = |levels: &[Level]| levels.iter().filter_map(|level| price(&level.price)).collect::<Vec<_>>();
        let (best_bid, best_ask) = (side(&book.bids).into_iter().max()?, side(&book.asks).into_iter().min()?);
        let tick = price(&book.tick_size)?;
        let minimum: f64 = book.min_order_size.parse().ok()?;
        let shares = LOT_SHARES.max(minimum.ceil() as u64);
        let room = best_bid < best_ask && tick.0 <= ONE / 2 && best_bid.0 >= 2 * tick.0;
        room.then(|| Instrument::new(&book.token_id, tick, best_bid, shares))
    }
}

#[derive(Deserialize)]
struct Market {
    condition_id: String,
    #[serde(default)]
    clob_token_ids: Option<Vec<String>>,
    #[serde(default)]
    live_price: Option<LivePrice>,
}

#[derive(Deserialize)]
struct LivePrice {
    buy: Option<String>,
}

impl Market {
    /// Distance of its first outcome from even odds; `None` without a bid.
    fn off_middle(&self) -> Option<u16> {
        let bid = Decimal::parse(self.live_price.as_ref()?.buy.as_ref()?).ok()?.price_exact()?;
        Some(bid.0.abs_diff(ONE / 2))
    }
}

#[derive(Deserialize)]
struct Detail {
    #[serde(default)]
    end_date: Option<String>,
}

#[derive(Deserialize)]
struct Book {
    token_id: String,
    bids: Vec<Level>,
    asks: Vec<Level>,
    tick_size: String,
    min_order_size: String,
}

#[derive(Deserialize)]
struct Level {
    price: String,
    size: String,
}

impl Book {
    /// Shares on the thinner side.
    fn depth(&self) -> f64 {
        let shares = |levels: &[Level]| levels.iter().filter_map(|level| level.size.parse::<f64>().ok()).sum::<f64>();
        shares(&self.bids).min(shares(&self.asks))
    }
}

/// Tokens with books on both sides, of markets that outlive the run. Those nearest to even odds come first, since they
/// have most room below the touch. Thin books, which a few orders empty, are used only if there are no others.
pub async fn choose(ask: &mut Ask, key: &str, now: Timestamp, run: Duration) -> Result<Vec<Instrument>, String> {
    let mut markets: Vec<Market> = ask.read(&format!("/v1/markets?limit={MARKETS_MAX}"), key).await?;
    markets.sort_by_key(|market| market.off_middle().unwrap_or(ONE));
    let needed_until = Timestamp(now.0 + (run + SPARE).as_micros() as u64);
    let (mut deep, mut thin, mut outliving) = (Vec::new(), Vec::new(), 0);
    for market in &markets {
        if deep.len() == INSTRUMENTS_MAX || outliving == OUTLIVING_MAX {
            break;
        }
        let Some(token) = market.clob_token_ids.as_ref().and_then(|tokens| tokens.first()) else { continue };
        let detail: Detail = ask.read(&format!("/v1/markets/{}", market.condition_id), key).await?;
        if detail.end_date.as_deref().and_then(instant::read).is_some_and(|end| end < needed_until) {
            continue;
        }
        outliving += 1;
        // A market without a book yet is skipped.
        if let Some(book) = ask.read_if_there::<Book>(&format!("/v1/book?token_id={token}"), key).await? {
            let books = if book.depth() >= DEEP_SHARES { &mut deep } else { &mut thin };
            books.extend(Instrument::of(&book));
        }
    }
    thin.truncate(INSTRUMENTS_MAX);
    let found = if deep.is_empty() { thin } else { deep };
    match found.is_empty() {
        true => Err(format!(
            "none of {} markets can be traded: {outliving} stay open until {} s after the run, and none of those has \
             bids and asks",
            markets.len(),
            SPARE.as_secs()
        )),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Prices of the resting orders, of the buy and the sale, and the size, for a book.
    fn shown(bids: &[&str], asks: &[&str], tick: &str, minimum: &str) -> Option<String> {
        let levels =
            |prices: &[&str]| prices.iter().map(|price| json!({"price": price, "size": "10"})).collect::<Vec<_>>();
        let book = json!({
            "token_id": "7", "bids": levels(bids), "asks": levels(asks), "tick_size": tick, "min_order_size": minimum
        });
        let instrument = Instrument::of(&serde_json::from_value(book).expect("a book"))?;
        let fields = |body: &[u8]| {
            let text = format!("{}\"}}", String::from_utf8_lossy(body));
            let body: serde_json::Value = serde_json::from_str(&text).expect("a body");
            assert_eq!(body["token_id"], "7");
            let text = |name: &str| body[name].as_str().expect("a text").to_owned();
            format!("{} {} {}x{}", text("side"), text("order_type"), text("quantity"), text("price"))
        };
        let rests: Vec<_> = instrument.rests.iter().map(|body| fields(body)).collect();
        Some(format!("{}; {}; {}", rests.join(", "), fields(&instrument.buy), fields(&instrument.sell)))
    }

    #[test]
    fn prices_come_from_the_book() {
        let cases = [
            (
                shown(&["0.02", "0.05"], &["0.90", "0.07"], "0.01", "5"),
                Some("BUY limit 5x0.01, BUY limit 5x0.02; BUY market 5x0.99; SELL market 5x0.01"),
            ),
            (shown(&["0.2"], &["0.4"], "0.1", "1"), Some("BUY limit 5x0.10; BUY market 5x0.90; SELL market 5x0.10")),
            (
                shown(&["0.0004"], &["0.9"], "0.0001", "15"),
                Some("BUY limit 15x0.0001, BUY limit 15x0.0002; BUY market 15x0.9999; SELL market 15x0.0001"),
            ),
            (
                shown(&["0.02"], &["0.03"], "0.01", "7.5"),
                Some("BUY limit 8x0.01; BUY market 8x0.99; SELL market 8x0.01"),
            ),
            (shown(&["0.01"], &["0.03"], "0.01", "5"), None),
            (shown(&[], &["0.03"], "0.01", "5"), None),
            (shown(&["0.40"], &[], "0.01", "5"), None),
            (shown(&["0.40"], &["0.40"], "0.01", "5"), None),
            (shown(&["0.40"], &["0.50"], "x", "5"), None),
        ];
        for (shown, expected) in &cases {
            assert_eq!(shown.as_deref(), *expected);
        }
        let many = shown(&["0.50"], &["0.51"], "0.001", "5").expect("a book");
        assert_eq!(many.matches("limit").count(), usize::from(RESTING_PRICES_MAX), "{many}");
        println!("books: {} cases", cases.len() + 1);
    }
}
