//! Comparisons on small recordings, and the control.

use super::control::{Check, Control, Controlled, Recorded, listing};
use super::orders::{Kind, LiveFill};
use super::*;
use crate::report;
use engine::amount::{Cash, Price, Qty};
use engine::book::BookSide;
use engine::id::Outcome;
use engine::market::terms::{MarketState, Resolution};
use engine::time::{MILLISECOND, SECOND};
use roxmltree::{Document, ParsingOptions};
use venue::FeedUpdate;

/// 2026-09-01T00:00:00Z.
const FIRST: Timestamp = Timestamp(1_788_220_800 * SECOND);

type Frames = Vec<(Timestamp, Vec<FeedUpdate>)>;

fn at(millis: u64) -> Timestamp {
    FIRST.plus(millis * MILLISECOND)
}

fn levels(levels: &[(u16, u64)]) -> Vec<(Price, Qty)> {
    levels.iter().map(|(price, shares)| (Price(*price), Qty::from_shares(*shares))).collect()
}

fn book(token: &str, bids: &[(u16, u64)], asks: &[(u16, u64)]) -> FeedUpdate {
    let (bids, asks) = (levels(bids), levels(asks));
    FeedUpdate::BookSnapshot { token: token.into(), bids, asks, venue_ts: FIRST, hash: None }
}

/// A level of the first token, as both books show it.
fn level(side: BookSide, price: u16, shares: u64) -> [FeedUpdate; 2] {
    let size = Qty::from_shares(shares);
    let delta = |token: &str, side, price| FeedUpdate::BookDelta {
        token: token.into(),
        levels: [(side, price, size)].into_iter().collect(),
        venue_ts: FIRST,
    };
    [delta("1", side, Price(price)), delta("2", side.opposite(), Price(price).complement())]
}

fn bid(price: u16, shares: u64) -> [FeedUpdate; 2] {
    level(BookSide::Bid, price, shares)
}

fn sold(price: u16, shares: u64, id: &str) -> FeedUpdate {
    FeedUpdate::LastTrade {
        token: "1".into(),
        price: Price(price),
        size: Qty::from_shares(shares),
        taker_buys: false,
        venue_ts: FIRST,
        id: (!id.is_empty()).then(|| id.into()),
        fee_rate_bps: None,
    }
}

/// A recording of one market at 0.40 to 0.45, and what follows.
fn recording(rest: Vec<(u64, Vec<FeedUpdate>)>) -> Frames {
    let listed = FeedUpdate::Listed { listing: Box::new(listing()), state: MarketState::Active };
    let books = vec![
        book("1", &[(4_000, 100), (3_900, 50)], &[(4_500, 100)]),
        book("2", &[(5_500, 100)], &[(6_000, 100), (6_100, 50)]),
    ];
    let mut frames = vec![(at(0), vec![listed]), (at(1), books)];
    frames.extend(rest.into_iter().map(|(millis, updates)| (at(millis), updates)));
    // A sign of life each second, so that no book becomes old.
    let last = frames.last().map_or(FIRST, |(at, _)| *at);
    frames.extend((0..=last.since(FIRST) / SECOND).map(|second| (at(second * 1_000 + 500), Vec::new())));
    frames.sort_by_key(|(at, _)| *at);
    frames
}

/// A BUY of ten of the first token at 0.40 that is acknowledged at 10 s and ends at 60 s.
fn buy() -> LiveOrder {
    LiveOrder {
        id: "o1".to_owned(),
        token: "1".to_owned(),
        side: Side::Buy,
        kind: Kind::Gtc,
        price: Price(4_000),
        size: Qty::from_shares(10),
        post_only: false,
        sent_at: at(9_950),
        acked_at: Some(at(10_020)),
        cancelled_at: Some(at(60_000)),
        fills: Vec::new(),
    }
}

fn fill(millis: u64, price: i64, shares: u64, hash: Option<&str>) -> LiveFill {
    LiveFill {
        id: format!("f{millis}"),
        at: at(millis),
        price: Cash(price),
        size: Qty::from_shares(shares),
        fee: Some(Cash::ZERO),
        hash: hash.map(str::to_owned),
    }
}

fn all_models() -> Vec<Model> {
    Model::list(None, FillTerms::KIND).expect("all")
}

