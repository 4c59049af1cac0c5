use crate::api::testing::{Filled, Text as _, Town, Trader, WALLET, shows};
use engine::amount::Cash;
use engine::command::{Answer, Command, Query};
use engine::fact;
use engine::id::{Outcome, WalletId};
use engine::mutation::Mutation;
use engine::order::{Liquidity, PriceSource};
use engine::reject::Reject;
use engine::time::{HOUR, Timestamp};
use engine::user::billing::Sku;
use engine::user::equity::EquityRow;
use engine::user::{Position, Wallet, WalletKind};
use engine::view::{AccountView, EquityView, FillView, HistoryPage, PositionView, UserView};

const PATH: &str = "/v1/account/profile-analysis";
const MIDNIGHT: Timestamp = Timestamp(1_790_899_200_000_000);
/// 2026-10-02T09:15:00.001100Z.
const CREATED_AT: Timestamp = Timestamp(1_790_932_500_001_100);

/// 100.00 of which 50 shares were bought at 0.42, and a MAIN wallet.
fn trader(town: &Town) -> Trader {
    let mut trader = Trader::new(100_000_000, town.market.instrument(Outcome::First));
    trader.place(90_412, trader.terms(4_200, 50), CREATED_AT);
    let how = Filled {
        liquidity: Liquidity::Taker,
        source: PriceSource::BookWalk,
        quote_age_ms: Some(310),
        at: Timestamp(1_790_932_500_004_211),
    };
    trader.fill(90_412, 141_233, (50_000_000, 21_000_000, 609_000), how);
    trader
}

/// Answers every question with that trader, and with `episodes` as the positions of the history.
fn serve(town: &Town, trader: &Trader, wallets: Vec<Wallet>, episodes: Vec<Position>) {
    serve_points(town, trader, wallets, episodes, &[(8, 100), (9, 90)]);
}

/// The same, with these points of equity: the hour of 2026-10-02, and whole USD.
fn serve_points(
    town: &Town,
    trader: &Trader,
    wallets: Vec<Wallet>,
    episodes: Vec<Position>,
    points: &'static [(u64, i64)],
) {
    let user = trader.user();
    let of_user = UserView {
        id: user.id,
        sub: None,
        email: None,
        created_at: user.created_at,
        grant: None,
        active_keys: 1,
        wallets: wallets.clone(),
    };
    let view = |position: &Position| PositionView { position: position.clone(), average: position.average() };
    let account = AccountView {
        wallets: user.wallets.clone(),
        positions: user.open_positions().map(view).collect(),
        fills_count: 1,
        closed_count: 0,
        won_count: 0,
    };
    let billing = user.billing().cloned().unwrap_or_default();
    let order = trader.view(90_412);
    let fill = FillView { fill: order.fills[0].clone(), order: order.order };
    let episodes: Vec<_> = episodes.iter().map(view).collect();
    town.shard(move |_, command| {
        let Command::Query(query) = command else { panic!("{command:?}") };
        Ok(match query {
            Query::User => Answer::User(Box::new(of_user.clone())),
            Query::Equity { .. } => {
                let point = |(hour, dollars): &(u64, i64)| EquityRow {
                    at: MIDNIGHT.plus(hour * HOUR),
                    cash: Cash::from_dollars(*dollars),
                    value: Cash(0),
                    baseline: Cash(0),
                };
                let rows = points.iter().map(point).collect();
                Answer::Equity(Box::new(EquityView { account: account.clone(), rows }))
            }
            Query::Billing => Answer::Billing(Box::new(billing.clone())),
            Query::Account { wallets: engine::command::Wallets::One(id) } => {
                let wallets = wallets.iter().filter(|wallet| wallet.id == id).cloned().collect();
                let positions = if id == WALLET { account.positions.clone() } else { Vec::new() };
                Answer::Account(Box::new(AccountView { wallets, positions, ..account.clone() }))
            }
            Query::FillSpan(_) => Answer::FillSpan(HistoryPage { rows: vec![fill.clone()], next: None }),
            Query::EpisodeSpan(_) => Answer::EpisodeSpan(HistoryPage { rows: episodes.clone(), next: None }),
            other => panic!("{other:?}"),
        })
    });
}

