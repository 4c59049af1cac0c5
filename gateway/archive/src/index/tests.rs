use super::*;
use crate::row::Row;
use crate::testing::{Chance, HOUR, condition, row, token};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of an hour in file order.
fn rows_of(seed: u64, count: usize, markets: u64) -> Vec<Row> {
    let mut chance = Chance::seeded(seed);
    let mut rows: Vec<Row> = (0..count).map(|_| row(&mut chance, markets, 3_600_000)).collect();
    rows.sort_by(|one, other| {
        (one.market, &one.token, one.received).cmp(&(other.market, &other.token, other.received))
    });
    rows
}

fn built(path: &Path, rows: &[Row], carried: &dyn Carried, group: usize) -> Built {
    let mut builder = Builder::create(path, HOUR, carried).expect("created");
    for (number, row) in rows.iter().enumerate() {
        builder.push(number as u64, number % group == 0, row).expect("pushed");
    }
    builder.finish([9; 32], rows.len() as u64).expect("finished")
}

/// Rows with their numbers.
type Numbered<'a> = Vec<(usize, &'a Row)>;

/// A book that every token begins with.
struct Opening(Folded);

impl Carried for Opening {
    fn previous(&self) -> [u8; 32] {
        [3; 32]
    }

    fn carried(&self, market: &Condition, _: &str) -> Result<Option<Folded>, Error> {
        Ok((*market != condition(0)).then(|| self.0.clone()))
    }
}

fn opening() -> Opening {
    let (mut folded, mut chance) = (Folded::default(), Chance::seeded(40));
    while !folded.is_known() {
        let row = row(&mut chance, 1, 1);
        folded.apply(Timestamp::of_hour(HOUR - 1), Timestamp::from_millis(1), &row.event);
    }
    Opening(folded)
}

#[test]
fn an_index_has_tokens_and_books() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut tokens_seen, mut states) = (0, 0);
    for (seed, count, group) in [(41, 0, 1 << 20), (42, 1, 1 << 20), (43, 20_000, 1 << 20), (44, 20_000, 3_000)] {
        let path = folder.path().join(format!("{seed}.idx"));
        let (rows, opening) = (rows_of(seed, count, 6), opening());
        let of = built(&path, &rows, &opening, group);
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), of.bytes);
        assert_eq!(crate::files::digest(&path).expect("a digest").0, of.sha256);
        let index = TimeIndex::open(&path).expect("opened");
        index.verify().expect("sound");
        assert_eq!((index.hour(), index.parquet(), index.previous()), (HOUR, [9; 32], [3; 32]));
        assert_eq!(index.row_count(), count as u64);
        let mut expected: BTreeMap<(Condition, Arc<str>), Numbered<'_>> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            expected.entry((row.market, row.token.clone())).or_default().push((number, row));
        }
        assert_eq!(index.token_count(), expected.len());
        let keys: Vec<_> = index.tokens().map(|token| (token.market, Arc::from(token.token))).collect();
        assert!(keys.iter().eq(expected.keys()));
        for ((market, name), rows) in &expected {
            let token = index.token(market, name).expect("a token");
            let [first, last] = [rows[0], rows[rows.len() - 1]];
            assert_eq!(token.rows, first.0 as u64..last.0 as u64 + 1);
            assert_eq!((token.first, token.last), (first.1.received, last.1.received));
            assert!(index.tokens_of(market).contains(&token) && index.has_market(market));
            assert!(TimeIndex::probe(&path, market).expect("probed"));
            let anchors = index.anchors(&token).expect("anchors");
            let is_carried = *market != condition(0);
            assert_eq!(anchors[0].kind == AnchorKind::Opening, is_carried);
            let inner = anchors.iter().filter(|anchor| anchor.kind == AnchorKind::Inner).count();
            assert!(inner >= (rows.len() - 1) / 512, "{inner} of {}", rows.len());
            assert_eq!(anchors.iter().filter(|anchor| anchor.kind == AnchorKind::End).count(), 1);
            assert_eq!(anchors.last().expect("one").kind, AnchorKind::End);
            // Every anchor is the fold of the rows before it.
            let mut folded = if is_carried { opening.0.clone() } else { Folded::default() };
            let mut rest = rows.iter().peekable();
            for anchor in &anchors {
                let mut through = None;
                while let Some((_, row)) = rest.next_if(|(number, _)| (*number as u64) < anchor.row) {
                    folded.apply(row.received, row.source, &row.event);
                    through = Some(row.received);
                }
                assert!(through.is_none() || anchor.through == through);
                assert_eq!(index.state(anchor).expect("a state"), folded);
                states += 1;
            }
            assert_eq!(index.end_state(market, name).expect("read"), Some(folded));
            tokens_seen += 1;
        }
        let absent = condition(99);
        assert!(index.token(&absent, "1").is_none() && !TimeIndex::probe(&path, &absent).expect("probed"));
        assert!(index.token(&condition(0), "x").is_none() && index.tokens_of(&absent).is_empty());
        if group == 3_000 {
            let starts = index.tokens().flat_map(|token| index.anchors(&token).expect("anchors"));
            let at_groups = starts.filter(|anchor| anchor.kind == AnchorKind::Inner && anchor.row % 3_000 == 0).count();
            assert!(at_groups > 0, "no anchor where a row group begins");
        }
    }
    println!("tokens of indexes: {tokens_seen} cases; states: {states} cases");
}

