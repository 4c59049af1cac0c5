//! Up-or-down markets (gateway/docs/market-data.md §5) of the synthetic venue.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use tests::cases::Cases;
use tests::eventually;
use tests::json::{at, int, list, text};
use tests::server::{Server, ServerDir};

/// Unix seconds of a native time without a fraction.
fn secs(time: &str) -> i64 {
    let number = |range: std::ops::Range<usize>| time[range].parse::<i64>().expect("digits");
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let (shifted_year, shifted_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year - era * 400;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * shifted_month + 2) / 5 + day - 1;
    (era * 146_097 + day_of_era - 719_468) * 86_400 + number(11..13) * 3_600 + number(14..16) * 60 + number(17..19)
}

fn start(high_frequency: bool) -> (ServerDir, Server, String) {
    let mut place = ServerDir::new();
    place.set("flags", "high_freq_updown_enabled", if high_frequency { "true" } else { "false" });
    let user = place.seed(1, "enterprise", "10000").remove(0);
    let server = place.start();
    (place, server, user.key)
}

#[test]
fn windows_counts_and_filters_fit_each_other() {
    let cases = Cases::of("up-or-down");
    for high_frequency in [true, false] {
        let (_place, server, key) = start(high_frequency);
        let mut client = server.with_key(&key);
        let all = client.get("/v1/markets/updown").expect(200);
        let (rows, now) = (list(&all, "/markets"), secs(text(&all, "/timestamp")));
        assert!(rows.len() > 5 && int(&all, "/total") == rows.len() as i64);
        let mut counted: BTreeMap<&str, i64> = BTreeMap::new();
        let mut ends = Vec::new();
        for row in rows {
            let (from, to) = (secs(text(row, "/start_date")), secs(text(row, "/end_date")));
            let (interval, asset) = (text(row, "/interval"), text(row, "/asset"));
            let short = ["5M", "15M"].contains(&interval);
            assert!(high_frequency || !short, "{row}");
            let ahead = if short { 2 } else { 26 } * 3_600;
            // The clock may have advanced by a second since.
            assert!(to > now - 3_601 && from <= now + ahead + 1, "{row}");
            *counted.entry(interval).or_default() += 1;
            *counted.entry(asset).or_default() += 1;
            ends.push(to);
            for field in ["outcomes", "token_ids", "outcome_prices"] {
                let inside: Value =
                    serde_json::from_str(text(row, &format!("/markets/0/{field}"))).expect("JSON inside a text");
                assert!(inside.is_array(), "{field}");
            }
            assert_eq!(text(row, "/markets/0/outcomes"), "[\"Up\",\"Down\"]");
            assert!(text(row, "/time_range").ends_with(" ET"));
            let live = at(row, "/live_price");
            for side in ["buy", "sell"] {
                assert!(
                    live.is_null()
                        || at(live, &format!("/{side}")).is_null()
                        || at(live, &format!("/{side}")).is_number()
                );
            }
            // The price to beat is known when the window opens, and not before.
            let opened = from <= now - 5;
            let known = [at(row, "/group_item_threshold"), at(row, "/event_metadata_ptb")];
            assert!(
                known.iter().all(|known| if opened { known.is_string() } else { from <= now || known.is_null() }),
                "{row}"
            );
            cases.one();
        }
        assert!(ends.is_sorted(), "soonest-resolving first");
        for counts in ["interval_counts", "asset_counts"] {
            for (name, count) in at(&all, &format!("/{counts}")).as_object().expect("a map") {
                assert_eq!(Some(count.as_i64().expect("a count")), counted.get(name.as_str()).copied(), "{name}");
            }
        }
        let two = client.get("/v1/markets/updown?limit=2&asset=bTc").expect(200);
        assert_eq!(list(&two, "/markets").len(), 2);
        assert!(list(&two, "/markets").iter().all(|row| text(row, "/asset") == "BTC"));
        let five = client.get("/v1/markets/updown?interval=5m").expect(200);
        assert_eq!(list(&five, "/markets").is_empty(), !high_frequency);
        let counts = client.get("/v1/markets/updown/intervals?asset=btc").expect(200);
        let intervals = list(&counts, "/intervals");
        assert_eq!(text(&counts, "/asset"), "BTC");
        assert_eq!(intervals.iter().any(|row| at(row, "/interval") == "5M"), high_frequency);
        // A market of the list is read like any other, and is in no other list.
        let condition = text(&rows[0], "/condition_id");
        assert_eq!(text(&client.get(&format!("/v1/markets/{condition}")).expect(200), "/condition_id"), condition);
        let markets = client.get("/v1/markets?q=up+or+down&status=all").expect(200);
        assert_eq!(markets, json!([]));
        cases.add(6);
    }
}

#[test]
fn hostile_parameters_are_refused() {
    let cases = Cases::of("hostile up-or-down");
    let (_place, server, key) = start(true);
    let mut client = server.with_key(&key);
    eventually("the list", || (client.get("/v1/markets/updown").status == 200).then_some(()));
    for number in crate::numbers::in_queries() {
        for (field, refused) in [("limit", 422), ("asset", 404), ("interval", 404)] {
            for path in ["/v1/markets/updown", "/v1/markets/updown/intervals"] {
                let answer = client.get(&format!("{path}?{field}={number}"));
                assert!([200, refused].contains(&answer.status), "{path} {field}={number}: {}", answer.lossy());
                cases.one();
            }
        }
    }
}
