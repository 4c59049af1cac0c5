use super::*;
use crate::archive::import::Import;
use crate::archive::import::foreign::{Row, id, write};
use crate::archive::testing::{built, options};
use crate::suite::Witness;
use crate::tests::both_venues;
use engine::time::HOUR;
use std::fs;

const WALL: Timestamp = Timestamp(1_900_000_000_000_000);
const START: u64 = 1_788_001_170_000;

/// What a replay shows: a digest after each of some times.
fn shown(root: &Path, settings: &Settings) -> Vec<String> {
    let mut replay = open(root, Speed::Max, settings, &Names::default()).expect("an archive");
    let mut witness = Witness::default();
    [25, 30, 130, 29_930, 30_030, 59_999, 60_002, 61_000, 70_000]
        .map(|millis| {
            witness.run(&mut replay, WALL, Timestamp::from_millis(START + millis), HOUR);
            format!("{:?}", witness.digest())
        })
        .into()
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

/// Replays without kept orders, with them, and with damaged ones show the same.
#[test]
fn kept_orders_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tape, root) = (folder.path().join("tape.ndjson"), folder.path().join("archive"));
    fs::write(&tape, both_venues(START)).expect("a tape");
    let made = built(&tape, &options(&root));
    let settings =
        |name: &str| Settings { cache: folder.path().join(name), memory_bytes: 64 << 20, ..Settings::default() };
    // Nothing is kept where nothing fits.
    let expected = shown(&root, &Settings { cache_bytes: 0, ..settings("none") });
    assert_eq!(names_in(&folder.path().join("none")), Vec::<String>::new());
    let kept = settings("cache");
    assert_eq!(shown(&root, &kept), expected, "sorted and kept");
    let names = names_in(&kept.cache);
    assert_eq!(names.len(), made.len(), "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("time-") && name.ends_with(".rows")), "{names:?}");
    // The rows of the Parquet files are not looked at again: what is in them is lost, but for their length.
    let originals: Vec<Vec<u8>> = made.iter().map(|hour| fs::read(&hour.path).expect("an hour")).collect();
    for hour in &made {
        fs::write(&hour.path, vec![0; hour.bytes as usize]).expect("written");
    }
    assert_eq!(shown(&root, &kept), expected, "kept");
    for (hour, bytes) in made.iter().zip(&originals) {
        fs::write(&hour.path, bytes).expect("written");
    }
    let mut cases = 3;
    // Damaged ones are made again.
    for (number, name) in names.iter().enumerate() {
        let path = kept.cache.join(name);
        let good = fs::read(&path).expect("a file");
        for damage in 0..4 {
            let mut bytes = good.clone();
            match damage {
                0 => bytes.clear(),
                1 => bytes.truncate(good.len() / 2),
                2 => bytes[good.len() / 2] ^= 0x55,
                _ => bytes.push(0),
            }
            fs::write(&path, bytes).expect("written");
            assert_eq!(shown(&root, &kept), expected, "file {number}, damage {damage}");
            assert_eq!(fs::read(&path).expect("a file"), good, "file {number}, damage {damage}");
            cases += 1;
        }
    }
    // What a build kept is used by a replay, also from the folder of the recording itself.
    let stop = Stop::new();
    let own = Settings { cache: root.join("cache"), ..settings("other") };
    for hour in &made {
        assert_eq!(fill_cache(&hour.path, &own, &stop), Ok(true));
        assert_eq!(fill_cache(&hour.path, &own, &stop), Ok(false));
    }
    assert_eq!(names_in(&own.cache), names);
    assert_eq!(shown(&root, &settings("empty")), expected);
    assert_eq!(names_in(&folder.path().join("empty")), Vec::<String>::new());
    // A cache that cannot be written.
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    fs::remove_dir_all(&own.cache).expect("removed");
    assert_eq!(shown(&root, &Settings { cache: file.join("cache"), ..settings("x") }), expected);
    // One market of all that are kept.
    let ids = folder.path().join("ids.txt");
    fs::write(&ids, "0xaa00000000000000000000000000000000000000000000000000000000000001").expect("a file");
    let of_one = |name: &str| Settings { markets: ids.clone(), ..settings(name) };
    let alone = shown(&root, &of_one("empty"));
    assert!(alone != expected && names_in(&folder.path().join("empty")).is_empty(), "only whole hours are kept");
    assert_eq!(shown(&root, &of_one("cache")), alone);
    println!("kept orders: {} cases", cases + 2 * made.len() + 4);
}

