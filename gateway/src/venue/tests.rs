//! The seam itself: configuration, paths, and the promises of every venue.
use super::*;

#[test]
fn paths_are_read_without_what_stands_around_them() {
    for (url, expected) in [
        (
            "https://host/trade-api/v2/markets/KX-1/orderbook?depth=10",
            vec!["trade-api", "v2", "markets", "KX-1", "orderbook"],
        ),
        ("/events?limit=5", vec!["events"]),
        ("events/", vec!["events"]),
        ("https://host", vec![]),
        ("https://host/?x=/markets", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(rest_path(url), expected, "{url}");
    }
}

#[test]
fn speeds_are_read_and_shown() {
    for (text, shown) in [("max", Some("max speed")), ("1", Some("1x")), ("60", Some("60x")), ("0.5", Some("0.5x"))] {
        assert_eq!(text.parse::<Speed>().ok().map(|speed| speed.to_string()).as_deref(), shown, "{text}");
    }
    for text in ["", "0", "-1", "fast", "0.0001", "1000001", "NaN", "inf"] {
        assert!(text.parse::<Speed>().is_err(), "{text}");
    }
}

#[test]
fn a_missing_tape_is_an_error_with_its_path() {
    let config = VenueConfig {
        kind: VenueKind::Replay,
        seed: 0,
        tape: "/nowhere/tape.ndjson".into(),
        speed: Speed::RECORDED,
        follow: false,
    };
    let error = open(&config, Timestamp::default()).err().expect("no such file").to_string();
    assert!(error.contains("/nowhere/tape.ndjson"), "{error}");
}

/// A recording of both live venues in the general form: catalogue rows, books, changes, a gap, a result.
fn both_venues() -> String {
    const CONDITION: &str = "0xaa00000000000000000000000000000000000000000000000000000000000001";
    let gamma = |more: &str| {
        format!(
            r#"[{{"id":"1","conditionId":"{CONDITION}","slug":"s","clobTokenIds":"[\"11\",\"12\"]","active":true,{more}}}]"#
        )
    };
    let open = gamma(r#""closed":false,"acceptingOrders":true,"endDate":"2026-11-03T00:00:00Z""#);
    let won = gamma(r#""closed":true,"outcomePrices":"[\"0\",\"1\"]","umaResolutionStatus":"resolved""#);
    let book = |token: u8, at: u64, bid: &str, ask: &str| {
        format!(
            r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{at}","bids":[{{"price":"{bid}","size":"5"}}],"asks":[{{"price":"{ask}","size":"5"}}]}}"#
        )
    };
    let change = |at: u64, size: u64| {
        format!(
            r#"{{"event_type":"price_change","timestamp":"{at}","price_changes":[{{"asset_id":"11","price":"0.3","size":"{size}","side":"BUY"}},{{"asset_id":"12","price":"0.7","size":"{size}","side":"SELL"}}]}}"#
        )
    };
    let kalshi = r#"{"markets":[{"ticker":"KX-1","status":"active","close_time":"2026-10-01T00:00:00Z"}]}"#;
    let snapshot = r#"{"type":"orderbook_snapshot","msg":{"market_ticker":"KX-1","yes_dollars_fp":[["0.4","1"]],"no_dollars_fp":[["0.5","2"]]}}"#;
    let delta = r#"{"type":"orderbook_delta","msg":{"market_ticker":"KX-1","price_dollars":"0.4","delta_fp":"2.00","side":"yes"}}"#;
    let start = 1_788_000_000_000_u64;
    let mut lines = vec![
        format!(r#"{{"r":{start},"v":"polymarket","u":"/markets?limit=1","s":200,"b":{open}}}"#),
        format!(r#"{{"r":{},"v":"kalshi","u":"https://host/trade-api/v2/markets","s":200,"b":{kalshi}}}"#, start + 10),
        format!(
            r#"{{"r":{},"v":"polymarket","c":"p","m":[{},{}]}}"#,
            start + 20,
            book(11, start, "0.3", "0.4"),
            book(12, start, "0.6", "0.7")
        ),
        format!(r#"{{"r":{},"v":"kalshi","c":"k","m":{snapshot}}}"#, start + 30),
    ];
    for number in 1..500 {
        let at = start + 30 + number * 100;
        lines.push(format!(r#"{{"r":{at},"v":"polymarket","c":"p","m":{}}}"#, change(at, number)));
        lines.push(format!(r#"{{"r":{at},"v":"kalshi","c":"k","m":{delta}}}"#));
    }
    lines.push(format!(r#"{{"r":{},"v":"kalshi","c":"k","gap":"reconnect"}}"#, start + 60_000));
    lines.push(format!(r#"{{"r":{},"v":"kalshi","c":"k","m":{delta}}}"#, start + 60_001));
    lines.push(format!(r#"{{"r":{},"v":"kalshi","c":"k","m":{snapshot}}}"#, start + 60_002));
    lines.push(format!(r#"{{"r":{},"v":"polymarket","u":"/markets","s":200,"b":{won}}}"#, start + 61_000));
    lines.push(format!(r#"{{"r":{},"v":"polymarket","u":"/markets","s":200,"b":{won}}}"#, start + 62_000));
    lines.join("\n")
}

/// What every venue promises (the checks themselves are in [`suite::Witness`]), for each of them alike.
#[test]
fn every_venue_keeps_the_promises_of_the_seam() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("both.ndjson");
    std::fs::write(&tape, both_venues()).unwrap();
    let replay = |speed| VenueConfig { kind: VenueKind::Replay, seed: 0, tape: tape.clone(), speed, follow: false };
    let synthetic = VenueConfig { kind: VenueKind::Synthetic, ..replay(Speed::Max) };
    let start = Timestamp::from_millis(1_788_000_000_000);
    const MINUTE: u64 = 60_000_000;
    for (name, config, resolutions) in [
        ("synthetic", synthetic, 40),
        ("replay as recorded", replay(Speed::RECORDED), 1),
        ("replay at 60x", replay("60".parse().unwrap()), 1),
        ("replay at max", replay(Speed::Max), 1),
        ("replay, followed", VenueConfig { follow: true, ..replay(Speed::Max) }, 1),
    ] {
        let mut digests = Vec::new();
        for step in [MINUTE / 600, MINUTE / 37] {
            let mut venue = open(&config, start).unwrap();
            let mut witness = suite::Witness::default();
            witness.run(venue.as_mut(), start, start.plus(2 * MINUTE), step);
            println!("{name}: {:?}", witness.counts);
            witness.assert_mirrored();
            assert!(witness.count("resolved") >= resolutions && witness.count("delta") > 1_000, "{name}");
            assert_eq!(venue.drives_clock(), config.kind == VenueKind::Replay);
            assert!(!venue.describe().is_empty());
            digests.push(witness.digest());
        }
        assert_eq!(digests[0], digests[1], "{name}: however it is polled");
    }
}
