//! What is counted while the lines of one hour of one venue are read: for the sidecar.

use crate::FeedUpdate;
use crate::live::recorder::{NOT_WRITTEN, TOO_LONG, TOO_SLOW};
use crate::skips::{Skip, Skips};
use ahash::{AHashMap, AHashSet};
use engine::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wincode::{SchemaRead, SchemaWrite};

/// Reasons with which the recorder marks messages that it dropped.
const LOSSES: [&str; 3] = [TOO_SLOW, NOT_WRITTEN, TOO_LONG];

/// Counts of one hour.
pub struct Tally {
    /// Lines of the venue.
    pub received: u64,
    pub unfit: u64,
    /// Losses that the recorder marked. Each is at least one message.
    pub losses: u64,
    pub steps_back: u64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// Numbers of the tape's files that have a line of the hour, and the count of these lines.
    pub files: BTreeMap<usize, u64>,
    begins: Timestamp,
    /// A bit for each minute with a line.
    minutes: u64,
    lags: Lags,
    /// Skips of the venue's lines so far.
    skips: Counted,
}

/// Counts of skipped parts by what the sidecar calls them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SchemaWrite, SchemaRead)]
pub struct Counted {
    pub unreadable: u64,
    pub unlisted: u64,
    /// Levels and prices that no column holds.
    pub unfit: u64,
    pub deduped: u64,
}

impl Counted {
    /// The present counts.
    pub fn of(skips: &Skips) -> Counted {
        let mut counted = Counted::default();
        for kind in Skip::ALL {
            let count = skips.get(*kind);
            match kind {
                Skip::BadJson
                | Skip::UnknownType
                | Skip::MissingField
                | Skip::BadNumber
                | Skip::UnknownLine
                | Skip::LineTooLong
                | Skip::UnreadableFile => counted.unreadable += count,
                Skip::Unlisted => counted.unlisted += count,
                Skip::PriceTooFine | Skip::PriceOutOfRange => counted.unfit += count,
                Skip::Duplicate => counted.deduped += count,
                // About listings, or decisions of the fold that lose nothing that a book needs.
                Skip::TextTooLong
                | Skip::UnknownTick
                | Skip::NotBinary
                | Skip::BelowZero
                | Skip::SequenceGap
                | Skip::NoSnapshot
                | Skip::OutOfOrder
                | Skip::UnsupportedResult
                | Skip::ResultsDisagree
                | Skip::HashDiffers
                | Skip::HttpStatus
                | Skip::UnusableFees => {}
            }
        }
        counted
    }

    /// What was counted since an earlier moment.
    pub fn since(self, before: Counted) -> Counted {
        Counted {
            unreadable: self.unreadable - before.unreadable,
            unlisted: self.unlisted - before.unlisted,
            unfit: self.unfit - before.unfit,
            deduped: self.deduped - before.deduped,
        }
    }

    /// Both together.
    pub fn plus(self, more: Counted) -> Counted {
        Counted {
            unreadable: self.unreadable + more.unreadable,
            unlisted: self.unlisted + more.unlisted,
            unfit: self.unfit + more.unfit,
            deduped: self.deduped + more.deduped,
        }
    }
}

impl Tally {
    /// Of the hour with this number.
    pub fn of_hour(hour: u32) -> Tally {
        Tally {
            received: 0,
            unfit: 0,
            losses: 0,
            steps_back: 0,
            first: None,
            last: None,
            files: BTreeMap::new(),
            begins: Timestamp::of_hour(hour),
            minutes: 0,
            lags: Lags::default(),
            skips: Counted::default(),
        }
    }

    /// Notes a line. `stated_at`: the time that it states; `at`: the highest so far, at which it counts; `skipped`: what
    /// was skipped since the line before it.
    pub fn line(&mut self, file: usize, stated_at: Timestamp, at: Timestamp, skipped: Counted) {
        const MINUTES: u64 = 60;
        self.received += 1;
        *self.files.entry(file).or_default() += 1;
        self.steps_back += u64::from(stated_at < at);
        self.first.get_or_insert(at);
        self.last = Some(at);
        let minute = at.since(self.begins) / engine::time::MINUTE;
        self.minutes |= 1 << minute.min(MINUTES - 1);
        self.skips = self.skips.plus(skipped);
    }

    /// Notes the updates of a line: how old they are, and whether it marks a loss of the recorder.
    pub fn updates(&mut self, updates: &[FeedUpdate], at: Timestamp) {
        for update in updates {
            match update {
                FeedUpdate::BookSnapshot { venue_ts, .. }
                | FeedUpdate::BookDelta { venue_ts, .. }
                | FeedUpdate::LastTrade { venue_ts, .. } => self.lags.note(at.since(*venue_ts) / 1_000),
                FeedUpdate::Gap { reason, .. } if LOSSES.contains(&reason.as_str()) => self.losses += 1,
                _ => {}
            }
        }
    }

    /// Minutes of the hour without a line.
    pub fn minutes_empty(&self) -> u32 {
        60 - self.minutes.count_ones()
    }

    pub fn counted(&self) -> Counted {
        self.skips
    }

