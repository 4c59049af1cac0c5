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
