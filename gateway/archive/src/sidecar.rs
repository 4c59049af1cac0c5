//! The sidecar beside an hour's Parquet file: where the rows are from, what was lost, and the verdicts. One JSON object
//! with sorted keys; its fields are described in gateway/docs/archive.md §3.

use crate::error::{Error, Named, Refusal};
use crate::files;
use crate::parquet_file::source::Source;
use crate::row::{Condition, Kind};
use ahash::AHashMap;
use engine::backtest::{Hour, Verdict};
use engine::time::{MINUTE, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// Longest sidecar.
pub const BYTES_MAX: u64 = 16 << 20;
/// Most gaps that are listed.
pub const GAPS_MAX: usize = 1_000;
pub const VERSION: u32 = 1;
/// Bytes of the lists of tokens of all gaps.
const LISTS_BYTES_MAX: usize = 8 << 20;
/// The longest outage of a degraded hour, in milliseconds, and its empty minutes.
const OUTAGE_MS_MAX: u64 = 10 * MINUTE / 1_000;
const MINUTES_EMPTY_MAX: u64 = 10;
/// At most one stated best price in this number differs from the fold in a valid hour, and in a degraded one.
const DIFFERS_ONE_IN: [u64; 2] = [1_000, 50];

/// The facts about an hour. Fields are in the order of their names, which is that of the file. Times are Unix
/// milliseconds, digests lower-case hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    /// Program and version that made the hour.
    pub built_by: String,
    pub checks: Checks,
    pub clock: Clock,
    /// SHA-256 of this object without this field.
    #[serde(default)]
    pub digest: String,
    /// Markets with another verdict than the hour, ascending.
    pub exceptions: Vec<ExceptionOf>,
    pub first_received: Option<u64>,
    pub frames: Frames,
    pub gap_ms_max: u64,
    pub gap_ms_total: u64,
    /// The first [`GAPS_MAX`].
    pub gaps: Vec<Gap>,
    /// `YYYY-MM-DDTHH`.
    pub hour: String,
    pub index: Piece,
    pub last_received: Option<u64>,
    pub markets: u64,
    /// Minutes of the hour in which nothing was received.
    pub minutes_empty: u64,
    pub parquet: Piece,
    /// Digest of the sidecar of the hour before; `null`: there is no such hour.
    pub previous: Option<String>,
    /// Rows by event type.
    pub rows: BTreeMap<String, u64>,
    pub sealed_at: u64,
    pub source: SourceOf,
    pub tokens: u64,
    pub venue: String,
    pub verdict: String,
    pub version: u32,
}

/// The rows compared with themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Stated best prices that were compared with the folded book, and those that differ.
    pub bbo_compared: u64,
    pub bbo_differs: u64,
    /// Tokens that begin with the book of an earlier hour.
    pub carried_tokens: u64,
    /// Milliseconds in which books were crossed, summed over tokens.
    pub crossed_ms: u64,
    /// Repeated messages that were left out.
    #[serde(default)]
    pub deduped: u64,
    /// Rows up to five seconds outside of the hour.
    #[serde(default)]
    pub outside_hour: u64,
    /// Tokens with changes before their first book.
    pub unanchored_tokens: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// How long after the venue's time messages were received.
    pub lag_ms_max: i64,
    pub lag_ms_p50: i64,
    /// Receipts that were earlier than their predecessor.
    pub steps_back: u64,
}

/// A market with its own verdict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExceptionOf {
    pub condition_id: String,
    pub reason: String,
    pub verdict: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// `null` where the source cannot say.
    pub dropped: Option<u64>,
    pub received: u64,
    pub spilled: u64,
    /// Parts that fit no column.
    pub unfit: u64,
    /// Messages about markets that were not listed.
    pub unlisted: u64,
    pub unreadable: u64,
}

/// A time in which messages of some tokens were lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub connection: Option<String>,
    pub from: u64,
    pub reason: String,
    /// Until when: the last of the tokens had a new book then.
    pub to: u64,
    /// Their books are unknown until their next whole book; `null`: all tokens.
    pub tokens: Option<Vec<String>>,
}

/// A file of the hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub bytes: u64,
    pub row_groups: u64,
    pub rows: u64,
    pub sha256: String,
}

