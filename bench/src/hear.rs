//! From a venue's socket to a readable ladder: a stand-in on loopback sends changes at a fixed rate, the live adapter
//! receives them, and a thread writes them to books as the feed does; with a recording at the same time.
//!
//! The delay counts from the scheduled time of a message, so that a stall delays every message after it, and from the
//! moment when the adapter received it. The stand-in has a thread in this process.

use crate::chance::Chance;
use crate::fold::{Desk, token};
use crate::report::{Report, Size, nanoseconds};
use engine::amount::TickSize;
use engine::market::Market;
use engine::market::terms::{Listing, MarketState, Venue as Origin};
use engine::time::Timestamp;
use host::clock::Clock;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::{self, Message};
use venue::adapters::Settings;
use venue::settings::{Value, Values};
use venue::{FeedUpdate, Speed, VenueConfig};

/// Messages a second.
const RATE: u32 = 1_000;
/// Both tokens of this many markets are on one socket.
const MARKETS: usize = 100;
/// An address that does not answer.
const NOWHERE: &str = "http://127.0.0.1:9";
/// Longest wait for the books, or for the last message.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn run(size: Size, report: &mut Report) {
    let count = size.pick(200, 20 * RATE);
    let place = tempfile::tempdir().expect("a temporary directory");
    for (what, recording) in [("", None), (", recorded", Some(place.path().join("recording")))] {
        let heard = hear(count, recording);
        report.percentiles(&format!("from the scheduled time to the ladder{what}"), &heard.from_sent);
        report.percentiles(&format!("from the link's read to the ladder{what}"), &heard.from_read);
        for (thread, share) in heard.shares {
            report.figure(&format!("thread {thread}{what}"), share * 100.0, "% of a core");
        }
        report.computed(heard.tops);
    }
    report.rate_note(format!("{RATE} messages a second, each a change of both tokens of a market"));
    report.not_included("the venue's network and TLS; the journal, and listeners of changes");
}

