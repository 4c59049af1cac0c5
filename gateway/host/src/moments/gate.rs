//! `--gate`: when the clock of a back-test with a bot may leave a moment (gateway/docs/backtest-bot.md §2).

use engine::time::{DAY, HOUR, MILLISECOND, MINUTE, SECOND};
use std::fmt;
use std::str::FromStr;

/// Longest name of an operation.
const OPERATION_CHARS_MAX: usize = 64;
/// Longest round.
const ROUND_MAX: u64 = 30 * DAY;
/// Silence of a `quiet` gate, in microseconds: without a number, least, most.
const QUIET: u64 = 2 * MILLISECOND;
const QUIET_MIN: u64 = MILLISECOND / 10;
const QUIET_MAX: u64 = SECOND;

/// A gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Only a step of an operator.
    Stepped,
    /// Each time this operation comes: it waits until the clock has moved by this many microseconds.
    Round { operation: String, by: u64 },
    /// A silence of this many microseconds after a moment that sent a bot something.
    Quiet { for_us: u64 },
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Gate, String> {
        let wrong = || format!("a gate is stepped, round:OPERATION:TIME, or quiet:MILLISECONDS, not {text:?}");
        let mut parts = text.split(':');
        let gate = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("stepped"), None, ..) => Gate::Stepped,
            (Some("quiet"), None, ..) => Gate::Quiet { for_us: QUIET },
            (Some("quiet"), Some(millis), None, _) => Gate::Quiet { for_us: quiet(millis)? },
            (Some("round"), Some(operation), Some(by), None) => {
                let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                if !(1..=OPERATION_CHARS_MAX).contains(&operation.len()) || !operation.chars().all(is_name) {
                    return Err(format!("{operation:?} is not the name of an operation"));
                }
                Gate::Round { operation: operation.to_owned(), by: round(by)? }
            }
            _ => return Err(wrong()),
        };
        Ok(gate)
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gate::Stepped => f.write_str("stepped"),
            Gate::Round { operation, by } => write!(f, "round:{operation}:{}ms", by / MILLISECOND),
            Gate::Quiet { for_us } => match (for_us / MILLISECOND, for_us % MILLISECOND) {
                (whole, 0) => write!(f, "quiet:{whole}"),
                (whole, part) => write!(f, "quiet:{whole}.{}", format!("{part:03}").trim_end_matches('0')),
            },
        }
    }
}

/// A whole number with its unit: `500ms`, `1s`, `5m`, `1h`.
fn round(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "ms" => Some(MILLISECOND),
        "s" => Some(SECOND),
        "m" => Some(MINUTE),
        "h" => Some(HOUR),
        _ => None,
    };
    let count: Option<u64> = text[..digits].parse().ok();
    let by = count.zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
    by.filter(|by| (MILLISECOND..=ROUND_MAX).contains(by))
        .ok_or_else(|| format!("the time of a round is a number with ms, s, m or h, up to 30 days, not {text:?}"))
}

/// Milliseconds with at most three decimals.
fn quiet(text: &str) -> Result<u64, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str, most| (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let micros = || -> Option<u64> {
        Some(whole.parse::<u64>().ok()? * MILLISECOND + format!("{part:0<3}").parse::<u64>().ok()?)
    };
    let read = if is_number(whole, 4) && is_number(part, 3) { micros() } else { None };
    read.filter(|micros| (QUIET_MIN..=QUIET_MAX).contains(micros))
        .ok_or_else(|| format!("the silence of a gate is 0.1 to 1000 milliseconds, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_read_and_shown() {
        let round = |operation: &str, by| Some(Gate::Round { operation: operation.into(), by });
        let quiet = |for_us| Some(Gate::Quiet { for_us });
        // (text, gate, shown)
        let rows: &[(&str, Option<Gate>, &str)] = &[
            ("stepped", Some(Gate::Stepped), "stepped"),
            ("round:get_book:1s", round("get_book", SECOND), "round:get_book:1000ms"),
            ("round:get_book:1ms", round("get_book", MILLISECOND), "round:get_book:1ms"),
            ("round:a:5m", round("a", 5 * MINUTE), "round:a:300000ms"),
            ("round:a_2:720h", round("a_2", 30 * DAY), "round:a_2:2592000000ms"),
            ("quiet", quiet(2_000), "quiet:2"),
            ("quiet:2", quiet(2_000), "quiet:2"),
            ("quiet:0.1", quiet(100), "quiet:0.1"),
            ("quiet:0.125", quiet(125), "quiet:0.125"),
            ("quiet:1000", quiet(1_000_000), "quiet:1000"),
            ("quiet:1000.000", quiet(1_000_000), "quiet:1000"),
            ("", None, ""),
            ("stepped:", None, ""),
            ("Stepped", None, ""),
            (" stepped", None, ""),
            ("quiet:", None, ""),
            ("quiet:0", None, ""),
            ("quiet:0.09", None, ""),
            ("quiet:1000.1", None, ""),
            ("quiet:1.0000", None, ""),
            ("quiet:-1", None, ""),
            ("quiet:+1", None, ""),
            ("quiet:1e1", None, ""),
            ("quiet:2:3", None, ""),
            ("quiet:99999999999999999999", None, ""),
            ("round", None, ""),
            ("round:get_book", None, ""),
            ("round:get_book:", None, ""),
            ("round::1s", None, ""),
            ("round:get_book:1", None, ""),
            ("round:get_book:s", None, ""),
            ("round:get_book:0s", None, ""),
            ("round:get_book:721h", None, ""),
            ("round:get_book:1d", None, ""),
            ("round:get_book:1.5s", None, ""),
            ("round:get_book:-1s", None, ""),
            ("round:get_book:99999999999999999999h", None, ""),
            ("round:get_book:1s:2", None, ""),
            ("round:GET /v1/book:1s", None, ""),
            ("round:get-book:1s", None, ""),
            ("round:get_book:1ſ", None, ""),
        ];
        for (text, expected, shown) in rows {
            let gate = text.parse::<Gate>();
            assert_eq!(gate.as_ref().ok(), expected.as_ref(), "{text:?}: {gate:?}");
            if let Ok(gate) = gate {
                assert_eq!(gate.to_string(), *shown);
                assert_eq!(shown.parse::<Gate>().as_ref(), Ok(&gate), "{shown}");
            }
        }
        let long = format!("round:{}:1s", "a".repeat(OPERATION_CHARS_MAX + 1));
        assert!(long.parse::<Gate>().is_err());
        println!("gates: {} cases", rows.len() + 1);
    }
}
