//! The [`Venue`] trait: configuration, paths, and the guarantees of every venue.
use super::*;
use engine::market::terms::Category;
use host::clock::Clock;

#[test]
fn paths_are_read_without_host_and_query() {
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
        archive: Default::default(),
        liveliness: 1,
        mix: false,
        categories: Default::default(),
        live: Default::default(),
    };
    let error = open(&config, &Clock::wall()).err().expect("no such file").to_string();
    assert!(error.contains("/nowhere/tape.ndjson"), "{error}");
}

#[test]
fn contradictory_settings_are_refused_before_a_venue_is_opened() {
    let base = VenueConfig {
        kind: VenueKind::Synthetic,
        seed: 0,
        tape: Default::default(),
        speed: Speed::RECORDED,
        follow: false,
        archive: Default::default(),
        liveliness: 1,
        mix: false,
        categories: Default::default(),
        live: Default::default(),
    };
    let live = VenueKind::Live(testing::POLYMARKET.into());
    let cases = [
        // kind, tape, recording, a part of the refusal
        (VenueKind::Synthetic, "", None, None),
        (VenueKind::Replay, "tape", None, None),
        (VenueKind::Replay, "", None, Some("venue.tape")),
        (live, "", None, None),
        (live, "", Some("out"), None),
        (VenueKind::Synthetic, "", Some("out"), Some("not synthetic")),
        (VenueKind::Replay, "tape", Some("out"), Some("not replay")),
    ];
    for (kind, tape, recording, named) in cases {
        let live = crate::adapters::Settings { recording: recording.map(PathBuf::from), ..Default::default() };
        let config = VenueConfig { kind, tape: tape.into(), live, ..base.clone() };
        let refused = config.check().err().map(|error| error.to_string());
        assert_eq!(refused.is_some(), named.is_some(), "{kind} {tape:?} {recording:?}: {refused:?}");
        assert!(refused.unwrap_or_default().contains(named.unwrap_or_default()));
    }
    println!("settings of venues: {} cases", cases.len());
}

/// A recording of both live venues in the general form: catalogue rows, books, changes, a gap, a result. It takes 62 s
/// from `start`, in milliseconds.
pub(crate) fn both_venues(start: u64) -> String {
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

/// The guarantees of every venue; the checks are in [`suite::Witness`].
#[test]
fn every_venue_keeps_the_guarantees_of_the_trait() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("both.ndjson");
    std::fs::write(&tape, both_venues(1_788_000_000_000)).unwrap();
    let categories = Names::default();
    let replay = |speed| VenueConfig {
        kind: VenueKind::Replay,
        seed: 0,
        tape: tape.clone(),
        speed,
        follow: false,
        archive: Default::default(),
        liveliness: 1,
        mix: false,
        categories: categories.clone(),
        live: Default::default(),
    };
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
            let mut venue = open(&config, &Clock::fake(start)).unwrap();
            let mut witness = suite::Witness::default();
            witness.run(venue.as_mut(), start, start.plus(2 * MINUTE), step);
            println!("{name}: {:?}", witness.counts);
            witness.assert_mirrored();
            assert!(witness.count("resolved") >= resolutions && witness.count("delta") > 1_000, "{name}");
            assert_eq!(venue.drives_clock(), config.kind == VenueKind::Replay);
            assert!(!venue.describe().is_empty());
            digests.push(witness.digest());
        }
        assert_eq!(digests[0], digests[1], "{name}: polled at another interval");
    }
}

#[test]
fn markets_are_listed_with_the_categories_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("chess.ndjson");
    let gamma = |number: u8, more: &str| {
        format!(
            r#"{{"id":"{number}","conditionId":"0x{number:064}","slug":"p-{number}","clobTokenIds":"[\"{number}1\",\"{number}2\"]",{more}}}"#
        )
    };
    let rows =
        [gamma(1, r#""category":"Chess""#), gamma(2, r#""tags":[{"slug":"chess"}]"#), gamma(3, r#""category":"Tech""#)];
    let event = r#"{"event":{"event_ticker":"E","category":"Chess"},"markets":[{"ticker":"K-4","event_ticker":"E"}]}"#;
    let lines = [
        format!(r#"{{"r":1788000000000,"v":"polymarket","u":"/markets","s":200,"b":[{}]}}"#, rows.join(",")),
        format!(r#"{{"r":1788000000001,"v":"kalshi","u":"/events/E","s":200,"b":{event}}}"#),
        format!(
            r#"{{"r":1788000000002,"v":"polymarket","c":"p","m":{{"event_type":"new_market","id":"5","condition_id":"0x{:064}","slug":"p-5","clob_token_ids":["51","52"],"tags":["Chess"]}}}}"#,
            5
        ),
    ];
    std::fs::write(&tape, lines.join("\n")).unwrap();
    let synthetic = |seed| VenueConfig {
        kind: VenueKind::Synthetic,
        seed,
        tape: tape.clone(),
        speed: Speed::Max,
        follow: false,
        archive: Default::default(),
        liveliness: 1,
        mix: false,
        categories: Names::default(),
        live: Default::default(),
    };
    let replay = VenueConfig { kind: VenueKind::Replay, ..synthetic(1) };
    let start = Timestamp::from_millis(1_788_000_000_000);
    let listed = |config: &VenueConfig| {
        let mut listed = std::collections::BTreeMap::new();
        let mut venue = open(config, &Clock::fake(start)).unwrap();
        venue.poll(start, start.plus(1_000_000), &mut |frame| {
            for update in frame.updates {
                if let FeedUpdate::Listed { listing, .. } = update {
                    listed.insert(
                        listing.slug.clone(),
                        (listing.category, listing.tags.clone(), listing.updown.is_some()),
                    );
                }
            }
        });
        listed
    };
    let names: Names = [("chess", Category::Weather), ("hockey", Category::Culture), ("up-or-down", Category::Culture)]
        .into_iter()
        .map(|(name, category)| (name.to_owned(), category))
        .collect();
    let categories =
        |config: &VenueConfig| listed(config).into_values().map(|(category, ..)| category).collect::<Vec<_>>();
    use Category::{Other, Tech, Weather};
    assert_eq!(categories(&replay), [Other, Other, Other, Tech, Other]);
    let named = VenueConfig { categories: names.clone(), ..replay };
    assert_eq!(categories(&named), [Weather, Weather, Weather, Tech, Weather]);
    let (before, mut cases) = (listed(&synthetic(6)), 0);
    for (slug, (category, tags, updown)) in listed(&VenueConfig { categories: names, ..synthetic(6) }) {
        let mapped = !updown && tags.iter().any(|tag| tag == "hockey");
        assert_eq!(category, if mapped { Category::Culture } else { before[&slug].0 }, "{slug}");
        cases += usize::from(mapped);
    }
    assert!(cases > 0);
    println!("categories: 5 recorded markets, {cases} synthetic ones");
}
