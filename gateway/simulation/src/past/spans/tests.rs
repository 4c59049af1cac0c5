use super::*;
use crate::testing::{FIRST, Making, Shelf, VENUE, book, condition, row, token};
use archive::store::{Settings, index_path, sidecar_path};
use engine::amount::TickSize;
use std::fs;

fn venue() -> Origin {
    Origin::named(VENUE).expect("a live venue")
}

/// An hour with a book of the first token of each of these markets, at this price.
fn put(shelf: &Shelf, hour: u32, markets: &[u64], price: u16) {
    let start = u64::from(hour) * 3_600_000;
    let rows = markets.iter().map(|market| row(start, *market, 0, book(&[(price, 5)], &[(9_000, 5)])));
    shelf.hour(hour, rows.collect());
}

/// First and last hour of a market, counted from the first of the archive.
fn hours(spans: &Spans, store: &Store, market: u64) -> Option<(u32, u32)> {
    let span = spans.find(store, &condition(market))?;
    assert_eq!(span.origin, venue());
    Some((span.hours.start.0 - FIRST.0, span.hours.end.0 - 1 - FIRST.0))
}

/// After each change of the archive the remembered hours are those that a first look finds, and what is remembered of hours
/// that did not change stays.
#[test]
fn hours_are_remembered_as_they_are_found() {
    let shelf = Shelf::new();
    let (store, spans) = (&shelf.store, Spans::default());
    let root = store.root().to_owned();
    let remove = |hour: u32| {
        let path = store.hour(VENUE, Hour(FIRST.0 + hour)).expect("an hour").path.clone();
        for path in [&path, &index_path(&path), &sidecar_path(&path)] {
            fs::remove_file(path).expect("it is there");
        }
        store.refresh().expect("listed");
    };
    let pin = |hour: u32| {
        let path = store.hour(VENUE, Hour(FIRST.0 + hour)).expect("an hour").path.with_extension("pin");
        fs::write(path, "").expect("written");
        store.refresh().expect("listed");
    };
    let damage = |hour: u32| {
        let path = store.hour(VENUE, Hour(FIRST.0 + hour)).expect("an hour").path.clone();
        fs::write(index_path(&path), "damaged").expect("written");
        store.refresh().expect("listed");
    };
    // The change; the first and the last hour of the markets 1 and 2 after it, and the grid that market 1 needs.
    type Hours = Option<(u32, u32)>;
    let steps: [(&dyn Fn(), Hours, Hours, u16); 9] = [
        (&|| {}, None, None, 100),
        (&|| put(&shelf, 3, &[1, 2], 100), Some((3, 3)), Some((3, 3)), 100),
        (&|| put(&shelf, 4, &[2], 100), Some((3, 3)), Some((3, 4)), 100),
        (&|| put(&shelf, 6, &[1, 2], 115), Some((3, 6)), Some((3, 6)), 1),
        (&|| put(&shelf, 1, &[1], 110), Some((1, 6)), Some((3, 6)), 1),
        (&|| pin(3), Some((1, 6)), Some((3, 6)), 1),
        // It is made again with other rows.
        (&|| put(&shelf, 6, &[2], 200), Some((1, 3)), Some((3, 6)), 10),
        (&|| remove(1), Some((3, 3)), Some((3, 6)), 100),
        (&|| damage(3), None, Some((4, 6)), 100),
    ];
    let mut looks = 0;
    for (number, (change, first, second, tick)) in steps.iter().enumerate() {
        change();
        for (market, expected) in [(1, first), (2, second)] {
            assert_eq!(hours(&spans, store, market), *expected, "step {number}, market {market}");
            let opened = Store::open(&root, Settings::default()).expect("an archive");
            let (fresh, id) = (Spans::default(), condition(market));
            assert_eq!(fresh.find(&opened, &id), spans.find(store, &id), "step {number}, market {market}");
            let [remembered, expected] = [(&spans, &**store), (&fresh, &opened)]
                .map(|(spans, store)| spans.found(store, &id, venue()).expect("it can be read"));
            assert_eq!(remembered, expected, "step {number}, market {market}");
            looks += 1;
        }
        let found = spans.found(store, &condition(1), venue()).expect("it can be read");
        assert_eq!(found.tick, TickSize(*tick), "step {number}");
        let tokens: Vec<_> = found.tokens.into_iter().collect();
        assert_eq!(tokens, Vec::from_iter(first.map(|_| token(1, 0))), "step {number}");
    }
    println!("spans: {looks} looks");
}

/// An hour more costs a look at it, not at the hours before: those could not even be read any more.
#[test]
fn only_what_changed_is_read() {
    let shelf = Shelf::new();
    for hour in 0..5 {
        put(&shelf, hour, &[1], if hour == 2 { 115 } else { 100 });
    }
    let spans = Spans::default();
    // Without a memory of its own, so that every read goes to the disk.
    let store = Store::open(shelf.store.root(), Settings { books_bytes: 0, ..Settings::default() }).expect("opened");
    let found = |spans: &Spans| spans.found(&store, &condition(1), venue()).map_err(|error| error.to_string());
    let before = found(&spans).expect("it can be read");
    let entry = store.hour(VENUE, Hour(FIRST.0 + 2)).expect("an hour");
    let path = index_path(&entry.path);
    let (bytes, changed) = (fs::read(&path).expect("a file"), fs::metadata(&path).expect("a file"));
    let write = |bytes: &[u8]| {
        let file = fs::File::options().write(true).open(&path).expect("a file");
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).expect("written");
        file.set_modified(changed.modified().expect("a time")).expect("set");
    };
    // Damaged in place, with the size and the time that it had: the files seem to be the same.
    write(&vec![0; bytes.len()]);
    put(&shelf, 5, &[1], 200);
    store.refresh().expect("listed");
    let after = found(&spans).expect("it is not read again");
    assert_eq!((before.tick, after.tick), (TickSize(1), TickSize(1)));
    assert_eq!(hours(&spans, &store, 1), Some((0, 5)));
    let fresh = Spans::default();
    assert!(found(&fresh).is_ok_and(|found| found.tick == TickSize(100)), "the damaged hour shows nothing");
}

/// A market that no hour has is looked for again after each change.
#[test]
fn an_unknown_market_costs_no_memory() {
    let shelf = Shelf::new();
    shelf.make(Making {
        hour: 0,
        rows: vec![row(0, 1, 0, book(&[(100, 5)], &[]))],
        gaps: Vec::new(),
        is_partial: true,
    });
    let spans = Spans::default();
    for market in 2..100 {
        assert_eq!(hours(&spans, &shelf.store, market), None);
    }
    let looks = |spans: &Spans| spans.remembered.lock().looks;
    assert_eq!(looks(&spans), 98 * MARKET_LOOKS);
    assert_eq!(hours(&spans, &shelf.store, 1), Some((0, 0)));
    assert_eq!(looks(&spans), 99 * MARKET_LOOKS + 1);
    put(&shelf, 1, &[2], 100);
    assert_eq!(hours(&spans, &shelf.store, 2), Some((1, 1)));
    assert_eq!(looks(&spans), 99 * MARKET_LOOKS + 3);
    // Above the bound all are forgotten, and found again.
    spans.remembered.lock().looks = LOOKS_MAX;
    put(&shelf, 2, &[1], 100);
    assert_eq!(hours(&spans, &shelf.store, 1), Some((0, 2)));
    assert_eq!(looks(&spans), 0);
    assert_eq!(hours(&spans, &shelf.store, 2), Some((1, 1)));
}
