use super::*;
use crate::api::testing::{Filled, Text as _, Town, Trader, WALLET};
use crate::http::body::Body;
use crate::http::pipeline::respond;
use crate::http::testing::{NOW, run};
use engine::amount::{Cash, Price, Qty};
use engine::fact;
use engine::id::Outcome as MarketOutcome;
use engine::mutation::Mutation;
use engine::order::{Liquidity, OrderTerms, PriceSource, Side};
use engine::reject::Reject;
use engine::user::{Permissions, Tier};
use engine::view::{FillView, HistoryPage, PositionView};
use http_body_util::{BodyExt as _, Full};
use std::cell::Cell;
use std::net::IpAddr;

/// Limits that no test reaches; more settings of the paid tier may follow.
const PAID: &str = concat!(
    "[limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n",
    "[limits.tiers.pro]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n"
);

/// One fill of a BUY by a client whose own id looks like a formula.
fn fill(town: &Town) -> FillView {
    let mut trader = Trader::new(100_000_000, town.market.instrument(MarketOutcome::First));
    let terms = OrderTerms { client_order_id: Some("=1+\"a\",b".to_owned()), ..trader.terms(4_200, 50) };
    trader.place(90_412, terms, NOW);
    let how = Filled { liquidity: Liquidity::Taker, source: PriceSource::BookWalk, quote_age_ms: Some(310), at: NOW };
    trader.fill(90_412, 141_233, (50_000_000, 21_000_000, 609_000), how);
    let view = trader.view(90_412);
    FillView { fill: view.fills[0].clone(), order: view.order }
}

/// The same position, paid out at one dollar a share.
fn settled(town: &Town) -> PositionView {
    let mut trader = Trader::new(100_000_000, town.market.instrument(MarketOutcome::First));
    let terms = trader.terms(4_200, 50);
    assert_eq!(terms.side, Side::Buy);
    trader.place(90_412, terms, NOW);
    let how = Filled { liquidity: Liquidity::Taker, source: PriceSource::BookWalk, quote_age_ms: None, at: NOW };
    trader.fill(90_412, 141_233, (50_000_000, 21_000_000, 609_000), how);
    trader.apply(&Mutation::PositionSettled(fact::PositionSettled {
        position: PositionId(7_001),
        payout_per_share: Price::ONE,
        payout: Cash(50_000_000),
        at: Timestamp(NOW.0 + 1),
    }));
    let position = trader.user().position(PositionId(7_001)).expect("opened").clone();
    assert_eq!((position.wallet, position.qty), (WALLET, Qty::ZERO));
    PositionView { average: position.average(), position }
}

/// A history of `count` fills, served in pages as a shard does; counts the pages.
fn history(town: &Town, count: u64) -> Rc<Cell<usize>> {
    history_in(town, count, |span| span.limit)
}

/// The same with pages of other lengths.
fn history_in(town: &Town, count: u64, limit: fn(&FillSpan) -> usize) -> Rc<Cell<usize>> {
    let (row, queries) = (fill(town), Rc::new(Cell::new(0)));
    let counted = Rc::clone(&queries);
    town.shard(move |_, command| {
        let Command::Query(Query::FillSpan(span)) = command else { panic!("{command:?}") };
        counted.set(counted.get() + 1);
        let below = span.before.map_or(count + 1, |before| before.0);
        let rows: Vec<_> = (1..below).rev().take(limit(&span)).collect();
        let next = rows.last().copied().filter(|last| *last > 1);
        let rows = rows.into_iter().map(|id| {
            let mut row = row.clone();
            row.fill.id = TradeId(id);
            row
        });
        Ok(Answer::FillSpan(HistoryPage { rows: rows.collect(), next }))
    });
    queries
}