    /// Median and maximum of the time from the venue's clock to the receipt, in milliseconds; `None` without an event.
    pub fn lag_ms(&self) -> Option<(u64, u64)> {
        self.lags.median_and_max()
    }
}

/// Counts of durations, exact up to 1,000 ms and to three digits above.
#[derive(Default)]
struct Lags(BTreeMap<u64, u64>);

impl Lags {
    fn note(&mut self, millis: u64) {
        let digits = millis.checked_ilog10().unwrap_or(0).saturating_sub(2);
        let step = 10_u64.pow(digits);
        *self.0.entry(millis / step * step).or_default() += 1;
    }

    fn median_and_max(&self) -> Option<(u64, u64)> {
        let (max, _) = self.0.last_key_value()?;
        let middle = self.0.values().sum::<u64>().div_ceil(2);
        let mut count = 0;
        let median = self.0.iter().find(|(_, more)| {
            count += **more;
            count >= middle
        });
        median.map(|(median, _)| (*median, *max))
    }
}

/// A time without messages of some tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub from: Timestamp,
    pub to: Timestamp,
    pub connection: String,
    /// The tokens whose books are unknown from its begin to their next snapshot.
    pub tokens: Vec<Arc<str>>,
    /// No other token of the venue had a book.
    pub is_of_all: bool,
    pub reason: String,
}

/// Follows gaps of a venue from hour to hour.
///
/// A gap ends when the last of its tokens that comes back has a new snapshot. A token that does not come back in the
/// hour is not followed any more, unless none does.
#[derive(Default)]
pub struct Gaps {
    /// Connection of each token that has a book.
    carried: AHashMap<Arc<str>, u8>,
    open: Vec<Open>,
    ended: Vec<Gap>,
}

/// [`Gaps`] as bytes. Between two hours none has ended or resumed.
#[derive(SchemaWrite, SchemaRead)]
pub(super) struct SavedGaps {
    carried: Vec<(String, u8)>,
    open: Vec<SavedGap>,
}

#[derive(SchemaWrite, SchemaRead)]
struct SavedGap {
    from: Timestamp,
    to: Timestamp,
    connection: String,
    tokens: Vec<String>,
    is_of_all: bool,
    reason: String,
    waiting: Vec<String>,
}

struct Open {
    gap: Gap,
    waiting: AHashSet<Arc<str>>,
    /// When the last of its tokens came back.
    resumed: Option<Timestamp>,
}

impl Gaps {
    /// Notes the updates of a line of this connection.
    pub fn note(&mut self, connection: u8, name: &str, updates: &[FeedUpdate], at: Timestamp) {
        for update in updates {
            match update {
                FeedUpdate::BookSnapshot { token, .. } => {
                    self.carried.insert(token.clone(), connection);
                    self.resume(token, at);
                }
                FeedUpdate::Gap { tokens, reason } => {
                    let of_connection = || self.carried.iter().filter(|(_, of)| **of == connection);
                    let tokens: BTreeSet<Arc<str>> = match tokens.is_empty() {
                        true => of_connection().map(|(token, _)| token.clone()).collect(),
                        false => tokens.iter().map(|token| token.as_str().into()).collect(),
                    };
                    for token in &tokens {
                        self.carried.remove(token);
                    }
                    let is_of_all = self.carried.is_empty();
                    self.begin(name, (tokens, is_of_all), reason, at);
                }
                _ => {}
            }
        }
    }

    fn begin(
        &mut self,
        connection: &str,
        (tokens, is_of_all): (BTreeSet<Arc<str>>, bool),
        reason: &str,
        at: Timestamp,
    ) {
        // A connection that carried no book yet has lost nothing, and a second gap of the same tokens adds nothing.
        let waits = |token: &Arc<str>| self.open.iter().any(|open| open.waiting.contains(token));
        if tokens.iter().all(waits) {
            return;
        }
        let gap = Gap {
            from: at,
            to: at,
            connection: connection.into(),
            tokens: tokens.iter().cloned().collect(),
            is_of_all,
            reason: reason.into(),
        };
        self.open.push(Open { gap, waiting: tokens.into_iter().collect(), resumed: None });
    }

    fn resume(&mut self, token: &Arc<str>, at: Timestamp) {
        for open in &mut self.open {
            if open.waiting.remove(token) {
                open.resumed = Some(at);
            }
        }
        let is_over = |open: &Open| open.waiting.is_empty();
        for open in self.open.extract_if(.., |open| is_over(open)) {
            self.ended.push(Gap { to: at, ..open.gap });
        }
    }

