//! The price stream as server-sent events (gateway/docs/streams.md §5).
//!
//! The body is made while it is sent, by a future of its connection. It waits for news, and keeps only the newest price
//! of each market until it can send. The socket disconnects a peer that takes no byte; a reconnect begins with a
//! snapshot.

use super::hub::{Hub, Watcher};
use super::live::{self, SpotEvent, SpotFigures, Symbol};
use super::price_text::{self, Price};
use super::shape::prices::TypedPrice;
use crate::api::books::view::{self, BookCopy};
use crate::api::markets::quote::OUTCOMES;
use crate::http::body::{Pages, Sink, Truncated};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{ByName, write_record};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::reads::Reads;
use ahash::AHashMap;
use engine::id::{KeyId, MarketId};
use engine::market::catalog::MarketCell;
use engine::market::spot::{self, Family, SpotPrice};
use engine::market::terms::{Asset, Resolution};
use engine::time::Timestamp;
use hyper::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde::Serialize;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;
use wire::write::object;

/// Most markets of one stream.
const MARKETS_MAX: usize = 50;
/// Most streams of one address without a key.
const PER_ADDRESS_MAX: u32 = 5;
/// Levels of each side in `orderbook`.
const LEVELS_MAX: usize = 10;
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
/// Interval of spot prices and of batches.
const SPOTS_EVERY: Duration = Duration::from_secs(1);
/// Length of the first comment, which makes proxies and browsers pass the stream on immediately.
const PADDING_BYTES: usize = 2_048;
/// Markets that are written before other tasks of the thread run.
const MARKETS_PER_PAGE: usize = 8;

/// Open streams, by key and by address; shared by all IO threads.
#[derive(Debug, Default)]
pub struct EventSeats {
    seats: Mutex<AHashMap<SeatOwner, u32>>,
    /// Includes those without a seat.
    open: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SeatOwner {
    Key(KeyId),
    Address(IpAddr),
}

/// Counts a stream as open until it is dropped.
struct Counted(Arc<EventSeats>);

impl Counted {
    fn new(streams: Arc<EventSeats>) -> Counted {
        streams.open.fetch_add(1, Relaxed);
        Counted(streams)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// The seat of a stream, returned on drop.
struct Seat {
    streams: Arc<EventSeats>,
    owner: SeatOwner,
}

impl EventSeats {
    /// Streams open now.
    pub fn open(&self) -> u64 {
        self.open.load(Relaxed)
    }

    fn take(self: &Arc<Self>, owner: SeatOwner, max: u32) -> Option<Seat> {
        let mut streams = self.seats.lock();
        let count = streams.entry(owner).or_default();
        (*count < max).then(|| {
            *count += 1;
            Seat { streams: Arc::clone(self), owner }
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut streams = self.streams.seats.lock();
        if let Some(count) = streams.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.owner);
            }
        }
    }
}

/// The parameters of a stream.
struct Subscription {
    crypto: Vec<Asset>,
    family: Option<Family>,
    markets: Vec<MarketId>,
    background: bool,
}

/// Answers with a stream.
///
/// # Errors
/// `INVALID_REQUEST` for an empty subscription, 429 at the cap of streams.
pub async fn open(call: Call) -> Outcome {
    let subscription = Subscription::read(&call)?;
    let seat = seat(&call)?;
    let hub = Rc::clone(&call.edge.hub);
    let counted = Counted::new(call.streams().events.clone());
    let pages = Pages::live(move |sink| async move {
        let (_seat, _counted) = (seat, counted);
        Stream::new(subscription, hub).run(sink).await;
        Ok::<(), Truncated>(())
    });
    let buffering = HeaderName::from_static("x-accel-buffering");
    Ok(Reply::streamed("text/event-stream", pages).with_header(buffering, HeaderValue::from_static("no")))
}

fn seat(call: &Call) -> Result<Option<Seat>, Refusal> {
    let limits = &call.front().settings.limits;
    let keyed = call.caller.as_ref().and_then(|caller| Some((caller.key?, caller.tier)));
    let (owner, max) = match keyed {
        Some((key, tier)) => (SeatOwner::Key(key), limits.tier(tier).max_ws_connections),
        // Limits by address do not apply to peers on loopback (gateway/docs/wire.md §8).
        None if call.source.local && !limits.meter_loopback => return Ok(None),
        None => (SeatOwner::Address(network(call.source.address)), PER_ADDRESS_MAX),
    };
    match call.streams().events.take(owner, max) {
        Some(seat) => Ok(Some(seat)),
        None => Err(Refusal::rate_limit("concurrency", max, call.now.plus(engine::time::SECOND), 1)),
    }
}

/// An IPv6 address counts by its /64.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
    }
}