#[test]
fn trades_and_settlements_have_their_columns() {
    let town = Town::with(PAID);
    let key = town.key(Tier::Pro, Permissions::Read);
    town.resolve(MarketOutcome::First);
    let (trade, paid) = (fill(&town), settled(&town));
    town.shard(move |_, command| match command {
        Command::Query(Query::FillSpan(_)) => {
            Ok(Answer::FillSpan(HistoryPage { rows: vec![trade.clone()], next: None }))
        }
        Command::Query(Query::EpisodeSpan(_)) => {
            Ok(Answer::EpisodeSpan(HistoryPage { rows: vec![paid.clone()], next: None }))
        }
        other => panic!("{other:?}"),
    });
    let trades = concat!(
        "trade_id,order_id,client_order_id,wallet_id,filled_at,market_id,market_question,token_id,outcome,side,",
        "order_type,time_in_force,liquidity,price,quantity,notional,fee,fee_rate_bps,price_source,venue_time,fee_source\r\n",
        "141233,90412,\"'=1+\"\"a\"\",b\",3,2026-10-02T09:14:05Z,CONDITION,Rain in Lisbon on 3 October?,81140002,Yes,",
        "BUY,limit,GTC,TAKER,0.42,50,21.00,0.609,500,book_walk,,category_table\r\n"
    );
    let settlements = concat!(
        "position_id,wallet_id,market_id,market_question,outcome,token_id,quantity,avg_entry_price,cost_basis,payout,",
        "payout_per_share,realized_pnl,result,resolved_outcome,settled_at\r\n",
        "7001,3,CONDITION,Rain in Lisbon on 3 October?,Yes,81140002,50,0.42,21.00,50.00,1.00,29.00,won,Yes,",
        "2026-10-02T09:14:05.000001Z\r\n"
    );
    for (name, expected) in [("trades", trades), ("settlements", settlements)] {
        let answer = town.send_as(&key, "GET", &format!("/v1/export/{name}.csv"), "");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.text(), expected.replace("CONDITION", town.condition()));
        assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
        let attachment = format!("attachment; filename=\"{name}.csv\"");
        assert_eq!(answer.header("content-disposition"), Some(attachment.as_str()));
        assert_eq!(answer.header("cache-control"), Some("private, no-store"));
        assert!(answer.header("x-request-id").is_some() && answer.header("x-ratelimit-limit").is_some());
        let head = town.send_as(&key, "HEAD", &format!("/v1/export/{name}.csv"), "");
        assert_eq!((head.status, head.body.len(), head.header("content-length")), (200, 0, None));
        assert_eq!(head.header("content-disposition"), Some(attachment.as_str()));
    }
    println!("exports: 4 cases");
}

#[test]
fn texts_that_look_like_formulas_get_an_apostrophe() {
    let town = Town::with(PAID);
    let key = town.key(Tier::Pro, Permissions::Read);
    let rows = [
        ("=1", "'=1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@x", "'@x"),
        ("a=1", "a=1"),
        ("'=1", "'=1"),
        ("a,b", "\"a,b\""),
        ("a\"b", "\"a\"\"b\""),
        ("-a\r\nb", "\"'-a\r\nb\""),
        ("é", "é"),
    ];
    for (id, cell) in rows {
        let mut trader = Trader::new(100_000_000, town.market.instrument(MarketOutcome::First));
        let terms = OrderTerms { client_order_id: Some(id.to_owned()), ..trader.terms(4_200, 50) };
        trader.place(90_412, terms, NOW);
        let how = Filled { liquidity: Liquidity::Maker, source: PriceSource::BookWalk, quote_age_ms: None, at: NOW };
        trader.fill(90_412, 141_233, (50_000_000, 21_000_000, 0), how);
        let view = trader.view(90_412);
        let row = FillView { fill: view.fills[0].clone(), order: view.order };
        town.shard(move |_, _| Ok(Answer::FillSpan(HistoryPage { rows: vec![row.clone()], next: None })));
        let answer = town.send_as(&key, "GET", "/v1/export/trades.csv", "");
        assert!(answer.text().contains(&format!("\r\n141233,90412,{cell},3,")), "{id}: {}", answer.text());
    }
    println!("cells: {} cases", rows.len());
}

