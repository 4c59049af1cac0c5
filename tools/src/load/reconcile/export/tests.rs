use super::*;
use crate::load::model::{ModelWriter, OrderName, Row, Sort};

const HEADER: &str = "trade_id,order_id,client_order_id,market_question,token_id,side,quantity,notional,fee\r\n";
const USER: u64 = 3;

fn row(number: u32, what: What, order: u64, filled: i64) -> Row {
    let name = OrderName { run: 0, lane: 0, number };
    let row = Row::new(USER, name, what, (Sort::Buy, 0));
    let of_fills = if what == What::Placed { (10_000_000, filled, filled / 2, filled / 100) } else { (0, 0, 0, 0) };
    let (quantity, filled, notional, fee) = of_fills;
    Row { order, quantity, filled, notional, fee, ..row }
}

/// Orders 0 to 4: filled, filled by half, resting, without an answer, killed.
fn model(folder: &std::path::Path) -> Model {
    let mut writer = ModelWriter::begin(folder, "load-a", "", vec!["71".to_owned()]).expect("room");
    let rows = [
        row(0, What::Placed, 10, 10_000_000),
        row(1, What::Placed, 11, 5_000_000),
        row(2, What::Placed, 12, 0),
        row(3, What::Unknown, 0, 0),
        row(4, What::Killed, 0, 0),
    ];
    rows.iter().for_each(|row| writer.add(row));
    writer.end().expect("room");
    Model::open(folder).expect("it was written")
}

fn reconciled(model: &Model, csv: &str, piece: usize) -> Result<(Reconciled, Sums), String> {
    let orders = model.orders(USER).expect("it is sound");
    let (mut found, mut trades, mut export) = (Reconciled::default(), Trades::of(model, &orders), Export::default());
    for bytes in csv.as_bytes().chunks(piece) {
        export.take(bytes, |trade| trades.take(trade, &mut found))?;
    }
    export.end()?;
    trades.end(&mut found);
    Ok((found, trades.sums))
}

/// The rows of an export, the newest first.
const ROWS: [&str; 4] = [
    "9,11,load-a-0-1,\"Rain, or\nshine?\",71,BUY,5,2.50,0.05",
    "8,99,of-another,Rain?,72,SELL,4,1.00,0.01",
    "7,10,load-a-0-0,Rain?,71,BUY,6,3.00,0.06",
    "6,10,load-a-0-0,Rain?,71,BUY,4,2.00,0.04",
];

fn csv(rows: &[&str]) -> String {
    rows.iter().fold(HEADER.to_owned(), |csv, row| csv + row + "\r\n")
}

#[test]
fn an_export_equals_its_model_in_pieces_of_any_size() {
    let place = tempfile::tempdir().expect("a folder");
    let model = model(place.path());
    let mut cases = 0;
    for piece in [1, 2, 3, 7, 64, 10_000] {
        let (found, sums) = reconciled(&model, &csv(&ROWS), piece).expect("it is CSV");
        assert!(found.is_equal(), "{piece}: {:?}", found.lines());
        assert_eq!((found.trades, found.known_trades, found.filled_later), (4, 3, 0));
        let expected = Sums { buys: 3, sells: 1, bought: 7_500_000, sold: 1_000_000, fees: 160_000 };
        assert_eq!(sums, expected);
        cases += 1;
    }
    println!("exports in pieces: {cases} cases");
}

