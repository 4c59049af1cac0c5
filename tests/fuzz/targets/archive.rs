//! Files of the archive: Parquet hours of any writer, sidecars, time indexes, and how far a recording was made into
//! hours.

use ::archive::index::{Builder, NoCarry, TimeIndex, resummed};
use ::archive::read::HourFile;
use ::archive::row::{Condition, Event, Row, SIZE_MAX};
use ::archive::sidecar::{Gap, Sidecar};
use ::archive::store::{Settings, Store};
use ::archive::write::HourWriter;
use engine::amount::{Price, Qty, TickSize};
use engine::backtest::Hour;
use engine::book::BookSide;
use engine::time::Timestamp;
use host::thread::Stop;
use std::fs;
use venue::archive::build::Options;
use venue::archive::hourly;
use venue::archive::room::Room;
use venue::archive::seal::Place;
use venue::category::Names;

/// The hour of the corpus.
const HOUR: u32 = 497_465;
/// Rows that are read of an input: few bytes can state many equal rows.
const ROWS_MAX: usize = 20_000;

/// Rows are in range.
pub fn parquet(bytes: &[u8]) {
    let Ok(file) = HourFile::of_bytes("input", bytes.to_vec()) else { return };
    let is_price = |price: Price| (Price::LOWEST..=Price::HIGHEST).contains(&price);
    let mut last = None;
    for row in file.all_rows().take(ROWS_MAX) {
        let Ok((number, Row { token, event, .. })) = row else { return };
        assert!(last < Some(number) && number < file.row_count());
        last = Some(number);
        assert!(!token.is_empty() && token.bytes().all(|digit| digit.is_ascii_digit()));
        match event {
            Event::Book { bids, asks } => {
                assert!(bids.iter().chain(&asks).all(|(price, size)| is_price(*price) && *size <= SIZE_MAX));
            }
            Event::PriceChange { price, size, .. } | Event::LastTradePrice { price, size, .. } => {
                assert!(is_price(price) && size <= SIZE_MAX);
            }
            Event::TickSizeChange { new, .. } => assert!((1..=10_000).contains(&new.0)),
        }
    }
}

/// What is read survives a round trip.
pub fn sidecar(bytes: &[u8]) {
    let Ok(read) = Sidecar::of_bytes(bytes) else { return };
    let mut again = read.clone();
    let written = again.to_bytes();
    assert_eq!(Sidecar::of_bytes(&written), Ok(again));
    assert!(!read.hour.is_empty());
}

/// As it is, and with right checksums.
pub fn index(bytes: &[u8]) {
    for bytes in [Some(bytes.to_vec()), resummed(bytes)].into_iter().flatten() {
        let Ok(index) = TimeIndex::of_bytes("input", bytes) else { continue };
        let mut end = 0;
        for token in index.tokens() {
            assert!(token.rows.start >= end && token.rows.end <= index.row_count());
            end = token.rows.end;
            let found = index.token(&token.market, &token.token);
            assert_eq!(found.as_ref(), Some(&token));
            for anchor in index.anchors(&token).unwrap_or_default() {
                if let Ok(folded) = index.state(&anchor) {
                    let view = folded.view();
                    assert!(view.bids.is_sorted_by(|one, next| one.0 > next.0));
                    assert!(view.asks.is_sorted_by(|one, next| one.0 < next.0));
                }
            }
        }
    }
}

/// Everything in it can be restored.
pub fn recording_state(bytes: &[u8]) {
    let _ = hourly::restored(bytes);
}

