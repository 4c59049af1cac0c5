//! Both venues behind one server: books and orders of either, an outage of one while the other continues, and every
//! metric of gateway/docs/metrics.md §5 for both.

use crate::fake_polymarket::{self, Market};
use crate::{fake_kalshi, kalshi_live};
use serde_json::json;
use std::collections::BTreeSet;
use tests::cases::Cases;
use tests::eventually;
use tests::exposition::{Exposition, documented, scrape};
use tests::http::Client;
use tests::json::text;
use tests::server::ServerDir;

/// The result of ten shares at 0.65 or better.
fn buy(client: &mut Client, token: &str) -> String {
    let order = json!({
        "token_id": token, "side": "BUY", "order_type": "market", "price": "0.65", "quantity": "10",
        "time_in_force": "FAK"
    });
    let answer = client.post("/v1/orders", &order);
    let body = answer.json();
    text(&body, if answer.status == 200 { "/status" } else { "/error" }).to_owned()
}

fn has_book(client: &mut Client, token: &str) -> Option<()> {
    (client.get(&format!("/v1/book?token_id={token}")).status == 200).then_some(())
}

#[test]
fn one_server_trades_on_both_and_on_one_while_the_other_is_out() {
    let cases = Cases::of("two venues in one server");
    let (polymarket, kalshi) = (fake_polymarket::Fake::start(), kalshi_live::rain());
    let market: Market = polymarket.list(7);
    // Deep enough for many orders.
    polymarket.book(&market, &[("0.40", "900000")], &[("0.60", "900000")]);
    kalshi.book(kalshi_live::RAIN, &[(4_000, 90_000_000)], &[(5_000, 90_000_000)]);
    // Settings of the first, then the place and the credentials of the second; as impatient as the first.
    let mut place = ServerDir::new();
    polymarket.configure(&mut place);
    place.set("venue", "kind", "\"polymarket,kalshi\"").set("admin", "listen", "\"127.0.0.1:0\"");
    for (key, value) in [
        ("api", kalshi.api()),
        ("socket", kalshi.socket()),
        ("key_id", fake_kalshi::KEY_ID.to_owned()),
        ("private_key_file", fake_kalshi::key_file(place.root()).display().to_string()),
    ] {
        place.set("venue.kalshi", key, &format!("{value:?}"));
    }
    let key = place.seed(1, "enterprise", "1000000").remove(0).key;
    let server = place.start_with(&["--record"], &[]);
    let admin = server.admin().expect("the banner has the address of the metrics");
    let mut client = server.with_key(&key);
    let rain = kalshi_live::tokens(kalshi_live::RAIN);
    let (of_one, of_other) = (&market.tokens[0], &rain[0]);
    for token in [of_one, of_other] {
        eventually("a book of each venue", || has_book(&mut client, token));
        assert_eq!(buy(&mut client, token), "FILLED");
        cases.add(2);
    }

    // All families of gateway/docs/metrics.md, and no other.
    let metrics = scrape(admin);
    let (names, documented) = (metrics.names(), documented());
    assert_eq!(names.difference(&documented).collect::<Vec<_>>(), Vec::<&String>::new(), "not in metrics.md");
    let prefixes = ["papertape_venue_", "papertape_recording_", "papertape_archive_"];
    let of_venues = |name: &&String| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let missing: BTreeSet<&String> = documented.difference(&names).filter(of_venues).collect();
    assert_eq!(missing, BTreeSet::new(), "only in metrics.md");
    cases.add(names.len());
    let of = |metrics: &Exposition, name: &str, venue: &str| metrics.value(name, &[("venue", venue)]);
    for venue in ["polymarket", "kalshi"] {
        assert!(of(&metrics, "papertape_venue_connections", venue) >= 1.0, "{venue}");
        assert_eq!(of(&metrics, "papertape_venue_subscribed_tokens", venue), 2.0, "{venue}");
        assert!(of(&metrics, "papertape_venue_age_seconds", venue) < 2.0, "{venue}");
        cases.add(3);
    }
    assert!(metrics.value("papertape_recording_lines_total", &[]) > 0.0);

    // The first venue goes; its books are not traded on, those of the second are.
    polymarket.gone(true);
    eventually("the one that is out", || (buy(&mut client, of_one) == "STALE_QUOTE").then_some(()));
    kalshi.change(kalshi_live::RAIN, 0, 3_800, 100);
    assert_eq!(buy(&mut client, of_other), "FILLED");
    let metrics = scrape(admin);
    assert_eq!(metrics.value("papertape_feed_outage", &[]), 0.0, "one of two continues");
    assert!(
        of(&metrics, "papertape_venue_age_seconds", "polymarket")
            > of(&metrics, "papertape_venue_age_seconds", "kalshi")
    );
    cases.add(4);

    // It comes back with its books.
    polymarket.gone(false);
    eventually("the one that is back", || (buy(&mut client, of_one) == "FILLED").then_some(()));
    assert!(of(&scrape(admin), "papertape_venue_reconnects_total", "polymarket") >= 1.0);
    cases.add(2);

    // With both gone there is no venue.
    polymarket.gone(true);
    drop(kalshi);
    eventually("no venue", || (buy(&mut client, of_other) == "VENUE_UNAVAILABLE").then_some(()));
    eventually("its metric", || (scrape(admin).value("papertape_feed_outage", &[]) == 1.0).then_some(()));
    cases.add(2);
}