/// What is planted in an export, and the difference that names it.
#[test]
fn a_planted_fault_is_named() {
    let place = tempfile::tempdir().expect("a folder");
    let model = model(place.path());
    let without = |at: usize| {
        let mut rows = ROWS.to_vec();
        rows.remove(at);
        csv(&rows)
    };
    let with = |row: &'static str| csv(&[&[row][..], &ROWS[..]].concat());
    let changed = |from: &str, to: &str| csv(&ROWS).replacen(from, to, 1);
    let rows = [
        (
            "a lost row",
            without(3),
            "1 orders whose trades have another quantity: load-a-0-0 (6000000 instead of 10000000)",
        ),
        ("all rows lost", csv(&[]), "2 orders whose trades have another quantity"),
        ("another price", changed("3.00", "3.01"), "another notional: load-a-0-0 (5010000 instead of 5000000)"),
        ("another fee", changed("0.05", "0.06"), "another fee: load-a-0-1 (60000 instead of 50000)"),
        ("a row twice", csv(&[ROWS[0], ROWS[0], ROWS[1], ROWS[2], ROWS[3]]), "not newest first, or twice: 9"),
        ("another order of rows", csv(&[ROWS[1], ROWS[0], ROWS[2], ROWS[3]]), "not newest first, or twice: 9"),
        ("another order", changed("9,11,", "9,12,"), "another order, side or token: load-a-0-1"),
        ("another side", changed("71,BUY,5", "71,SELL,5"), "another order, side or token: load-a-0-1"),
        ("another token", changed("71,BUY,5", "72,BUY,5"), "another order, side or token: load-a-0-1"),
        ("more than was ordered", with("10,11,load-a-0-1,,71,BUY,6,3.00,0.06"), "another quantity: load-a-0-1"),
        ("a trade of a killed order", with("10,14,load-a-0-4,,71,BUY,6,3.00,0.06"), "killed orders that have trades"),
        ("a trade of no order", with("10,15,load-a-0-5,,71,BUY,6,3.00,0.06"), "refused or never sent: load-a-0-5"),
    ];
    for (what, csv, expected) in &rows {
        let (found, _) = reconciled(&model, csv, 64).expect("it is CSV");
        let text = found.lines().join("\n");
        assert!(!found.is_equal() && text.starts_with("DIFFERENT") && text.contains(expected), "{what}: {text}");
    }
    println!("planted faults: {} cases", rows.len());
}

#[test]
fn later_fills_and_fills_without_an_answer_are_counted() {
    let place = tempfile::tempdir().expect("a folder");
    let model = model(place.path());
    let rows = [
        ("10,12,load-a-0-2,,71,BUY,10,1.00,0", (1, 0)),
        ("10,11,load-a-0-1,,71,BUY,5,2.50,0", (1, 0)),
        ("10,13,load-a-0-3,,71,BUY,5,2.50,0", (0, 1)),
    ];
    for (row, expected) in rows {
        let csv = csv(&[&[row][..], &ROWS[..]].concat());
        let (found, _) = reconciled(&model, &csv, 64).expect("it is CSV");
        assert!(found.is_equal(), "{row}: {:?}", found.lines());
        assert_eq!((found.filled_later, found.unknown_traded), expected, "{row}");
    }
    println!("later fills: {} cases", rows.len());
}

#[test]
fn what_is_no_whole_export_is_an_error() {
    let place = tempfile::tempdir().expect("a folder");
    let model = model(place.path());
    let whole = csv(&ROWS);
    let rows = [
        ("", "ends within a row"),
        ("trade_id,order_id\r\n", "lacks the column client_order_id"),
        ("<html>\r\n", "lacks the column"),
        (&whole[..whole.len() - 1], "ends within a row"),
        (&whole[..whole.len() - 9], "ends within a row"),
        (&whole.replace("5,2.50,0.05", "5,2.50,"), "cannot be read: 9,11"),
        (&whole.replace("5,2.50,0.05", "5,x,0.05"), "cannot be read: 9,11"),
        (&whole.replace("BUY,5", "buy,5"), "cannot be read: 9,11"),
        (&whole.replace("9,11,", "-9,11,"), "cannot be read: -9,11"),
        (&whole.replace("2.50", "0.0000001"), "cannot be read"),
        (&format!("{whole}# truncated: an export holds 4 rows and there are more\r\n"), "raise export.max_rows"),
        (&format!("{whole}\"{}", "x".repeat(ROW_BYTES_MAX + 1)), "a row without an end"),
    ];
    for (csv, expected) in rows {
        let error = reconciled(&model, csv, 1 << 20).err().unwrap_or_else(|| panic!("{expected}"));
        assert!(error.contains(expected), "{expected}: {error}");
    }
    println!("broken exports: {} cases", rows.len());
}