/// Where the rows are from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceOf {
    pub attribution: Option<String>,
    /// SHA-256 of the content that the hour is made of: that of the file, or of the lines.
    #[serde(default)]
    pub content: String,
    /// Columns that an imported file has besides those of an hour.
    #[serde(default)]
    pub extra_columns: Vec<String>,
    pub files: Vec<SourceFile>,
    /// `recorded` or `imported`.
    pub kind: String,
    /// `raw`, `v2` …
    pub layout: String,
    /// The source was not in order.
    #[serde(default)]
    pub resorted: bool,
    /// A fetched file for which no digest was published.
    #[serde(default)]
    pub unverified: bool,
    pub url: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    pub bytes: u64,
    /// Lines of the hour in it; `null` for files without lines.
    pub lines: Option<u64>,
    pub name: String,
    pub sha256: String,
}

/// When the gaps of an hour begin, ascending, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    of_all: Vec<u64>,
    by_token: AHashMap<Box<str>, Vec<u64>>,
}

/// What the verdict of one market depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarketFacts {
    /// Stated best prices that were compared with the fold, and those that differ.
    pub compared: u64,
    pub differs: u64,
    /// The longest gap of its tokens in milliseconds; `None`: it has none.
    pub gap_ms_max: Option<u64>,
}

/// What the verdict of an hour depends on besides the fields of the sidecar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourFacts {
    /// The recording began or ended in the hour.
    pub is_partial: bool,
    /// The rows are from several recorders, so that there is no single order of receipt.
    pub is_merged: bool,
}

impl Gap {
    /// Whether it is one of this token, and begins after a moment and not after another, in milliseconds.
    pub(crate) fn begins_within(&self, token: &str, since: u64, until: u64) -> bool {
        let is_named = || self.tokens.as_ref().is_none_or(|tokens| tokens.iter().any(|of| of == token));
        since <= self.from && self.from <= until && is_named()
    }
}

impl Gaps {
    /// Whether a gap of a token begins after a moment and not after another.
    pub(crate) fn has(&self, token: &str, since: u64, until: u64) -> bool {
        let has = |begins: &Vec<u64>| {
            let next = begins.partition_point(|begin| *begin < since);
            begins.get(next).is_some_and(|begin| *begin <= until)
        };
        has(&self.of_all) || self.by_token.get(token).is_some_and(has)
    }
}

impl Piece {
    /// The digest as bytes; `None`: the text is not one.
    pub fn digest(&self) -> Option<[u8; 32]> {
        files::unhex(&self.sha256)
    }
}

impl Sidecar {
    /// Reads a sidecar.
    ///
    /// # Errors
    /// Refused: not a plain file, longer than [`BYTES_MAX`], not such an object, another version, a wrong digest.
    pub fn read(path: &Path) -> Result<Sidecar, Error> {
        let source = Source::open(path).of(path)?;
        if source.len() > BYTES_MAX {
            let refusal = Refusal::new(format!("the sidecar has {} bytes; at most {BYTES_MAX} are read", source.len()));
            return Err(refusal).of(path);
        }
        source.read(0, source.len()).and_then(|bytes| Sidecar::of_bytes(&bytes)).of(path)
    }

    /// The same of its bytes.
    ///
    /// # Errors
    /// As [`Sidecar::read`].
    pub fn of_bytes(bytes: &[u8]) -> Result<Sidecar, Refusal> {
        if bytes.len() as u64 > BYTES_MAX {
            return Err(Refusal::new(format!("the sidecar has {} bytes; at most {BYTES_MAX} are read", bytes.len())));
        }
        let wrong = |error: serde_json::Error| Refusal::new(format!("the sidecar is not readable: {error}"));
        let value: Value = serde_json::from_slice(bytes).map_err(wrong)?;
        let stated = value.get("digest").and_then(Value::as_str).unwrap_or_default();
        if stated != digest(&value) {
            return Err(Refusal::new("the digest of the sidecar is wrong"));
        }
        let sidecar: Sidecar = serde_json::from_value(value).map_err(wrong)?;
        if sidecar.version != VERSION {
            return Err(Refusal::new(format!("the sidecar has version {}, not {VERSION}", sidecar.version)));
        }
        let named = |name: &String| Verdict::named(name).is_some();
        let verdicts = sidecar.exceptions.iter().map(|exception| &exception.verdict).chain([&sidecar.verdict]);
        if !verdicts.into_iter().all(named) || sidecar.hour.parse::<Hour>().is_err() {
            return Err(Refusal::new("the sidecar has an unknown verdict or hour"));
        }
        if !sidecar.exceptions.is_sorted_by(|one, next| one.condition_id < next.condition_id) {
            return Err(Refusal::new("the exceptions of the sidecar are out of order"));
        }
        Ok(sidecar)
    }

