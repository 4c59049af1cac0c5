use super::*;
use crate::api::history::tests::{Past as _, T0};
use crate::api::testing::{Text as _, Town};
use engine::amount::Qty;
use engine::id::OrderId;
use engine::notice::{Notice, OrderFact};

#[test]
fn candles_fold_the_history_into_their_grid() {
    let town = Town::new();
    let path = format!("/v1/markets/{}/candles", town.condition());
    // A Friday: 08:58, 09:00, 09:59, and on the Monday before at 23:00.
    town.past(&[(-4 * 86_400 + 50_400 - 120, 2_000), (-120, 8_000), (0, 8_600), (10, 7_800), (3_540, 8_300)]);
    let hours = concat!(
        r#"{"t":1790928000,"o":"0.40","h":"0.40","l":"0.40","c":"0.40","v":"0"},"#,
        r#"{"t":1790931600,"o":"0.43","h":"0.43","l":"0.39","c":"0.415","v":"0"}]"#
    );
    let answer = town.send("GET", &format!("{path}?start_time=2026-10-02"), "");
    assert_eq!((answer.status, answer.text()), (200, format!("[{hours}").as_str()));
    let other = concat!(
        r#"{"t":1790928000,"o":"0.60","h":"0.60","l":"0.60","c":"0.60","v":"0"},"#,
        r#"{"t":1790931600,"o":"0.57","h":"0.61","l":"0.57","c":"0.585","v":"0"}]"#
    );
    let answer = town.send("GET", &format!("{path}?start_time=2026-10-02&outcome=no"), "");
    assert_eq!(answer.text(), format!("[{other}"));
    let starts = |query: &str| {
        let shown = town.send("GET", &format!("{path}?{query}"), "").json();
        shown.as_array().expect("an array").iter().map(|row| row["t"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    let monday = 1_790_553_600;
    let cases: [(&str, Vec<u64>); 12] = [
        ("interval=1w", vec![monday]),
        ("interval=1D", vec![monday, T0 - T0 % 86_400]),
        ("interval=max", vec![monday, T0 - T0 % 86_400]),
        ("interval=6h", vec![monday + 64_800, T0 - T0 % 21_600]),
        ("limit=1", vec![T0]),
        ("limit=2", vec![T0 - 3_600, T0]),
        ("end_time=2026-10-01", vec![monday + 82_800 - 3_600]),
        ("end_time=1790931599", vec![monday + 82_800 - 3_600, T0 - 3_600]),
        ("start_time=1790931601&end_time=1790931602", vec![T0]),
        ("start_time=2026-10-02T09:00:00%2B00:00&interval=1w", vec![monday]),
        ("start_time=2030-01-01", vec![]),
        ("interval=1h&outcome=Yes&start_time=1790931600", vec![T0]),
    ];
    for (query, expected) in &cases {
        assert_eq!(&starts(query), expected, "{query}");
    }
    println!("candles: {} cases", cases.len());
}

/// A fill counts whether it comes before the market's first price, with it, or after it.
#[test]
fn shares_filled_here_are_the_volume() {
    for order in ["before any price", "with the price", "after the price"] {
        let town = Town::new();
        let path = format!("/v1/markets/{}/candles?start_time=1790931600", town.condition());
        match order {
            "before any price" => {
                filled(&town);
                assert_eq!(town.send("GET", &path, "").text(), "[]");
                town.past(&[(0, 8_000)]);
            }
            "with the price" => {
                filled(&town);
                town.past(&[(0, 8_000)]);
            }
            _ => {
                town.past(&[(0, 8_000)]);
                assert!(town.send("GET", &path, "").text().contains(r#""v":"0""#));
                filled(&town);
            }
        }
        let other = format!("{path}&outcome=No");
        assert!(town.send("GET", &path, "").text().contains(r#""v":"7.5""#), "{order}");
        assert!(town.send("GET", &other, "").text().contains(r#""v":"50""#), "{order}");
    }
    println!("volume of candles: 3 cases");
}

/// Shares of both outcomes are filled here.
fn filled(town: &Town) {
    for (outcome, micros) in [(MarketOutcome::First, 7_500_000), (MarketOutcome::Second, 50_000_000)] {
        let what = OrderFact::Filled {
            trade: engine::id::TradeId(1),
            resting: false,
            instrument: town.market.instrument(outcome),
            qty: Qty(micros),
            fee: engine::fee::FeeSource::CategoryTable,
        };
        let at = crate::http::testing::NOW;
        let notice = Notice { user: engine::id::UserId(1), user_seq: 1, order: OrderId(1), what, at };
        town.past.fills.observe(&notice);
    }
}

#[test]
fn wrong_questions_have_their_codes() {
    let town = Town::new();
    let path = format!("/v1/markets/{}/candles", town.condition());
    let cases = [
        ("interval=5m", 400, "INVALID_INTERVAL"),
        ("interval=", 400, "INVALID_INTERVAL"),
        ("interval=5m&limit=0", 422, "VALIDATION_FAILED"),
        ("limit=0", 422, "VALIDATION_FAILED"),
        ("limit=1001", 422, "VALIDATION_FAILED"),
        ("limit=", 422, "VALIDATION_FAILED"),
        ("start_time=x", 400, "INVALID_WINDOW"),
        ("end_time=", 400, "INVALID_WINDOW"),
        ("start_time=5&end_time=5", 400, "INVALID_WINDOW"),
        ("start_time=6&end_time=5", 400, "INVALID_WINDOW"),
        ("end_time=0", 400, "INVALID_WINDOW"),
        ("start_time=9223372036854775807", 400, "INVALID_WINDOW"),
        ("outcome=Maybe", 404, "MARKET_NOT_FOUND"),
        ("outcome=", 404, "MARKET_NOT_FOUND"),
    ];
    for (query, status, code) in cases {
        assert_eq!(town.send("GET", &format!("{path}?{query}"), "").code(), (status, code), "{query}");
    }
    let answer = town.send("GET", &format!("{path}?interval=5m"), "");
    let expected = r#"{"error":"INVALID_INTERVAL","message":"Unknown interval.","supported_intervals":["1h","6h","1d","1w","max"]}"#;
    assert_eq!(answer.text(), expected);
    for id in ["0xdead", "x", "%20"] {
        let answer = town.send("GET", &format!("/v1/markets/{id}/candles"), "");
        assert_eq!(answer.code(), (404, "MARKET_NOT_FOUND"));
    }
    println!("candle refusals: {} cases", cases.len() + 4);
}