fn wallets(trader: &Trader) -> Vec<Wallet> {
    let api = trader.user().wallets[0].clone();
    let mut main = Wallet::new(WalletId(2), WalletKind::Main, Cash(1_000_000_000), api.generation, api.created_at);
    main.cash = main.baseline;
    vec![main, api]
}

#[test]
fn an_analysis_has_the_shape_of_its_example() {
    let town = Town::new();
    let trader = trader(&town);
    let open = trader.user().open_positions().cloned().collect();
    serve(&town, &trader, wallets(&trader), open);
    let answer = town.send("GET", PATH, "");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let expected = r#"{"analysis_version":"1.0.0",
        "natural_language_summary":"1 trade in 1 market; 0 of 0 closed positions won. 1 position open; the portfolio is worth 99.141 USD.",
        "profile":{"username":null,"account_age_days":0,"api_key_tier":"free","profile_visibility":"public"},
        "balance":{"currency":"USD","ui_balance":"1000.00","api_balance":"78.391","starting_ui_balance":"1000.00",
        "starting_api_balance":"100.00","ui_pnl":"0.00","api_pnl":"-0.859","ui_pnl_percentage":"0.00",
        "api_pnl_percentage":"-0.86","total_portfolio_value":"99.141","unrealized_pnl":"-0.25","realized_pnl":"0.00"},
        "open_positions":[{"market_category":"weather","quantity":"50","avg_entry_price":"0.42",
        "current_price":"0.415","cost_basis":"21.00","market_value":"20.75","unrealized_pnl":"-0.25",
        "unrealized_pnl_percentage":"-1.19","status":"OPEN","weight_percentage":"100.00"}],
        "trading_stats":{"total_trades":1,"total_buys":1,"total_sells":0,"total_wins":0,"total_losses":0,
        "active_trading_days":1,"unique_markets_traded":1,"buy_sell_ratio":null,"total_volume":"21.00",
        "avg_trade_size":"21.00","median_trade_size":"21.00","largest_trade":"21.00","smallest_trade":"21.00",
        "total_fees_paid":"0.609","win_rate":null,"best_trade_pnl":null,"worst_trade_pnl":null,"avg_win_pnl":null,
        "avg_loss_pnl":null,"profit_factor":null,"avg_trades_per_day":"1.00"},
        "risk_metrics":{"open_position_count":1,"largest_position_weight":"100.00","top_3_concentration":"100.00",
        "portfolio_diversity_score":"0.00","avg_position_size":"20.75","cash_percentage":"79.07",
        "invested_percentage":"20.93","max_drawdown_7d":"10.00","max_drawdown_30d":"10.00"},
        "equity_timeline":{"return_7d":"-10.00","return_30d":"-10.00","return_all_time":"-10.00",
        "peak_value":"100.00","peak_date":"2026-10-02T08:00:00Z","trough_value":"90.00",
        "trough_date":"2026-10-02T09:00:00Z","current_value":"99.141","snapshots_available":2,
        "latest_snapshot_at":"2026-10-02T09:00:00Z"},
        "category_exposure":[{"category":"weather","position_count":1,"total_value":"20.75",
        "weight_percentage":"100.00"}],
        "recent_trades":[{"order_id":90412,"side":"BUY","outcome":"Yes","price":"0.42","quantity":"50",
        "notional":"21.00","filled_at":"2026-10-02T09:15:00.004211Z"}]}"#;
    shows(answer.text().as_bytes(), expected);
    println!("analysis: 1 case");
}

#[test]
fn an_analysis_fails_with_codes_of_its_own() {
    let town = Town::new();
    let trader = trader(&town);
    town.shard(|_, _| Ok(Answer::Refused(Reject::UserNotFound)));
    assert_eq!(town.send("GET", PATH, "").code(), (401, "USER_NOT_FOUND"));
    let both = wallets(&trader);
    for left in [vec![], vec![both[0].clone()], vec![both[1].clone()]] {
        serve(&town, &trader, left, Vec::new());
        assert_eq!(town.send("GET", PATH, "").code(), (404, "ACCOUNT_NOT_FOUND"));
    }
    // Sums that no amount holds.
    let rich = trader.user().open_positions().next().expect("one is open");
    let rich = Position { realized: Cash(i64::MAX), ..rich.clone() };
    serve(&town, &trader, both, vec![rich.clone(), rich]);
    assert_eq!(town.send("GET", PATH, "").code(), (500, "ANALYSIS_ERROR"));
    println!("failed analyses: 5 cases");
}