    /// The gaps of an hour until now, in order of time, as [`Gaps::end_hour`] will have them but for their ends.
    pub(super) fn so_far(&self, begins: Timestamp) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = self.ended.iter().chain(self.open.iter().map(|open| &open.gap)).cloned().collect();
        gaps.iter_mut().for_each(|gap| gap.from = gap.from.max(begins));
        gaps.sort_by_key(|gap| gap.from);
        gaps
    }

    /// What later gaps depend on, between two hours.
    pub(super) fn save(&self) -> SavedGaps {
        let open = |open: &Open| {
            let Gap { from, to, connection, tokens, is_of_all, reason } = &open.gap;
            SavedGap {
                from: *from,
                to: *to,
                connection: connection.clone(),
                tokens: tokens.iter().map(|token| token.to_string()).collect(),
                is_of_all: *is_of_all,
                reason: reason.clone(),
                waiting: open.waiting.iter().map(|token| token.to_string()).collect(),
            }
        };
        SavedGaps {
            carried: self.carried.iter().map(|(token, connection)| (token.to_string(), *connection)).collect(),
            open: self.open.iter().map(open).collect(),
        }
    }

    /// Continues after [`Gaps::save`].
    pub(super) fn restored(SavedGaps { carried, open }: SavedGaps) -> Gaps {
        let restored = |SavedGap { from, to, connection, tokens, is_of_all, reason, waiting }: SavedGap| Open {
            gap: Gap { from, to, connection, tokens: tokens.into_iter().map(Arc::from).collect(), is_of_all, reason },
            waiting: waiting.into_iter().map(Arc::from).collect(),
            resumed: None,
        };
        Gaps {
            carried: carried.into_iter().map(|(token, connection)| (Arc::from(token), connection)).collect(),
            open: open.into_iter().map(restored).collect(),
            ended: Vec::new(),
        }
    }

    /// The gaps of an hour that ends now, in order of time. Those of which no token came back continue in the next one.
    pub fn end_hour(&mut self, begins: Timestamp, ends: Timestamp) -> Vec<Gap> {
        let mut gaps = std::mem::take(&mut self.ended);
        for mut open in std::mem::take(&mut self.open) {
            gaps.push(Gap { to: open.resumed.unwrap_or(ends), ..open.gap.clone() });
            if open.resumed.is_none() {
                open.gap.from = ends;
                self.open.push(open);
            }
        }
        // A gap may have begun before an hour without any line.
        gaps.iter_mut().for_each(|gap| gap.from = gap.from.max(begins));
        gaps.sort_by_key(|gap| gap.from);
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::time::HOUR;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(500_000 * 3_600 + second)
    }

    fn book(token: &str) -> FeedUpdate {
        FeedUpdate::BookSnapshot { token: token.into(), bids: vec![], asks: vec![], venue_ts: at(0), hash: None }
    }

    fn gap(tokens: &[&str]) -> FeedUpdate {
        FeedUpdate::Gap { tokens: tokens.iter().map(|&token| token.into()).collect(), reason: "test".into() }
    }

    #[test]
    fn a_gap_ends_when_its_tokens_come_back() {
        let mut gaps = Gaps::default();
        let steps = [
            // second, connection, update
            (0, 0, book("1")),
            (1, 0, book("2")),
            (2, 1, book("3")),
            (10, 0, gap(&[])),
            (11, 0, gap(&[])),
            (20, 0, book("1")),
            (30, 0, book("2")),
            (40, 1, gap(&["3"])),
            (50, 2, gap(&[])),
            (60, 0, gap(&[])),
            (70, 0, book("2")),
        ];
        for (second, connection, update) in &steps {
            gaps.note(*connection, &format!("ws-{connection}"), std::slice::from_ref(update), at(*second));
        }
        let seen = |gaps: Vec<Gap>| -> Vec<(u64, u64, usize, String)> {
            let second = |moment: Timestamp| moment.since(at(0)) / 1_000_000;
            gaps.into_iter().map(|gap| (second(gap.from), second(gap.to), gap.tokens.len(), gap.connection)).collect()
        };
        let ends = at(0).plus(HOUR);
        let expected =
            [(10, 30, 2, "ws-0".to_owned()), (40, 3_600, 1, "ws-1".to_owned()), (60, 70, 2, "ws-0".to_owned())];
        assert_eq!(seen(gaps.end_hour(at(0), ends)), expected);
        gaps.note(1, "ws-1", &[book("3")], at(3_700));
        assert_eq!(seen(gaps.end_hour(ends, ends.plus(HOUR))), [(3_600, 3_700, 1, "ws-1".to_owned())]);
        assert_eq!(gaps.end_hour(ends, ends.plus(2 * HOUR)), []);
        println!("gaps: {} steps", steps.len());
    }

    #[test]
    fn minutes_steps_and_lags() {
        let mut tally = Tally::of_hour(500_000);
        for (file, stated, counts_at) in [(0, 0, 0), (0, 59, 59), (1, 130, 130), (1, 125, 130), (1, 3_599, 3_599)] {
            tally.line(file, at(stated), at(counts_at), Counted::default());
        }
        assert_eq!((tally.received, tally.steps_back, tally.minutes_empty()), (5, 1, 57));
        assert_eq!((tally.first, tally.last), (Some(at(0)), Some(at(3_599))));
        assert_eq!(tally.files.into_iter().collect::<Vec<_>>(), [(0, 2), (1, 3)]);
        let mut lags = Lags::default();
        assert_eq!(lags.median_and_max(), None);
        [3, 1, 2, 999, 123_456].into_iter().for_each(|millis| lags.note(millis));
        assert_eq!(lags.median_and_max(), Some((3, 123_000)));
        println!("tally: 6 cases");
    }
}
