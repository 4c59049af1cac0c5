//! Fees that a market states (engine/docs/execution.md §5), on every route that shows or charges them.

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::server::ServerDir;
use tests::socket::Socket;
use tests::tape::Market;
use tests::world::{World, limit, market};

/// The market's row with what it states about its fees.
fn row(market: &Market, fees: &Value) -> Value {
    let mut row = market.listed(None);
    for (name, value) in fees.as_object().expect("an object") {
        row[name] = value.clone();
    }
    json!([row])
}

fn schedule(rate: f64, rebate_rate: f64) -> Value {
    json!({"feesEnabled": true, "feeSchedule": {"rate": rate, "exponent": 1, "takerOnly": true, "rebateRate": rebate_rate}})
}

/// What every route shows of the fees of a market: rate in basis points, `fd`, the schedule of the catalogue.
#[track_caller]
fn shown(client: &mut Client, market: &Market) -> (i64, i64, Value, Value) {
    let rate = client.get(&format!("/v1/fee-rate?token_id={}", market.yes())).expect(200);
    let detail = client.get(&format!("/v1/markets/{}", market.condition)).expect(200);
    assert_eq!(int(&detail, "/fee_rate_bps"), int(&rate, "/fee_rate_bps"));
    assert_eq!(int(&detail, "/taker_base_fee"), int(&rate, "/base_fee"));
    let clob = client.get(&format!("/v1/clob-markets/{}", market.condition)).expect(200);
    assert_eq!(int(&clob, "/tbf"), int(&rate, "/base_fee"));
    let gamma = client.get(&format!("/v1/gamma/markets?condition_ids={}", market.condition)).expect(200);
    let fd = clob.get("fd").cloned().unwrap_or(Value::Null);
    (int(&rate, "/base_fee"), int(&rate, "/fee_rate_bps"), fd, at(&gamma, "/0/feeSchedule").clone())
}

/// The fills of an order: fee, rate, source.
#[track_caller]
fn fills(client: &mut Client, order: i64) -> Vec<(String, i64, String)> {
    let order = client.get(&format!("/v1/orders/{order}")).expect(200);
    let fill = |fill: &Value| {
        (text(fill, "/fee").to_owned(), int(fill, "/fee_rate_bps"), text(fill, "/fee_source").to_owned())
    };
    list(&order, "/fills").iter().map(fill).collect()
}

fn is(fee: &str, rate: i64, source: &str) -> Vec<(String, i64, String)> {
    vec![(fee.to_owned(), rate, source.to_owned())]
}

#[test]
fn a_market_that_states_its_fees_is_charged_by_them() {
    let cases = Cases::of("stated fees");
    let layouts: [fn(&mut ServerDir); 2] = [|_| {}, |place| _ = place.set("engine", "shards", "2")];
    for layout in layouts {
        by_the_schedule(&cases, layout);
    }
}

