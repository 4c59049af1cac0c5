//! The live orders that a calibration compares: a CSV file with one line for each fill, and one line with empty fill
//! columns for an order without any (gateway/docs/calibrate.md §2).
//!
//! A file is read whole or refused with the first wrong line and column: a guess about money would look like a result.

use ahash::AHashMap;
use engine::amount::{Cash, Price, Qty};
use engine::order::Side;
use engine::rules::SHARES_PER_ORDER_CEILING;
use engine::time::Timestamp;
use std::fmt;
use wire::decimal::{Decimal, NotDecimal};
use wire::instant;

/// The columns, in their order.
pub const COLUMNS: [&str; 16] = [
    "order_id",
    "token_id",
    "side",
    "type",
    "price",
    "size",
    "post_only",
    "sent_at",
    "acked_at",
    "cancelled_at",
    "fill_id",
    "fill_at",
    "fill_price",
    "fill_size",
    "fee",
    "transaction_hash",
];
/// Columns of the order; the others are those of a fill.
const OF_THE_ORDER: usize = 10;
/// Longest file in bytes.
pub const BYTES_MAX: usize = 256 << 20;
/// Most orders of a file.
pub const ORDERS_MAX: usize = 100_000;
/// Longest id or hash in characters.
const ID_CHARS_MAX: usize = 256;
/// Times in µs: from 2001 to 2286, so that seconds and milliseconds are not taken for them.
const MICROS: std::ops::Range<u64> = 1_000_000_000_000_000..10_000_000_000_000_000;

/// A live order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveOrder {
    pub id: String,
    pub token: String,
    pub side: Side,
    pub kind: Kind,
    /// Within (0, 1).
    pub price: Price,
    pub size: Qty,
    pub post_only: bool,
    pub sent_at: Timestamp,
    pub acked_at: Option<Timestamp>,
    pub cancelled_at: Option<Timestamp>,
    /// Oldest first.
    pub fills: Vec<LiveFill>,
}

/// How long an order stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gtc,
    Gtd,
    Fok,
    Fak,
}

/// A fill of a live order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFill {
    pub id: String,
    pub at: Timestamp,
    /// 10⁻⁶ USD a share.
    pub price: Cash,
    pub size: Qty,
    /// `None`: not stated.
    pub fee: Option<Cash>,
    /// In lower case.
    pub hash: Option<String>,
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadInput {
    /// From 1.
    pub line: u64,
    /// Of the first character of the field, from 1.
    pub column: u64,
    /// The name of the column.
    pub field: Option<&'static str>,
    pub why: String,
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)?;
        if let Some(field) = self.field {
            write!(f, " ({field})")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for BadInput {}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Gtc, Kind::Gtd, Kind::Fok, Kind::Fak];

    /// Its name in the column `type`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gtc => "GTC",
            Kind::Gtd => "GTD",
            Kind::Fok => "FOK",
            Kind::Fak => "FAK",
        }
    }

    /// Whether it ends when it is decided.
    pub fn is_immediate(self) -> bool {
        matches!(self, Kind::Fok | Kind::Fak)
    }
}

impl LiveOrder {
    /// Filled shares.
    pub fn filled(&self) -> Qty {
        self.fills.iter().map(|fill| fill.size).sum()
    }

    /// When it left the book: at its cancel, or with the fill that completed it; `None`: the file does not say.
    pub fn ended_at(&self) -> Option<Timestamp> {
        let last = self.fills.last().map(|fill| fill.at);
        if self.kind.is_immediate() {
            return Some(last.unwrap_or(self.acked_at.unwrap_or(self.sent_at)));
        }
        let whole = last.filter(|_| self.filled() >= self.size);
        whole.or(self.cancelled_at)
    }
}

/// Reads the orders of a file, in the order of their first lines.
///
/// # Errors
/// The first thing that is wrong.
pub fn read(bytes: &[u8]) -> Result<Vec<LiveOrder>, BadInput> {
    if bytes.len() > BYTES_MAX {
        return Err(bad(1, 1, None, format!("the file is longer than {BYTES_MAX} bytes")));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let from = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[from..]).chars().count() as u64 + 1;
        bad(line, column, None, "the file is not UTF-8".to_owned())
    })?;
    let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).zip(1..);
    header(lines.next().map_or("", |(line, _)| line))?;
    let mut file = File::default();
    for (line, number) in lines {
        if !line.is_empty() {
            file.line(&Line::split(line, number)?)?;
        } else if text.lines().count() as u64 > number {
            return Err(bad(number, 1, None, "the line is empty".to_owned()));
        }
    }
    file.end()
}

fn bad(line: u64, column: u64, field: Option<&'static str>, why: String) -> BadInput {
    BadInput { line, column, field, why }
}

/// The header is exactly the names of the columns.
fn header(line: &str) -> Result<(), BadInput> {
    let mut column = 1;
    let mut names = line.split(',');
    for expected in COLUMNS {
        match names.next() {
            Some(name) if name == expected => column += name.chars().count() as u64 + 1,
            Some(name) => {
                return Err(bad(1, column, None, format!("the header has {}, not {expected}", shown(name))));
            }
            None => return Err(bad(1, column, None, format!("the header ends before {expected}"))),
        }
    }
    match names.next() {
        Some(name) => Err(bad(1, column, None, format!("the header has {} after the last column", shown(name)))),
        None => Ok(()),
    }
}

