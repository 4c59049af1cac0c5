use super::*;
use crate::run::{Progress, run};
use crate::testing::{Shelf, condition, rising, spec};
use engine::rules::Rules;
use engine::time::DAY;
use serde_json::json;

const JOB: [u8; 16] = [0x1d; 16];
const MEMORY: u64 = 32 << 20;

/// A finished run with a few trades, and a folder for its rows.
fn finished() -> (Shelf, Plan, Report, Results) {
    let shelf = Shelf::new();
    rising(&shelf, 1, 3);
    let plan = Plan::of(&spec(&[1], 3, &json!({})), &shelf.past(), &|| true).expect("a plan");
    let report = run(&plan, &shelf.store, &Rules::default(), MEMORY, &Progress::default(), &|| true).expect("a report");
    let results = Results::new(shelf.folder.path().join("jobs"));
    (shelf, plan, report, results)
}

/// A page that names its result.
fn page_of(report: &Report) -> String {
    format!("<p>{}</p>", hex(&report.hash))
}

#[test]
fn a_page_is_that_of_its_result() {
    let (shelf, plan, report, results) = finished();
    let hash = &report.hash;
    let page = page_of(&report);
    assert_eq!(results.page(&JOB, hash), None, "nothing is kept yet");
    results.keep(&JOB, &plan, &report, &page).expect("kept");
    assert_eq!(results.page(&JOB, hash), Some(page.clone().into_bytes()));
    let mut other = *hash;
    other[0] ^= 1;
    assert_eq!(results.page(&JOB, &other), None, "of another result");
    let path = shelf.folder.path().join("jobs").join(uuid_text(&JOB)).join(PAGE);
    let long = page.clone() + &" ".repeat(report::BYTES_MAX);
    for (bytes, what) in [(&page.as_bytes()[..20], "cut"), (&[0xff, 0xfe], "not a text"), (long.as_bytes(), "too long")]
    {
        fs::write(&path, bytes).expect("written");
        assert_eq!(results.page(&JOB, hash), None, "{what}");
    }
    println!("pages: 6 cases");
}

#[test]
fn rows_are_read_back_by_page() {
    let (_shelf, plan, report, results) = finished();
    let conditions = [condition(1).to_string()];
    let hash = &report.hash;
    assert_eq!(results.points(&JOB, hash, (0, 10)), None, "nothing is kept yet");
    results.keep(&JOB, &plan, &report, &page_of(&report)).expect("kept");
    assert!(report.trades.len() >= 2 && report.points.len() >= 3, "{report:?}");
    let mut cases = 0;
    for from in 0..report.points.len() + 2 {
        for limit in 0..report.points.len() + 2 {
            let points: Vec<_> = report.points.iter().copied().skip(from).take(limit).collect();
            assert_eq!(results.points(&JOB, hash, (from, limit)), Some(points), "{from} {limit}");
            let trades: Vec<_> = report.trades.iter().copied().skip(from).take(limit).collect();
            let found = results.trades(&JOB, hash, &conditions, (from, limit)).expect("trades");
            assert!(found.iter().all(|row| &*row.outcome == "Token A"), "{found:?}");
            assert_eq!(found.into_iter().map(|row| row.trade).collect::<Vec<_>>(), trades, "{from} {limit}");
            cases += 2;
        }
    }
    for rows in Rows::ALL {
        let file = results.file(&JOB, hash, rows).expect("a file");
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
        cases += 1;
    }
    // Writing again changes nothing.
    results.keep(&JOB, &plan, &report, &page_of(&report)).expect("kept");
    assert_eq!(results.points(&JOB, hash, (0, 10)).map(|rows| rows.len()), Some(report.points.len()));
    println!("rows: {cases} cases");
}

#[test]
fn rows_of_another_result_and_damaged_ones_count_as_absent() {
    let (shelf, plan, report, results) = finished();
    results.keep(&JOB, &plan, &report, &page_of(&report)).expect("kept");
    let (hash, conditions) = (&report.hash, [condition(1).to_string()]);
    let mut other = *hash;
    other[31] ^= 1;
    assert_eq!(results.points(&JOB, &other, (0, 9)), None);
    assert_eq!(results.trades(&JOB, &other, &conditions, (0, 9)), None);
    assert_eq!(results.file(&JOB, &other, Rows::Trades), None);
    assert_eq!(results.trades(&JOB, hash, &["0x2".to_owned()], (0, 9)), None, "of another market");
    assert_eq!(results.points(&[9; 16], hash, (0, 9)), None, "of another back-test");
    let path = shelf.folder.path().join("jobs").join(uuid_text(&JOB)).join("equity.parquet");
    let whole = fs::read(&path).expect("bytes");
    let mut cases = 6;
    // Cut anywhere: the footer is gone.
    for len in (0..whole.len()).step_by(7) {
        fs::write(&path, &whole[..len]).expect("written");
        assert_eq!(results.points(&JOB, hash, (0, 9)), None, "{len} bytes");
        cases += 1;
    }
    // The file of other rows under this name.
    fs::copy(path.with_file_name("trades.parquet"), &path).expect("copied");
    assert_eq!(results.points(&JOB, hash, (0, 9)), None);
    fs::write(&path, vec![0; BYTES_MAX as usize + 1]).expect("written");
    assert_eq!(results.points(&JOB, hash, (0, 9)), None);
    fs::write(&path, &whole).expect("written");
    assert!(results.points(&JOB, hash, (0, 9)).is_some());
    println!("absent rows: {} cases", cases + 2);
}

#[test]
fn old_rows_and_halves_are_swept() {
    let (shelf, plan, report, results) = finished();
    results.sweep(Timestamp(0)).expect("there is no folder");
    results.keep(&JOB, &plan, &report, &page_of(&report)).expect("kept");
    results.keep(&[2; 16], &plan, &report, &page_of(&report)).expect("kept");
    let folder = shelf.folder.path().join("jobs");
    let half = folder.join(uuid_text(&JOB)).join("trades.parquet.making");
    fs::write(&half, "half").expect("written");
    // Folders of others stay.
    fs::create_dir(folder.join("notes")).expect("a folder");
    let modified = fs::metadata(folder.join(uuid_text(&JOB))).expect("a folder").modified().expect("a time");
    let written = Timestamp(modified.duration_since(UNIX_EPOCH).expect("after 1970").as_micros() as u64);
    results.sweep(written.plus(BACKTESTS_KEPT_US)).expect("swept");
    assert!(!half.exists() && results.points(&JOB, &report.hash, (0, 1)).is_some(), "not older than that");
    results.sweep(written.plus(BACKTESTS_KEPT_US + DAY)).expect("swept");
    assert_eq!(results.points(&JOB, &report.hash, (0, 1)), None);
    let left: Vec<_> = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("one").file_name()).collect();
    assert_eq!(left, ["notes"]);
    results.remove(&JOB);
    println!("sweeps: 3 cases");
}
