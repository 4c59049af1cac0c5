//! An hour of a venue, generated in the recorded shape of Polymarket: each frame changes one level of both tokens of a
//! market, and half of the frames are of one market.

use crate::chance::Chance;
use crate::fold::token;
use archive::store::{Settings, Store};
use engine::time::{HOUR, MILLISECOND, Timestamp};
use flate2::Compression;
use flate2::write::GzEncoder;
use host::thread::Stop;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use venue::archive::build::{self, Options};
use venue::archive::room::Room;
use venue::archive::seal::Place;
use venue::category::Names;

pub const MARKETS: usize = 64;
/// 2026-09-30T17 in hours since 1970.
pub const AT_HOUR: u32 = 497_441;

pub fn condition(market: usize) -> String {
    format!("0x{:064x}", market + 1)
}

pub fn tokens(market: usize) -> [String; 2] {
    [token(2 * market), token(2 * market + 1)]
}

/// Writes the hour as lines; also packed, if a path is given.
pub fn write_tape(tape: &Path, packed: Option<&Path>, frames: usize) {
    let mut chance = Chance::seeded(24);
    let begins = Timestamp::of_hour(AT_HOUR).millis();
    let mut plain = BufWriter::new(File::create(tape).expect("a tape"));
    let zip = |path| GzEncoder::new(BufWriter::new(File::create(path).expect("a tape")), Compression::default());
    let mut zipped = packed.map(zip);
    let mut write = |line: String| {
        writeln!(plain, "{line}").expect("a line");
        if let Some(zipped) = &mut zipped {
            writeln!(zipped, "{line}").expect("a line");
        }
    };
    let listed: Vec<String> = (0..MARKETS)
        .map(|market| {
            let [yes, no] = tokens(market);
            format!(
                r#"{{"id":"{market}","conditionId":"{}","slug":"m{market}","question":"q","outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"{yes}\",\"{no}\"]","active":true,"closed":false,"acceptingOrders":true,"orderPriceMinTickSize":0.01}}"#,
                condition(market)
            )
        })
        .collect();
    write(format!(r#"{{"r":{begins},"v":"polymarket","u":"/markets","s":200,"b":[{}]}}"#, listed.join(",")));
    for market in 0..MARKETS {
        let side = |from: u64, to: u64| -> String {
            let level = |cents| format!(r#"{{"price":"0.{cents:02}","size":"{}"}}"#, 10 + cents);
            (from..to).map(level).collect::<Vec<_>>().join(",")
        };
        for token in tokens(market) {
            write(format!(
                r#"{{"r":{begins},"v":"polymarket","c":"c","m":{{"event_type":"book","asset_id":"{token}","market":"{}","timestamp":"{begins}","hash":"{market:x}","bids":[{}],"asks":[{}]}}}}"#,
                condition(market),
                side(1, 40),
                side(60, 99)
            ));
        }
    }
    for number in 0..frames {
        let at = begins + after_begin(number as u64, frames as u64);
        // Half of the messages are of one market.
        let market = if chance.below(2) == 0 { 0 } else { chance.below(MARKETS as u64) as usize };
        let (cents, shares) = (1 + chance.below(39), chance.below(900));
        let one = |token: &str, cents: u64, side: &str| {
            format!(
                r#"{{"asset_id":"{token}","price":"0.{cents:02}","size":"{shares}","side":"{side}","hash":"{number:040x}","best_bid":"0.39","best_ask":"0.6"}}"#
            )
        };
        let [yes, no] = tokens(market);
        write(format!(
            r#"{{"r":{at},"v":"polymarket","c":"c","m":{{"event_type":"price_change","market":"{}","timestamp":"{at}","price_changes":[{},{}]}}}}"#,
            condition(market),
            one(&yes, cents, "BUY"),
            one(&no, 100 - cents, "SELL")
        ));
    }
    plain.flush().expect("a tape");
    if let Some(zipped) = zipped {
        zipped.finish().and_then(|mut file| file.flush()).expect("a tape");
    }
}

/// When a frame comes, in milliseconds after the begin of the hour. More frames than milliseconds share them.
fn after_begin(number: u64, frames: u64) -> u64 {
    let millis = HOUR / MILLISECOND;
    match millis / (frames + 1) {
        0 => (number + 1) * millis / (frames + 1),
        step => (number + 1) * step,
    }
}

/// How an archive in this folder is built.
pub fn options(root: &Path, memory_bytes: u64) -> Options {
    let store = Store::open(root, Settings::default()).expect("an archive");
    let place = Place::of(store, Room::of(0), memory_bytes, Timestamp::from_secs(1_900_000_000)).expect("the lock");
    Options { place, markets: None, from: None, to: None, threads: 1 }
}

/// Builds the hour; returns its Parquet file.
pub fn built(tape: &Path, root: &Path, memory_bytes: u64) -> PathBuf {
    let mut made = Vec::new();
    let (names, stop) = (Names::default(), Stop::new());
    build::from_lines(tape, &options(root, memory_bytes), &names, &stop, &mut |hour| made.push(hour.path))
        .expect("an hour");
    assert_eq!(made.len(), 1, "the lines are of one hour");
    made.remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_in_the_hour() {
        let cases = [1, 2_000, 250_000, 3_599_998, 3_600_000, 37_500_000];
        for frames in cases {
            let [first, last] = [0, frames - 1].map(|number| after_begin(number, frames));
            assert!(first <= last && last < HOUR / MILLISECOND, "{frames}: {first} to {last}");
        }
        println!("frames of an hour: {} cases", cases.len());
    }
}