#[test]
fn the_first_bytes_leave_before_the_last_page_is_read() {
    let town = Town::with(&format!("{PAID}[export]\nmax_rows = 300000\n"));
    let key = town.key(Tier::Pro, Permissions::Read);
    let count = 300_000;
    let pages = count / PAGE_ROWS as u64;
    let queries = history(&town, count);
    let body = |target: &str| {
        let request = hyper::Request::builder().uri(target).header("host", "test").header("x-api-key", &key);
        let request = request.body(Full::new(bytes::Bytes::new())).expect("a sound request");
        let edge = Rc::clone(&town.edge);
        async { respond(edge, IpAddr::from([1, 2, 3, 4]), request, None).await.into_body() }
    };
    run(async {
        let mut body: Body = body("/v1/export/trades.csv").await;
        assert_eq!(queries.get(), 1, "only the first page is read before the head");
        let (mut sent, mut rows, mut largest) = (0, 0, 0);
        while let Some(frame) = body.frame().await {
            let bytes = frame.expect("sound").into_data().expect("data");
            sent += 1;
            // The header line, then one page ahead of what was taken.
            assert!(queries.get() <= sent, "{} pages read when {sent} were sent", queries.get());
            rows += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            largest = largest.max(bytes.len());
        }
        assert_eq!(rows, count + 1);
        assert!(queries.get() as u64 >= pages && largest < 64 << 10, "{} pages, {largest} bytes", queries.get());
    });
    // A client that disconnects causes no further query.
    let queries = history(&town, count);
    run(async { drop(body("/v1/export/trades.csv").await.frame().await) });
    assert_eq!(queries.get(), 1);
    println!("first bytes: 2 cases");
}

/// Pages with rows that have left memory are longer than a piece of the body. The next one is read while one is sent, and
/// read again if that fails.
#[test]
fn long_pages_are_sent_in_pieces() {
    let town = Town::with(&format!("{PAID}[export]\nmax_rows = 300000\n"));
    let key = town.key(Tier::Pro, Permissions::Read);
    let mut cases = 0;
    for (count, fails) in
        [(1, false), (128, false), (129, false), (2_030, false), (2_031, true), (50_000, false), (50_000, true)]
    {
        let queries = history_in(&town, count, |span| span.limit_elsewhere);
        let (row, refused) = (fill(&town), Rc::new(Cell::new(0)));
        if fails {
            // Every second query: one that is made ahead.
            let (asked, refused) = (Rc::clone(&queries), Rc::clone(&refused));
            town.shard(move |_, command| {
                let Command::Query(Query::FillSpan(span)) = command else { panic!("{command:?}") };
                asked.set(asked.get() + 1);
                if asked.get() % 2 == 0 {
                    refused.set(refused.get() + 1);
                    return Err(AskError::Busy);
                }
                let below = span.before.map_or(count + 1, |before| before.0);
                let ids: Vec<u64> = (1..below).rev().take(span.limit_elsewhere).collect();
                let next = ids.last().copied().filter(|last| *last > 1);
                let mut rows = vec![row.clone(); ids.len()];
                rows.iter_mut().zip(ids).for_each(|(row, id)| row.fill.id = TradeId(id));
                Ok(Answer::FillSpan(HistoryPage { rows, next }))
            });
        }
        let request = hyper::Request::builder().uri("/v1/export/trades.csv").header("host", "test");
        let request = request.header("x-api-key", &key).body(Full::new(bytes::Bytes::new())).expect("sound");
        let edge = Rc::clone(&town.edge);
        run(async {
            let mut body = respond(edge, IpAddr::from([1, 2, 3, 4]), request, None).await.into_body();
            let (mut lines, mut next) = (0, count);
            while let Some(frame) = body.frame().await {
                let bytes = frame.expect("sound").into_data().expect("data");
                let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
                let ids = text.split_terminator("\r\n").skip(usize::from(lines == 0 && text.starts_with("trade_id")));
                let in_piece = ids.clone().count();
                for line in ids {
                    assert!(line.starts_with(&format!("{next},")), "{line}");
                    next -= 1;
                }
                assert!(in_piece <= PAGE_ROWS);
                lines += text.matches("\r\n").count() as u64;
                // One page ahead of the one that is sent, and one that failed.
                let pages = (count - next).div_ceil(PAGE_ROWS_ELSEWHERE as u64) as usize + 1;
                assert!(queries.get() <= pages + refused.get(), "{} queries, {pages} pages", queries.get());
            }
            assert_eq!(lines, count + 1);
        });
        assert_eq!(refused.get() > 0, fails);
        cases += 1;
    }
    println!("long pages: {cases} cases");
}