impl Subscription {
    fn read(call: &Call) -> Result<Subscription, Refusal> {
        let query = call.query();
        let list = |name| query.get(name).unwrap_or_default().split(',').map(str::trim).filter(|item| !item.is_empty());
        let mut crypto: Vec<Asset> = Vec::new();
        let (mut markets, mut count) = (Vec::new(), 0);
        let named = list("crypto").count();
        for asset in list("crypto").filter_map(spot::asset) {
            if !crypto.contains(&asset) {
                crypto.push(asset);
            }
        }
        for id in list("condition_ids") {
            count += 1;
            if let Some(market) = call.reads().catalog.by_condition(id).filter(|market| !markets.contains(market)) {
                markets.push(market);
            }
        }
        if count > MARKETS_MAX {
            return Err(Refusal::new(Code::InvalidRequest, "A stream has at most 50 markets."));
        }
        if named + count == 0 {
            return Err(Refusal::new(Code::InvalidRequest, "Name crypto symbols or condition_ids."));
        }
        let family = live::family(query.get("crypto_source"))?;
        let background = matches!(query.get("background"), Some("true" | "1"));
        Ok(Subscription { crypto, family, markets, background })
    }
}

/// Prices that a stream has not sent yet.
#[derive(Default)]
struct Mailbox {
    /// The newest price of each market, in the order of first changes.
    prices: RefCell<Vec<(MarketId, Rc<Price>)>>,
    bell: Notify,
}

impl Watcher for Mailbox {
    fn price(&self, cell: &MarketCell, price: &Rc<Price>, changed: bool) -> bool {
        if changed {
            self.put(cell, price);
        }
        true
    }

    /// The final price has what each outcome pays.
    fn resolved(&self, cell: &MarketCell, _: Resolution, price: &Rc<Price>) {
        self.put(cell, price);
    }
}

impl Mailbox {
    fn put(&self, cell: &MarketCell, price: &Rc<Price>) {
        let mut prices = self.prices.borrow_mut();
        match prices.iter_mut().find(|(market, _)| *market == cell.id) {
            Some((_, waiting)) => *waiting = Rc::clone(price),
            None => prices.push((cell.id, Rc::clone(price))),
        }
        self.bell.notify_one();
    }
}

/// The first event.
#[derive(Serialize)]
struct Snapshot<'a> {
    crypto: ByName<Symbol, SpotFigures>,
    markets: ByName<&'a str, TypedPrice<'a>>,
}

#[derive(Serialize)]
struct Keepalive {
    /// Unix milliseconds.
    ts: u64,
    /// Number of the event among those of its stream, from 1.
    n: u64,
}

/// One stream.
struct Stream {
    subscription: Subscription,
    hub: Rc<Hub>,
    id: u64,
    mailbox: Rc<Mailbox>,
    sent: AHashMap<(Asset, &'static str), Timestamp>,
    keepalives: u64,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.subscription.markets.iter().for_each(|market| self.hub.unwatch(*market, self.id));
    }
}

impl Stream {
    fn new(subscription: Subscription, hub: Rc<Hub>) -> Stream {
        let mailbox = Rc::new(Mailbox::default());
        let id = hub.stream_id();
        subscription.markets.iter().for_each(|market| hub.watch(*market, id, mailbox.clone()));
        Stream { subscription, hub, id, mailbox, sent: AHashMap::new(), keepalives: 0 }
    }

