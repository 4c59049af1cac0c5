use super::*;
use engine::amount::{Price, Qty};
use engine::book::BookSide;
use engine::market::terms::MarketState;
use smallvec::smallvec;

const A: u16 = 4_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_786_406_400_000 + millis)
}

fn listing() -> Listing {
    let condition = Condition([0xab; 32]).to_string();
    let found = crate::archive::markets::Found {
        tokens: ["11".into(), "12".into()].into(),
        tick: TickSize(100),
        origin: crate::tape::Origin::of(engine::market::terms::Venue::Polymarket).expect("a live venue"),
    };
    let listing = crate::archive::markets::list_by_rows(Condition([0xab; 32]), &found).expect("a listing");
    Listing { condition, ..listing }
}

fn listed() -> FeedUpdate {
    FeedUpdate::Listed { listing: Box::new(listing()), state: MarketState::Active }
}

fn book(token: &str, bids: &[(u16, u64)], asks: &[(u16, u64)]) -> FeedUpdate {
    let side = |levels: &[(u16, u64)]| levels.iter().map(|(price, size)| (Price(*price), Qty(*size))).collect();
    FeedUpdate::BookSnapshot { token: token.into(), bids: side(bids), asks: side(asks), venue_ts: at(1), hash: None }
}

fn delta(token: &str, levels: Changes) -> FeedUpdate {
    FeedUpdate::BookDelta { token: token.into(), levels, venue_ts: at(2) }
}

fn trade(token: &str, size: u64, id: Option<&str>) -> FeedUpdate {
    FeedUpdate::LastTrade {
        token: token.into(),
        price: Price(A),
        size: Qty(size),
        taker_buys: true,
        venue_ts: at(3),
        id: id.map(Arc::from),
        fee_rate_bps: Some(7),
    }
}

#[test]
fn updates_of_a_frame_come_back_from_its_rows() {
    let (bid, ask) = (BookSide::Bid, BookSide::Ask);
    let top = |token: &str, best: (u16, u16)| FeedUpdate::Top {
        token: token.into(),
        bid: Some(Price(best.0)),
        ask: Some(Price(best.1)),
    };
    let both = [book("11", &[(A, 5), (A - 100, 6)], &[(A + 100, 7)]), book("12", &[], &[(A, 1)])];
    let frames = [
        both.to_vec(),
        vec![
            delta("11", smallvec![(bid, Price(A), Qty(0)), (ask, Price(A + 50), Qty(9))]),
            delta("12", smallvec![(ask, Price(A), Qty(2))]),
            top("11", (A - 100, A + 50)),
            top("12", (A - 900, A)),
        ],
        vec![trade("11", 5, Some("0xfeed")), trade("12", 6, None)],
        vec![FeedUpdate::TickChanged { condition: listing().condition, tick: TickSize(10) }],
    ];
    let (mut to, mut from) = (RowMaker::default(), UpdateMaker::default());
    let mut rows = Vec::new();
    assert_eq!(to.frame(&[listed()], at(0), &mut rows), 0);
    assert!(rows.is_empty());
    for (number, frame) in frames.iter().enumerate() {
        let mut updates = Vec::new();
        rows.clear();
        assert_eq!(to.frame(frame, at(10).plus(123), &mut rows), 0, "frame {number}");
        assert!(rows.iter().all(|row| row.received == at(10) && row.market == Condition([0xab; 32])), "{rows:?}");
        from.frame(&rows, &mut updates);
        assert_eq!(updates, *frame, "frame {number}: {rows:?}");
    }
    // The file has the order of the venue.
    to.frame(&both[..1], at(20), &mut rows);
    let Some(Event::Book { bids, .. }) = rows.last().map(|row| &row.event) else { panic!("{rows:?}") };
    assert_eq!(bids, &[(Price(A - 100), Qty(6)), (Price(A), Qty(5))]);
    println!("frames: {} cases", frames.len());
}