#[test]
fn a_long_export_ends_with_a_note() {
    let mut cases = 0;
    for max_rows in [1, 127, 128, 129, 300] {
        let town = Town::with(&format!("{PAID}[export]\nmax_rows = {max_rows}\n"));
        let key = town.key(Tier::Pro, Permissions::Read);
        let counts = [0, max_rows - 1, max_rows, max_rows + 1, max_rows + 500];
        let limits: [fn(&FillSpan) -> usize; 2] = [|span| span.limit, |span| span.limit_elsewhere];
        for (count, limit) in counts.into_iter().flat_map(|count| limits.map(|limit| (count, limit))) {
            history_in(&town, count, limit);
            let answer = town.send_as(&key, "GET", "/v1/export/trades.csv", "");
            let lines: Vec<_> = answer.text().split_terminator("\r\n").collect();
            let truncated = lines.last().is_some_and(|line| line.starts_with("# truncated: "));
            let shown = count.min(max_rows) as usize;
            assert_eq!((lines.len(), truncated), (1 + shown + usize::from(truncated), count > max_rows), "{count}");
            let ids: Vec<u64> =
                lines[1..=shown].iter().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
            assert_eq!(ids, (1..=count).rev().take(shown).collect::<Vec<_>>());
            cases += 1;
        }
    }
    println!("row caps: {cases} cases");
}

#[test]
fn an_export_counts_as_in_flight_until_its_end() {
    let town = Town::with(&format!("{PAID}in_flight = 1\n"));
    let key = town.key(Tier::Pro, Permissions::Read);
    history(&town, 1_000);
    let send = || {
        let request = hyper::Request::builder().uri("/v1/export/trades.csv").header("host", "test");
        let request = request.header("x-api-key", &key).body(Full::new(bytes::Bytes::new())).expect("sound");
        respond(Rc::clone(&town.edge), IpAddr::from([1, 2, 3, 4]), request, None)
    };
    run(async {
        let first = send().await;
        assert_eq!(first.status(), 200);
        assert_eq!(send().await.status(), 429);
        first.into_body().collect().await.expect("sound");
        assert_eq!(send().await.status(), 200);
    });
    println!("exports in flight: 3 cases");
}