    async fn run(mut self, mut sink: Sink) {
        let mut ending = self.hub.ending();
        sink.send(self.preamble()).await;
        let every = |period| {
            let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut spot_ticks, mut keepalives) = (every(SPOTS_EVERY), every(KEEPALIVE_EVERY));
        let (has_spots, background) =
            (!self.subscription.crypto.is_empty() || self.subscription.background, self.subscription.background);
        let mailbox = Rc::clone(&self.mailbox);
        loop {
            tokio::select! {
                biased;
                _ = ending.wait_for(|ending| *ending) => return,
                _ = keepalives.tick() => sink.send(self.keepalive()).await,
                _ = spot_ticks.tick(), if has_spots => {
                    let page = self.spots();
                    sink.send(page).await;
                    if background {
                        self.send_markets(&mut sink).await;
                    }
                }
                () = mailbox.bell.notified(), if !background => self.send_markets(&mut sink).await,
            }
        }
    }

    /// Padding, the delay for reconnects, and a snapshot.
    fn preamble(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PADDING_BYTES + 4_096);
        out.extend_from_slice(b": padding");
        out.resize(PADDING_BYTES, b' ');
        out.extend_from_slice(b"\n\nretry: 2000\n\n");
        let app = self.hub.app().clone();
        let mut spots = self.new_spots(&app.reads);
        // One price for each symbol; the family that decides windows comes first.
        spots.dedup_by_key(|(asset, _)| *asset);
        let crypto = spots.iter().map(|(asset, price)| (Symbol::from(*asset), SpotFigures::from(*price)));
        let cells = self.subscription.markets.iter().filter_map(|market| app.reads.catalog.market(*market));
        let markets =
            cells.map(|cell| (cell.listing.condition.as_str(), TypedPrice::new(price_text::fields(cell, &app.reads))));
        let snapshot = Snapshot { crypto: ByName(crypto.collect()), markets: ByName(markets.collect()) };
        event(&mut out, "snapshot", &snapshot);
        out
    }

    fn keepalive(&mut self) -> Vec<u8> {
        self.keepalives += 1;
        let mut out = b": padding\n\n".to_vec();
        let ts = self.hub.app().reads.clock.now().millis();
        event(&mut out, "keepalive", &Keepalive { ts, n: self.keepalives });
        out
    }

    /// Spot prices that were not sent yet.
    fn new_spots(&mut self, reads: &Reads) -> Vec<(Asset, SpotPrice)> {
        let now = reads.clock.now();
        let newest = |asset: &Asset| {
            let asset = *asset;
            reads.spot.prices(asset, self.subscription.family, now).map(move |price| (asset, price))
        };
        let mut spots: Vec<_> = self.subscription.crypto.iter().flat_map(newest).collect();
        spots.retain(|(asset, price)| self.sent.insert((*asset, price.source), price.at) != Some(price.at));
        spots
    }

    fn spots(&mut self) -> Vec<u8> {
        let app = self.hub.app().clone();
        let (spots, mut out) = (self.new_spots(&app.reads), Vec::new());
        if self.subscription.background {
            let write = |out: &mut Vec<u8>, (asset, price): &(Asset, SpotPrice)| {
                write_record(out, &SpotEvent::new(*asset, *price));
            };
            batch(&mut out, "crypto_price_batch", &spots, write);
        } else {
            for (asset, price) in &spots {
                event(&mut out, "crypto_price", &SpotEvent::new(*asset, *price));
            }
        }
        out
    }

    /// Sends the prices in the mailbox, with their books.
    async fn send_markets(&self, sink: &mut Sink) {
        let prices = std::mem::take(&mut *self.mailbox.prices.borrow_mut());
        let app = self.hub.app();
        let cell = |market: MarketId| app.reads.catalog.market(market).expect("it was found by its condition");
        for some in prices.chunks(MARKETS_PER_PAGE) {
            let mut out = Vec::with_capacity(4_096 * some.len());
            if self.subscription.background {
                let write = |out: &mut Vec<u8>, (_, price): &(MarketId, Rc<Price>)| out.extend_from_slice(price.text());
                batch(&mut out, "market_price_batch", some, write);
                let mut books = Vec::new();
                for (market, _) in some {
                    OUTCOMES.into_iter().for_each(|outcome| books.extend(book(&app.reads, cell(*market), outcome)));
                }
                batch(&mut out, "orderbook_batch", &books, |out, book| out.extend_from_slice(book));
            } else {
                for (market, price) in some {
                    line(&mut out, "market_price", |out| out.extend_from_slice(price.text()));
                    for book in OUTCOMES.into_iter().filter_map(|outcome| book(&app.reads, cell(*market), outcome)) {
                        line(&mut out, "orderbook", |out| out.extend_from_slice(&book));
                    }
                }
            }
            sink.send(out).await;
        }
    }
}

