use super::*;
use crate::testing::{contents, copy};
use engine::book::candles::{Candle, Grid, Mid};
use engine::book::listener::PriceListener as _;
use host::job::Job;

const MINUTE: u32 = 29_848_860;
const MINUTES: HistoryQuery = HistoryQuery { grid: Grid::minutes(1), most: 10, coarser: &[] };

fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime of one thread"), future)
}

/// A history in memory only.
fn history() -> (History, Recorder, Reader) {
    History::open(None, 1 << 20, Arc::new(Books::new()), Fills::default())
}

fn query(reader: &Reader) -> (Query, oneshot::Receiver<Stretches>) {
    let permit = reader.permits.clone().try_acquire_owned().expect("a permit");
    let (answer, found) = oneshot::channel();
    (Query { market: 1, secs: 0..=u64::MAX, wanted: MINUTES, answer, _permit: permit }, found)
}

fn prices(price: u16) -> Message {
    Message::Prices(vec![MinuteCandle { market: 1, minute: MINUTE, candle: Candle::at(Mid(price)) }], Arc::default())
}

#[test]
fn a_query_is_bounded_in_time_and_in_number() {
    // The messages are not read.
    let (messages, receiver) = Messages::channel();
    let reader = Reader::new(messages);
    run(async {
        let asked = |reader: Reader| async move { reader.find(MarketId(1), 0..=9, MINUTES).await };
        let start = tokio::time::Instant::now();
        let waiting: Vec<_> = (0..QUERIES_MAX).map(|_| tokio::task::spawn_local(asked(reader.clone()))).collect();
        while reader.permits.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!((asked(reader.clone()).await, start.elapsed()), (None, Duration::ZERO), "above the bound");
        for waiting in waiting {
            assert_eq!(waiting.await.expect("no panic"), None);
        }
        assert_eq!(start.elapsed().as_secs(), ANSWER_WITHIN.as_secs());
        // A query without a requester keeps its permit until it is skipped.
        assert_eq!((asked(reader.clone()).await, start.elapsed().as_secs()), (None, ANSWER_WITHIN.as_secs()));
        assert_eq!(receiver.try_iter().count(), QUERIES_MAX);
        assert_eq!(asked(reader.clone()).await, None);
        assert_eq!(start.elapsed().as_secs(), 2 * ANSWER_WITHIN.as_secs(), "it waited");
        drop(receiver);
        assert_eq!(asked(reader).await, None, "the history has ended");
        assert_eq!(start.elapsed().as_secs(), 2 * ANSWER_WITHIN.as_secs());
    });
    println!("{} queries", QUERIES_MAX + 4);
}

#[test]
fn abandoned_queries_are_skipped() {
    let (mut history, _, reader) = history();
    for gone in [0, 1, 5] {
        for _ in 0..gone {
            history.waiting.push_back(query(&reader).0);
        }
        let (asked, mut first) = query(&reader);
        history.waiting.push_back(asked);
        let (asked, mut second) = query(&reader);
        history.waiting.push_back(asked);
        // One turn answers one query, after any number of abandoned ones.
        history.answer();
        assert!(first.try_recv().is_ok() && second.try_recv().is_err(), "{gone} abandoned");
        assert_eq!(reader.permits.available_permits(), QUERIES_MAX - 1);
        history.answer();
        assert!(second.try_recv().is_ok());
        history.answer();
        assert_eq!(reader.permits.available_permits(), QUERIES_MAX);
    }
    println!("abandoned queries: 3 cases");
}

#[test]
fn prices_go_before_queries_and_fills_after_prices() {
    let (history, recorder, reader) = history();
    let market = MarketId(1).instrument(engine::id::Outcome::First);
    history.fills.0.push((market, Qty(5), Timestamp::from_secs(u64::from(MINUTE) * 60))).expect("room");
    let (asked, found) = query(&reader);
    let (late, too_late) = query(&reader);
    for message in [Message::Find(asked), prices(7), prices(9)] {
        reader.messages.send(message).expect("the history is there");
    }
    let running = Job::new("history", Duration::from_secs(100_000), move || history).start(&Stop::new());
    let running = running.expect("a thread");
    let found = found.blocking_recv().expect("an answer");
    let volume = [Qty(5), Qty(0)];
    let candle = Candle { open: Mid(7), high: Mid(9), low: Mid(7), close: Mid(9), volume };
    assert_eq!(found.points.iter().map(|point| point.candle).collect::<Vec<_>>(), [candle]);
    assert!(found.broken, "it is only in memory");
    // Hangs if a query does not wake the job.
    let (asked, found) = query(&reader);
    reader.messages.send(Message::Find(asked)).expect("the history runs");
    found.blocking_recv().expect("an answer");
    running.stop();
    // The job may take this message or have ended.
    let _ = reader.messages.send(Message::Find(late));
    running.join();
    drop((reader, recorder));
    assert!(too_late.blocking_recv().is_err(), "a query at the end gets no answer, and does not wait for ever");
}

