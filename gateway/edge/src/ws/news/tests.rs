use super::*;
use futures_util::FutureExt as _;

fn received(outlet: &Outlet) -> Vec<String> {
    std::iter::from_fn(|| match outlet.take() {
        Ok(item) => item.map(|item| format!("{item:?}")),
        Err(Lost) => Some("lost".into()),
    })
    .collect()
}

#[test]
fn each_thread_receives_what_it_is_interested_in() {
    let news = News::new(2, FeeTable::default());
    let (one, two) = (news.claim(), news.claim());
    let (market, other) = (MarketId(7), MarketId(8));
    assert!(!news.has_interest(), "no interests yet");
    one.add_interest(market, Interest::Touches);
    two.add_interest(other, Interest::Changes);
    two.count_listings(true);
    let tell = || {
        let change = |market| news.change(Change::empty(market, news.next_number()));
        change(market);
        change(other);
        news.touched(market);
        news.touched(other);
        news.listed(market, Timestamp(1));
        news.resolved(market, Resolution::Split, Timestamp(1));
    };
    assert_eq!(
        (
            news.has_interest(),
            news.has_interest_in(market),
            news.followed(market),
            news.followed(other),
            news.has_interest_in(MarketId(9))
        ),
        (true, true, false, true, false)
    );
    tell();
    let resolved = "Resolved(MarketId(7), Split, Timestamp(1))";
    assert_eq!(received(&one), ["Touched(MarketId(7))", "Touched(MarketId(7))", resolved]);
    let second = received(&two);
    assert!(second[0].starts_with("Change(") && second[1].starts_with("Listed(MarketId(7)"), "{second:?}");
    assert_eq!((second.len(), news.number()), (2, 2));
    one.remove_interest(market, Interest::Touches);
    two.remove_interest(other, Interest::Changes);
    assert!(news.has_interest(), "a follower of new markets");
    two.count_listings(false);
    assert!(!news.has_interest());
    tell();
    assert_eq!((received(&one), received(&two)), (vec![], vec![]));
}

#[test]
fn a_full_outlet_reports_lost_news() {
    let news = News::with_slots(1, FeeTable::default(), 4);
    let (outlet, market) = (news.claim(), MarketId(0));
    outlet.add_interest(market, Interest::Touches);
    let touch = |times: usize| (0..times).for_each(|_| news.touched(market));
    let touched = |times: usize| vec!["Touched(MarketId(0))"; times];
    touch(4);
    assert_eq!(received(&outlet), touched(4));
    touch(5);
    assert_eq!(received(&outlet), ["lost"], "queued news are older than what is read now");
    assert_eq!(news.lost(), 1, "the fifth of four");
    touch(2);
    assert_eq!(received(&outlet), touched(2));
}

/// While the feed gathers, threads with new news are woken by the ring, and no others. At other times each piece of
/// news wakes its threads.
#[test]
fn gathered_news_wake_once() {
    let news = News::new(2, FeeTable::default());
    let (outlet, other, market) = (news.claim(), news.claim(), MarketId(0));
    [&outlet, &other].iter().for_each(|outlet| outlet.add_interest(MarketId(1), Interest::Changes));
    outlet.add_interest(market, Interest::Touches);
    let has_rung = |outlet: &Outlet| outlet.wait().now_or_never().is_some();
    // (action of the feed, whether it wakes the thread)
    let steps: [(&str, &dyn Fn(), bool); 8] = [
        ("alone", &|| news.touched(market), true),
        ("gather", &|| news.gather(), false),
        ("first", &|| news.touched(market), false),
        ("second", &|| news.touched(market), false),
        ("ring, and go on", &|| news.ring(true), true),
        ("third", &|| news.touched(market), false),
        ("let go", &|| news.ring(false), true),
        ("alone again", &|| news.touched(market), true),
    ];
    for (name, step, wakes) in steps {
        step();
        assert_eq!((has_rung(&outlet), has_rung(&other)), (wakes, false), "{name}");
    }
    news.ring(false);
    assert!(!has_rung(&outlet), "there is nothing new");
    assert_eq!(received(&outlet).len(), 5, "nothing was lost");
}

/// One sample for the news that waited together, from the oldest. None if nothing is measured, and none for news that
/// do not belong to a frame.
#[test]
fn lag_is_that_of_the_oldest_news() {
    let rows: [(&str, bool, &[u64], u64, u64); 5] = [
        ("untimed", false, &[5], 0, 0),
        ("one frame", true, &[5], 1, 95),
        ("three frames", true, &[5, 50, 70], 1, 95),
        ("nothing", true, &[], 0, 0),
        ("no frame", true, &[0], 0, 0),
    ];
    for (name, is_timed, frames, count, us) in rows {
        let news = News::new(1, FeeTable::default());
        let (outlet, market) = (news.claim(), MarketId(0));
        outlet.add_interest(market, Interest::Touches);
        if is_timed {
            news.time_fan_out();
        }
        for at in frames {
            news.begin_frame(Timestamp(*at));
            news.touched(market);
            news.end_frame();
        }
        // News without a frame, added while others wait, change nothing.
        news.touched(market);
        assert_eq!(news.waiting(), frames.len() + 1, "{name}");
        for _ in 0..2 {
            outlet.note_lag(|| Timestamp(100));
        }
        let counted = news.lag().map(Micros::counted);
        assert_eq!(counted.is_some(), is_timed, "{name}");
        let seen = counted.map_or((0, 0.0), |counted| (counted.count, counted.sum_seconds));
        assert_eq!(seen, (count, us as f64 / 1e6), "{name}");
    }
    println!("lags: {} cases", rows.len());
}

#[test]
fn times_never_go_back() {
    let news = News::new(1, FeeTable::default());
    let [one, two] = [InstrumentId(4), InstrumentId(5)];
    let counts =
        [(one, 5), (one, 3), (two, 4), (one, 6), (two, 1)].map(|(token, at)| news.advance_time(token, Timestamp(at)).0);
    assert_eq!(counts, [5, 5, 4, 6, 4]);
    assert_eq!(
        (news.last_time(one), news.last_time(two), news.last_time(InstrumentId(9))),
        (Timestamp(6), Timestamp(4), Timestamp(0))
    );
}
