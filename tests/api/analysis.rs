//! Profile analysis (engine/docs/account.md §6): every formula on a fixed history, calculated by hand.

use engine::order::Side;
use engine::time::Timestamp;
use engine::user::WalletKind;
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::eventually;
use tests::history::Trade;
use tests::http::Client;
use tests::json::{at, int, list, micros_at, text};
use tests::world::World;

/// 2026-03-01T12:00:00Z.
const NOON: u64 = 1_772_366_400_000_000;
const DAY: u64 = 86_400_000_000;
const PATH: &str = "/v1/account/profile-analysis";

/// Nine fills on four days: two closed with a gain, one with a loss, one even, two open.
fn traded(world: &mut World) {
    world.past(0, |history, markets| {
        let (rain, coin) = (history.instrument(&markets.rain, 0), history.instrument(&markets.coin, 1));
        let (vote, decided) = (history.instrument(&markets.vote, 0), history.instrument(&markets.decided, 1));
        let rows = [
            // (day, instrument, side, shares, cents, fee in cents)
            (0, rain, Side::Buy, 10, 400, 10),
            (0, rain, Side::Sell, 10, 450, 10),
            (1, coin, Side::Buy, 20, 1_000, 0),
            (1, coin, Side::Sell, 20, 800, 0),
            (3, vote, Side::Buy, 10, 600, 0),
            (3, decided, Side::Buy, 5, 100, 0),
            (3, decided, Side::Sell, 5, 100, 0),
            (4, rain, Side::Buy, 100, 4_000, 0),
            (4, vote, Side::Buy, 20, 1_200, 0),
        ];
        for (number, (day, instrument, side, shares, cents, fee)) in (0..).zip(rows) {
            if number == 7 {
                history.settle(WalletKind::Api, vote, 10_000, Timestamp(NOON + 3 * DAY + 100));
            }
            let trade = Trade {
                instrument,
                wallet: WalletKind::Api,
                side,
                qty: shares * 1_000_000,
                notional: cents * 10_000,
                fee: fee * 10_000,
                at: Timestamp(NOON + day * DAY + number),
            };
            history.trade(trade);
        }
    });
}

/// Every field of `expected` has that value.
#[track_caller]
fn shows(section: &Value, expected: &Value) {
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(at(section, &format!("/{name}")), value, "{name}");
    }
}

#[test]
fn every_formula_on_a_past_of_our_own() {
    let cases = Cases::of("analysis figures");
    let mut world = World::start(2);
    traded(&mut world);
    let mut client = world.user(0);
    let shown = client.get(PATH).expect(200);
    let expected = [
        (
            "/balance",
            json!({
                "currency": "USD", "ui_balance": "1000.00", "api_balance": "9950.30", "starting_ui_balance": "1000.00",
                "ui_pnl": "0.00", "ui_pnl_percentage": "0.00", "total_portfolio_value": "10004.75",
                "unrealized_pnl": "2.45", "realized_pnl": "2.50"
            }),
        ),
        (
            "/trading_stats",
            json!({
                "total_trades": 9, "total_buys": 6, "total_sells": 3, "total_wins": 2, "total_losses": 1,
                "active_trading_days": 4, "unique_markets_traded": 4, "buy_sell_ratio": "2.00",
                "total_volume": "86.50", "avg_trade_size": "9.611111", "median_trade_size": "6.00",
                "largest_trade": "40.00", "smallest_trade": "1.00", "total_fees_paid": "0.20", "win_rate": "50.0%",
                "best_trade_pnl": "4.00", "worst_trade_pnl": "-2.00", "avg_win_pnl": "2.25", "avg_loss_pnl": "-2.00",
                "profit_factor": "2.25", "first_trade_at": "2026-03-01T12:00:00Z",
                "last_trade_at": "2026-03-05T12:00:00.000008Z", "avg_trades_per_day": "2.25"
            }),
        ),
        (
            "/risk_metrics",
            json!({
                "open_position_count": 2, "largest_position_weight": "76.22",
                "largest_position_market": world.markets.rain.condition, "top_3_concentration": "100.00",
                "portfolio_diversity_score": "0.362537", "avg_position_size": "27.225", "cash_percentage": "99.46",
                "invested_percentage": "0.54"
            }),
        ),
        (
            "/open_positions/0",
            json!({
                "market_question": world.markets.rain.question, "market_category": "weather", "outcome": "Yes",
                "quantity": "100", "avg_entry_price": "0.40", "current_price": "0.415", "cost_basis": "40.00",
                "market_value": "41.50", "unrealized_pnl": "1.50", "unrealized_pnl_percentage": "3.75",
                "status": "OPEN", "weight_percentage": "76.22"
            }),
        ),
        (
            "/open_positions/1",
            json!({
                "market_id": world.markets.vote.condition, "current_price": "0.6475", "market_value": "12.95",
                "unrealized_pnl": "0.95", "unrealized_pnl_percentage": "7.92", "weight_percentage": "23.78"
            }),
        ),
        (
            "/category_exposure/0",
            json!({
                "category": "politics", "position_count": 1, "total_value": "12.95", "weight_percentage": "23.78"
            }),
        ),
        (
            "/category_exposure/1",
            json!({"category": "weather", "position_count": 1, "total_value": "41.50", "weight_percentage": "76.22"}),
        ),
        (
            "/recent_trades/1",
            json!({
                "market_id": world.markets.rain.condition, "side": "BUY", "price": "0.40", "quantity": "100",
                "notional": "40.00", "filled_at": "2026-03-05T12:00:00.000007Z"
            }),
        ),
        (
            "/profile",
            json!({
                "user_id": world.users[0].id, "username": null, "auth_provider": null, "account_age_days": 0,
                "api_key_tier": "enterprise", "profile_visibility": "public"
            }),
        ),
    ];
    for (section, fields) in &expected {
        shows(at(&shown, section), fields);
        cases.add(fields.as_object().map_or(0, serde_json::Map::len));
    }
    assert_eq!((list(&shown, "/recent_trades").len(), list(&shown, "/open_positions").len()), (9, 2));
    // The same statistics as those of the portfolio.
    let portfolio = client.get("/v1/account/portfolio").expect(200);
    assert_eq!(at(&shown, "/trading_stats/win_rate"), at(&portfolio, "/win_rate"));
    assert_eq!(at(&shown, "/trading_stats/total_trades"), at(&portfolio, "/total_trades"));
    assert_eq!(at(&shown, "/balance/total_portfolio_value"), at(&portfolio, "/balance/total_value"));
    cases.add(3);
    // An account without a history.
    let empty = world.user(1).get(PATH).expect(200);
    for name in ["win_rate", "profit_factor", "avg_trade_size", "median_trade_size", "first_trade_at", "buy_sell_ratio"]
    {
        assert_eq!(at(&empty, &format!("/trading_stats/{name}")), &Value::Null, "{name}");
        cases.one();
    }
    for name in ["largest_position_weight", "portfolio_diversity_score", "avg_position_size"] {
        assert_eq!(at(&empty, &format!("/risk_metrics/{name}")), &Value::Null, "{name}");
        cases.one();
    }
    assert_eq!(text(&empty, "/risk_metrics/cash_percentage"), "100.00");
    cases.one();
}

