//! Good and hostile files.

use super::*;

const HEADER: &str = "order_id,token_id,side,type,price,size,post_only,sent_at,acked_at,cancelled_at,fill_id,fill_at,\
                      fill_price,fill_size,fee,transaction_hash";
const ORDER: &str = "o1,11,BUY,GTC,0.40,10,false,1790788920000000,1790788920030000,";
const FILL: &str = "f1,1790788930000000,0.40,4,0,0xAB";

fn file(lines: &[&str]) -> String {
    [&[HEADER], lines].concat().join("\n")
}

/// A line with one of its fields replaced.
fn with(line: &str, index: usize, text: &str) -> String {
    let mut fields: Vec<&str> = line.split(',').collect();
    fields[index] = text;
    fields.join(",")
}

fn whole() -> String {
    format!("{ORDER},{FILL}")
}

#[test]
fn lines_of_an_order_are_one_order() {
    let second = with(&with(&whole(), 10, "f0"), 11, "2026-09-30T17:22:05.5Z");
    let none = "o2,12,sell,FAK,0.995,2.5,FALSE,2026-09-30T17:22:00Z,,,,,,,,";
    let text = file(&[&whole(), none, &second]) + "\r\n";
    let orders = read(text.as_bytes()).expect("a good file");
    assert_eq!(orders.len(), 2);
    let [first, other] = [&orders[0], &orders[1]];
    let fills: Vec<(&str, u64, i64, u64)> =
        first.fills.iter().map(|fill| (&*fill.id, fill.at.0, fill.price.0, fill.size.0)).collect();
    assert_eq!(
        fills,
        [("f0", 1_790_788_925_500_000, 400_000, 4_000_000), ("f1", 1_790_788_930_000_000, 400_000, 4_000_000)]
    );
    assert_eq!((first.side, first.kind, first.price, first.size.0), (Side::Buy, Kind::Gtc, Price(4_000), 10_000_000));
    assert_eq!((first.acked_at, first.cancelled_at), (Some(Timestamp(1_790_788_920_030_000)), None));
    assert_eq!((first.fills[0].fee, first.fills[0].hash.as_deref()), (Some(Cash(0)), Some("0xab")));
    assert_eq!((first.ended_at(), first.filled().0), (None, 8_000_000));
    assert_eq!((other.side, other.kind, other.price, other.size.0), (Side::Sell, Kind::Fak, Price(9_950), 2_500_000));
    assert_eq!((other.ended_at(), other.fills.len()), (Some(other.sent_at), 0));
    // A byte order mark, quoted fields, and a cancel.
    let quoted: Vec<String> = with(&whole(), 9, "1790788990000000").split(',').map(|of| format!("\"{of}\"")).collect();
    let text = format!("\u{feff}{}", file(&[&quoted.join(",")]));
    let orders = read(text.as_bytes()).expect("a good file");
    assert_eq!(orders[0].ended_at(), Some(Timestamp(1_790_788_990_000_000)));
    println!("good files: 3 orders");
}