fn run(frames: &[(Timestamp, Vec<FeedUpdate>)], orders: &[LiveOrder], removes_own: bool) -> Report {
    let (models, rules) = (all_models(), Rules::default());
    let compared = Comparison::new(orders, &models, &rules, removes_own, 7);
    compared.run(&mut Recorded::new(frames), &|| true).expect("it ends")
}

/// Filled shares of the first order by model: touch, cross, through, queue, queue_prob.
fn filled(report: &Report) -> [u64; 5] {
    std::array::from_fn(|model| {
        let fills = &report.models[model][0].fills;
        fills.iter().map(|fill| fill.size).sum::<Qty>().0 / Qty::SHARE.0
    })
}

#[test]
fn each_model_fills_as_in_a_server() {
    let frames = recording(vec![
        (20_000, [bid(4_000, 40).to_vec(), vec![sold(4_000, 60, "a")]].concat()),
        (30_000, [bid(4_000, 0).to_vec(), vec![sold(4_000, 45, "b")]].concat()),
        (40_000, vec![sold(3_900, 1, "c")]),
        (70_000, vec![]),
    ]);
    let mut order = buy();
    order.fills.push(fill(30_000, 400_000, 5, None));
    let report = run(&frames, std::slice::from_ref(&order), false);
    // A hundred before it, then five beyond them, and one below its limit.
    assert_eq!(filled(&report), [0, 1, 1, 6, 6]);
    assert_eq!(report.left_out, [None]);
    let [touch, cross, _, queue, _] = &report.rows[..] else { panic!("five models") };
    assert_eq!((touch.both, touch.only_live, touch.only_model, touch.neither), (0, 1, 0, 0));
    assert_eq!((queue.both, queue.time_error, queue.price_error), (1, Some([0, 0]), Some(0)));
    assert_eq!(cross.time_error, Some([10 * SECOND, 10 * SECOND]));
    assert_eq!((queue.live_fills_after, queue.model_fills_after), (Some(19_980 * 1_000), Some(19_980 * 1_000)));
    assert_eq!(
        (queue.shares().text().as_deref(), queue.precision().text().as_deref()),
        (Some("1.2000"), Some("1.0000"))
    );
    // The last midpoint is 0.42: two cents on each share.
    assert_eq!(report.marks, [Some(Cash(420_000))]);
    assert_eq!((queue.live_pnl, queue.model_pnl, touch.model_pnl), (Cash(100_000), Cash(120_000), Cash(0)));
    assert_eq!((queue.difference(), queue.interval), (Cash(20_000), [Cash(20_000); 2]));
    // Equal results twice; another recording, seed or order has another hash.
    assert_eq!(run(&frames, std::slice::from_ref(&order), false), report);
    let mut others = vec![run(&frames[..frames.len() - 1], std::slice::from_ref(&order), true).hash];
    let (models, rules) = (all_models(), Rules::default());
    let other_seed = Comparison::new(std::slice::from_ref(&order), &models, &rules, false, 8);
    others.push(other_seed.run(&mut Recorded::new(&frames), &|| true).expect("it ends").hash);
    order.size = Qty::from_shares(11);
    others.push(run(&frames, &[order], false).hash);
    assert!(others.iter().all(|hash| *hash != report.hash));
    println!("models: {} cases, {} hashes", report.models.len(), others.len() + 1);
}

/// The recording has the order itself: ten more in its level, and its fill among the trades.
#[test]
fn traces_of_the_orders_are_taken_out() {
    let rows = [
        // The hash of its fill and the id of the trade; both unknown: by token, price and size.
        (Some("0xab"), "0xAB", [0, 0, 0, 5, 5]),
        (None, "", [0, 0, 0, 5, 5]),
        (None, "0xcd", [0, 0, 0, 5, 5]),
        // Another transaction: the trade is one of others, and takes what is left before the order.
        (Some("0xab"), "0xcd", [0, 0, 0, 5, 5]),
    ];
    for (hash, id, expected) in rows {
        let frames = recording(vec![
            (10_000, bid(4_000, 110).to_vec()),
            (20_000, [bid(4_000, 50).to_vec(), vec![sold(4_000, 60, "a")]].concat()),
            (30_000, [vec![sold(4_000, 40, "b")], vec![sold(4_000, 5, id)], bid(4_000, 5).to_vec()].concat()),
            (70_000, vec![]),
        ]);
        let mut order = buy();
        order.fills.push(fill(30_400, 400_000, 5, hash));
        assert_eq!(filled(&run(&frames, std::slice::from_ref(&order), true)), expected, "{hash:?} {id}");
        // With them the order is ten further from the front.
        assert_eq!(filled(&run(&frames, std::slice::from_ref(&order), false)), [0; 5], "{hash:?} {id}");
        // The order alone at the best price: without it, the price is 0.39, and a model must not meet itself.
        order.price = Price(4_100);
        order.fills.clear();
        let frames =
            recording(vec![(10_000, bid(4_100, 10).to_vec()), (12_000, bid(4_100, 10).to_vec()), (70_000, vec![])]);
        let report = run(&frames, &[order], true);
        assert_eq!(report.marks, [Some(Cash(425_000))]);
        assert_eq!(filled(&report), [0; 5]);
    }
    println!("own traces: {} cases", 3 * rows.len());
}

