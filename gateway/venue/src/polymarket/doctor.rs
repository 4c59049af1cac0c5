//! Checks of Polymarket (gateway/docs/live-venues.md §2, §3, §8): the names of its page parameters, the fields of a
//! market, a book by REST and by socket, the slugs of up-or-down windows, prices of assets.

use super::stream::{Settings, spot_subscription};
use crate::doctor::{Doctor, Field, Kind, LISTEN_MAX, Socket, differences, list, shown};
use engine::market::terms::{Asset, Interval};
use engine::time::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use wire::updown;

const MARKET: &[Field] = &[
    Field::required("id", &[Kind::Text]),
    Field::required("conditionId", &[Kind::Text]),
    Field::required("slug", &[Kind::Text]),
    Field::required("question", &[Kind::Text]),
    Field::required("outcomes", &[Kind::ListText, Kind::List]),
    Field::required("clobTokenIds", &[Kind::ListText, Kind::List]),
    Field::required("active", &[Kind::Flag]),
    Field::required("closed", &[Kind::Flag]),
    Field::optional("acceptingOrders", &[Kind::Flag]),
    Field::optional("enableOrderBook", &[Kind::Flag]),
    Field::optional("negRisk", &[Kind::Flag]),
    Field::optional("endDate", &[Kind::Text]),
    Field::required("updatedAt", &[Kind::Text]),
    Field::optional("outcomePrices", &[Kind::ListText, Kind::List]),
    Field::optional("orderPriceMinTickSize", &[Kind::Number])
        .one_of(&["0.1", "0.01", "0.005", "0.0025", "0.001", "0.0001"]),
    Field::optional("orderMinSize", &[Kind::Number]),
    Field::optional("volume24hr", &[Kind::Number]),
    Field::optional("umaResolutionStatus", &[Kind::Text]).one_of(&[
        "",
        "requested",
        "proposed",
        "disputed",
        "resolved",
        "settled",
    ]),
    Field::optional("feeType", &[Kind::Text]),
];
const EVENT: &[Field] = &[
    Field::required("id", &[Kind::Text]),
    Field::required("slug", &[Kind::Text]),
    Field::required("title", &[Kind::Text]),
    Field::required("markets", &[Kind::List]),
    Field::optional("tags", &[Kind::List]),
    Field::optional("endDate", &[Kind::Text]),
];
const BOOK: &[Field] = &[
    Field::required("asset_id", &[Kind::Text]),
    Field::required("market", &[Kind::Text]),
    Field::required("timestamp", &[Kind::Text]),
    Field::optional("hash", &[Kind::Text]),
    Field::optional("bids", &[Kind::List]),
    Field::optional("asks", &[Kind::List]),
    Field::optional("event_type", &[Kind::Text]).one_of(&["book"]),
];
const LEVEL: &[Field] = &[Field::required("price", &[Kind::Text]), Field::required("size", &[Kind::Text])];
/// Rows of a requested page.
const ROWS: usize = 20;
/// Most markets whose books are tried.
const BOOKS_TRIED_MAX: usize = 10;

pub async fn examine(doctor: &mut Doctor<'_>, settings: &Settings) {
    for url in [&settings.gamma, &settings.clob, &settings.market_socket, &settings.spot_socket] {
        doctor.resolve(url).await;
    }
    let markets = page(doctor, &settings.gamma).await;
    windows(doctor, &settings.gamma).await;
    let tokens: Vec<String> = markets.iter().filter_map(first_token).take(BOOKS_TRIED_MAX).collect();
    match tokens.first() {
        Some(_) => {
            let tokens = book(doctor, &settings.clob, &tokens).await.map_or(tokens, |token| vec![token]);
            snapshot(doctor, &settings.market_socket, &tokens).await;
        }
        None => doctor.failed("a book", "no market with tokens to request a book of"),
    }
    prices(doctor, &settings.spot_socket).await;
}