#[test]
fn a_wrong_file_is_refused_with_line_and_column() {
    let row = |index, text: &str| file(&[&with(&whole(), index, text)]);
    let long = "x".repeat(257);
    let huge = with(&with(&with(&whole(), 3, "FAK"), 5, "1000000000"), 13, "1000000000");
    let cases: Vec<(String, u64, u64, &str)> = vec![
        // The header.
        (String::new(), 1, 1, "not order_id"),
        ("order_id".to_owned(), 1, 10, "ends before token_id"),
        (HEADER.replace("side", "Side"), 1, 19, "not side"),
        (HEADER.replace(",fee", ""), 1, 117, "not fee"),
        (format!("{HEADER},more"), 1, 138, "after the last column"),
        (HEADER.to_owned(), 2, 1, "no orders"),
        (format!(" {HEADER}"), 1, 1, "not order_id"),
        // The count of fields.
        (file(&[ORDER]), 2, 63, "10 fields, not 16"),
        (file(&[&format!("{},x", whole())]), 2, 98, "more than 16 fields"),
        (row(5, "1,5"), 2, 94, "more than 16 fields"),
        (file(&[&whole(), "", &whole()]), 3, 1, "the line is empty"),
        // Columns of an order.
        (row(0, ""), 2, 1, "empty"),
        (row(0, " o1"), 2, 1, "outer spaces"),
        (row(0, &long), 2, 1, "256 characters"),
        (row(0, "o\u{0}1"), 2, 2, "control character"),
        (row(0, "o\"1"), 2, 2, "quote"),
        (row(1, ""), 2, 4, "empty"),
        (row(2, "LONG"), 2, 7, "BUY, SELL"),
        (row(3, "IOC"), 2, 11, "GTC, GTD, FOK, FAK"),
        (row(4, "0"), 2, 15, "above 0"),
        (row(4, "1"), 2, 15, "below 1"),
        (row(4, "-0.4"), 2, 15, "above 0"),
        (row(4, "0.40001"), 2, 15, "4 decimals"),
        (row(4, "4e-1"), 2, 15, "not a plain decimal"),
        (row(4, "NaN"), 2, 15, "not a plain decimal"),
        (row(4, "0.4000000000000"), 2, 15, "too many digits"),
        (row(5, "0"), 2, 20, "more than 0"),
        (row(5, "1.0000001"), 2, 20, "6 decimals"),
        (row(5, "1000000001"), 2, 20, "at most 1000000000"),
        (row(6, "yes"), 2, 23, "true, false"),
        (row(7, ""), 2, 29, "empty"),
        (row(7, "1790788920"), 2, 29, "16 digits"),
        (row(7, "1790788920000"), 2, 29, "16 digits"),
        (row(7, "2026-09-30"), 2, 29, "RFC 3339"),
        (row(7, "2026-13-30T00:00:00Z"), 2, 29, "RFC 3339"),
        (row(7, "yesterday"), 2, 29, "RFC 3339"),
        (row(7, "99999999999999999999999"), 2, 29, "16 digits"),
        (row(8, "1790788919999999"), 2, 46, "before sent_at"),
        (row(9, "1790788919999999"), 2, 63, "before sent_at"),
        (file(&[&with(&with(&whole(), 3, "FOK"), 6, "true")]), 2, 23, "not post-only"),
        // Columns of a fill.
        (row(10, ""), 2, 65, "fill_id is empty"),
        (row(11, ""), 2, 67, "empty"),
        (row(12, "1.01"), 2, 84, "below 1"),
        (row(12, ""), 2, 84, "not a plain decimal"),
        (row(13, "10.1"), 2, 89, "more than its size"),
        (row(13, "0"), 2, 89, "more than 0"),
        (row(14, "0.0000001"), 2, 91, "6 decimals"),
        (row(14, "-1000000001"), 2, 91, "USD"),
        (row(15, &long), 2, 93, "256 characters"),
        // Several lines of an order.
        (file(&[&whole(), &whole()]), 3, 64, "line 2 has this fill"),
        (file(&[&whole(), &with(&with(&whole(), 10, "f2"), 4, "0.41")]), 3, 15, "line 2 of this order"),
        (file(&[&whole(), &with(&with(&whole(), 10, "f2"), 13, "7")]), 3, 89, "more than its size"),
        (file(&[&whole(), &format!("{ORDER},,,,,,")]), 3, 64, "one line for each fill"),
        (file(&[&format!("{ORDER},,,,,,"), &whole()]), 3, 64, "one line for each fill"),
        (file(&[&huge, &with(&huge, 10, "f2")]), 3, 97, "more than its size"),
    ];
    for (text, line, column, part) in &cases {
        let error = read(text.as_bytes()).expect_err(part);
        assert_eq!((error.line, error.column), (*line, *column), "{part}: {error}");
        assert!(error.to_string().contains(part), "{part} is not in {error}");
        assert!(error.to_string().chars().all(|c| !c.is_control()) && error.to_string().len() < 400, "{error}");
    }
    // Bytes that are not UTF-8.
    let mut bytes = file(&["é"]).into_bytes();
    bytes.push(0xff);
    let error = read(&bytes).expect_err("not UTF-8");
    assert_eq!((error.line, error.column), (2, 2), "{error}");
    println!("wrong files: {} cases", cases.len() + 1);
}

/// No prefix of a file, and no changed byte, makes the reader panic.
#[test]
fn damaged_files_do_not_panic() {
    let text = file(&[&whole(), &with(&whole(), 10, "f2")]).into_bytes();
    let (mut cases, mut read_count) = (0, 0);
    for at in 0..text.len() {
        read_count += usize::from(read(&text[..at]).is_ok());
        cases += 1;
        for byte in [0, b',', b'"', b'\n', 0xff, b'-', b'9'] {
            let mut damaged = text.clone();
            damaged[at] = byte;
            read_count += usize::from(read(&damaged).is_ok());
            cases += 1;
        }
    }
    assert!(read_count > 0, "some changes are harmless");
    println!("damaged files: {cases} cases, {read_count} of them read");
}