/// A text of the file in a message: short, and without control characters.
fn shown(text: &str) -> String {
    const CHARS: usize = 40;
    let short: String = text.chars().take(CHARS).collect();
    let more = if text.chars().nth(CHARS).is_some() { "…" } else { "" };
    format!("{short:?}{more}")
}

/// The fields of a line.
struct Line<'a> {
    number: u64,
    fields: [&'a str; COLUMNS.len()],
    /// Of the first character of each field, from 1.
    columns: [u64; COLUMNS.len()],
}

impl<'a> Line<'a> {
    fn split(line: &'a str, number: u64) -> Result<Line<'a>, BadInput> {
        let (mut fields, mut columns) = ([""; COLUMNS.len()], [1; COLUMNS.len()]);
        let (mut column, mut count) = (1, 0);
        for field in line.split(',') {
            let Some(place) = fields.get_mut(count) else {
                return Err(bad(number, column, None, format!("the line has more than {} fields", COLUMNS.len())));
            };
            // Quotes around a whole field are those of a careful writer; no value needs any.
            let bare = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(field);
            if let Some(at) = bare.chars().position(|c| c == '"' || c.is_control()) {
                let (at, why) = (column + at as u64, "a quote or control character within a field");
                return Err(bad(number, at, Some(COLUMNS[count]), why.to_owned()));
            }
            (*place, columns[count]) = (bare, column);
            column += field.chars().count() as u64 + 1;
            count += 1;
        }
        if count < COLUMNS.len() {
            let why = format!("the line has {count} fields, not {}", COLUMNS.len());
            return Err(bad(number, column.saturating_sub(1).max(1), None, why));
        }
        Ok(Line { number, fields, columns })
    }

    fn wrong(&self, index: usize, why: impl Into<String>) -> BadInput {
        bad(self.number, self.columns[index], Some(COLUMNS[index]), why.into())
    }

    fn text(&self, index: usize) -> &'a str {
        self.fields[index]
    }

    fn is_empty(&self, index: usize) -> bool {
        self.fields[index].is_empty()
    }

    /// An id: not empty, of bounded length.
    fn id(&self, index: usize) -> Result<&'a str, BadInput> {
        let text = self.text(index);
        if text.is_empty() {
            return Err(self.wrong(index, "it is empty"));
        }
        if text.trim() != text || text.chars().nth(ID_CHARS_MAX).is_some() {
            return Err(
                self.wrong(index, format!("allowed are at most {ID_CHARS_MAX} characters without outer spaces"))
            );
        }
        Ok(text)
    }

    fn choice<T: Copy>(&self, index: usize, choices: &[(&str, T)]) -> Result<T, BadInput> {
        let text = self.text(index);
        let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.wrong(index, format!("allowed is {}, not {}", names.join(", "), shown(text)))
        })
    }

    fn decimal(&self, index: usize) -> Result<Decimal, BadInput> {
        let text = self.text(index);
        Decimal::parse(text).map_err(|error| {
            let why = match error {
                NotDecimal::Malformed => "is not a plain decimal",
                NotDecimal::TooLong => "has too many digits",
            };
            self.wrong(index, format!("{} {why}", shown(text)))
        })
    }

    /// Shares above zero, exact in 10⁻⁶.
    fn size(&self, index: usize) -> Result<Qty, BadInput> {
        let cash = self.decimal(index)?.cash_exact().filter(|cash| cash.0 > 0);
        let size = cash.map(|cash| Qty(cash.0 as u64)).filter(|size| *size <= SHARES_PER_ORDER_CEILING);
        size.ok_or_else(|| {
            let most = SHARES_PER_ORDER_CEILING.0 / Qty::SHARE.0;
            self.wrong(index, format!("allowed are more than 0 and at most {most} shares with at most 6 decimals"))
        })
    }

    /// A time; `None`: the field is empty.
    fn time(&self, index: usize) -> Result<Option<Timestamp>, BadInput> {
        let text = self.text(index);
        if text.is_empty() {
            return Ok(None);
        }
        let at = match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().ok().filter(|micros| MICROS.contains(micros)).map(Timestamp),
            // A date alone is not a moment.
            false => instant::read(text).filter(|at| text.len() > "2026-01-01".len() && MICROS.contains(&at.0)),
        };
        let why = "allowed are µs since 1970 (16 digits), or RFC 3339";
        at.map(Some).ok_or_else(|| self.wrong(index, format!("{why}, not {}", shown(text))))
    }

    fn given_time(&self, index: usize) -> Result<Timestamp, BadInput> {
        self.time(index)?.ok_or_else(|| self.wrong(index, "it is empty"))
    }
}

/// What was read so far.
#[derive(Default)]
struct File<'a> {
    orders: Vec<LiveOrder>,
    /// By id: its place, its columns, and its first line.
    known: AHashMap<&'a str, (usize, [&'a str; OF_THE_ORDER], u64)>,
    /// Lines of fills by order and id.
    fills: AHashMap<(usize, &'a str), u64>,
    /// Filled shares by order: at most two orders of the largest size.
    filled: Vec<u64>,
}