    /// Its bytes, with the digest of this content. Gaps beyond [`GAPS_MAX`] are left out, and a gap
    /// whose list of tokens does not fit becomes one of all tokens.
    pub fn to_bytes(&mut self) -> Vec<u8> {
        self.gaps.truncate(GAPS_MAX);
        self.exceptions.sort();
        self.exceptions.dedup_by(|one, kept| one.condition_id == kept.condition_id);
        // The longest lists first.
        let len = |gap: &Gap| gap.tokens.iter().flatten().map(|token| token.len() + 3).sum::<usize>();
        let mut by_len: Vec<(usize, usize)> = self.gaps.iter().map(len).zip(0..).collect();
        by_len.sort_unstable();
        let mut all: usize = by_len.iter().map(|(len, _)| len).sum();
        while let Some((len, gap)) = by_len.pop_if(|_| all > LISTS_BYTES_MAX) {
            self.gaps[gap].tokens = None;
            all -= len;
        }
        let mut value = serde_json::to_value(&*self).unwrap_or_default();
        self.digest = digest(&value);
        value["digest"] = Value::String(self.digest.clone());
        let mut bytes = sorted(&value);
        bytes.push(b'\n');
        bytes
    }

    /// Writes it whole: under another name, synced, renamed.
    ///
    /// # Errors
    /// The system's; refused when it is longer than [`BYTES_MAX`].
    pub fn write(&mut self, path: &Path) -> Result<(), Error> {
        self.prepare(path)?.finish()
    }

    /// Writes it under its name for the time being.
    pub(crate) fn prepare(&mut self, path: &Path) -> Result<files::Making, Error> {
        let bytes = self.to_bytes();
        if bytes.len() as u64 > BYTES_MAX {
            return Err(Refusal::new(format!("the sidecar would have {} bytes", bytes.len()))).of(path);
        }
        files::prepare(path, &bytes)
    }

    /// The verdict of the hour for markets without an exception.
    pub fn verdict(&self) -> Verdict {
        Verdict::named(&self.verdict).unwrap_or(Verdict::Quarantined)
    }

    /// The verdict of one market.
    pub fn verdict_of(&self, condition: &Condition) -> Verdict {
        let text = condition.to_string();
        let found = self.exceptions.binary_search_by(|exception| exception.condition_id.as_str().cmp(&text));
        let own = found.ok().and_then(|at| Verdict::named(&self.exceptions[at].verdict));
        own.unwrap_or_else(|| self.verdict())
    }

    /// Whether a gap of a token begins after a moment and not after another, in milliseconds: its book is unknown then
    /// if it had no whole book since.
    pub fn has_gap(&self, token: &str, since: u64, until: u64) -> bool {
        self.gaps.iter().any(|gap| gap.begins_within(token, since, until))
    }

    /// The same for many questions.
    pub(crate) fn gaps_by_token(&self) -> Gaps {
        let mut gaps = Gaps::default();
        for Gap { from, tokens, .. } in &self.gaps {
            match tokens {
                None => gaps.of_all.push(*from),
                Some(tokens) => {
                    for token in tokens {
                        gaps.by_token.entry(token.as_str().into()).or_default().push(*from);
                    }
                }
            }
        }
        gaps.of_all.sort_unstable();
        gaps.by_token.values_mut().for_each(|begins| begins.sort_unstable());
        gaps
    }