/// The result of a run.
struct Arrivals {
    from_sent: hdrhistogram::Histogram<u64>,
    from_read: hdrhistogram::Histogram<u64>,
    /// Processor time of threads by name, as a share of the time in which messages came.
    shares: Vec<(&'static str, f64)>,
    tops: String,
}

fn hear(count: u32, recording: Option<PathBuf>) -> Arrivals {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let threads: &[&'static str] = if recording.is_some() { &["venues", "recorder"] } else { &["venues"] };
    let clock = Clock::wall();
    let mut venues = Values::default();
    for (key, address) in [
        ("gamma", NOWHERE.to_owned()),
        ("clob", NOWHERE.to_owned()),
        ("market_socket", format!("ws://{address}")),
        ("spot_socket", NOWHERE.replace("http", "ws")),
    ] {
        venues.set(format!("venue.polymarket.{key}"), Value::Text(address));
    }
    let config = VenueConfig {
        kind: "polymarket".parse().expect("a venue"),
        seed: 0,
        tape: PathBuf::new(),
        speed: Speed::RECORDED,
        follow: false,
        archive: Default::default(),
        liveliness: 1,
        mix: false,
        categories: Default::default(),
        live: Settings { venues, recording, ..Settings::default() },
    };
    let mut venue = venue::open(&config, &clock).expect("the adapters start");
    let listings: Vec<Listing> = (0..MARKETS).map(listing).collect();
    for listing in &listings {
        venue.recall(&Market::listed(listing.clone(), MarketState::Active, clock.now()));
    }
    let mut desk = Desk::new(&listings);
    let begun = Arc::new(OnceLock::new());
    let sender = std::thread::spawn({
        let begun = begun.clone();
        move || send(&listener, count, &begun)
    });
    let (mut from_sent, mut from_read) = (nanoseconds(), nanoseconds());
    let (mut left, mut before) = (count, None);
    let deadline = Instant::now() + PATIENCE + Duration::from_secs(u64::from(count / RATE));
    while left > 0 {
        assert!(Instant::now() < deadline, "{left} of {count} messages did not arrive");
        if before.is_none() && begun.get().is_some() {
            before = Some((Instant::now(), threads.iter().map(|name| processor_time(name)).collect::<Vec<_>>()));
        }
        let polled = venue.poll(clock.now(), Timestamp(u64::MAX), &mut |frame| {
            desk.write(frame.updates, frame.received);
            let Some(number) = frame.updates.iter().find_map(number) else { return };
            let due = *begun.get().expect("it sends") + due(number);
            from_sent.saturating_record(due.elapsed().as_nanos() as u64);
            from_read.saturating_record(clock.now().since(frame.received) * 1_000);
            left -= 1;
        });
        if left > 0 && !venue.has_news() {
            let wake_at = polled.wake_at.map_or(u64::MAX, |at| at.since(clock.now()));
            std::thread::park_timeout(Duration::from_micros(wake_at).min(Duration::from_millis(100)));
        }
    }
    let (since, before) = before.expect("it sent");
    let took = since.elapsed().as_secs_f64();
    let shares = threads.iter().zip(before).map(|(name, before)| {
        let used = processor_time(name).saturating_sub(before);
        (*name, used.as_secs_f64() / took)
    });
    let shares = shares.collect();
    drop(sender.join().expect("the stand-in sends all"));
    Arrivals { from_sent, from_read, shares, tops: desk.tops() }
}

/// Scheduled time of a message, after the first.
fn due(number: u32) -> Duration {
    Duration::from_secs(1) * number / RATE
}

/// The number of a message: the shares of its level.
fn number(update: &FeedUpdate) -> Option<u32> {
    match update {
        FeedUpdate::BookDelta { levels, .. } => Some((levels[0].2.0 / 1_000_000) as u32 - 1),
        _ => None,
    }
}

/// Sends whole books, then changes; `begun` is the due time of the first change. The socket stays open until it is
/// dropped.
fn send(listener: &TcpListener, count: u32, begun: &OnceLock<Instant>) -> tungstenite::WebSocket<TcpStream> {
    let (stream, _) = listener.accept().expect("the adapter connects");
    stream.set_nodelay(true).expect("a socket");
    let mut socket = tungstenite::accept(stream).expect("a handshake");
    socket.read().expect("a subscription");
    let now_ms = || Clock::wall().now().0 / 1_000;
    for number in 0..2 * MARKETS {
        let side = |from: usize, to: usize| -> String {
            let level = |cents| format!(r#"{{"price":"0.{cents:02}","size":"{}"}}"#, 10 + cents);
            (from..to).map(level).collect::<Vec<_>>().join(",")
        };
        let (bids, asks, token, at) = (side(1, 40), side(60, 99), token(number), now_ms());
        let text = format!(
            r#"{{"event_type":"book","asset_id":"{token}","market":"{}","bids":[{bids}],"asks":[{asks}],"timestamp":"{at}","hash":"{number:040x}"}}"#,
            condition(number / 2)
        );
        socket.send(Message::text(text)).expect("it is read");
    }
    let mut chance = Chance::seeded(7);
    // The books have arrived when the rate begins.
    let first = Instant::now() + Duration::from_millis(200);
    begun.set(first).expect("once");
    for number in 0..count {
        let market = chance.below(MARKETS as u64) as usize;
        let (cents, size) = (1 + chance.below(39), number + 1);
        let one = |token: String, cents: u64, side: &str| {
            format!(
                r#"{{"asset_id":"{token}","price":"0.{cents:02}","size":"{size}","side":"{side}","hash":"{number:040x}","best_bid":"0.39","best_ask":"0.6"}}"#
            )
        };
        let changes = [one(token(2 * market), cents, "BUY"), one(token(2 * market + 1), 100 - cents, "SELL")].join(",");
        let text = format!(
            r#"{{"market":"{}","price_changes":[{changes}],"timestamp":"{}","event_type":"price_change"}}"#,
            condition(market),
            now_ms()
        );
        std::thread::sleep((first + due(number)).saturating_duration_since(Instant::now()));
        socket.send(Message::text(text)).expect("it is read");
    }
    socket
}

fn condition(market: usize) -> String {
    format!("0x{market:064x}")
}

fn listing(market: usize) -> Listing {
    Listing {
        venue: Origin::Polymarket,
        condition: condition(market),
        tokens: [token(2 * market), token(2 * market + 1)],
        ..crate::world::listing(market as u32, TickSize(100))
    }
}

/// Processor time of the threads of that name so far, from the system's scheduler.
fn processor_time(name: &str) -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").expect("the system reports threads").flatten();
    let of = |path: PathBuf| -> Option<u64> {
        let is_it = std::fs::read_to_string(path.join("comm")).ok()?.trim() == name;
        let used = std::fs::read_to_string(path.join("schedstat")).ok()?;
        is_it.then(|| used.split(' ').next()?.parse().ok())?
    };
    Duration::from_nanos(threads.filter_map(|thread| of(thread.path())).sum())
}