/// What is bought is not a return, and what a refund takes back is not a fall.
#[test]
fn deposits_are_neither_profit_nor_loss() {
    const SANDBOX: WalletId = WalletId(141_300);
    let town = Town::new();
    let at = |minutes: u64| MIDNIGHT.plus(minutes * HOUR / 60);
    let (payment, sku) = (|| "pi_1".to_owned(), Sku::Topup500);
    let bought = |at| {
        let (wallet, credit) = (Some(SANDBOX), sku.credit());
        Mutation::PurchaseNoted(fact::PurchaseNoted { payment: payment(), sku, wallet, credit, at })
    };
    let returned = |dollars: i64, at| {
        let (refunded, taken) = (sku.cents(), Cash::from_dollars(dollars));
        Mutation::RefundNoted(fact::RefundNoted { payment: payment(), refunded, taken, is_reset_taken: false, at })
    };
    let failed = |at| {
        let (failed, cents) = (Some("re_1".to_owned()), sku.cents());
        Mutation::RefundStated(fact::RefundStated { payment: payment(), failed, cents, created: at, at })
    };
    let undone = |dollars: i64, at| {
        let (wallet, credit) = (Some(SANDBOX), Cash::from_dollars(dollars));
        let (payment, refunded, is_reset_given) = (payment(), 0, false);
        Mutation::RefundUndone(fact::RefundUndone { payment, refunded, wallet, credit, is_reset_given, at })
    };
    let (half_past_7, half_past_8, half_past_9) = (at(7 * 60 + 30), at(8 * 60 + 30), at(9 * 60 + 30));
    let profit_of_ten = ("10.00", "0.00", "660.00", "600.00");
    // What happened to the wallet, its points; return, deepest fall, highest and lowest value.
    type Row<'a> = (&'a str, Vec<Mutation>, &'static [(u64, i64)], (&'a str, &'a str, &'a str, &'a str));
    let rows: [Row<'_>; 8] = [
        ("nothing", vec![], &[(7, 100), (8, 110)], ("10.00", "0.00", "110.00", "100.00")),
        ("a deposit", vec![bought(half_past_7)], &[(7, 100), (8, 660)], profit_of_ten),
        ("a deposit at the hour", vec![bought(at(8 * 60))], &[(7, 100), (8, 660)], profit_of_ten),
        ("before the points", vec![bought(half_past_7)], &[(8, 600), (9, 660)], profit_of_ten),
        ("after the points", vec![bought(half_past_7)], &[(6, 600), (7, 660)], profit_of_ten),
        (
            "a refund",
            vec![bought(half_past_7), returned(500, half_past_8)],
            &[(7, 100), (8, 600), (9, 90)],
            ("-10.00", "10.00", "100.00", "90.00"),
        ),
        (
            "a refund of what is left",
            vec![bought(half_past_7), returned(200, half_past_8)],
            &[(7, 100), (8, 600), (9, 360)],
            ("-10.00", "10.00", "400.00", "360.00"),
        ),
        (
            "a refund that fails",
            vec![bought(half_past_7), returned(500, half_past_8), failed(half_past_9), undone(500, half_past_9)],
            &[(7, 100), (8, 600), (9, 100), (10, 660)],
            ("10.00", "0.00", "660.00", "600.00"),
        ),
    ];
    println!("deposits: {} cases", rows.len());
    for (what, facts, points, expected) in rows {
        let mut trader = trader(&town);
        let opened = Mutation::WalletOpened(fact::WalletOpened {
            wallet: SANDBOX,
            kind: WalletKind::Sandbox,
            label: None,
            baseline: Cash::from_dollars(100),
            generation: 1,
            parent: None,
            at: MIDNIGHT,
        });
        trader.apply(&opened);
        facts.iter().for_each(|fact| trader.apply(fact));
        serve_points(&town, &trader, wallets(&trader), Vec::new(), points);
        let answer = town.send("GET", PATH, "");
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        let shown = answer.json();
        let figure = |path: &str| shown.pointer(path).and_then(serde_json::Value::as_str).expect("a figure");
        let found = (
            figure("/equity_timeline/return_all_time"),
            figure("/risk_metrics/max_drawdown_30d"),
            figure("/equity_timeline/peak_value"),
            figure("/equity_timeline/trough_value"),
        );
        assert_eq!(found, expected, "{what}");
    }
}