    /// Where the recording begins in a partial hour, and where it ends there: `None` where it goes on over the border of
    /// the hour, as it does with a message within a minute of it.
    pub fn recorded(&self, hour: Hour) -> (Option<Timestamp>, Option<Timestamp>) {
        const NEAR_MS: u64 = 60_000;
        let (begin, end) = (hour.start().millis(), hour.end().millis());
        let first = self.first_received.unwrap_or(end);
        let last = self.last_received.unwrap_or(begin);
        let begins = (first > begin + NEAR_MS).then(|| Timestamp::from_millis(first));
        (begins, (last + NEAR_MS < end).then(|| Timestamp::from_millis(last)))
    }

    /// Sets the counts of rows, in the order of [`Kind::ALL`].
    pub fn set_rows(&mut self, counts: [u64; Kind::ALL.len()]) {
        self.rows = Kind::ALL.into_iter().zip(counts).map(|(kind, count)| (kind.name().to_owned(), count)).collect();
    }

    /// Sets verdict and exceptions by the other fields and by these facts (gateway/docs/archive.md §3.1).
    pub fn judge(&mut self, facts: HourFacts, markets: impl IntoIterator<Item = (Condition, MarketFacts)>) {
        self.verdict = self.verdict_of_hour(facts).name().to_owned();
        self.except(markets);
    }

    /// Sets the exceptions by the verdict, the other fields and these facts.
    pub(crate) fn except(&mut self, markets: impl IntoIterator<Item = (Condition, MarketFacts)>) {
        let verdict = self.verdict();
        self.exceptions.clear();
        for (condition, of) in markets {
            let (mut own, mut reason) = (verdict, String::new());
            if let Some(gap) = of.gap_ms_max {
                let by_gap = if gap > OUTAGE_MS_MAX { Verdict::Quarantined } else { Verdict::Degraded };
                if is_worse(by_gap, own) {
                    (own, reason) = (by_gap, format!("a gap of {gap} ms"));
                }
            }
            let by_prices = of_prices(of.compared, of.differs);
            if self.frames.dropped.is_none() && is_worse(by_prices, own) {
                (own, reason) = (by_prices, format!("{} of {} best prices differ", of.differs, of.compared));
            }
            if own != verdict {
                let (condition_id, verdict) = (condition.to_string(), own.name().to_owned());
                self.exceptions.push(ExceptionOf { condition_id, reason, verdict });
            }
        }
        self.exceptions.sort();
    }

    fn verdict_of_hour(&self, facts: HourFacts) -> Verdict {
        // Gaps that name their tokens are those markets' own.
        let of_all = || self.gaps.iter().filter(|gap| gap.tokens.is_none());
        let longest = of_all().map(|gap| gap.to.saturating_sub(gap.from)).max();
        let by_gaps = match longest {
            Some(longest) if longest > OUTAGE_MS_MAX => Verdict::Quarantined,
            Some(_) => Verdict::Degraded,
            None => Verdict::Valid,
        };
        let by_losses = match self.frames.dropped {
            Some(0) => Verdict::Valid,
            Some(_) => Verdict::Degraded,
            None if self.minutes_empty == 0 => Verdict::Valid,
            None if self.minutes_empty <= MINUTES_EMPTY_MAX => Verdict::Degraded,
            None => Verdict::Quarantined,
        };
        let mut verdict = if is_worse(by_losses, by_gaps) { by_losses } else { by_gaps };
        if facts.is_merged && is_worse(Verdict::Degraded, verdict) {
            verdict = Verdict::Degraded;
        }
        if facts.is_partial && is_worse(Verdict::Partial, verdict) {
            verdict = Verdict::Partial;
        }
        verdict
    }

    /// Start of the hour.
    pub fn start(&self) -> Option<Timestamp> {
        self.hour.parse::<Hour>().ok().map(Hour::start)
    }
}

fn of_prices(compared: u64, differs: u64) -> Verdict {
    let [valid, degraded] = DIFFERS_ONE_IN.map(|one_in| differs.saturating_mul(one_in) <= compared);
    match (valid, degraded) {
        (true, _) => Verdict::Valid,
        (false, true) => Verdict::Degraded,
        (false, false) => Verdict::Quarantined,
    }
}

fn is_worse(one: Verdict, other: Verdict) -> bool {
    let rank = |verdict: Verdict| match verdict {
        Verdict::Valid => 0,
        Verdict::Degraded => 1,
        Verdict::Partial => 2,
        Verdict::Quarantined => 3,
        Verdict::Missing => 4,
    };
    rank(one) > rank(other)
}

