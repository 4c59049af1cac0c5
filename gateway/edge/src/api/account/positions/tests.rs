use super::*;
use crate::api::testing::{Text as _, Town, Trader};
use crate::http::pipeline::respond;
use crate::http::testing::{NOW, run};
use engine::amount::{Cash, Qty};
use engine::id::Outcome as MarketOutcome;
use http_body_util::{BodyExt as _, Full};
use std::cell::{Cell, RefCell};
use std::net::IpAddr;

/// Counts of positions. Their ids begin with 1; every second one of the newest is open.
struct Lived {
    closed: u64,
    open: u64,
}

impl Lived {
    /// The ids, newest first, and which of them are open.
    fn ids(&self) -> impl Iterator<Item = (u64, bool)> + use<> {
        let (count, open) = (self.closed + self.open, self.open);
        (0..count).map(move |nth| (count - nth, nth % 2 == 0 && nth / 2 < open))
    }
}

/// A position with this id.
fn position(town: &Town, id: u64, is_open: bool) -> PositionView {
    let mut trader = Trader::new(100_000_000, town.market.instrument(MarketOutcome::First));
    let terms = trader.terms(4_200, 50);
    trader.place(90_412, terms, NOW);
    let how = crate::api::testing::Filled {
        liquidity: engine::order::Liquidity::Taker,
        source: engine::order::PriceSource::BookWalk,
        quote_age_ms: None,
        at: NOW,
    };
    trader.fill(90_412, 141_233, (50_000_000, 21_000_000, 609_000), how);
    let mut held = trader.user().open_positions().next().expect("opened").clone();
    held.id = PositionId(id);
    if !is_open {
        held.last_open = (Qty::from_shares(10), Cash(4_000_000));
        (held.qty, held.cost, held.closed_at) = (Qty::ZERO, Cash::ZERO, Some(NOW));
    }
    PositionView { average: held.average(), position: held }
}

/// A shard with these positions, which answers with pages of at most `page_rows`. All open ones close after the first
/// answer. `fails_at`: the query for a page that is not answered.
fn shard(town: &Town, lived: &Lived, page_rows: usize, fails_at: Option<usize>) -> Rc<RefCell<Vec<String>>> {
    let (open, closed) = (position(town, 1, true), position(town, 1, false));
    let all: Vec<(u64, bool)> = lived.ids().collect();
    let row = move |id: u64, is_open: bool| {
        let mut row = if is_open { open.clone() } else { closed.clone() };
        row.position.id = PositionId(id);
        row
    };
    let (asked, first) = (Rc::new(RefCell::new(Vec::new())), Cell::new(true));
    let (queries, pages) = (Rc::clone(&asked), Cell::new(0));
    town.shard(move |_, command| match command {
        Command::Query(Query::Positions { open, closed_max, .. }) => {
            assert!(first.replace(false), "the first answer is that of one moment");
            queries.borrow_mut().push(format!("positions {open:?} {closed_max}"));
            let (all, row) = (&all, &row);
            let of = |wanted: bool| {
                let ids = all.iter().filter(move |(_, is_open)| *is_open == wanted);
                ids.map(move |(id, _)| row(*id, wanted))
            };
            let closed = of(false).take(if open == Some(true) { 0 } else { closed_max });
            Ok(Answer::Positions(of(true).chain(closed).collect()))
        }
        Command::Query(Query::EpisodeSpan(span)) => {
            assert_eq!(span.which, Episodes::Closed);
            pages.set(pages.get() + 1);
            if fails_at == Some(pages.get()) {
                return Err(crate::engine_client::AskError::Busy);
            }
            queries.borrow_mut().push("page".to_owned());
            let below = span.before.expect("after the first answer").0;
            let ids: Vec<u64> = (1..below).rev().take(page_rows.min(span.limit)).collect();
            let next = ids.last().copied().filter(|last| *last > 1);
            Ok(Answer::EpisodeSpan(HistoryPage { rows: ids.into_iter().map(|id| row(id, false)).collect(), next }))
        }
        other => panic!("{other:?}"),
    });
    asked
}