/// The best levels of a token's own book; `None` if it has none.
fn book(reads: &Reads, cell: &MarketCell, outcome: engine::id::Outcome) -> Option<Vec<u8>> {
    let write = |shown: BookCopy<'_>| {
        let mut out = Vec::with_capacity(1_024);
        object(&mut out, |o| {
            o.text("condition_id", &cell.listing.condition);
            o.text("token_id", shown.token());
            shown.best_levels(o, LEVELS_MAX);
            shown.timestamp(o);
            o.text("hash", shown.hash().as_str());
        });
        out
    };
    view::copied(&reads.books, cell, cell.instrument(outcome), usize::MAX, write).ok()
}

fn line(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    // JSON text has no raw line ends.
    write(out);
    out.extend_from_slice(b"\n\n");
}

fn event(out: &mut Vec<u8>, name: &str, record: &impl Serialize) {
    line(out, name, |out| write_record(out, record));
}

/// Writes nothing for an empty batch.
fn batch<T>(out: &mut Vec<u8>, name: &str, updates: &[T], write: impl FnMut(&mut Vec<u8>, &T)) {
    if updates.is_empty() {
        return;
    }
    line(out, name, |out| {
        object(out, |o| {
            o.array("updates", updates, write);
            o.integer("count", updates.len() as u64);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::books::records::BookLevel;
    use crate::api::testing::Town;
    use crate::http::body::{Body, Streamed};
    use crate::http::scalar::{self, ConditionId, Milliseconds, Quantity, TokenId};
    use crate::http::testing::{NOW, run};
    use engine::amount::{Price as Ticks, Qty};
    use engine::id::Outcome;
    use http_body_util::BodyExt as _;

    /// The data of `orderbook`, which is written by hand.
    #[derive(Serialize)]
    struct Orderbook<'a> {
        condition_id: ConditionId<'a>,
        token_id: TokenId<'a>,
        bids: Vec<BookLevel>,
        asks: Vec<BookLevel>,
        timestamp: Milliseconds,
        hash: String,
    }

    /// The data of an event that has several updates.
    #[derive(Serialize)]
    struct Batch<T> {
        updates: Vec<T>,
        count: usize,
    }

    impl<T> Batch<T> {
        fn of(updates: Vec<T>) -> Batch<T> {
            Batch { count: updates.len(), updates }
        }
    }

    /// Twelve bids from 0.41 down and one ask for the first outcome, one bid for the second; the unquoted market has an
    /// empty book.
    fn quoted() -> Town {
        let town = Town::new();
        let [first, second] = OUTCOMES.map(|outcome| town.market.instrument(outcome));
        let bids: Vec<_> = (0..12).map(|step| (Ticks(4_100 - 100 * step), Qty(85_000_001 + u64::from(step)))).collect();
        town.writer.borrow_mut().frame(0, NOW, |frame| {
            frame.snapshot(first, &bids, &[(Ticks(4_255), Qty(1))], NOW, None);
            frame.snapshot(second, &[(Ticks(10), Qty(7_000_000))], &[], NOW, None);
            frame.snapshot(town.unquoted.instrument(Outcome::First), &[], &[], NOW, None);
        });
        town
    }

    fn cell(town: &Town, market: MarketId) -> &MarketCell {
        town.catalog.market(market).expect("listed")
    }

    fn orderbook(town: &Town, market: MarketId, outcome: Outcome) -> Orderbook<'_> {
        let cell = cell(town, market);
        let level =
            |(price, size)| BookLevel { price: scalar::Price::from(Ticks(price)), size: Quantity::uncut(Qty(size)) };
        let (bids, asks) = match (market == town.market, outcome) {
            // The ten best ones, the best last.
            (true, Outcome::First) => (
                (0..10).rev().map(|step| level((4_100 - 100 * step, 85_000_001 + u64::from(step)))).collect(),
                vec![level((4_255, 1))],
            ),
            (true, Outcome::Second) => (vec![level((10, 7_000_000))], Vec::new()),
            _ => (Vec::new(), Vec::new()),
        };
        let hash = view::copied(&town.books, cell, cell.instrument(outcome), usize::MAX, |copy| copy.hash());
        Orderbook {
            condition_id: cell.listing.condition.as_str().into(),
            token_id: cell.token(outcome).into(),
            bids,
            asks,
            timestamp: Milliseconds(NOW.millis()),
            hash: hash.expect("a book").as_str().to_owned(),
        }
    }

    fn stream(town: &Town, background: bool) -> Stream {
        let markets = vec![town.market, town.unquoted];
        let crypto = vec![Asset::Btc, Asset::Eth];
        Stream::new(Subscription { crypto, family: None, markets, background }, Rc::clone(&town.edge.hub))
    }

    /// What a stream sends about its markets after all of them changed.
    fn sent(town: &Town, background: bool) -> String {
        let collected = run(async {
            let stream = stream(town, background);
            for market in [town.market, town.unquoted] {
                let cell = cell(town, market);
                stream.mailbox.put(cell, &Rc::new(Price::of(cell, &town.edge.app.reads)));
            }
            let pages = Pages::new(move |mut sink| async move {
                stream.send_markets(&mut sink).await;
                Ok(())
            });
            Body::Streamed(Box::new(Streamed::new(pages, false))).collect().await
        });
        let bytes = collected.expect("no page fails").to_bytes();
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    }

    fn event_text(name: &str, record: &impl Serialize) -> String {
        format!("event: {name}\ndata: {}\n\n", serde_json::to_string(record).expect("JSON"))
    }

    #[test]
    fn books_and_prices_are_written_as_their_records() {
        let town = quoted();
        let prices =
            [town.market, town.unquoted].map(|market| price_text::fields(cell(&town, market), &town.edge.app.reads));
        let books = [
            orderbook(&town, town.market, Outcome::First),
            orderbook(&town, town.market, Outcome::Second),
            orderbook(&town, town.unquoted, Outcome::First),
        ];
        let [first, second] = &prices;
        let single = [
            event_text("market_price", first),
            event_text("orderbook", &books[0]),
            event_text("orderbook", &books[1]),
            event_text("market_price", second),
            event_text("orderbook", &books[2]),
        ];
        assert_eq!(sent(&town, false), single.concat());
        let batches = [
            event_text("market_price_batch", &Batch::of(prices.into())),
            event_text("orderbook_batch", &Batch::of(books.into())),
        ];
        assert_eq!(sent(&town, true), batches.concat());
        println!("events of books and prices: 7 cases");
    }

    #[test]
    fn spot_prices_are_written_as_their_records() {
        let town = Town::new();
        let newest = |asset| {
            let price = town.edge.app.reads.spot.price(asset, None, town.clock.now()).expect("a source");
            SpotEvent::new(asset, price)
        };
        let spots = || [Asset::Btc, Asset::Eth].map(newest);
        let text = |background| {
            let spots = run(async { stream(&town, background).spots() });
            String::from_utf8(spots).expect("UTF-8")
        };
        assert_eq!(text(false), spots().each_ref().map(|spot| event_text("crypto_price", spot)).concat());
        assert_eq!(text(true), event_text("crypto_price_batch", &Batch::of(spots().into())));
        let mut out = Vec::new();
        batch(&mut out, "crypto_price_batch", &[(); 0], |_, ()| {});
        assert_eq!(out, b"", "an empty batch is not sent");
        println!("events of spot prices: 4 cases");
    }
}
