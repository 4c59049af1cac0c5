//! Checks of Kalshi (gateway/docs/live-venues.md §4, §8): page limits, the words of statuses, price structures and
//! categories, a book, and with credentials the signed handshake, a snapshot and the server's pings.

use super::category::category;
use super::stream::Settings;
use crate::category::Names;
use crate::doctor::{Doctor, Field, Kind, LISTEN_MAX, Received, differences, list, shown};
use engine::market::terms::Category;
use host::clock::Clock;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};

const EVENT: &[Field] = &[
    Field::required("event_ticker", &[Kind::Text]),
    Field::required("title", &[Kind::Text]),
    Field::required("markets", &[Kind::List]),
    Field::optional("series_ticker", &[Kind::Text]),
    Field::optional("category", &[Kind::Text]),
];
const MARKET: &[Field] = &[
    Field::required("ticker", &[Kind::Text]),
    Field::required("event_ticker", &[Kind::Text]),
    Field::required("status", &[Kind::Text]).one_of(&[
        "initialized",
        "unopened",
        "inactive",
        "active",
        "open",
        "closed",
        "determined",
        "disputed",
        "amended",
        "finalized",
        "settled",
    ]),
    Field::required("close_time", &[Kind::Text]),
    Field::optional("open_time", &[Kind::Text]),
    Field::optional("market_type", &[Kind::Text]).one_of(&["binary", "scalar"]),
    Field::optional("yes_sub_title", &[Kind::Text]),
    Field::optional("price_level_structure", &[Kind::Text]).one_of(&["linear_cent", "deci_cent", "tapered_deci_cent"]),
    Field::optional("price_ranges", &[Kind::List]),
    Field::optional("result", &[Kind::Text]).one_of(&["", "yes", "no", "scalar"]),
    Field::optional("yes_bid_dollars", &[Kind::Text]),
    Field::optional("volume_fp", &[Kind::Text]),
    Field::optional("volume_24h_fp", &[Kind::Text]),
];
const RANGE: &[Field] = &[
    Field::required("start", &[Kind::Text]),
    Field::required("end", &[Kind::Text]),
    Field::required("step", &[Kind::Text]),
];
/// Most rows of a page (gateway/docs/live-venues.md §4.1).
const EVENTS_MAX: usize = 200;
const MARKETS_MAX: usize = 1_000;

/// Checks the venue with these settings.
///
/// # Errors
/// The credentials cannot be read.
pub async fn examine(doctor: &mut Doctor<'_>, settings: &Settings, names: &Names) -> io::Result<()> {
    let signer = settings.signer()?;
    doctor.resolve(&settings.api).await;
    doctor.resolve(&settings.socket).await;
    let mut markets = events(doctor, &settings.api, names).await;
    let listed = page(doctor, &settings.api).await;
    if markets.is_empty() {
        markets = listed;
    }
    let is_open = |market: &&Value| market["status"] == "active" || market["status"] == "open";
    let ticker = markets.iter().find(is_open).or(markets.first()).and_then(|market| market["ticker"].as_str());
    let Some(ticker) = ticker else {
        doctor.failed("one book", "no market to request a book of");
        return Ok(());
    };
    book(doctor, &settings.api, ticker).await;
    match signer {
        Some(signer) => {
            let path = reqwest::Url::parse(&settings.socket).map_or_else(|_| "/".into(), |url| url.path().to_owned());
            let headers = signer.headers(Clock::wall().now(), &path);
            snapshot(doctor, &settings.socket, headers, ticker).await;
        }
        None => doctor.report(
            "a snapshot by socket",
            "not checked: books are polled without venue.kalshi.key_id and .private_key_file",
            Vec::new(),
        ),
    }
    Ok(())
}

/// Two pages of events with their markets.
async fn events(doctor: &mut Doctor<'_>, api: &str, names: &Names) -> Vec<Value> {
    let what = "a page of events, and the next one";
    let first = format!("{api}/events?status=open&with_nested_markets=true&limit={EVENTS_MAX}");
    let Some(answer) = doctor.get(what, &first).await else { return Vec::new() };
    let events = match list(&answer, "events") {
        Ok(events) => events,
        Err(why) => {
            doctor.report(what, "", vec![why]);
            return Vec::new();
        }
    };
    let mut differ = differences(events, EVENT);
    if events.len() > EVENTS_MAX {
        differ.push(format!("limit={EVENTS_MAX} returns {} rows", events.len()));
    }
    let tickers = |rows: &[Value]| -> Vec<String> { rows.iter().map(|row| row["event_ticker"].to_string()).collect() };
    match answer["cursor"].as_str() {
        None => differ.push("cursor: not a string".into()),
        Some("") => {}
        Some(cursor) => {
            let Some(next) = doctor.get(what, &format!("{first}&cursor={cursor}")).await else { return Vec::new() };
            if list(&next, "events").is_ok_and(|next| tickers(next).iter().any(|row| tickers(events).contains(row))) {
                differ.push("cursor returns rows of the first page again".into());
            }
        }
    }
    doctor.report(what, format!("{} events", events.len()), differ);
    categories(doctor, events, names);
    let markets: Vec<Value> =
        events.iter().filter_map(|event| event["markets"].as_array()).flatten().cloned().collect();
    rows(doctor, "the fields of a market", &markets);
    markets
}

