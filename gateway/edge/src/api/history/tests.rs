use super::*;
use crate::api::testing::{Text as _, Town};
use engine::book::candles::{Candle, Mid};
use engine::book::listener::PriceListener as _;
use engine::fact;
use engine::market::mutation::MarketMutation;
use engine::time::Timestamp;
use std::ops::Deref as _;

/// 2026-10-02T09:00:00Z, a Friday.
pub(crate) const T0: u64 = 1_790_931_600;

/// Makes a past for the town's market.
pub(crate) trait Past {
    /// Prices of the first outcome in units of 5 · 10⁻⁵, at seconds from [`T0`].
    fn past(&self, prices: &[(i64, u16)]);
}

impl Past for Town {
    fn past(&self, prices: &[(i64, u16)]) {
        let mut recorder = self.past.recorder.borrow_mut();
        for (secs, price) in prices {
            let at = Timestamp::from_secs(T0.saturating_add_signed(*secs));
            recorder.note(self.market, at, Mid(*price));
            recorder.hand_over();
        }
        recorder.flush();
    }
}

const YES: &str = "81140002";
const NO: &str = "55200077";

#[test]
fn both_shapes_show_the_received_prices() {
    let town = Town::new();
    town.past(&[(0, 8_000), (1, 8_600), (59, 7_800), (60, 8_300), (600, 8_301)]);
    let cases = [
        (
            format!("market={YES}"),
            r#"{"history":[{"t":1790931600,"p":0.39},{"t":1790931660,"p":0.415},{"t":1790932200,"p":0.41505}]}"#,
        ),
        (
            format!("token_id={YES}&fidelity=5"),
            r#"{"history":[{"t":1790931600,"p":0.415},{"t":1790932200,"p":0.41505}]}"#,
        ),
        (format!("market={YES}&token_id=x&interval=1d&fidelity=1440"), r#"{"history":[{"t":1790899200,"p":0.41505}]}"#),
        (
            format!("market={NO}&format=ohlcv&startTs=1790931600&endTs=1790931659"),
            r#"[{"t":1790931600,"o":"0.60","h":"0.61","l":"0.57","c":"0.61"}]"#,
        ),
        // No point is before the start, for any size of points.
        (format!("market={YES}&startTs=1790931601&endTs=1790931602"), r#"{"history":[{"t":1790931601,"p":0.39}]}"#),
        (
            format!("market={YES}&startTs=1790931660&fidelity=5"),
            r#"{"history":[{"t":1790931660,"p":0.415},{"t":1790932200,"p":0.41505}]}"#,
        ),
        (
            format!("market={YES}&startTs=1790931661&fidelity=18446744073709551615"),
            r#"{"history":[{"t":1790931661,"p":0.41505}]}"#,
        ),
        (format!("market={YES}&endTs=1790931599"), r#"{"history":[]}"#),
        (format!("market={YES}&startTs=1790932260"), r#"{"history":[]}"#),
        // A start that is days after the present, where the range would end.
        (format!("market={YES}&startTs=1791932260"), r#"{"history":[]}"#),
        (format!("market={YES}&startTs=9223372036854775808"), r#"{"history":[]}"#),
        (format!("market={YES}&startTs=18446744073709551615&format=ohlcv"), "[]"),
        (format!("market={YES}&endTs=0"), r#"{"history":[]}"#),
        ("market=99".to_owned(), r#"{"history":[]}"#),
        ("market=99&format=ohlcv".to_owned(), "[]"),
        ("market=90000001".to_owned(), r#"{"history":[]}"#),
    ];
    for (query, expected) in &cases {
        let answer = town.send("GET", &format!("/v1/prices-history?{query}"), "");
        assert_eq!((answer.status, answer.text()), (200, *expected), "{query}");
    }
    // Without a key too.
    let answer = town.deref().send("GET", &format!("/v1/prices-history?market={YES}"), &[], "");
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("public, max-age=5")));
    println!("prices history: {} cases", cases.len());
}

#[test]
fn wrong_questions_have_their_codes() {
    let town = Town::new();
    let cases = [
        ("", "INVALID_TOKEN_ID"),
        ("market=", "INVALID_TOKEN_ID"),
        ("market=0x51", "INVALID_TOKEN_ID"),
        ("market=&token_id=81140002", "INVALID_TOKEN_ID"),
        ("token=81140002", "INVALID_TOKEN_ID"),
        ("market=81140002&startTs=x", "INVALID_WINDOW"),
        ("market=81140002&startTs=2&endTs=1", "INVALID_WINDOW"),
        ("market=81140002&interval=5m", "INVALID_INTERVAL"),
        ("market=81140002&fidelity=0", "INVALID_REQUEST"),
        // The same for an unknown token.
        ("market=99&interval=5m", "INVALID_INTERVAL"),
    ];
    for (query, code) in cases {
        assert_eq!(town.send("GET", &format!("/v1/prices-history?{query}"), "").code(), (400, code), "{query}");
    }
    let answer = town.send("GET", "/v1/prices-history?market=1&interval=5m", "").json();
    assert_eq!(answer["supported_intervals"], serde_json::json!(["1h", "6h", "1d", "1w", "1m", "max", "all"]));
    println!("prices history refusals: {} cases", cases.len());
}

#[test]
fn long_answers_are_written_in_pages() {
    let bucket = |minute: u64| Bucket { start: minute * 60, candle: Candle::at(Mid(1)) };
    let per_turn = POINTS_PER_TURN as u64;
    let cases = [(0, 0), (1, 0), (per_turn, 0), (per_turn + 1, 1), (2 * per_turn, 1), (5_000, (5_000 - 1) / per_turn)];
    for (count, others) in cases {
        let points: Vec<Bucket> = (0..count).map(bucket).collect();
        let turns = std::cell::Cell::new(0);
        let written = crate::http::testing::run(async {
            let mut writing = std::pin::pin!(candles(&points));
            std::future::poll_fn(|context| {
                let written = writing.as_mut().poll(context);
                turns.set(turns.get() + u64::from(written.is_pending()));
                written
            })
            .await
        });
        let shown: serde_json::Value = serde_json::from_slice(&written.body).expect("JSON");
        let starts = shown.as_array().expect("an array").iter().map(|row| row["t"].as_u64().expect("a number"));
        assert!(starts.eq(points.iter().map(|point| point.start)), "{count} points");
        assert_eq!(turns.get(), others, "{count} points");
    }
    println!("paged answers: {} cases", cases.len());
}

#[test]
fn where_too_many_reads_wait_charts_have_a_gap_and_the_archive_is_unavailable() {
    let limits = "[limits.tiers.free]\nrequests_per_second = 1000\nrequests_per_minute = 100000\n";
    let town = Town::with(&format!("{limits}[flags]\nchart_archive_read_enabled = true\n"));
    let resolution = Resolution::Winner(MarketOutcome::First);
    let fact = MarketMutation::MarketResolved(fact::MarketResolved {
        market: town.market,
        resolution,
        at: crate::http::testing::NOW,
    });
    town.catalog.publish(&fact);
    town.past(&[(0, 8_000)]);
    let archive = format!("/v1/prices-history/archive?market={YES}");
    let cases = [
        (format!("/v1/prices-history?market={YES}"), 200, r#"{"history":[]}"#),
        (format!("/v1/prices-history?market={YES}&format=ohlcv"), 200, "[]"),
        (format!("/v1/markets/{}/candles", town.condition()), 200, "[]"),
        (archive.clone(), 503, "ARCHIVE_UNAVAILABLE"),
        // Nothing in the window: the second read finds no reader.
        (format!("{archive}&endTs=5"), 503, "ARCHIVE_UNAVAILABLE"),
    ];
    let full = town.past.reader.full();
    for (target, status, expected) in &cases {
        let answer = town.send("GET", target, "");
        let shown = if *status == 200 { answer.text() } else { answer.code().1 };
        assert_eq!((answer.status, shown), (*status, *expected), "{target}");
    }
    drop(full);
    for (target, ..) in &cases {
        let answer = town.send("GET", target, "");
        let empty = target.ends_with("endTs=5");
        assert_eq!((answer.status, answer.text().contains("\"t\":1790931600")), (200, !empty), "{target}");
    }
    println!("a full history: {} cases", 2 * cases.len());
}

#[test]
fn the_archive_needs_its_flag_and_shows_closed_markets() {
    const OPEN: &str = "[flags]\nchart_archive_read_enabled = true\n";
    let target = format!("/v1/prices-history/archive?market={YES}");
    assert_eq!(Town::new().send("GET", &target, "").code(), (404, "NOT_FOUND"));
    let limits = "[limits.tiers.free]\nrequests_per_second = 1000\nrequests_per_minute = 100000\n";
    let town = Town::with(&format!("{limits}{OPEN}"));
    let cases = [
        ("", 400, "INVALID_TOKEN_ID"),
        ("market=0x51", 400, "INVALID_TOKEN_ID"),
        ("market=99", 404, "ARCHIVE_NOT_FOUND"),
        ("market=81140002", 400, "INVALID_REQUEST"),
        ("market=81140002&fidelity=0", 400, "INVALID_REQUEST"),
        ("market=81140002&fidelity=1441", 400, "INVALID_REQUEST"),
        ("market=81140002&startTs=2&endTs=1", 400, "INVALID_WINDOW"),
    ];
    for (query, status, code) in cases {
        let answer = town.send("GET", &format!("/v1/prices-history/archive?{query}"), "");
        assert_eq!(answer.code(), (status, code), "{query}");
    }
    let resolution = Resolution::Winner(MarketOutcome::First);
    let fact = MarketMutation::MarketResolved(fact::MarketResolved {
        market: town.market,
        resolution,
        at: crate::http::testing::NOW,
    });
    town.catalog.publish(&fact);
    assert_eq!(town.send("GET", &target, "").code(), (404, "ARCHIVE_NOT_FOUND"));
    town.past(&[(-86_400, 6_000), (0, 8_000), (60, 8_600), (3_600, 19_000)]);
    let head = format!(r#"{{"market":"{YES}","condition_id":"{}","outcome":"Yes","#, town.condition());
    let days = concat!(
        r#""resolved_outcome":"Yes","fidelity":1440,"source":"archive","history":["#,
        r#"{"t":1790812800,"o":"0.30","h":"0.30","l":"0.30","c":"0.30"},"#,
        r#"{"t":1790899200,"o":"0.40","h":"0.95","l":"0.40","c":"0.95"}]}"#
    );
    let answer = town.send("GET", &format!("{target}&fidelity=1440"), "");
    assert_eq!((answer.status, answer.text()), (200, format!("{head}{days}").as_str()));
    let range = "startTs=1790931600&endTs=1790931660&format=ohlcv";
    let answer = town.send("GET", &format!("{target}&{range}"), "");
    assert_eq!(answer.text(), r#"[{"t":1790931600,"o":"0.40","h":"0.43","l":"0.40","c":"0.43"}]"#);
    let outside = town.send("GET", &format!("{target}&endTs=5"), "");
    assert_eq!((outside.status, &outside.json()["history"]), (200, &serde_json::json!([])));
    println!("archive refusals: {} cases", cases.len() + 2);
}