/// Two pages of events by cursor, with their markets.
async fn page(doctor: &mut Doctor<'_>, gamma: &str) -> Vec<Value> {
    let what = "a page of events, and the next one";
    let first = format!("{gamma}/events/keyset?limit={ROWS}&active=true&closed=false");
    let Some(answer) = doctor.get(what, &first).await else { return Vec::new() };
    let mut differ = Vec::new();
    let events = match list(&answer, "events") {
        Ok(events) => events,
        Err(why) => {
            doctor.report(what, "", vec![why]);
            return Vec::new();
        }
    };
    if events.len() > ROWS {
        differ.push(format!("limit={ROWS} returns {} rows", events.len()));
    }
    let ids = |rows: &[Value]| -> Vec<String> { rows.iter().map(|row| row["id"].to_string()).collect() };
    match answer.get("next_cursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty()) {
        Some(cursor) => {
            let cursor: String = reqwest::Url::parse_with_params("http://x/", [("after_cursor", cursor)])
                .ok()
                .and_then(|url| url.query().map(str::to_owned))
                .unwrap_or_default();
            let Some(next) = doctor.get(what, &format!("{first}&{cursor}")).await else { return Vec::new() };
            if let Ok(next) = list(&next, "events")
                && ids(next).iter().any(|id| ids(events).contains(id))
            {
                differ.push("after_cursor returns rows of the first page again".into());
            }
        }
        None if events.len() >= ROWS => differ.push("next_cursor: missing in a full page".into()),
        None => {}
    }
    differ.extend(differences(events, EVENT));
    doctor.report(what, format!("{} events", events.len()), differ);
    let markets: Vec<Value> =
        events.iter().filter_map(|event| event["markets"].as_array()).flatten().cloned().collect();
    match markets.is_empty() {
        true => doctor.failed("the fields of a market", "no market in the page"),
        false => {
            doctor.report(
                "the fields of a market",
                format!("{} markets", markets.len()),
                differences(&markets, MARKET),
            );
        }
    }
    markets
}

/// Checks that the current windows are found by their generated slugs.
async fn windows(doctor: &mut Doctor<'_>, gamma: &str) {
    let what = "up-or-down windows by their slugs";
    let now = host::clock::Clock::wall().now();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for interval in Interval::ALL {
        let assets: &[Asset] = if interval == Interval::Daily { &Asset::ALL } else { &[Asset::Btc] };
        for &asset in assets {
            let slugs = slugs(asset, interval, now);
            let query: Vec<String> = slugs.iter().map(|slug| format!("slug={slug}")).collect();
            let Some(answer) = doctor.get(what, &format!("{gamma}/events?limit={ROWS}&{}", query.join("&"))).await
            else {
                return;
            };
            let named = |row: &Value| row["slug"].as_str().is_some_and(|slug| slugs.iter().any(|ours| ours == slug));
            match list(&answer, "").is_ok_and(|rows| rows.iter().any(named)) {
                true => found.push(slugs[0].clone()),
                false => missing.push(format!("no event for {}", slugs.join(" or "))),
            }
        }
    }
    doctor.report(what, found.join(", "), missing);
}

fn slugs(asset: Asset, interval: Interval, now: Timestamp) -> Vec<String> {
    let (start, end) = updown::window(interval, now);
    let slug = updown::slug(asset, interval, start, end);
    let shorter = updown::without_year(&slug);
    std::iter::once(slug).chain(shorter).collect()
}

fn first_token(market: &Value) -> Option<String> {
    let field = &market["clobTokenIds"];
    let tokens = match field.as_str() {
        Some(text) => serde_json::from_str(text).ok()?,
        None => field.clone(),
    };
    let is_open = market["acceptingOrders"] != json!(false);
    tokens.get(0)?.as_str().filter(|token| is_open && !token.is_empty()).map(str::to_owned)
}