/// The text of a list in one piece.
fn whole(town: &Town, lived: &Lived, open: Option<bool>, envelope: bool) -> String {
    let reads = &town.edge.app.reads;
    let marks = Marks { catalog: &reads.catalog, books: &reads.books };
    let (held, gone) = (position(town, 1, true), position(town, 1, false));
    let mut views = Vec::new();
    for (shown, is_hidden, row) in [(true, open == Some(false), &held), (false, open == Some(true), &gone)] {
        for (id, _) in lived.ids().filter(|(_, is_open)| *is_open == shown && !is_hidden) {
            let mut row = row.clone();
            row.position.id = PositionId(id);
            views.push(row);
        }
    }
    let rows: Vec<_> = views.iter().map(|row| Position::new(row, marks)).collect();
    let mut text = Vec::new();
    write_record(&mut text, &if envelope { ListOrPage::Page(PositionPage::new(rows)) } else { ListOrPage::List(rows) });
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn a_long_list_is_streamed_with_the_bytes_of_a_whole_one() {
    let (mut cases, mut streamed) = (0, 0);
    for (closed, open, page_rows) in [
        (0, 0, 100),
        (0, 3, 100),
        (5, 3, 100),
        (CLOSED_FIRST as u64 - 1, 2, 100),
        (CLOSED_FIRST as u64, 0, 100),
        (CLOSED_FIRST as u64, 40, 7),
        (CLOSED_FIRST as u64 + 1, 1, 1),
        (3 * CLOSED_FIRST as u64, 2 * CLOSED_FIRST as u64, 400),
        (4_000, 300, 4_000),
    ] {
        let town = Town::new();
        let lived = Lived { closed, open };
        for (status, wanted) in [("", None), ("&status=OPEN", Some(true)), ("&status=CLOSED", Some(false))] {
            for envelope in [false, true] {
                let asked = shard(&town, &lived, page_rows, None);
                let target = format!("/v1/account/positions?envelope={envelope}{status}");
                let answer = town.send("GET", &target, "");
                assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{target}");
                assert!(answer.text() == whole(&town, &lived, wanted, envelope), "{target}, {closed} closed");
                let is_long = wanted != Some(true) && closed >= CLOSED_FIRST as u64;
                assert_eq!(asked.borrow().len() > 1, is_long, "{target}, {closed} closed: {asked:?}");
                streamed += usize::from(is_long);
                cases += 1;
            }
        }
    }
    println!("lists of positions: {cases} cases, {streamed} of them streamed");
}

/// A part that cannot be read is a refusal before the first byte, and cuts the body off after it.
#[test]
fn a_part_that_cannot_be_read_cuts_the_list_off() {
    let town = Town::new();
    let key = town.key(engine::user::Tier::Free, engine::user::Permissions::Read);
    let send = |target: &str| {
        let request = hyper::Request::builder().uri(target).header("host", "test").header("x-api-key", &key);
        let request = request.body(Full::new(bytes::Bytes::new())).expect("a sound request");
        let edge = Rc::clone(&town.edge);
        run(async {
            let answer = respond(edge, IpAddr::from([1, 2, 3, 4]), request, None).await;
            (answer.status().as_u16(), answer.into_body().collect().await.err())
        })
    };
    let mut cases = 0;
    // The count of an envelope reads all parts once before them.
    for (envelope, fails_at, expected) in [
        (false, None, (200, None)),
        (false, Some(1), (200, Some(Truncated))),
        (false, Some(3), (200, Some(Truncated))),
        (true, None, (200, None)),
        (true, Some(1), (503, None)),
        (true, Some(5), (503, None)),
        (true, Some(6), (200, Some(Truncated))),
    ] {
        shard(&town, &Lived { closed: CLOSED_FIRST as u64 + 500, open: 0 }, 100, fails_at);
        assert_eq!(send(&format!("/v1/account/positions?envelope={envelope}")), expected, "{envelope} {fails_at:?}");
        cases += 1;
    }
    println!("lists of positions that are cut off: {cases} cases");
}

/// As an export: a part that may lack what was cut since the head was sent ends the list.
#[test]
fn a_list_across_a_cut_is_not_taken_for_a_whole_one() {
    let day = UtcDay(20_000);
    let mut cases = 0;
    // (the part at which history is cut, whether there is an envelope, whether the head says so, whether the list is whole)
    for (at, envelope, is_said, is_whole) in [
        (0, false, false, true),
        (1, false, false, false),
        (2, false, false, false),
        // All parts are counted before the head.
        (0, true, false, true),
        (1, true, true, true),
        (2, true, true, true),
        (3, true, false, false),
        (4, true, false, false),
    ] {
        let town = Town::new();
        let (row, shown, mut parts) = (position(&town, 1, false), town.shown.clone(), 0);
        let all = CLOSED_FIRST as u64 + 100;
        town.shard(move |user, command| {
            let rows = |ids: &[u64]| {
                let mut rows = vec![row.clone(); ids.len()];
                rows.iter_mut().zip(ids).for_each(|(row, id)| row.position.id = PositionId(*id));
                rows
            };
            match command {
                Command::Query(Query::Positions { .. }) => {
                    let ids: Vec<u64> = (1..=all).rev().take(CLOSED_FIRST).collect();
                    Ok(Answer::Positions(rows(&ids)))
                }
                Command::Query(Query::EpisodeSpan(span)) => {
                    parts += 1;
                    if parts == at {
                        shown.set(day, [user]);
                    }
                    let ids: Vec<u64> = (1..span.before.expect("after the first answer").0).rev().take(50).collect();
                    let next = ids.last().copied().filter(|last| *last > 1);
                    Ok(Answer::EpisodeSpan(HistoryPage { rows: rows(&ids), next }))
                }
                other => panic!("{other:?}"),
            }
        });
        let target = format!("/v1/account/positions?envelope={envelope}");
        let request = hyper::Request::builder().uri(target).header("host", "test").header("x-api-key", &town.key);
        let request = request.body(Full::new(bytes::Bytes::new())).expect("sound");
        let (head, body) = run(async {
            let answer = respond(Rc::clone(&town.edge), IpAddr::from([1, 2, 3, 4]), request, None).await;
            let (head, body) = answer.into_parts();
            (head, body.collect().await.map(drop))
        });
        let said = head.headers.get("x-svc-history-from").map(|day| day.to_str().expect("ASCII").to_owned());
        assert_eq!(said, is_said.then(|| day.text()), "cut at part {at}, envelope {envelope}");
        let expected = if is_whole { Ok(()) } else { Err(Truncated) };
        assert_eq!(body, expected, "cut at part {at}, envelope {envelope}");
        cases += 1;
    }
    println!("lists across a cut: {cases} cases");
}