/// SHA-256 of an object without its digest, as compact JSON with sorted keys.
fn digest(value: &Value) -> String {
    let mut value = value.clone();
    if let Some(object) = value.as_object_mut() {
        object.remove("digest");
    }
    files::hex(&Sha256::digest(sorted(&value)))
}

/// Compact JSON with sorted keys.
fn sorted(value: &Value) -> Vec<u8> {
    fn sort(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let sorted: BTreeMap<&String, Value> = fields.iter().map(|(key, value)| (key, sort(value))).collect();
                Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect())
            }
            Value::Array(values) => Value::Array(values.iter().map(sort).collect()),
            other => other.clone(),
        }
    }
    sort(value).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Chance, condition};

    fn example() -> Sidecar {
        let mut sidecar = Sidecar {
            built_by: "papertape 0.1.0".to_owned(),
            hour: "2026-09-30T17".to_owned(),
            venue: "polymarket".to_owned(),
            verdict: "valid".to_owned(),
            version: VERSION,
            gaps: vec![Gap { from: 5, to: 9, tokens: Some(vec!["1".to_owned()]), ..Gap::default() }],
            ..Sidecar::default()
        };
        sidecar.set_rows([1, 2, 3, 4]);
        sidecar
    }

    #[test]
    fn a_sidecar_is_read_back() {
        let mut sidecar = example();
        let bytes = sidecar.to_bytes();
        assert_eq!(Sidecar::of_bytes(&bytes), Ok(sidecar.clone()));
        let value: Value = serde_json::from_slice(&bytes).expect("JSON");
        let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
        assert!(keys.is_sorted() && keys.len() == 24, "{keys:?}");
        assert!(serde_json::to_value(&sidecar).expect("JSON").as_object().expect("an object").keys().is_sorted());
        // Fields of later versions are under the digest as well.
        let mut extended = value.clone();
        extended["later"] = Value::from(1);
        assert!(Sidecar::of_bytes(&sorted(&extended)).is_err());
        extended["digest"] = Value::String(digest(&extended));
        assert!(Sidecar::of_bytes(&sorted(&extended)).is_ok());
        println!("sidecars: 3 cases");
    }

    #[test]
    fn damaged_sidecars_are_refused() {
        let bytes = example().to_bytes();
        let (mut chance, mut cases) = (Chance::seeded(31), 0);
        for _ in 0..5_000 {
            let mut damaged = bytes.clone();
            let at = chance.below(damaged.len() as u64) as usize;
            match chance.below(3) {
                0 => damaged.truncate(at),
                1 => damaged[at] = chance.draw() as u8,
                _ => drop(damaged.remove(at)),
            }
            if let Ok(read) = Sidecar::of_bytes(&damaged) {
                assert_eq!(read, Sidecar::of_bytes(&bytes).expect("a sidecar"), "{at}");
            }
            cases += 1;
        }
        for (field, value) in
            [("version", Value::from(2)), ("verdict", Value::from("good")), ("hour", Value::from("2026-09-30"))]
        {
            let mut value_of: Value = serde_json::from_slice(&bytes).expect("JSON");
            value_of[field] = value;
            value_of["digest"] = Value::String(digest(&value_of));
            assert!(Sidecar::of_bytes(&sorted(&value_of)).is_err(), "{field}");
            cases += 1;
        }
        let nested = "[".repeat(100_000);
        assert!(Sidecar::of_bytes(nested.as_bytes()).is_err());
        println!("damaged sidecars: {} cases", cases + 1);
    }

    #[test]
    fn lists_of_tokens_that_do_not_fit_are_all_tokens() {
        let mut sidecar = example();
        let tokens: Vec<String> = (0..30_000).map(|number| format!("{number:078}")).collect();
        sidecar.gaps =
            (0..1_200).map(|from| Gap { from, tokens: Some(tokens[..900].to_vec()), ..Gap::default() }).collect();
        sidecar.gaps[7].tokens = Some(tokens);
        let bytes = sidecar.to_bytes();
        assert!(bytes.len() as u64 <= BYTES_MAX);
        assert_eq!((sidecar.gaps.len(), &sidecar.gaps[7].tokens), (GAPS_MAX, &None));
        assert!(sidecar.gaps.iter().any(|gap| gap.tokens.is_some()));
        assert_eq!(Sidecar::of_bytes(&bytes), Ok(sidecar));
        println!("long lists: 1 case");
    }

    /// Dropped frames, empty minutes, a gap of all, partial, merged; the verdict of the hour.
    type OfHour = (Option<u64>, u64, Option<u64>, bool, bool, Verdict);

    #[test]
    fn verdicts_of_hours() {
        use Verdict::{Degraded, Partial, Quarantined, Valid};
        let cases: [OfHour; 13] = [
            (Some(0), 60, None, false, false, Valid),
            (Some(1), 0, None, false, false, Degraded),
            (Some(0), 0, Some(600_000), false, false, Degraded),
            (Some(0), 0, Some(600_001), false, false, Quarantined),
            (None, 0, None, false, false, Valid),
            (None, 1, None, false, false, Degraded),
            (None, 10, None, false, false, Degraded),
            (None, 11, None, false, false, Quarantined),
            (Some(0), 0, None, true, false, Partial),
            (Some(3), 0, None, true, false, Partial),
            (None, 11, None, true, false, Quarantined),
            (Some(0), 0, None, false, true, Degraded),
            (None, 11, None, false, true, Quarantined),
        ];
        for case in cases {
            let (dropped, minutes_empty, gap, is_partial, is_merged, expected) = case;
            let mut sidecar = Sidecar { minutes_empty, ..example() };
            sidecar.frames.dropped = dropped;
            sidecar.gaps.extend(gap.map(|len| Gap { from: 100, to: 100 + len, ..Gap::default() }));
            sidecar.judge(HourFacts { is_partial, is_merged }, []);
            assert_eq!(sidecar.verdict(), expected, "{case:?}");
        }
        println!("verdicts of hours: {} cases", cases.len());
    }

    #[test]
    fn verdicts_of_markets() {
        use Verdict::{Degraded, Partial, Quarantined, Valid};
        let facts = |compared, differs, gap_ms_max| MarketFacts { compared, differs, gap_ms_max };
        let cases = [
            (None, false, facts(0, 0, None), Valid),
            (None, false, facts(1_000, 1, None), Valid),
            (None, false, facts(999, 1, None), Degraded),
            (None, false, facts(1_000, 20, None), Degraded),
            (None, false, facts(1_000, 21, None), Quarantined),
            (None, true, facts(1_000, 20, None), Partial),
            (None, true, facts(1_000, 21, None), Quarantined),
            // A recorder that counts its losses needs no estimate.
            (Some(0), false, facts(10, 10, None), Valid),
            (Some(0), false, facts(0, 0, Some(1)), Degraded),
            (Some(0), false, facts(0, 0, Some(600_001)), Quarantined),
            (Some(1), false, facts(0, 0, Some(1)), Degraded),
        ];
        for (dropped, is_partial, of, expected) in cases {
            let mut sidecar = example();
            sidecar.frames.dropped = dropped;
            sidecar.judge(
                HourFacts { is_partial, is_merged: false },
                [(condition(1), of), (condition(2), facts(0, 0, None))],
            );
            assert_eq!(sidecar.verdict_of(&condition(1)), expected, "{dropped:?} {of:?}");
            assert_eq!(sidecar.verdict_of(&condition(2)), sidecar.verdict());
            assert_eq!(sidecar.exceptions.len(), usize::from(expected != sidecar.verdict()));
        }
        println!("verdicts of markets: {} cases", cases.len());
    }

    #[test]
    fn gaps_of_tokens() {
        let mut sidecar = example();
        sidecar.gaps.push(Gap { from: 20, to: 21, ..Gap::default() });
        for (token, since, until, expected) in [
            ("1", 0, 4, false),
            ("1", 0, 5, true),
            ("1", 5, 5, true),
            ("1", 6, 19, false),
            ("2", 0, 19, false),
            ("2", 0, 20, true),
            ("2", 21, 99, false),
        ] {
            assert_eq!(sidecar.has_gap(token, since, until), expected, "{token} {since} {until}");
            assert_eq!(sidecar.gaps_by_token().has(token, since, until), expected, "{token} {since} {until}");
        }
        println!("gaps: 7 cases");
    }
}
