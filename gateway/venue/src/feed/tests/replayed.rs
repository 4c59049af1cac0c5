//! A recording of both venues replays identically: the same books, fills, and state in the log.

use super::*;
use crate::live::capture::{Capture, Payload, Source};
use crate::live::recorder::Recorder;
use crate::testing::{KALSHI, POLYMARKET};
use engine::shard::digest;
use wire::testing::Random;

/// 2026-08-11T06:59:00Z: a minute before a new file of the recording.
const FIRST: Timestamp = Timestamp(1_786_431_540 * SECOND);
const CONDITION: &str = "0xaa00000000000000000000000000000000000000000000000000000000000001";
const STEPS: u64 = 1_200;
const TURNS: u64 = STEPS / 20 + 10;

/// Records two minutes of both venues: books that move, a broken connection each, a restart in between, and a market
/// that ends.
fn record(folder: &Path) {
    let mut random = Random(5);
    let (mut first, mut second) = (40, 55);
    for run in [0..STEPS / 2, STEPS / 2..STEPS] {
        let clock = Clock::fake(FIRST.plus(run.start * SECOND / 10));
        let (recorder, sender) = Recorder::start(folder, clock.clone()).expect("a recorder");
        let source = |origin, name: &str| Arc::new(Source { origin, number: 0, name: name.into() });
        let sources =
            [source(POLYMARKET, ""), source(POLYMARKET, "market-0"), source(KALSHI, ""), source(KALSHI, "socket")];
        let say = |from: usize, payload| {
            sender.send(&Capture { received: clock.now(), source: sources[from].clone(), payload });
        };
        let frame = |from, text: String| say(from, Payload::Frame(text.into()));
        let answer = |from, url: &str, body: String| {
            say(from, Payload::Answer { url: url.into(), status: 200, body: body.into() });
        };
        if run.start == 0 {
            let gamma = format!(
                r#"[{{"id":"1","conditionId":"{CONDITION}","slug":"s","clobTokenIds":"[\"11\",\"12\"]","active":true,"closed":false,"acceptingOrders":true,"orderPriceMinTickSize":0.01,"endDate":"2026-11-03T00:00:00Z"}}]"#
            );
            answer(0, "/markets?limit=1", gamma);
            let kalshi =
                r#"{"markets":[{"ticker":"KX-1","title":"t","status":"active","close_time":"2026-10-01T00:00:00Z"}]}"#;
            answer(2, "/markets", kalshi.into());
        }
        for step in run.clone() {
            clock.set(FIRST.plus(step * SECOND / 10));
            let wander = |at: u64, by: u64| (at + by % 3).saturating_sub(1).clamp(20, 70);
            (first, second) = (wander(first, random.next()), wander(second, random.next()));
            let size = 5 + random.next() % 20;
            let book = |token: u8, bid: u64| {
                let ask = bid + 2;
                format!(
                    r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{}","bids":[{{"price":"0.{bid}","size":"{size}"}}],"asks":[{{"price":"0.{ask}","size":"{size}"}}]}}"#,
                    clock.now().millis()
                )
            };
            frame(1, format!("[{},{}]", book(11, first), book(12, 98 - first)));
            match step % 7 {
                0 => frame(
                    3,
                    format!(
                        r#"{{"type":"orderbook_snapshot","sid":1,"seq":{step},"msg":{{"market_ticker":"KX-1","yes_dollars_fp":[["0.{second}00","{size}.00"]],"no_dollars_fp":[["0.{}00","{size}.00"]]}}}}"#,
                        97 - second
                    ),
                ),
                _ => frame(
                    3,
                    format!(
                        r#"{{"type":"orderbook_delta","sid":1,"seq":{step},"msg":{{"market_ticker":"KX-1","price_dollars":"0.0{}00","delta_fp":"1.00","side":"yes","ts_ms":{}}}}}"#,
                        1 + step % 9,
                        clock.now().millis()
                    ),
                ),
            }
            if step % 200 == 150 {
                say(1, Payload::Gap("closed by the venue".into()));
                frame(3, "an unknown message".into());
            }
        }
        if run.end == STEPS {
            let won = format!(
                r#"[{{"id":"1","conditionId":"{CONDITION}","closed":true,"outcomePrices":"[\"0\",\"1\"]","umaResolutionStatus":"resolved"}}]"#
            );
            answer(0, "/markets?condition_ids=1", won);
        }
        drop((sender, recorder));
    }
}