#[test]
fn what_fits_no_row_is_counted() {
    let too_large = SIZE_MAX.0 + 1;
    let many: Vec<(u16, u64)> = (1..=9_999).map(|price| (price, 1)).collect();
    let mut long = many.clone();
    (0..3).for_each(|_| long.extend(&many));
    let sideless = FeedUpdate::SidelessTrade { token: "11".into(), price: Price(A), size: Qty(1), venue_ts: at(0) };
    let unknown = FeedUpdate::TickChanged { condition: "0x1".into(), tick: TickSize(10) };
    let cases = [
        // update, rows, unfit
        (trade("11", too_large, None), 0, 1),
        (delta("11", smallvec![(BookSide::Bid, Price(A), Qty(too_large)), (BookSide::Bid, Price(A), Qty(1))]), 1, 1),
        (book("11", &[(A, too_large)], &[]), 0, 1),
        (book("11", &many, &[]), 1, 0),
        (book("11", &long, &[]), 0, 1),
        (trade("99", 1, None), 0, 1),
        (sideless, 0, 1),
        (unknown, 0, 1),
        (FeedUpdate::Gap { tokens: vec![], reason: "x".into() }, 0, 0),
        (FeedUpdate::Top { token: "11".into(), bid: None, ask: None }, 0, 0),
    ];
    let mut maker = RowMaker::default();
    maker.frame(&[listed()], at(0), &mut Vec::new());
    for (number, (update, expected_rows, unfit)) in cases.iter().enumerate() {
        let mut rows = Vec::new();
        let counted = maker.frame(std::slice::from_ref(update), at(5), &mut rows);
        assert_eq!((rows.len(), counted), (*expected_rows, *unfit), "case {number}");
    }
    let mut rows = Vec::new();
    maker.frame(&[trade("11", 1, Some(&"f".repeat(TRADE_ID_BYTES_MAX + 1)))], at(5), &mut rows);
    assert!(matches!(&rows[0].event, Event::LastTradePrice { transaction_hash: None, .. }), "{rows:?}");
    println!("unfit: {} cases", cases.len() + 1);
}

#[test]
fn rows_of_others_are_folded_as_messages_are() {
    let row = |millis: u64, event: Event| Row {
        received: at(millis),
        source: at(millis),
        market: Condition([0xab; 32]),
        token: "11".into(),
        event,
    };
    let change = |size: u64, best_bid: Option<u16>| Event::PriceChange {
        price: Price(A),
        size: Qty(size),
        side: BookSide::Bid,
        best_bid: best_bid.map(Price),
        best_ask: None,
    };
    let level = |price: u16, size: u64| (Price(price), Qty(size));
    let mut maker = UpdateMaker::default();
    maker.listed(Condition([0xab; 32]), TickSize(10));
    let mut played = |rows: &[Row]| {
        let mut updates = Vec::new();
        maker.frame(rows, &mut updates);
        updates
    };
    // A change without a book is dropped.
    assert_eq!(played(&[row(0, change(1, Some(A)))]), []);
    // Levels in any order, one price twice, an empty level.
    let untidy = Event::Book {
        bids: vec![level(A, 1), level(A - 100, 2), level(A, 3), level(A - 200, 0)],
        asks: vec![level(A + 200, 1), level(A + 100, 2)],
    };
    let updates = played(&[row(1, untidy), row(1, change(9, Some(A))), row(1, change(8, None))]);
    let [FeedUpdate::BookSnapshot { bids, asks, .. }, FeedUpdate::BookDelta { levels, .. }] = updates.as_slice() else {
        panic!("{updates:?}")
    };
    assert_eq!(
        (bids.as_slice(), asks.as_slice()),
        (&[level(A, 3), level(A - 100, 2)][..], &[level(A + 100, 2), level(A + 200, 1)][..])
    );
    assert_eq!(levels.len(), 2, "one update for changes of one time; the best prices were before the last change");
    // The grid that the market is listed with, and a trade of nothing.
    let tick = Event::TickSizeChange { old: None, new: TickSize(10) };
    let empty = Event::LastTradePrice {
        price: Price(A),
        size: Qty(0),
        taker_buys: false,
        fee_rate_bps: None,
        transaction_hash: None,
    };
    assert_eq!(played(&[row(2, tick), row(2, empty)]), []);
    maker.forget(&["11".into()]);
    let mut updates = Vec::new();
    maker.frame(&[row(3, change(1, None))], &mut updates);
    assert_eq!((updates, maker.dropped), (vec![], 2));
    assert_eq!(maker.refine(Condition([0xab; 32]), TickSize(10)), None);
    assert!(matches!(maker.refine(Condition([0xab; 32]), TickSize(1)), Some(FeedUpdate::TickChanged { .. })));
}