impl<'a> File<'a> {
    fn line(&mut self, line: &Line<'a>) -> Result<(), BadInput> {
        let id = line.id(0)?;
        let columns: [&str; OF_THE_ORDER] = std::array::from_fn(|index| line.text(index));
        let at = match self.known.get(id) {
            Some((at, known, first)) => {
                if let Some(index) = (0..OF_THE_ORDER).find(|index| known[*index] != columns[*index]) {
                    return Err(line.wrong(index, format!("line {first} of this order has another value")));
                }
                if self.orders[*at].fills.is_empty() || line.is_empty(10) {
                    return Err(line.wrong(10, format!("an order has one line for each fill; line {first} is another")));
                }
                *at
            }
            None => {
                if self.orders.len() == ORDERS_MAX {
                    return Err(line.wrong(0, format!("the file has more than {ORDERS_MAX} orders")));
                }
                self.orders.push(order(line)?);
                self.filled.push(0);
                self.known.insert(id, (self.orders.len() - 1, columns, line.number));
                self.orders.len() - 1
            }
        };
        let Some(fill) = fill(line)? else { return Ok(()) };
        if let Some(first) = self.fills.insert((at, line.text(10)), line.number) {
            return Err(line.wrong(10, format!("line {first} has this fill")));
        }
        let order = &mut self.orders[at];
        // An immediate order may be one by amount, which buys more shares at a better price.
        let most = if order.kind.is_immediate() { SHARES_PER_ORDER_CEILING } else { order.size };
        self.filled[at] += fill.size.0;
        if self.filled[at] > most.0 {
            return Err(line.wrong(13, "the fills of the order are more than its size"));
        }
        order.fills.push(fill);
        Ok(())
    }

    fn end(mut self) -> Result<Vec<LiveOrder>, BadInput> {
        if self.orders.is_empty() {
            return Err(bad(2, 1, None, "the file has no orders".to_owned()));
        }
        self.orders.iter_mut().for_each(|order| order.fills.sort_by_key(|fill| fill.at));
        Ok(self.orders)
    }
}

/// The columns of an order.
fn order(line: &Line<'_>) -> Result<LiveOrder, BadInput> {
    let id = line.id(0)?.to_owned();
    let token = line.id(1)?.to_owned();
    let side = line.choice(2, &[("BUY", Side::Buy), ("SELL", Side::Sell)])?;
    let kind = line.choice(3, &Kind::ALL.map(|kind| (kind.name(), kind)))?;
    let price = line.decimal(4)?.price_exact().filter(|price| (Price::LOWEST..=Price::HIGHEST).contains(price));
    let price = price.ok_or_else(|| line.wrong(4, "allowed is a price above 0 and below 1 with at most 4 decimals"))?;
    let size = line.size(5)?;
    let post_only = line.choice(6, &[("true", true), ("false", false)])?;
    if post_only && kind.is_immediate() {
        return Err(line.wrong(6, format!("a {} order is not post-only", kind.name())));
    }
    let sent_at = line.given_time(7)?;
    let [acked_at, cancelled_at] = [line.time(8)?, line.time(9)?];
    for (index, at) in [(8, acked_at), (9, cancelled_at)] {
        if at.is_some_and(|at| at < sent_at) {
            return Err(line.wrong(index, "it is before sent_at"));
        }
    }
    Ok(LiveOrder { id, token, side, kind, price, size, post_only, sent_at, acked_at, cancelled_at, fills: Vec::new() })
}

/// The columns of a fill; `None`: they are empty.
fn fill(line: &Line<'_>) -> Result<Option<LiveFill>, BadInput> {
    if line.is_empty(10) {
        return match (11..COLUMNS.len()).find(|index| !line.is_empty(*index)) {
            Some(index) => Err(line.wrong(index, "it belongs to a fill, and fill_id is empty")),
            None => Ok(None),
        };
    }
    let id = line.id(10)?.to_owned();
    let at = line.given_time(11)?;
    let price = line.decimal(12)?.cash_exact().filter(|price| (1..1_000_000).contains(&price.0));
    let price =
        price.ok_or_else(|| line.wrong(12, "allowed is a price above 0 and below 1 with at most 6 decimals"))?;
    let size = line.size(13)?;
    let fee = match line.is_empty(14) {
        true => None,
        false => {
            // Not more than a dollar for each share of the largest order; below zero it is a rebate.
            let fee = line.decimal(14)?.cash_exact().filter(|fee| fee.0.unsigned_abs() <= SHARES_PER_ORDER_CEILING.0);
            Some(fee.ok_or_else(|| line.wrong(14, "allowed are USD with at most 6 decimals"))?)
        }
    };
    let hash = match line.is_empty(15) {
        true => None,
        false => Some(line.id(15)?.to_ascii_lowercase()),
    };
    Ok(Some(LiveFill { id, at, price, size, fee, hash }))
}

#[cfg(test)]
mod tests;