/// Files of an earlier program, with prices of market 0.
const EARLIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/files");

/// The points of market 0 by minute, after the turns that this takes.
fn minutes_of_first(history: &mut History, reader: &Reader) -> Vec<(u64, Candle)> {
    let permit = reader.permits.clone().try_acquire_owned().expect("a permit");
    let (answer, mut found) = oneshot::channel();
    let wanted = HistoryQuery { grid: Grid::minutes(1), most: 100_000, coarser: &[] };
    let query = Query { market: 0, secs: 0..=u64::MAX, wanted, answer, _permit: permit };
    reader.messages.send(Message::Find(query)).expect("the history is there");
    turns(history);
    let found = found.try_recv().expect("an answer");
    assert!(!found.broken, "of the store");
    found.points.iter().map(|point| (point.start / 60, point.candle)).collect()
}

/// Turns until there is nothing to do.
fn turns(history: &mut History) -> u32 {
    let mut count = 1;
    while history.take_turn(&Stop::new()).expect("it never fails") != Next::Sleep {
        count += 1;
    }
    count
}

/// The store is opened, and earlier files are moved, in turns of the job: prices and fills until then are added
/// afterwards, but for those that the store has.
#[test]
fn a_start_does_not_wait_for_its_history() {
    let place = tempfile::tempdir().expect("a temporary directory");
    copy(std::path::Path::new(EARLIER), place.path());
    let files = contents(place.path());
    let open = || History::open(Some(place.path().to_owned()), 1 << 20, Arc::new(Books::new()), Fills::default());
    let (mut history, mut recorder, reader) = open();
    assert_eq!(contents(place.path()), files, "nothing was touched");
    // A recording that is repeated: its first minutes are known, and its last one goes on.
    recorder.begin_replay();
    recorder.note(MarketId(0), Timestamp::from_secs(0), Mid(1));
    recorder.flush();
    assert_eq!(contents(place.path()), files);
    let steps = turns(&mut history);
    assert!(steps as usize > files.len(), "{steps} turns");
    let known = minutes_of_first(&mut history, &reader);
    let newest = u64::from(history.known);
    assert!(known.len() > 5 && known.iter().all(|(minute, _)| (1..=newest).contains(minute)), "{known:?}");
    // Now the recorder skips them by itself.
    recorder.note(MarketId(0), Timestamp::from_secs(newest * 60 - 1), Mid(1));
    recorder.flush();
    assert!(history.messages.try_recv().is_err(), "a known price was sent");
    drop((history, recorder, reader));
    // Before the first turn of the next run: a query, a price and a fill. Then it is stopped, or goes on.
    for (after, stops) in [(1, true), (2, false)] {
        let (mut history, mut recorder, reader) = open();
        let at = Timestamp::from_secs((newest + after) * 60);
        history.fills.0.push((MarketId(0).instrument(engine::id::Outcome::First), Qty(5), at)).expect("room");
        recorder.note(MarketId(0), at, Mid(40));
        recorder.flush();
        if stops {
            history.end();
            history = open().0;
            assert_eq!(turns(&mut history), 3, "opened, begun, and no work");
            drop(history);
            continue;
        }
        turns(&mut history);
        let candle = Candle { volume: [Qty(5), Qty(0)], ..Candle::at(Mid(40)) };
        let expected: Vec<_> = known.iter().copied().chain([1, 2].map(|after| (newest + after, candle))).collect();
        assert_eq!(minutes_of_first(&mut history, &reader), expected);
    }
    println!("starts with a history: 4 cases, {steps} turns for {} files", files.len());
}

/// Takes a message, and panics.
struct Failing(Receiver<Message>);

impl Work for Failing {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        let _ = self.0.recv();
        panic!("as planned");
    }
}

#[test]
fn a_failed_history_ends_alone() {
    let (messages, receiver) = Messages::channel();
    let reader = Reader::new(messages.clone());
    let lost = reader.clone();
    let job = Job::new("history", Duration::from_secs(1), move || Failing(receiver));
    let running = job.spare("it has failed", move || lost.lose()).start(&Stop::new()).expect("a thread");
    let mut recorder = Recorder::new(messages, Arc::default());
    assert!(!reader.is_lost());
    for minute in 0..10 {
        recorder.note(MarketId(1), Timestamp::from_secs(60 * minute), Mid(1));
        // Neither the feed nor a request waits for it.
        recorder.hand_over();
        assert_eq!(run(reader.find(MarketId(1), 0..=9, MINUTES)), None);
    }
    running.join();
    assert!(reader.is_lost());
    println!("a failed history: 10 queries");
}
