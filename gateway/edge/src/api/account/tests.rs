use super::*;
use crate::api::testing::{Filled, Text as _, Town, Trader, WALLET, shows};
use engine::amount::{Cash, Qty};
use engine::id::{Outcome as MarketOutcome, WalletId};
use engine::order::{Liquidity, OrderTerms, PriceSource};
use engine::reject::Reject;
use engine::time::Timestamp;
use engine::view::{FillPage, FillView, PositionView};

/// 2026-10-02T09:15:00.001100Z.
const CREATED_AT: Timestamp = Timestamp(1_790_932_500_001_100);

/// 100.00 of which 50 shares were bought at 0.42.
fn trader(town: &Town) -> Trader {
    let mut trader = Trader::new(100_000_000, town.market.instrument(MarketOutcome::First));
    let terms = OrderTerms { client_order_id: Some("m-1".to_owned()), ..trader.terms(4_200, 50) };
    trader.place(90_412, terms, CREATED_AT);
    let how = Filled {
        liquidity: Liquidity::Taker,
        source: PriceSource::BookWalk,
        quote_age_ms: Some(310),
        at: Timestamp(1_790_932_500_004_211),
    };
    trader.fill(90_412, 51_233 + 90_000, (50_000_000, 21_000_000, 609_000), how);
    trader
}

fn account(trader: &Trader) -> AccountView {
    AccountView {
        wallets: trader.user().wallets.clone(),
        positions: trader.user().open_positions().map(position).collect(),
        fills_count: 1,
        closed_count: 0,
        won_count: 0,
    }
}

fn position(held: &engine::user::Position) -> PositionView {
    PositionView { position: held.clone(), average: held.average() }
}

const BALANCE: &str = concat!(
    r#"{"balance":"78.391","currency":"USD","unrealized_pnl":"-0.859","total_value":"99.141","#,
    r#""starting_balance":"100.00","reserved":"0.00"}"#
);