/// An own trade of the recording that comes while others are before the model's order takes none of them.
#[test]
fn an_own_trade_moves_no_place() {
    let frames = recording(vec![
        (10_000, bid(4_000, 110).to_vec()),
        (20_000, [vec![sold(4_000, 5, "0xab")], bid(4_000, 105).to_vec()].concat()),
        (30_000, [vec![sold(4_000, 100, "b")], bid(4_000, 5).to_vec()].concat()),
        (70_000, vec![]),
    ]);
    let mut order = buy();
    order.fills.push(fill(20_000, 400_000, 5, Some("0xab")));
    assert_eq!(filled(&run(&frames, std::slice::from_ref(&order), true)), [0; 5]);
    // As a trade of others it brings the order five nearer.
    order.fills[0].hash = Some("0xef".to_owned());
    assert_eq!(filled(&run(&frames, &[order], true)), [0, 0, 0, 5, 5]);
    println!("own trades: 2 cases");
}

#[test]
fn orders_are_left_out_by_reason() {
    let gap = |millis: u64| (millis, vec![FeedUpdate::Gap { tokens: vec!["1".to_owned()], reason: "lost".to_owned() }]);
    let whole = |millis: u64| {
        let books = vec![book("1", &[(4_000, 100)], &[(4_500, 100)]), book("2", &[(5_500, 100)], &[(6_000, 100)])];
        (millis, books)
    };
    let frames = recording(vec![gap(30_000), whole(34_000), gap(100_000), whole(106_000), (200_000, vec![])]);
    let of = |sent: u64, cancelled: Option<u64>| LiveOrder {
        sent_at: at(sent),
        acked_at: None,
        cancelled_at: cancelled.map(at),
        ..buy()
    };
    let rows: Vec<(LiveOrder, Option<LeftOut>)> = vec![
        (of(10_000, Some(20_000)), None),
        (LiveOrder { token: "3".to_owned(), ..of(10_000, Some(20_000)) }, Some(LeftOut::UnknownToken)),
        (of(10_000, None), Some(LeftOut::NoEnd)),
        // A fill of the whole is an end.
        (LiveOrder { fills: vec![fill(15_000, 400_000, 10, None)], ..of(10_000, None) }, None),
        (LiveOrder { fills: vec![fill(15_000, 400_000, 9, None)], ..of(10_000, None) }, Some(LeftOut::NoEnd)),
        // Four seconds without a book, within its life and at its placement.
        (of(20_000, Some(40_000)), None),
        (of(31_000, Some(40_000)), None),
        // Six.
        (of(90_000, Some(120_000)), Some(LeftOut::Gap)),
        (of(100_500, Some(120_000)), Some(LeftOut::NoBook)),
        (of(101_500, Some(120_000)), None),
        (of(90_000, Some(104_000)), None),
        // An immediate order needs the book of its moment.
        (LiveOrder { kind: Kind::Fak, ..of(31_000, None) }, Some(LeftOut::NoBook)),
        (LiveOrder { kind: Kind::Fak, ..of(40_000, None) }, None),
        // Before and after the recording, and beyond its end.
        (of(0, Some(1)), None),
        (LiveOrder { sent_at: Timestamp(FIRST.0 - 6 * SECOND), ..of(0, Some(20_000)) }, Some(LeftOut::NoBook)),
        (of(300_000, Some(310_000)), Some(LeftOut::NoBook)),
        (of(190_000, Some(210_000)), Some(LeftOut::Gap)),
    ];
    let orders: Vec<LiveOrder> = rows.iter().map(|(order, _)| order.clone()).collect();
    let report = run(&frames, &orders, false);
    for (number, (order, expected)) in rows.iter().enumerate() {
        assert_eq!(report.left_out[number], *expected, "row {number}: {order:?}");
    }
    let compared = rows.iter().filter(|(_, expected)| expected.is_none()).count();
    assert_eq!((report.compared(), report.rows[0].orders), (compared, compared as u64));
    let counted: usize = report.counts_left_out().iter().map(|(_, number)| number).sum();
    assert_eq!(counted, rows.len() - compared);
    println!("left out: {} cases", rows.len());
}

