use super::*;
use engine::book::candles::{Candle, Grid, Mid};
use engine::book::listener::PriceListener as _;

const MINUTE: u32 = 29_848_860;
const MINUTES: HistoryQuery = HistoryQuery { grid: Grid::minutes(1), most: 10, coarser: &[] };

fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime of one thread"), future)
}

fn worker() -> Worker {
    Worker::new(Store::open(None), Arc::new(Books::new()), Fills::default())
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
    let (messages, receiver) = channel();
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
    let (messages, _receiver) = channel();
    let (reader, mut worker) = (Reader::new(messages), worker());
    for gone in [0, 1, 5] {
        for _ in 0..gone {
            worker.waiting.push_back(query(&reader).0);
        }
        let (asked, mut first) = query(&reader);
        worker.waiting.push_back(asked);
        let (asked, mut second) = query(&reader);
        worker.waiting.push_back(asked);
        // One turn answers one query, after any number of abandoned ones.
        worker.answer();
        assert!(first.try_recv().is_ok() && second.try_recv().is_err(), "{gone} abandoned");
        assert_eq!(reader.permits.available_permits(), QUERIES_MAX - 1);
        worker.answer();
        assert!(second.try_recv().is_ok());
        worker.answer();
        assert_eq!(reader.permits.available_permits(), QUERIES_MAX);
    }
    println!("abandoned queries: 3 cases");
}

#[test]
fn prices_go_before_queries_and_fills_after_prices() {
    let (messages, receiver) = channel();
    let (reader, worker) = (Reader::new(messages.clone()), worker());
    let market = MarketId(1).instrument(engine::id::Outcome::First);
    worker.fills.0.push((market, Qty(5), Timestamp::from_secs(u64::from(MINUTE) * 60))).expect("room");
    let (asked, found) = query(&reader);
    let (late, too_late) = query(&reader);
    for message in [Message::Find(asked), prices(7), prices(9)] {
        messages.send(message).expect("the worker runs");
    }
    let running = std::thread::spawn(move || worker.run(&receiver));
    let found = found.blocking_recv().expect("an answer");
    let volume = [Qty(5), Qty(0)];
    let candle = Candle { open: Mid(7), high: Mid(9), low: Mid(7), close: Mid(9), volume };
    assert_eq!(found.points.iter().map(|point| point.candle).collect::<Vec<_>>(), [candle]);
    assert!(found.broken, "it is only in memory");
    messages.send(Message::Stop).expect("the worker runs");
    // The thread may take this message or have ended.
    let _ = messages.send(Message::Find(late));
    running.join().expect("it ends");
    drop(messages);
    assert!(too_late.blocking_recv().is_err(), "a query at the end gets no answer, and does not wait for ever");
}

#[test]
fn a_failed_history_ends_alone() {
    let (history, reader) = History::run(|receiver| {
        let _ = receiver.recv();
        panic!("as planned");
    })
    .expect("a thread");
    let mut recorder = Recorder::new(history.messages.clone(), Timestamp(0));
    assert!(!reader.is_lost());
    for minute in 0..10 {
        recorder.note(MarketId(1), Timestamp::from_secs(60 * minute), Mid(1));
        // Neither the feed nor a request waits for it.
        recorder.hand_over();
        assert_eq!(run(reader.find(MarketId(1), 0..=9, MINUTES)), None);
    }
    history.end();
    assert!(reader.is_lost());
    println!("a failed history: 10 queries");
}