/// The points of `equity` without the live one.
fn stored(client: &mut Client) -> Vec<Value> {
    let points = client.get("/v1/account/equity").expect(200);
    let (_, stored) = list(&points, "").split_last().expect("the live point always exists");
    stored.to_vec()
}

#[test]
fn the_timeline_is_that_of_the_equity_points() {
    let cases = Cases::of("analysis timeline");
    let mut world = World::start_with(1, |place| _ = place.clock_ahead(0));
    let mut client = world.user(0);
    let order = |price: &str, quantity: &str| tests::world::limit(&world.markets.rain, "BUY", price, quantity);
    client.post("/v1/orders", &order("0.44", "150")).expect(200);
    for hour in 1..=4 {
        world.place.clock_ahead(hour * 3_600);
        // An hour repeats the one before it until its own point is noted, so both are polled until they are stable.
        let (points, shown) = eventually("the hour's point", || {
            let before = stored(&mut client);
            let shown = client.get(PATH).expect(200);
            (before.len() >= hour as usize && stored(&mut client) == before).then_some((before, shown))
        });
        let timeline = at(&shown, "/equity_timeline");
        assert_eq!(int(timeline, "/snapshots_available") as usize, points.len());
        assert_eq!(at(timeline, "/latest_snapshot_at"), at(points.last().unwrap(), "/timestamp"));
        let values: Vec<i64> = points.iter().map(|point| micros_at(point, "/total_value")).collect();
        assert_eq!(micros_at(timeline, "/peak_value"), *values.iter().max().unwrap());
        assert_eq!(micros_at(timeline, "/trough_value"), *values.iter().min().unwrap());
        if values.len() < 2 {
            assert_eq!(at(timeline, "/return_7d"), &Value::Null);
        } else {
            let (first, last) = (values[0] as f64, *values.last().unwrap() as f64);
            let expected = (last - first) / first * 100.0;
            let gain: f64 = text(timeline, "/return_7d").parse().expect("a percentage");
            assert!((gain - expected).abs() <= 0.005_001, "{gain} {expected}");
            assert_eq!(at(timeline, "/return_7d"), at(timeline, "/return_all_time"));
        }
        cases.one();
        client.post("/v1/orders", &order("0.44", "5")).expect(200);
    }
}

#[test]
fn parameters_of_the_analysis() {
    let cases = Cases::of("analysis parameters");
    let mut world = World::start(2);
    traded(&mut world);
    let mut client = world.user(0);
    for (query, trades, recent, total) in [
        ("", 9, 9, "10004.75"),
        ("?wallet_id=api", 9, 9, "10004.75"),
        ("?wallet_id=all", 9, 9, "11004.75"),
        ("?recent_trades=1", 9, 1, "10004.75"),
        ("?recent_trades=100&equity_days=365", 9, 9, "10004.75"),
        ("?recent_trades=3&equity_days=1", 9, 3, "10004.75"),
    ] {
        let shown = client.get(&format!("{PATH}{query}")).expect(200);
        assert_eq!(int(&shown, "/trading_stats/total_trades"), trades, "{query}");
        assert_eq!(list(&shown, "/recent_trades").len(), recent, "{query}");
        assert_eq!(text(&shown, "/balance/total_portfolio_value"), total, "{query}");
        cases.one();
    }
    let mains: Vec<_> = client.get("/v1/me/wallets").expect(200)["wallets"].as_array().unwrap().clone();
    let main = mains.iter().find(|wallet| wallet["kind"] == "MAIN").map(|wallet| int(wallet, "/id")).unwrap();
    let shown = client.get(&format!("{PATH}?wallet_id={main}")).expect(200);
    assert_eq!((int(&shown, "/trading_stats/total_trades"), text(&shown, "/balance/api_balance")), (0, "9950.30"));
    world.user(1).get(&format!("{PATH}?wallet_id={main}")).refused(404, "WALLET_NOT_FOUND");
    cases.add(2);
    for query in ["recent_trades=0", "recent_trades=101", "equity_days=0", "equity_days=366", "wallet_id=x"] {
        client.get(&format!("{PATH}?{query}")).refused(422, "VALIDATION_FAILED");
        cases.one();
    }
    world.public().get(PATH).refused(401, "MISSING_API_KEY");
    cases.one();
}
