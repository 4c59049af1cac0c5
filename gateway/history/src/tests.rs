use super::*;
use engine::book::candles::{Candle, Grid, Mid};
use engine::book::listener::PriceListener as _;

const MINUTE: u32 = 29_848_860;
const MINUTES: Wanted = Wanted { grid: Grid::minutes(1), most: 10, coarser: &[] };

fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime of one thread"), future)
}

fn keeper() -> Keeper {
    Keeper::new(Store::open(None), Arc::new(Books::new()), Fills::default())
}

fn question(reader: &Reader) -> (Question, oneshot::Receiver<Stretches>) {
    let place = reader.places.clone().try_acquire_owned().expect("a place");
    let (answer, found) = oneshot::channel();
    (Question { market: 1, secs: 0..=u64::MAX, wanted: MINUTES, answer, _place: place }, found)
}

fn heard(price: u16) -> Word {
    Word::Heard(vec![Heard { market: 1, minute: MINUTE, candle: Candle::at(Mid(price)) }], Arc::default())
}

#[test]
fn a_question_is_bounded_in_time_and_in_number() {
    // Nobody reads what is told.
    let (words, told) = channel();
    let reader = Reader::new(words);
    run(async {
        let asked = |reader: Reader| async move { reader.find(MarketId(1), 0..=9, MINUTES).await };
        let start = tokio::time::Instant::now();
        let waiting: Vec<_> = (0..QUESTIONS_MAX).map(|_| tokio::task::spawn_local(asked(reader.clone()))).collect();
        while reader.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!((asked(reader.clone()).await, start.elapsed()), (None, Duration::ZERO), "one too many");
        for waiting in waiting {
            assert_eq!(waiting.await.expect("no panic"), None);
        }
        assert_eq!(start.elapsed().as_secs(), ANSWER_WITHIN.as_secs());
        // What nobody waits for has its place until it is passed over.
        assert_eq!((asked(reader.clone()).await, start.elapsed().as_secs()), (None, ANSWER_WITHIN.as_secs()));
        assert_eq!(told.try_iter().count(), QUESTIONS_MAX);
        assert_eq!(asked(reader.clone()).await, None);
        assert_eq!(start.elapsed().as_secs(), 2 * ANSWER_WITHIN.as_secs(), "it waited");
        drop(told);
        assert_eq!(asked(reader).await, None, "the history has ended");
        assert_eq!(start.elapsed().as_secs(), 2 * ANSWER_WITHIN.as_secs());
    });
    println!("{} questions", QUESTIONS_MAX + 4);
}

#[test]
fn who_has_gone_is_passed_over() {
    let (words, _told) = channel();
    let (reader, mut keeper) = (Reader::new(words), keeper());
    for gone in [0, 1, 5] {
        for _ in 0..gone {
            keeper.waiting.push_back(question(&reader).0);
        }
        let (asked, mut first) = question(&reader);
        keeper.waiting.push_back(asked);
        let (asked, mut second) = question(&reader);
        keeper.waiting.push_back(asked);
        // One turn answers one question, whoever had gone before.
        keeper.answer();
        assert!(first.try_recv().is_ok() && second.try_recv().is_err(), "{gone} had gone");
        assert_eq!(reader.places.available_permits(), QUESTIONS_MAX - 1);
        keeper.answer();
        assert!(second.try_recv().is_ok());
        keeper.answer();
        assert_eq!(reader.places.available_permits(), QUESTIONS_MAX);
    }
    println!("askers who have gone: 3 cases");
}

#[test]
fn prices_go_before_questions_and_fills_behind_prices() {
    let (words, told) = channel();
    let (reader, keeper) = (Reader::new(words.clone()), keeper());
    let market = MarketId(1).instrument(engine::id::Outcome::First);
    keeper.fills.0.push((market, Qty(5), Timestamp::from_secs(u64::from(MINUTE) * 60))).expect("room");
    let (asked, found) = question(&reader);
    let (late, too_late) = question(&reader);
    for word in [Word::Find(asked), heard(7), heard(9)] {
        words.send(word).expect("it listens");
    }
    let running = std::thread::spawn(move || keeper.run(&told));
    let found = found.blocking_recv().expect("an answer");
    let volume = [Qty(5), Qty(0)];
    let candle = Candle { open: Mid(7), high: Mid(9), low: Mid(7), close: Mid(9), volume };
    assert_eq!(found.points.iter().map(|point| point.candle).collect::<Vec<_>>(), [candle]);
    assert!(found.broken, "it is in memory alone");
    words.send(Word::Stop).expect("it listens");
    // Whether it still takes this or has gone already.
    let _ = words.send(Word::Find(late));
    running.join().expect("it ends");
    drop(words);
    assert!(too_late.blocking_recv().is_err(), "who asks at the end has no answer, and does not wait for ever");
}

#[test]
fn a_history_that_fails_ends_alone() {
    let (history, reader) = History::run(|told| {
        let _ = told.recv();
        panic!("as planned");
    })
    .expect("a thread");
    let mut recorder = Recorder::new(history.words.clone(), Timestamp(0));
    assert!(!reader.is_lost());
    for minute in 0..10 {
        recorder.note(MarketId(1), Timestamp::from_secs(60 * minute), Mid(1));
        // The feed never waits for it, nor does an asker.
        recorder.hand_over();
        assert_eq!(run(reader.find(MarketId(1), 0..=9, MINUTES)), None);
    }
    history.end();
    assert!(reader.is_lost());
    println!("a failed history: 10 questions");
}