/// A sale meets the same levels and trades as a purchase of the other token, and its money is that of a sale.
#[test]
fn sales_are_mirrored_purchases() {
    let taken = [bid(4_000, 40).to_vec(), vec![sold(4_000, 60, "a")]].concat();
    let frames = recording(vec![
        (20_000, taken),
        (30_000, [bid(4_000, 0).to_vec(), vec![sold(4_000, 45, "b")]].concat()),
        (40_000, vec![sold(3_900, 1, "c")]),
        (70_000, vec![]),
    ]);
    let bought = run(&frames, &[buy()], false);
    // A sale of the second token at 0.60 waits in the same level.
    let sale = LiveOrder { token: "2".to_owned(), side: Side::Sell, price: Price(6_000), ..buy() };
    let report = run(&frames, std::slice::from_ref(&sale), false);
    assert_eq!(filled(&report), filled(&bought));
    assert_eq!(report.marks, [Some(Cash(580_000))]);
    for (row, other) in report.rows.iter().zip(&bought.rows) {
        assert_eq!((row.model_pnl, row.model_shares), (other.model_pnl, other.model_shares));
    }
    // An immediate sale of the first token takes the bids, and pays a fee.
    let taker =
        LiveOrder { kind: Kind::Fak, side: Side::Sell, price: Price(3_900), size: Qty::from_shares(120), ..buy() };
    let report = run(&frames, std::slice::from_ref(&taker), false);
    for ran in report.models.iter().map(|model| &model[0]) {
        let [fill] = ran.fills[..] else { panic!("one fill: {ran:?}") };
        assert_eq!((fill.size, fill.notional, fill.is_maker), (Qty::from_shares(120), Cash(47_800_000), false));
        assert!(fill.fee > Cash::ZERO);
    }
    // One that finds too little is killed, and a post-only one that would take is refused.
    let rows = [
        (LiveOrder { kind: Kind::Fok, size: Qty::from_shares(151), ..taker }, "FOK_ORDER_NOT_FILLED_ERROR"),
        (LiveOrder { post_only: true, price: Price(4_500), ..buy() }, "INVALID_POST_ONLY_ORDER"),
    ];
    for (order, code) in &rows {
        let report = run(&frames, std::slice::from_ref(order), false);
        assert!(report.models.iter().all(|model| model[0].fills.is_empty()));
        assert_eq!(report.models[0][0].refused, Some(*code));
        assert_eq!((report.rows[0].refused, report.rows[0].neither), (1, 1));
    }
    println!("sales: {} cases", 2 * report.models.len() + rows.len());
}

#[test]
fn a_result_is_the_value_of_a_share() {
    let rows = [
        (Resolution::Winner(Outcome::First), 1_000_000),
        (Resolution::Winner(Outcome::Second), 0),
        (Resolution::Split, 500_000),
    ];
    for (resolution, mark) in rows {
        let resolved = FeedUpdate::Resolved { condition: listing().condition, resolution, venue_ts: FIRST };
        let frames = recording(vec![(15_000, vec![sold(3_900, 4, "a")]), (80_000, vec![resolved]), (90_000, vec![])]);
        let report = run(&frames, &[buy()], false);
        assert_eq!(
            (report.marks.clone(), filled(&report)),
            (vec![Some(Cash(mark))], [0, 4, 4, 4, 4]),
            "{resolution:?}"
        );
        assert_eq!(report.rows[3].model_pnl, Cash(4 * (mark - 400_000)), "{resolution:?}");
    }
    println!("results: {} cases", rows.len());
}