#[test]
fn balance_and_portfolio_have_the_shape_of_the_contract() {
    let town = Town::new();
    let first = account(&trader(&town));
    let second = AccountView { closed_count: 12, won_count: 7, ..first.clone() };
    town.shard(move |_, command| match command {
        Command::Query(Query::Account { wallets: Wallets::Api }) => Ok(Answer::Account(Box::new(first.clone()))),
        Command::Query(Query::Account { wallets: Wallets::All }) => Ok(Answer::Account(Box::new(second.clone()))),
        _ => Ok(Answer::Refused(Reject::WalletNotFound)),
    });
    assert_eq!(town.send("GET", "/v1/account/balance", "").text(), BALANCE);
    assert_eq!(town.send("GET", "/v1/account/balance?wallet_id=API", "").text(), BALANCE);
    assert_eq!(town.send("GET", "/v1/account/balance?wallet_id=9", "").code(), (404, "WALLET_NOT_FOUND"));
    assert_eq!(town.send("GET", "/v1/account/balance?wallet_id=x", "").code(), (422, "VALIDATION_FAILED"));
    let portfolio = town.send("GET", "/v1/account/portfolio", "");
    let expected = format!(
        concat!(
            r#"{{"balance":{},"positions":[{{"id":7001,"market_id":"{}","outcome":"Yes","quantity":"50"}}],"#,
            r#""total_trades":1,"win_rate":null}}"#
        ),
        BALANCE,
        town.condition()
    );
    shows(portfolio.text().as_bytes(), &expected);
    let all = town.send("GET", "/v1/account/portfolio?wallet_id=all", "");
    shows(all.text().as_bytes(), r#"{"win_rate":"58.3%"}"#);
}

#[test]
fn positions_have_the_shape_of_the_contract() {
    let town = Town::new();
    let trader = trader(&town);
    let open: Vec<_> = trader.user().open_positions().map(position).collect();
    let mut closed = open[0].position.clone();
    closed.last_open = (Qty::from_shares(10), Cash(4_000_000));
    (closed.qty, closed.cost, closed.closed_at) = (Qty::ZERO, Cash::ZERO, Some(CREATED_AT));
    closed.realized = Cash(-250_000);
    let rows = vec![open[0].clone(), position(&closed)];
    town.shard(move |_, command| match command {
        Command::Query(Query::Positions { market: Some(NO_MARKET), .. }) => Ok(Answer::Positions(Vec::new())),
        Command::Query(Query::Positions { .. }) => Ok(Answer::Positions(rows.clone())),
        other => panic!("{other:?}"),
    });
    let row = concat!(
        r#"{"id":7001,"market_id":"CONDITION","outcome":"Yes","quantity":"50","avg_entry_price":"0.42","#,
        r#""current_price":"0.415","unrealized_pnl":"-0.25","market_value":"20.75","status":"OPEN","#,
        r#""market_question":"Rain in Lisbon on 3 October?","token_id":"81140002","wallet_id":3,"#,
        r#""reserved_quantity":"0","realized_pnl":"0.00","opened_at":"2026-10-02T09:15:00.004211Z","closed_at":null}"#
    );
    let row = row.replace("CONDITION", town.condition());
    let answer = town.send("GET", "/v1/account/positions", "");
    assert!(answer.text().starts_with(&format!("[{row},")), "{}", answer.text());
    let expected = concat!(
        r#"[{"quantity":"0","avg_entry_price":"0.40","current_price":"0.415","unrealized_pnl":null,"#,
        r#""market_value":null,"status":"CLOSED","realized_pnl":"-0.25","closed_at":"2026-10-02T09:15:00.001100Z"}]"#
    );
    shows(town.send("GET", "/v1/account/positions?status=closed", "").text().as_bytes(), expected);
    let envelope = town.send("GET", "/v1/account/positions?envelope=true", "");
    shows(envelope.text().as_bytes(), r#"{"limit":2,"count":2,"next_cursor":"","data":[{"id":7001},{"id":7001}]}"#);
    assert_eq!(town.send("GET", "/v1/account/positions?market_id=0x00", "").text(), "[]");
    for query in ["status=PENDING", "envelope=maybe", "wallet_id=-"] {
        let answer = town.send("GET", &format!("/v1/account/positions?{query}"), "");
        assert_eq!(answer.code(), (422, "VALIDATION_FAILED"), "{query}");
    }
}

#[test]
fn history_has_the_shape_of_the_contract() {
    let town = Town::new();
    let order = trader(&town).view(90_412);
    let row = FillView { fill: order.fills[0].clone(), order: order.order.clone() };
    town.shard(move |_, command| match command {
        Command::Query(Query::Fills(filter)) => {
            let has_more = filter.offset == 50;
            assert!(has_more || (filter.limit, filter.wallets) == (50, Wallets::Api));
            Ok(Answer::Fills(FillPage { fills: vec![row.clone()], has_more }))
        }
        other => panic!("{other:?}"),
    });
    let answer = town.send("GET", "/v1/account/history?envelope=true", "");
    let expected = concat!(
        r#"{"data":[{"order_id":90412,"market_id":"CONDITION","side":"BUY","outcome":"Yes","price":"0.42","#,
        r#""quantity":"50","notional":"21.00","fee":"0.609","status":"FILLED","price_source":"book_walk","#,
        r#""price_age_ms":310,"filled_at":"2026-10-02T09:15:00.004211Z","created_at":"2026-10-02T09:15:00.001100Z","#,
        r#""trade_id":141233,"token_id":"81140002","liquidity":"TAKER","fee_rate_bps":500,"wallet_id":3,"#,
        r#""client_order_id":"m-1","venue_time":null,"fee_source":"category_table"}],"next_cursor":""}"#
    );
    assert_eq!(answer.text(), expected.replace("CONDITION", town.condition()));
    let more = town.send("GET", "/v1/account/history?envelope=1&offset=50&limit=1&wallet_id=all&side=sell", "");
    shows(more.text().as_bytes(), r#"{"next_cursor":"51"}"#);
    assert!(town.send("GET", "/v1/account/history", "").text().starts_with('['));
    for (query, expected) in [
        ("side=hold", (400, "INVALID_REQUEST")),
        ("side=", (400, "INVALID_REQUEST")),
        ("limit=0", (422, "VALIDATION_FAILED")),
        ("limit=201", (422, "VALIDATION_FAILED")),
        ("offset=-1", (422, "VALIDATION_FAILED")),
        ("envelope=2", (422, "VALIDATION_FAILED")),
    ] {
        assert_eq!(town.send("GET", &format!("/v1/account/history?{query}"), "").code(), expected, "{query}");
    }
}

#[test]
fn me_shows_the_balance_of_the_chosen_wallets() {
    let town = Town::new();
    let api = trader(&town).user().wallets[0].clone();
    assert_eq!(api.id, WALLET);
    let mut main = api.clone();
    (main.id, main.kind, main.cash) = (WalletId(2), engine::user::WalletKind::Main, Cash(1_000_000_000));
    town.shard(move |user, _| {
        Ok(Answer::User(Box::new(engine::view::UserView {
            id: user,
            sub: None,
            email: None,
            created_at: CREATED_AT,
            grant: None,
            active_keys: 1,
            wallets: vec![main.clone(), api.clone()],
        })))
    });
    for (query, expected) in
        [("", "78.391"), ("?wallet_id=api", "78.391"), ("?wallet_id=2", "1000.00"), ("?wallet_id=all", "1078.391")]
    {
        let answer = town.send("GET", &format!("/v1/me{query}"), "");
        let expected = format!(r#"{{"user_id":1,"balance":"{expected}","tier":"free","auth_user_id":null}}"#);
        shows(answer.text().as_bytes(), &expected);
    }
    assert_eq!(town.send("GET", "/v1/me?wallet_id=9", "").code(), (404, "WALLET_NOT_FOUND"));
    assert_eq!(town.send("GET", "/v1/me?wallet_id=", "").code(), (422, "VALIDATION_FAILED"));
}