/// Checks for categories that are mapped to `other` because they are unknown.
fn categories(doctor: &mut Doctor<'_>, events: &[Value], names: &Names) {
    let stated: BTreeSet<&str> = events.iter().filter_map(|event| event["category"].as_str()).collect();
    let unknown = stated.iter().filter(|name| !name.eq_ignore_ascii_case("other"));
    let unknown = unknown.filter(|name| category(names, name) == Category::Other);
    let differ = unknown.map(|name| format!("{name:?} is taken as other (map it in [fees.category_map])")).collect();
    doctor.report("the names of categories", stated.iter().copied().collect::<Vec<_>>().join(", "), differ);
}

fn rows(doctor: &mut Doctor<'_>, what: &str, markets: &[Value]) {
    if markets.is_empty() {
        return doctor.failed(what, "no market in the page");
    }
    let ranges: Vec<Value> =
        markets.iter().filter_map(|market| market["price_ranges"].as_array()).flatten().cloned().collect();
    let differ = differences(markets, MARKET).into_iter().chain(differences(&ranges, RANGE)).collect();
    doctor.report(what, format!("{} markets", markets.len()), differ);
}

/// A page of markets without their events.
async fn page(doctor: &mut Doctor<'_>, api: &str) -> Vec<Value> {
    let what = "a page of markets";
    let Some(answer) = doctor.get(what, &format!("{api}/markets?status=open&limit={MARKETS_MAX}")).await else {
        return Vec::new();
    };
    match list(&answer, "markets") {
        Ok(markets) => {
            let mut differ = Vec::new();
            if markets.len() > MARKETS_MAX {
                differ.push(format!("limit={MARKETS_MAX} returns {} rows", markets.len()));
            }
            if !answer["cursor"].is_string() {
                differ.push("cursor: not a string".into());
            }
            differ.extend(differences(markets, MARKET));
            doctor.report(what, format!("{} markets", markets.len()), differ);
            markets.to_vec()
        }
        Err(why) => {
            doctor.report(what, "", vec![why]);
            Vec::new()
        }
    }
}

async fn book(doctor: &mut Doctor<'_>, api: &str, ticker: &str) {
    let what = "one book";
    let Some(answer) = doctor.get(what, &format!("{api}/markets/{ticker}/orderbook")).await else { return };
    let book = &answer["orderbook_fp"];
    let mut differ = Vec::new();
    if !book.is_object() {
        differ.push(format!("orderbook_fp: not an object: {}", shown(&answer.to_string())));
    }
    for side in ["yes_dollars", "no_dollars"] {
        differ.extend(levels(side, &book[side]));
    }
    doctor.report(what, format!("of {ticker}"), differ);
}

/// A difference in the levels of a side; the side may be missing.
fn levels(side: &str, levels: &Value) -> Option<String> {
    let texts =
        |level: &Value| level.as_array().is_some_and(|level| level.len() == 2 && level.iter().all(Value::is_string));
    match levels {
        Value::Null => None,
        Value::Array(levels) if levels.iter().all(texts) => None,
        other => Some(format!("{side}: not a list of pairs of strings: {}", shown(&other.to_string()))),
    }
}

async fn snapshot(doctor: &mut Doctor<'_>, url: &str, headers: Vec<(HeaderName, HeaderValue)>, ticker: &str) {
    let what = "a snapshot by socket";
    let Some(mut socket) = doctor.socket(what, url, headers).await else { return };
    let params = json!({ "channels": ["orderbook_delta"], "market_tickers": [ticker] });
    let subscribe = json!({ "id": 1, "cmd": "subscribe", "params": params }).to_string();
    let start = Instant::now();
    let until = start + LISTEN_MAX;
    let kind = |text: &str| -> Option<Value> {
        let message: Value = serde_json::from_str(text).ok()?;
        matches!(message["type"].as_str(), Some("orderbook_snapshot" | "error")).then_some(message)
    };
    let received = match socket.send(&subscribe).await {
        Ok(()) => socket.receive_first(until, kind).await,
        Err(why) => Err(why),
    };
    match received {
        Ok(message) if message["type"] == "error" => return doctor.failed(what, shown(&message.to_string())),
        Ok(message) => {
            let mut differ = Vec::new();
            if !(message["sid"].is_u64() && message["seq"].is_u64()) {
                differ.push("sid, seq: not numbers".into());
            }
            for side in ["yes_dollars_fp", "no_dollars_fp"] {
                differ.extend(levels(side, &message["msg"][side]));
            }
            doctor.report(what, format!("of {ticker}"), differ);
        }
        Err(why) => return doctor.failed(what, why),
    }
    let what = "a ping of the server";
    loop {
        match socket.receive(until).await {
            Ok(Received::Ping) => {
                break doctor.report(
                    what,
                    format!("{:.1} s after the handshake", start.elapsed().as_secs_f64()),
                    Vec::new(),
                );
            }
            Ok(Received::Text(_)) => {}
            Err(why) => break doctor.report(what, "", vec![why]),
        }
    }
}