fn by_the_schedule(cases: &Cases, layout: fn(&mut ServerDir)) {
    let mut world = World::start_with(1, |place| {
        place.set("admin", "listen", "\"127.0.0.1:0\"").set("flags", "match_interval_ms", "100");
        place.set("fees", "source", "\"auto\"").set("fees", "maker_rebate", "\"accrue\"");
        layout(place);
    });
    let (rain, coin, mut client) = (world.markets.rain.clone(), world.markets.coin.clone(), world.user(0));
    let bps = |world: &World, bps: i64| {
        let path = format!("/v1/fee-rate?token_id={}", world.markets.rain.yes());
        world.until(&path, |rate| int(rate, "/fee_rate_bps") == bps);
    };
    let buy = |client: &mut Client, of: &Market, price: &str| {
        int(&client.post("/v1/orders", &market(of, "BUY", price, "10")).expect(200), "/order_id")
    };

    // Nothing is stated yet: the table.
    let (base, rate, fd, _) = shown(&mut client, &rain);
    assert_eq!((base, rate, fd), (1_000, 500, json!({"r": 0.05, "e": 1, "to": true})));
    let by_table = buy(&mut client, &rain, "0.42");
    assert_eq!(fills(&mut client, by_table), is("0.1218", 500, "category_table"));
    cases.add(2);

    world.tape.rest("/markets", &row(&rain, &schedule(0.07, 0.2)));
    bps(&world, 700);
    let (base, rate, fd, of_catalogue) = shown(&mut client, &rain);
    assert_eq!((base, rate, fd), (1_000, 700, json!({"r": 0.07, "e": 1, "to": true})));
    assert_eq!(of_catalogue, json!({"exponent": 1, "rate": 0.07, "takerOnly": true, "rebateRate": 0.2}));
    let by_schedule = buy(&mut client, &rain, "0.42");
    assert_eq!(fills(&mut client, by_schedule), is("0.17052", 700, "market_schedule"));
    assert_eq!(fills(&mut client, by_table), is("0.1218", 500, "category_table"), "an earlier fill never moves");
    let of_other = buy(&mut client, &coin, "0.50");
    assert_eq!(fills(&mut client, of_other), is("0.175", 700, "category_table"));
    cases.add(4);

    // A maker pays nothing here, and its frame says so.
    let mut executions =
        Socket::open(world.server.address(), "/v1/ws/executions", &[("X-API-Key", &world.users[0].key)]);
    executions.json();
    let resting = client.post("/v1/orders", &limit(&rain, "BUY", "0.37", "12")).expect(200);
    world.tape.books(&rain, &[("0.30", "10")], &[("0.36", "12"), ("0.50", "100")]);
    let frame = executions.json();
    assert_eq!((text(&frame, "/type"), text(&frame, "/fee_source"), text(&frame, "/fee")), ("fill", "none", "0.00"));
    assert_eq!(fills(&mut client, int(&resting, "/order_id")), is("0.00", 0, "none"));
    cases.add(2);

    // A schedule that cannot be used: the table again. Then no fees at all.
    world.tape.rest("/markets", &row(&rain, &schedule(1.07, 0.2)));
    bps(&world, 500);
    let unusable = world.figure("papertape_venue_skipped_total{reason=\"unusable_fees\"}");
    assert_eq!(unusable, 1);
    world.tape.rest("/markets", &row(&rain, &json!({"feesEnabled": false})));
    bps(&world, 0);
    let (base, rate, fd, _) = shown(&mut client, &rain);
    assert_eq!((base, rate, fd), (0, 0, Value::Null));
    let free = buy(&mut client, &rain, "0.50");
    assert_eq!(fills(&mut client, free), is("0.00", 0, "market_schedule"));
    cases.add(3);

    let sources = ["market_schedule", "category_table", "none"]
        .map(|source| world.figure(&format!("papertape_fills_by_fee_source_total{{source=\"{source}\"}}")));
    assert_eq!(sources, [2, 2, 1]);
    let seen = |client: &mut Client| {
        let rows = client.get("/v1/account/history").expect(200);
        let native: Vec<Value> = list(&rows, "").iter().map(|row| at(row, "/fee_source").clone()).collect();
        let rows = client.get("/v1/data/trades").expect(200);
        let of_venue: Vec<Value> = list(&rows, "/data").iter().map(|row| at(row, "/fee_source").clone()).collect();
        let file = client.get("/v1/export/trades.csv");
        let column: Vec<Value> =
            file.text().lines().skip(1).map(|line| json!(line.rsplit(',').next().expect("a column"))).collect();
        (native, of_venue, column)
    };
    let expected = ["market_schedule", "none", "category_table", "market_schedule", "category_table"].map(Value::from);
    let before = seen(&mut client);
    assert_eq!((&before.0[..], &before.1[..]), (&expected[..], &expected[..]));
    assert!(before.2 == expected || before.2.iter().rev().eq(expected.iter()), "{:?}", before.2);
    cases.add(4);

    // A start has all of it again.
    world.crash();
    let mut client = world.user(0);
    eventually("the recording", || Some(shown(&mut client, &rain)).filter(|shown| shown.1 == 0));
    assert_eq!(seen(&mut client), before);
    assert_eq!(fills(&mut client, by_schedule), is("0.17052", 700, "market_schedule"));
    cases.add(2);
}

/// With the defaults a stated schedule is neither shown nor charged nor written down.
#[test]
fn by_default_the_table_decides() {
    let cases = Cases::of("fees by default");
    let mut world = World::start(1);
    let (rain, mut client) = (world.markets.rain.clone(), world.user(0));
    world.tape.rest("/markets", &row(&rain, &schedule(0.07, 0.2)));
    world.tape.books(&rain, &[("0.40", "310")], &[("0.43", "60")]);
    let book = format!("/v1/book?token_id={}", rain.yes());
    world.until(&book, |book| text(book, "/asks/0/price") == "0.43");
    assert_eq!(
        (shown(&mut client, &rain).1, shown(&mut client, &rain).2),
        (500, json!({"r": 0.05, "e": 1, "to": true}))
    );
    let order = client.post("/v1/orders", &market(&rain, "BUY", "0.43", "10")).expect(200);
    assert_eq!(fills(&mut client, int(&order, "/order_id")), is("0.12255", 500, "category_table"));
    world.server.kill();
    let exported = world.place.log("export");
    assert!(exported.status.success());
    let facts = String::from_utf8(exported.stdout).expect("UTF-8");
    assert!(facts.contains("OrderFilled") && !facts.contains("FeeScheduleChanged") && !facts.contains("FillCharged"));
    cases.add(3);
}