/// The oldest are removed beyond the bound; an hour without a sidecar is not kept.
#[test]
fn kept_orders_are_bounded() {
    const HOURS: i64 = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let (files, root, cache) =
        (folder.path().join("files"), folder.path().join("archive"), folder.path().join("cache"));
    fs::create_dir(&files).expect("a folder");
    for hour in 0..HOURS {
        let begins = (496_224 + hour) * 3_600_000;
        let rows: Vec<Row> = (0..50)
            .map(|number| Row {
                received: begins + number * 1_000,
                market: 1,
                token: "11",
                levels: Some([r#"[["0.3","5"]]"#, r#"[["0.5","7"]]"#]),
                price: 0,
                size: 0,
            })
            .collect();
        write(&files.join(format!("polymarket_orderbook_2026-08-11T{hour:02}.parquet")), &rows, None);
    }
    let settings = Settings { cache: cache.clone(), memory_bytes: 64 << 20, ..Settings::default() };
    let play = |root: &Path, settings: &Settings| {
        let mut replay = open(root, Speed::Max, settings, &Names::default()).expect("an archive");
        let mut witness = Witness::default();
        witness.run(&mut replay, WALL, Timestamp::from_millis(1_786_406_400_000).plus(10 * HOUR), HOUR);
        assert!(witness.listings.contains_key(&id(1)));
        witness.digest()
    };
    let expected = play(&files, &settings);
    assert_eq!(names_in(&cache), Vec::<String>::new(), "without sidecars");
    let import = Import { options: options(&root), is_linked: false, catalogue: None, settlements: None };
    let imported = import.run(&files, &Names::default(), &Stop::new(), &mut |_| {});
    assert!(imported.refused.is_empty(), "{imported:?}");
    drop(import);
    assert_eq!(play(&root, &settings), expected);
    let all = names_in(&cache);
    assert_eq!(all.len(), HOURS as usize);
    let bytes = |name: &String| fs::metadata(cache.join(name)).expect("a file").len();
    let most = all.iter().map(bytes).max().expect("files");
    fs::remove_dir_all(&cache).expect("removed");
    fs::create_dir(&cache).expect("a folder");
    fs::write(cache.join("x.parquet.part"), vec![0; 1_000]).expect("a part of a download");
    let settings = Settings { cache_bytes: 2 * most, ..settings };
    assert_eq!(play(&root, &settings), expected);
    let left = names_in(&cache);
    assert_eq!(left.iter().filter(|name| all.contains(name)).count(), 2, "{left:?}");
    assert!(left.contains(&"x.parquet.part".to_owned()), "{left:?}");
    println!("bounds of kept orders: {} hours", HOURS);
}

/// Without room nothing is kept; a replay shows the same, and a build says so.
#[test]
fn nothing_is_kept_without_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tape, root) = (folder.path().join("tape.ndjson"), folder.path().join("archive"));
    fs::write(&tape, both_venues(START)).expect("a tape");
    let made = built(&tape, &options(&root));
    let settings = |name: &str, free_bytes_min: u64| Settings {
        cache: folder.path().join(name),
        memory_bytes: 64 << 20,
        free_bytes_min,
        ..Settings::default()
    };
    let expected = shown(&root, &settings("kept", 0));
    let full = settings("full", u64::MAX);
    assert_eq!(shown(&root, &full), expected);
    assert_eq!(names_in(&full.cache), Vec::<String>::new());
    let error = fill_cache(&made[0].path, &full, &Stop::new()).expect_err("no room");
    assert!(error.contains("free bytes, and no hour is made below"), "{error}");
    assert_eq!(fill_cache(&made[0].path, &settings("other", 0), &Stop::new()), Ok(true));
    println!("replays and room: 3 cases");
}