/// The page is well-formed, loads nothing, and shows hostile texts as texts.
#[test]
fn the_page_loads_nothing() {
    let frames = recording(vec![(15_000, vec![sold(3_900, 4, "a")]), (70_000, vec![])]);
    let hostile = LiveOrder { id: "<script src=\"https://x\">&amp;\u{1}".to_owned(), ..buy() };
    let mut orders = vec![hostile, LiveOrder { token: "3".to_owned(), ..buy() }];
    orders.extend((0..600).map(|number| LiveOrder { id: format!("o{number}"), size: Qty::from_shares(1), ..buy() }));
    let (models, rules) = (all_models(), Rules::default());
    let report = run(&frames, &orders, false);
    let inputs = [("Models", "touch".to_owned()), ("Result hash", "<b>".to_owned())];
    let page = html(&Calibration { orders: &orders, models: &models, report: &report, inputs: &inputs });
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).expect("a well-formed page");
    let count = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
    assert_eq!((count("script"), count("link"), count("img"), count("b"), count("h1")), (0, 0, 0, 0, 1));
    assert!(page.len() < report::BYTES_MAX && page.contains("102 more are in the JSON file."), "{}", page.len());
    for part in ["left out: unknown_token", "&lt;script src=&quot;https://x&quot;&gt;&amp;amp;\u{fffd}", "Recall"] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    // Nothing to compare.
    let none = LiveOrder { token: "3".to_owned(), ..buy() };
    let report = Comparison::new(std::slice::from_ref(&none), &models, &rules, true, 7);
    let report = report.run(&mut Recorded::new(&[]), &|| true).expect("it ends");
    let orders = [none];
    let page = html(&Calibration { orders: &orders, models: &models, report: &report, inputs: &[] });
    assert!(page.contains("No order could be compared.") && report.compared() == 0);
    println!("pages: 2 cases");
}

#[test]
fn lists_of_models() {
    let names = |text: &str| {
        Model::list(Some(text), FillTerms::KIND).map(|models| {
            models.into_iter().map(|model| (model.name, model.fill.model, model.fill.n)).collect::<Vec<_>>()
        })
    };
    assert_eq!(all_models().len(), FillModel::ALL.len());
    let good = names("touch,queue_prob:3,queue_prob").expect("good");
    assert_eq!(
        good,
        [
            ("touch".to_owned(), FillModel::Touch, 2),
            ("queue_prob:3".to_owned(), FillModel::QueueProb, 3),
            ("queue_prob".to_owned(), FillModel::QueueProb, 2),
        ]
    );
    let wrong = [
        "",
        "touch,",
        "Touch",
        "queue:2",
        "queue_prob:0",
        "queue_prob:4",
        "queue_prob:",
        "queue_prob:x",
        "touch,touch",
    ];
    for text in wrong {
        assert!(names(text).is_err(), "{text}");
    }
    println!("lists of models: {} cases", wrong.len() + 2);
}

fn shown(controlled: &Controlled) -> String {
    controlled.checks.iter().map(|Check { what, is_seen, figures }| format!("{is_seen} {what}: {figures}\n")).collect()
}

/// The truth of a made recording: what passes, and wrong models and a wrong shift, which must be seen.
#[test]
fn the_control_passes_and_sees_what_is_wrong() {
    let rules = Rules::default();
    let run = |control: Control| control.run(&rules, &|| true).expect("it ends");
    let seen = |controlled: &Controlled| controlled.checks.iter().map(|check| check.is_seen).collect::<Vec<_>>();
    let good = run(Control::new(42));
    println!("{}", shown(&good));
    assert!(good.is_passed(), "{}", shown(&good));
    let again = run(Control::new(42));
    assert_eq!((again.report.clone(), again.shifted), (good.report.clone(), good.shifted.clone()));
    let row = &good.report.rows[0];
    assert!(row.orders >= 150 && row.both >= 40 && row.neither >= 20, "{row:?}");
    // A model that waits for the book to cross is planted in its place.
    let of = |model| Model { name: "queue_prob".to_owned(), fill: FillTerms { model, ..FillTerms::KIND } };
    let planted = run(Control { queue_prob: of(FillModel::Touch), ..Control::new(42) });
    assert!(!seen(&planted)[0] && !planted.is_passed(), "{}", shown(&planted));
    // Nothing is shifted.
    let planted = run(Control { shift: 0, ..Control::new(42) });
    assert_eq!(seen(&planted), [true, true, false], "{}", shown(&planted));
    println!("control: {} orders, 4 cases", row.orders);
}