/// Books by REST, many in one call and a single one; returns a token whose book has levels.
async fn book(doctor: &mut Doctor<'_>, clob: &str, tokens: &[String]) -> Option<String> {
    let wanted: Vec<Value> = tokens.iter().map(|token| json!({ "token_id": token })).collect();
    let what = "books by one call";
    let answer = doctor.post(what, &format!("{clob}/books"), &json!(wanted)).await?;
    let books = match list(&answer, "") {
        Ok(books) => books,
        Err(why) => {
            doctor.report(what, "", vec![why]);
            return None;
        }
    };
    doctor.report(what, format!("{} of {}", books.len(), tokens.len()), book_differences(books));
    let has_levels = |book: &&Value| book["bids"].as_array().is_some_and(|bids| !bids.is_empty());
    let token = books.iter().find(has_levels).or(books.first())?["asset_id"].as_str()?.to_owned();
    let what = "one book";
    let book = doctor.get(what, &format!("{clob}/book?token_id={token}")).await?;
    let differ = book_differences(std::slice::from_ref(&book));
    doctor.report(what, format!("of token {token}"), differ);
    Some(token)
}

fn book_differences(books: &[Value]) -> Vec<String> {
    let sides = books.iter().flat_map(|book| [&book["bids"], &book["asks"]]);
    let levels: Vec<Value> = sides.filter_map(Value::as_array).flatten().cloned().collect();
    differences(books, BOOK).into_iter().chain(differences(&levels, LEVEL)).collect()
}

/// The first books of the market channel, and its response to a ping.
async fn snapshot(doctor: &mut Doctor<'_>, url: &str, tokens: &[String]) {
    let what = "a snapshot by socket";
    let Some(mut socket) = doctor.socket(what, url, Vec::new()).await else { return };
    let subscribe =
        json!({ "assets_ids": tokens, "type": "market", "initial_dump": true, "custom_feature_enabled": true });
    let until = Instant::now() + LISTEN_MAX;
    let received = match socket.send(&subscribe.to_string()).await {
        Ok(()) => socket.receive_first(until, |text| serde_json::from_str::<Value>(text).ok()).await,
        Err(why) => Err(why),
    };
    match received {
        Ok(Value::Array(books)) => doctor.report(what, format!("{} books", books.len()), book_differences(&books)),
        Ok(other) => {
            doctor.report(what, "", vec![format!("the first message is not a list: {}", shown(&other.to_string()))])
        }
        Err(why) => return doctor.failed(what, why),
    }
    ping(doctor, "a ping on it", &mut socket).await;
}

async fn ping(doctor: &mut Doctor<'_>, what: &str, socket: &mut Socket) {
    let until = Instant::now() + LISTEN_MAX;
    let sent = socket.send("PING").await;
    let received = match sent {
        Ok(()) => socket.receive_first(until, |text| text.trim().eq_ignore_ascii_case("pong").then_some(())).await,
        Err(why) => Err(why),
    };
    match received {
        Ok(()) => doctor.report(what, "PONG", Vec::new()),
        Err(why) => doctor.report(what, "", vec![format!("no PONG: {why}")]),
    }
}

/// Prices of an asset from both sources.
async fn prices(doctor: &mut Doctor<'_>, url: &str) {
    let what = "prices of assets by socket";
    let Some(mut socket) = doctor.socket(what, url, Vec::new()).await else { return };
    if let Err(why) = socket.send(&spot_subscription()).await {
        return doctor.failed(what, why);
    }
    let until = Instant::now() + LISTEN_MAX;
    let mut missing = vec!["crypto_prices", "crypto_prices_chainlink"];
    let (mut differ, mut received) = (Vec::new(), 0);
    while !missing.is_empty() {
        let of_topic = |text: &str| -> Option<Value> {
            let message: Value = serde_json::from_str(text).ok()?;
            message["topic"].is_string().then_some(message)
        };
        let Ok(message) = socket.receive_first(until, of_topic).await else { break };
        let topic = message["topic"].as_str().unwrap_or_default();
        if missing.contains(&topic) {
            missing.retain(|wanted| *wanted != topic);
            received += 1;
            let payload = &message["payload"];
            let fine = payload["symbol"].is_string() && (payload["value"].is_number() || payload["data"].is_array());
            if !fine {
                differ.push(format!("{topic}: {}", shown(&message.to_string())));
            }
        }
    }
    differ.extend(missing.iter().map(|topic| format!("{topic}: no message within {} s", LISTEN_MAX.as_secs())));
    doctor.report(what, format!("{received} topics"), differ);
}