/// The state after two hours of a recording with a gap, in the folder of a new archive.
fn state() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (recording, root) = (folder.path().join("recording"), folder.path().join("archive"));
    fs::create_dir(&recording).expect("a folder");
    for hour in [HOUR, HOUR + 1] {
        let begin = Timestamp::of_hour(hour).millis();
        let book = |at: u64| {
            let levels = r#""bids":[{"price":"0.4","size":"3"}],"asks":[{"price":"0.5","size":"3"}]"#;
            format!(
                r#"{{"r":{at},"v":"polymarket","c":"1","m":[{{"event_type":"book","asset_id":"1001","market":"0x{:064x}","timestamp":"{at}","hash":"h",{levels}}}]}}"#,
                1
            )
        };
        let listed = format!(
            r#"{{"r":{begin},"v":"polymarket","u":"/markets","s":200,"b":[{{"id":"1","conditionId":"0x{:064x}","slug":"rain","question":"Rain?","outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"1001\",\"1002\"]","orderPriceMinTickSize":0.01,"active":true,"acceptingOrders":true}}]}}"#,
            1
        );
        let gap = format!(r#"{{"r":{},"v":"polymarket","c":"1","gap":"lost"}}"#, begin + 2_000);
        let lines = [listed, book(begin + 1_000), gap, book(begin + 3_000), String::new()].join("\n");
        fs::write(recording.join(format!("tape-{}.ndjson", Hour(hour))), lines).expect("written");
    }
    let store = Store::open(&root, Settings::default()).expect("an archive");
    let place = Place::of(store, Room::of(0), 128 << 20, Timestamp::of_hour(HOUR + 3)).expect("the lock");
    let options = Options { place, markets: None, from: None, to: None, threads: 1 };
    let names = Names::default();
    hourly::make_due(&recording, Hour(HOUR + 2), &options, &names, &Stop::new(), &mut |_| {}).expect("hours");
    hourly::state_bytes(&root).expect("a state")
}

fn rows() -> Vec<Row> {
    let start = Timestamp::of_hour(HOUR);
    let mut rows = Vec::new();
    for market in 0..2 {
        for token in ["1", "77777777777777777777777777777777777777777777777777777777777777777777777"] {
            for number in 0..8u16 {
                let (price, size) = (Price(4_000 + number), Qty(1_000_000 * u64::from(number + 1)));
                let event = match number {
                    0 => Event::Book {
                        bids: vec![(Price(3_900), size), (price, size)],
                        asks: vec![(Price(5_000), size)],
                    },
                    3 => Event::LastTradePrice {
                        price,
                        size,
                        taker_buys: market == 0,
                        fee_rate_bps: Some(number),
                        transaction_hash: Some(format!("0x{number:064x}").into()),
                    },
                    5 => Event::TickSizeChange { old: Some(TickSize(100)), new: TickSize(10) },
                    _ => Event::PriceChange {
                        price,
                        size,
                        side: if number % 2 == 0 { BookSide::Bid } else { BookSide::Ask },
                        best_bid: Some(price),
                        best_ask: (number > 6).then_some(Price(4_500)),
                    },
                };
                let received = start.plus(u64::from(number) * 1_000_000);
                rows.push(Row { received, source: start, market: Condition([market; 32]), token: token.into(), event });
            }
        }
    }
    rows
}

/// Good files for the corpora: target, name, bytes.
pub fn sound_files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let (rows, hour) = (rows(), folder.path().join("hour.parquet"));
    let mut writer = HourWriter::create(&hour, Some([1; 32])).expect("a writer");
    let index = folder.path().join("hour.idx");
    let mut builder = Builder::create(&index, HOUR, &NoCarry).expect("a builder");
    for (number, row) in rows.iter().enumerate() {
        writer.push(row).expect("pushed");
        builder.push(number as u64, number == 20, row).expect("pushed");
    }
    let counts = writer.counts();
    let written = writer.finish().expect("written");
    builder.finish(written.sha256, written.rows).expect("written");
    let mut sidecar = Sidecar {
        hour: "2026-09-30T17".to_owned(),
        venue: "polymarket".to_owned(),
        verdict: "valid".to_owned(),
        version: 1,
        gaps: vec![Gap { tokens: Some(vec!["1".to_owned()]), ..Gap::default() }],
        ..Sidecar::default()
    };
    sidecar.set_rows(counts);
    vec![
        ("archive_index", "hour", fs::read(&index).expect("read")),
        ("archive_parquet", "hour", fs::read(&hour).expect("read")),
        ("archive_sidecar", "hour", sidecar.to_bytes()),
        ("recording_state", "two_hours", state()),
    ]
}