#[test]
fn rows_out_of_place_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = rows_of(45, 200, 3);
    let last = rows.last().expect("a row").clone();
    let hour = Timestamp::of_hour(HOUR);
    let cases = [
        ("its predecessor", Row { received: Timestamp::from_millis(last.received.millis() - 1), ..last.clone() }),
        ("out of order", rows[0].clone()),
        ("out of order", Row { token: "0".into(), ..last.clone() }),
        ("after the start of its hour", Row { received: hour.plus(3_605_000_000), ..last.clone() }),
        (
            "after the start of its hour",
            Row { received: Timestamp(hour.0 - 5_001_000), market: Condition([0xff; 32]), ..last.clone() },
        ),
    ];
    for (expected, wrong) in &cases {
        let mut builder = Builder::create(&folder.path().join("x.idx"), HOUR, &NoCarry).expect("created");
        for (number, row) in rows.iter().enumerate() {
            builder.push(number as u64, false, row).expect("pushed");
        }
        let error = builder.push(rows.len() as u64, false, wrong).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut builder = Builder::create(&folder.path().join("x.idx"), HOUR, &NoCarry).expect("created");
    builder.push(5, false, &rows[0]).expect("pushed");
    assert!(builder.push(5, false, &rows[1]).is_err(), "a row twice");
    drop(builder);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "no file stays");
    println!("rows out of place: {} cases", cases.len() + 1);
}

/// The checksums of changed bytes.
fn summed(bytes: &[u8]) -> Vec<u8> {
    resummed(bytes).unwrap_or_default()
}

/// Seeded changes of a good index, with and without right checksums: refused, or sound in all that is read.
#[test]
fn damaged_indexes_never_fail_otherwise() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.idx");
    built(&path, &rows_of(46, 3_000, 4), &opening(), 1 << 20);
    let good = std::fs::read(&path).expect("read");
    assert_eq!(summed(&good), good);
    let (mut chance, mut cases, mut refused, mut sound) = (Chance::seeded(47), 0, 0, 0);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + chance.below(2) {
            let at = match chance.below(3) {
                0 => chance.below(HEADER_LEN as u64),
                1 => HEADER_LEN as u64 + chance.below(900),
                _ => chance.below(bytes.len() as u64),
            };
            bytes[at as usize] = if chance.one_in(3) { 0xff } else { chance.draw() as u8 };
        }
        if chance.one_in(8) {
            bytes.truncate(chance.below(bytes.len() as u64) as usize);
        }
        let bytes = if chance.one_in(4) { bytes } else { summed(&bytes) };
        cases += 1;
        match TimeIndex::of_bytes("damaged", bytes) {
            Err(_) => refused += 1,
            Ok(index) => {
                let tokens: Vec<TokenRows> = index.tokens().collect();
                assert!(tokens.windows(2).all(|two| two[0].rows.end <= two[1].rows.start));
                for token in &tokens {
                    assert_eq!(index.token(&token.market, &token.token).as_ref(), Some(token));
                    let anchors = index.anchors(token).expect("anchors");
                    sound += anchors.iter().filter(|anchor| index.state(anchor).is_ok()).count();
                }
            }
        }
    }
    assert!(refused > 1_000 && refused < cases && sound > 0, "{refused} of {cases}, {sound}");
    println!("damaged indexes: {cases} cases, {refused} refused");
}

#[test]
fn packed_tokens_have_the_order_of_their_texts() {
    let mut texts: Vec<String> = (0..200).map(|number| token(number, number % 2).to_string()).collect();
    texts.extend(["9".repeat(78), "0".to_owned(), "00".to_owned(), "1".repeat(77)]);
    texts.sort();
    let all: Vec<[u8; PACKED_LEN]> = texts.iter().map(|text| packed(text).expect("digits")).collect();
    assert!(all.is_sorted());
    for (text, of) in texts.iter().zip(&all) {
        assert_eq!(unpacked(of).as_ref(), Some(text));
    }
    assert_eq!((packed("x"), packed(&"1".repeat(79)), unpacked(&[0; PACKED_LEN])), (None, None, None));
    println!("packed tokens: {} cases", texts.len());
}