#[test]
fn refusals_follow_the_order_of_the_checks() {
    let town = Town::with(PAID);
    let (free, paid) = (town.key(Tier::Free, Permissions::Read), town.key(Tier::Pro, Permissions::Read));
    town.shard(|_, _| Ok(Answer::Refused(Reject::WalletNotFound)));
    let rows = [
        (&free, "", (402, "UPGRADE_REQUIRED")),
        (&free, "?from=x", (422, "VALIDATION_FAILED")),
        (&paid, "?from=", (422, "VALIDATION_FAILED")),
        (&paid, "?to=2026-13-01", (422, "VALIDATION_FAILED")),
        (&paid, "?wallet_id=x", (422, "VALIDATION_FAILED")),
        (&paid, "?wallet_id=9", (404, "WALLET_NOT_FOUND")),
    ];
    for name in ["trades", "settlements"] {
        for (key, query, expected) in rows {
            let answer = town.send_as(key, "GET", &format!("/v1/export/{name}.csv{query}"), "");
            assert_eq!(answer.code(), expected, "{name} {query}");
            if expected.0 == 402 {
                assert_eq!(answer.json()["feature_key"], "export.csv");
                assert_eq!(answer.json()["upgrade_url"], "/pricing");
            }
        }
    }
    // A failure after the first page cuts the body off.
    let row = fill(&town);
    let mut pages = 0;
    town.shard(move |_, _| {
        pages += 1;
        match pages {
            1 => Ok(Answer::FillSpan(HistoryPage { rows: vec![row.clone()], next: Some(5) })),
            _ => Err(AskError::Busy),
        }
    });
    let request = hyper::Request::builder().uri("/v1/export/trades.csv").header("host", "test");
    let request = request.header("x-api-key", &paid).body(Full::new(bytes::Bytes::new())).expect("sound");
    let cut = run(async {
        respond(Rc::clone(&town.edge), IpAddr::from([1, 2, 3, 4]), request, None)
            .await
            .into_body()
            .collect()
            .await
            .err()
    });
    assert_eq!(cut, Some(Truncated));
    println!("refused exports: {} cases", 2 * rows.len() + 1);
}

/// A page that may lack what was cut since the head was sent ends the export: it is not taken for a whole one.
#[test]
fn an_export_across_a_cut_is_not_taken_for_a_whole_one() {
    let day = UtcDay(20_000);
    let mut cases = 0;
    // (the page at which history is cut, whether that of another user, whether the head says so, whether the body is whole)
    for (at, is_other, is_said, is_whole) in [
        (0, false, false, true),
        (1, false, true, true),
        (2, false, false, false),
        (3, false, false, false),
        (2, true, false, true),
    ] {
        let town = Town::with(PAID);
        let key = town.key(Tier::Pro, Permissions::Read);
        let (row, shown, mut pages) = (fill(&town), town.shown.clone(), 0);
        town.shard(move |user, command| {
            let Command::Query(Query::FillSpan(span)) = command else { panic!("{command:?}") };
            pages += 1;
            if pages == at {
                shown.set(day, [if is_other { UserId(user.0 + 1) } else { user }]);
            }
            let below = span.before.map_or(301, |before| before.0);
            let ids: Vec<u64> = (1..below).rev().take(span.limit).collect();
            let next = ids.last().copied().filter(|last| *last > 1);
            let mut rows = vec![row.clone(); ids.len()];
            rows.iter_mut().zip(ids).for_each(|(row, id)| row.fill.id = TradeId(id));
            Ok(Answer::FillSpan(HistoryPage { rows, next }))
        });
        let request = hyper::Request::builder().uri("/v1/export/trades.csv").header("host", "test");
        let request = request.header("x-api-key", &key).body(Full::new(bytes::Bytes::new())).expect("sound");
        let (head, body) = run(async {
            let answer = respond(Rc::clone(&town.edge), IpAddr::from([1, 2, 3, 4]), request, None).await;
            let (head, body) = answer.into_parts();
            (head, body.collect().await.map(|body| body.to_bytes()))
        });
        let said = head.headers.get("x-svc-history-from").map(|day| day.to_str().expect("ASCII").to_owned());
        assert_eq!(said, is_said.then(|| day.text()), "cut at page {at}");
        match body {
            Ok(body) => {
                assert!(is_whole, "cut at page {at}");
                assert_eq!(body.iter().filter(|byte| **byte == b'\n').count(), 301, "cut at page {at}");
            }
            Err(error) => assert!(!is_whole && error == Truncated, "cut at page {at}"),
        }
        cases += 1;
    }
    println!("exports across a cut: {cases} cases");
}