/// A replay up to an hour uses nothing that was received later: no line about a market, and no result.
#[test]
fn nothing_after_the_last_hour_is_used() {
    use engine::time::MINUTE;
    const BEGIN: u64 = 1_788_001_200_000;
    let folder = tempfile::tempdir().expect("a folder");
    let (tape, root) = (folder.path().join("tape.ndjson"), folder.path().join("archive"));
    let listed = |market: u64, end: &str| {
        format!(
            r#"[{{"id":"{market}","conditionId":"0x{market:064x}","slug":"s{market}","clobTokenIds":"[\"{market}1\",\"{market}2\"]","active":true,"closed":false,"acceptingOrders":true,"endDate":"{end}"}}]"#
        )
    };
    let line = |minute: u64, rest: String| format!(r#"{{"r":{},"v":"polymarket",{rest}}}"#, BEGIN + minute * 60_000);
    let answer = |minute: u64, body: String| line(minute, format!(r#""u":"/markets","s":200,"b":{body}"#));
    let book = |minute: u64, token: u64| {
        let levels = r#"[{"price":"0.3","size":"5"}]"#;
        line(
            minute,
            format!(
                r#""c":"a","m":{{"event_type":"book","asset_id":"{token}","timestamp":"{}","bids":{levels},"asks":[]}}"#,
                BEGIN + minute * 60_000
            ),
        )
    };
    let (first, moved) = ("2026-11-03T00:00:00Z", "2026-11-05T00:00:00Z");
    let won = r#"[{"id":"1","conditionId":"0x0000000000000000000000000000000000000000000000000000000000000001","slug":"s1","clobTokenIds":"[\"11\",\"12\"]","active":true,"closed":true,"outcomePrices":"[\"0\",\"1\"]","umaResolutionStatus":"resolved"}]"#;
    let lines = [
        answer(0, listed(1, first)),
        book(1, 11),
        book(59, 11),
        // In the hour after it: a moved end, another market, a result.
        answer(60, listed(1, moved)),
        answer(61, listed(2, first)),
        book(62, 21),
        answer(70, won.to_owned()),
    ];
    fs::write(&tape, lines.join("\n")).expect("a tape");
    built(&tape, &options(&root));
    let venue = root.join("polymarket");
    let given = super::super::settled::Settlement {
        resolution: engine::market::terms::Resolution::Split,
        at: Timestamp::from_millis(BEGIN + 65 * 60_000),
    };
    settled::save(&venue, &[(Condition::parse(&format!("0x{:064x}", 1)).expect("an id"), given)].into())
        .expect("saved");
    let hour = Timestamp::from_millis(BEGIN).hour();
    // The last hour; markets; whether an end moves and there is a result; the minute of the last line.
    let cases = [(Some(hour), 1, false, 59), (Some(hour + 1), 2, true, 70), (None, 2, true, 70)];
    for (to, markets, goes_on, last) in cases {
        let settings = Settings { cache: root.join("cache"), memory_bytes: 64 << 20, to, ..Settings::default() };
        let mut replay = open(&root, Speed::Max, &settings, &Names::default()).expect("an archive");
        let mut witness = Witness::default();
        let at = |minute: u64| Timestamp::from_millis(BEGIN + minute * 60_000);
        witness.run(&mut replay, WALL, at(last), HOUR);
        assert_eq!(crate::Venue::next_at(&replay), None, "{to:?}: nothing is left");
        witness.run(&mut replay, WALL, at(600), 10 * MINUTE);
        assert_eq!(witness.listings.len(), markets, "{to:?}");
        assert_eq!(witness.counts.contains_key("end"), goes_on, "{to:?}");
        assert_eq!(!witness.resolutions.is_empty(), goes_on, "{to:?}");
    }
    println!("last hours: {} cases", cases.len());
}

/// A moment with very many rows comes in several lines, which play the same.
#[test]
fn a_long_moment_is_cut() {
    use crate::archive::seal::Facts;
    use archive::row::{Event, Row};
    use engine::amount::{Price, Qty};
    use engine::book::BookSide;
    const MARKET: Condition = Condition([7; 32]);
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("archive");
    let at = Timestamp::from_millis(1_786_406_400_000);
    let levels = |count: u16| (0..count).map(|number| (Price(1_000 + number), Qty(5))).collect::<Vec<_>>();
    let row = |millis: u64, token: &str, event: Event| {
        let received = Timestamp::from_millis(at.millis() + millis);
        Row { received, source: received, market: MARKET, token: token.into(), event }
    };
    let mut rows = Vec::new();
    for token in ["11", "12"] {
        for number in 0..30_u16 {
            rows.push(row(1, token, Event::Book { bids: levels(3_000 + number), asks: Vec::new() }));
        }
        for number in 0..40_000_u32 {
            let price = Price(1_000 + (number % 900) as u16);
            let best_bid = Some(Price(4_000));
            let size = Qty(u64::from(number % 7));
            let event = Event::PriceChange { price, size, side: BookSide::Bid, best_bid, best_ask: None };
            rows.push(row(1, token, event));
        }
        rows.push(row(2, token, Event::Book { bids: levels(2), asks: Vec::new() }));
    }
    let options = options(&root);
    let facts = Facts::of(Origin::named("polymarket").expect("a venue"), at.hour(), "raw");
    let sealed = options.place.seal_rows(&facts, rows.iter().cloned().map(Ok), &Stop::new()).expect("an hour");
    assert_eq!(sealed.rows, rows.len() as u64);
    // Ties of time stay in the order of the file.
    rows.sort_by_key(|row| row.received);
    let mut expected = Vec::new();
    let mut maker = UpdateMaker::default();
    rows.chunk_by(|one, other| one.received == other.received).for_each(|rows| maker.frame(rows, &mut expected));

    let settings = Settings { cache: folder.path().join("cache"), memory_bytes: 64 << 20, ..Settings::default() };
    let mut hours = Hours::open(&root, &settings, &Names::default(), &Arc::default()).expect("an archive");
    hours.begin(at, &mut Vec::new());
    let (mut found, mut lines) = (Vec::new(), Vec::new());
    while let Some(line_at) = hours.line_at() {
        let mut updates = Vec::new();
        hours.step(line_at, &mut updates);
        let weight = |update: &FeedUpdate| match update {
            FeedUpdate::BookSnapshot { bids, asks, .. } => 1 + bids.len() + asks.len(),
            FeedUpdate::BookDelta { levels, .. } => levels.len(),
            _ => 0,
        };
        lines.push((line_at.millis() - at.millis(), updates.iter().map(weight).sum::<usize>()));
        found.extend(updates);
    }
    assert!(lines.len() > 4 && lines.iter().all(|(_, weight)| *weight <= 65_536), "{lines:?}");
    assert_eq!(lines.iter().filter(|(millis, _)| *millis == 2).count(), 1, "{lines:?}");
    // A cut within the changes of a token only divides them.
    let joined = |updates: Vec<FeedUpdate>| {
        let mut joined: Vec<FeedUpdate> = Vec::new();
        for update in updates {
            if let (
                Some(FeedUpdate::BookDelta { token, levels, venue_ts }),
                FeedUpdate::BookDelta { token: of, levels: more, venue_ts: then },
            ) = (joined.last_mut(), &update)
                && token == of
                && venue_ts == then
            {
                levels.extend(more.iter().copied());
                continue;
            }
            joined.push(update);
        }
        joined
    };
    assert!(joined(found) == joined(expected));
    println!("a cut moment: {} lines", lines.len());
}