pub(super) fn limit(life: &Life, token: &str, cents: u16) -> Command {
    let instrument = life.catalog.by_token(token);
    Command::Place(Box::new(Placement::new(
        KeyId(1),
        Tier::Free,
        EntryRoute::Native,
        Ok(PlacementTerms {
            wallet: None,
            instrument,
            side: Side::Buy,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Gtc,
            size: Size::Shares { qty: Qty(30_000_000), rounded_from: None },
            price: RequestedPrice::At(Price(cents * 100)),
            expiration: None,
            post_only: false,
        }),
    )))
}

/// Everything that could differ: best prices after each turn, answers, the account, and the digest of the state.
fn play(tape: &Path) -> (Vec<String>, [u8; 32]) {
    let directory = tempfile::tempdir().expect("a directory");
    let replay = Replay::open(tape, Speed::Max, false, &Default::default()).expect("a tape");
    let mut life = Life::start(directory.path(), replay, NOW);
    life.feed.begin().expect("it runs");
    let kalshi = crate::ids::token("kalshi:KX-1:yes");
    let tokens = ["11", "12", kalshi.as_str()];
    let mut log = vec![format!("{:?}", life.call(create_user()))];
    let mut bought = 0;
    // Cycles are two seconds apart: these are more than the recording covers.
    for turns in 1..=TURNS {
        life.turn_after(1);
        log.extend(tokens.iter().map(|token| format!("{turns} {token}: {:?}", life.best(token))));
        // Each turn ends with a cycle, at the same time of the recording in every run.
        let order = match turns % 10 {
            3 => Some(limit(&life, "11", 20 + (turns * 7 % 40) as u16)),
            6 => Some(limit(&life, kalshi.as_str(), 30 + (turns * 5 % 30) as u16)),
            9 => life.catalog.by_token("12").map(|token| buy(token.market(), token.outcome())),
            _ => None,
        };
        if let Some(order) = order {
            log.push(format!("{:?}", life.call(order)));
        }
        let (positions, cash) = life.account();
        bought = bought.max(positions);
        log.push(format!("{positions} {cash:?}"));
    }
    assert!(life.feed.desk.venue_now >= FIRST.plus((STEPS - 1) * SECOND / 10), "the recording did not end");
    assert!(bought >= 3, "too few orders were filled: {bought} positions");
    drop(life);
    let options =
        Options { segment_bytes: SIZE.segment_bytes, spares_count: 2, reserve_bytes: 0, ..Options::default() };
    let state = recover(&directory.path().join("data"), options, 1).expect("a sound log").state;
    (log, digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>()))
}

#[test]
fn a_recording_plays_the_same_every_time() {
    let tape = tempfile::tempdir().expect("a directory");
    record(tape.path());
    let files: Vec<_> = std::fs::read_dir(tape.path()).expect("files").flatten().map(|file| file.file_name()).collect();
    assert!(
        files.iter().filter(|name| name.to_string_lossy().starts_with("tape-2026-08-11T0")).count() >= 2,
        "{files:?}"
    );
    let (log, digest) = play(tape.path());
    assert!(log.len() > 200, "{}", log.len());
    for again in 0..2 {
        let (log_again, digest_again) = play(tape.path());
        let differs = log.iter().zip(&log_again).position(|(one, other)| one != other);
        assert_eq!(differs, None, "{again}: {:?}", differs.map(|at| (&log[at], &log_again[at])));
        assert_eq!((log.len(), digest), (log_again.len(), digest_again));
    }
    println!("a recording played again: {} cases", log.len());
}
