//! `doctor --rehearse`: what the rehearsal of the venue's checks found, from the facts in the log (gateway/docs/rehearsal.md
//! §5). Never writes to the data directory, and needs no lock.

use crate::Failure;
use crate::settings::print_line;
use clap::Args;
use edge::rehearsal::{about, explained};
use engine::describe::Words as _;
use engine::fact::StrictFound;
use engine::id::{KeyId, MARKETS, OrderId, UserId};
use engine::mutation::{Mutation, codec};
use engine::rehearsal::{Class, Diagnosis, Rule};
use engine::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use wal::{Files, Kind, Scan};
use wire::instant::ts_text;

#[derive(Args)]
pub struct Rehearsed {
    /// Show what the rehearsal of the venue's checks found in signed orders. Exit code 1 when the venue would refuse one.
    #[arg(long)]
    pub rehearse: bool,
    /// Only findings of this long before the newest record, such as 90s, 15m, 1h or 7d.
    #[arg(long, value_name = "SPAN", requires = "rehearse", value_parser = span)]
    since: Option<u64>,
    /// Only findings of the key with this id.
    #[arg(long, value_name = "ID", requires = "rehearse")]
    key: Option<u64>,
    /// Print JSON.
    #[arg(long, requires = "rehearse")]
    json: bool,
}

/// What was found.
#[derive(Debug, Default)]
struct Report {
    since: Option<Timestamp>,
    /// Orders by the worst class of their findings.
    orders: BTreeMap<Class, u64>,
    rows: BTreeMap<(Rule, Class), Row>,
}

/// Findings of one rule and class.
#[derive(Debug)]
struct Row {
    count: u64,
    first: Timestamp,
    last: Timestamp,
    /// The last key, the last order that has a row, and what was found in the last order.
    key: KeyId,
    order: Option<OrderId>,
    diagnosis: Diagnosis,
}

/// Parses a span of time, in µs.
fn span(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let unit = match unit {
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        "d" => DAY,
        _ => return Err("a span is a number with s, m, h or d, such as 1h".to_owned()),
    };
    let count: Option<u64> = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    count.and_then(|count| count.checked_mul(unit)).ok_or_else(|| format!("{digits:?} is not such a number"))
}

impl Rehearsed {
    /// Prints the report.
    ///
    /// # Errors
    /// The log cannot be read, or the venue would refuse an order.
    pub fn run(&self, dir: &Path) -> Result<(), Failure> {
        let report = Report::read(dir, self.since, self.key.map(KeyId))?;
        if self.json {
            print_line(report.json())
        } else {
            report.lines().iter().for_each(print_line)
        }
        let refused = report.orders.get(&Class::Refused).copied().unwrap_or(0);
        match refused {
            0 => Ok(()),
            _ => Err(format!("the venue would refuse {refused} of {} signed orders", report.sent()).into()),
        }
    }
}

impl Report {
    fn read(dir: &Path, span_us: Option<u64>, key: Option<KeyId>) -> Result<Report, Failure> {
        let storage = Files::open_existing(dir)?;
        let segments = wal::segments(&storage)?;
        let (mut scan, mut since) = (Scan::open_all(&storage)?, None);
        if let (Some(span), Some(last)) = (span_us, segments.last()) {
            let mut end = Scan::open(&storage, last.first_lsn.before())?;
            while end.next()?.is_some() {}
            let from = end.last_time().saturating_sub(span);
            since = Some(Timestamp(from));
            // The first segment that begins late enough is preceded by the one to begin with.
            for segment in segments.iter().rev() {
                let mut begin = Scan::open(&storage, segment.first_lsn.before())?;
                if begin.next()?.is_some_and(|entry| entry.time < from) {
                    scan = Scan::open(&storage, segment.first_lsn.before())?;
                    break;
                }
            }
        }
        let mut report = Report { since, ..Report::default() };
        while let Some(entry) = scan.next()? {
            // An earlier format does not have the fact.
            let is_of_user = entry.kind == Kind::Mutations && UserId(entry.owner) != MARKETS;
            if is_of_user && entry.version == codec::VERSION {
                codec::each::<Mutation>(entry.version, entry.payload, |fact| match fact {
                    Mutation::StrictFound(found) if key.is_none_or(|key| key == found.key) => report.add(found),
                    _ => {}
                })?;
            }
        }
        Ok(report)
    }

    fn add(&mut self, found: &StrictFound) {
        let StrictFound { key, rule, class, diagnosis, count, order, at } = *found;
        if self.since.is_some_and(|since| at < since) {
            return;
        }
        if rule == Rule::Orders {
            *self.orders.entry(class).or_default() += u64::from(count);
            return;
        }
        let row =
            self.rows.entry((rule, class)).or_insert(Row { count: 0, first: at, last: at, key, order, diagnosis });
        row.count += u64::from(count);
        (row.last, row.key, row.diagnosis) = (at, key, diagnosis);
        row.order = order.or(row.order);
    }

    fn sent(&self) -> u64 {
        self.orders.values().sum()
    }

    fn clean(&self) -> u64 {
        self.orders.get(&Class::Clean).copied().unwrap_or(0)
    }

    /// Clean orders in thousandths of all.
    fn clean_share(&self) -> u64 {
        match self.sent() {
            0 => 1_000,
            sent => self.clean() * 1_000 / sent,
        }
    }

    fn lines(&self) -> Vec<String> {
        let since = self.since.map(|since| format!(" since {}", ts_text(since))).unwrap_or_default();
        let share = self.clean_share();
        let mut lines = vec![
            format!("signed orders {}{since}", self.sent()),
            format!("clean {} ({}.{} %)", self.clean(), share / 10, share % 10),
        ];
        for ((rule, class), row) in &self.rows {
            let (asks, cure) = about(*rule);
            let order = row.order.map(|order| format!(", order {}", order.0)).unwrap_or_default();
            lines.push(format!("{} {} {}: {asks}", Rule::NAMES[*rule as usize], word(*class), row.count));
            lines.push(format!(
                "    first {}, last {}, key {}{order}",
                ts_text(row.first),
                ts_text(row.last),
                row.key.0
            ));
            lines.extend(explained(row.diagnosis).map(|text| format!("    diagnosis: {text}")));
            lines.push(format!("    cure: {cure}"));
        }
        lines
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|((rule, class), row)| {
                let (asks, cure) = about(*rule);
                json!({
                    "rule": Rule::NAMES[*rule as usize],
                    "class": word(*class),
                    "asks": asks,
                    "count": row.count,
                    "first": ts_text(row.first),
                    "last": ts_text(row.last),
                    "key": row.key.0,
                    "order": row.order.map(|order| order.0),
                    "diagnosis": explained(row.diagnosis),
                    "cure": cure,
                })
            })
            .collect();
        let classes: serde_json::Map<String, Value> =
            [Class::Clean, Class::Unverifiable, Class::Depends, Class::Refused]
                .into_iter()
                .map(|class| (word(class).to_owned(), self.orders.get(&class).copied().unwrap_or(0).into()))
                .collect();
        json!({
            "since": self.since.map(ts_text),
            "sent": self.sent(),
            "orders": classes,
            "clean_per_mille": self.clean_share(),
            "findings": rows,
        })
    }
}

fn word(class: Class) -> &'static str {
    match class {
        Class::Clean => "clean",
        Class::Unverifiable => "unverifiable",
        Class::Depends => "depends",
        Class::Refused => "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_unit() {
        let rows = [
            ("1h", Some(HOUR)),
            ("90s", Some(90 * SECOND)),
            ("15m", Some(15 * MINUTE)),
            ("7d", Some(7 * DAY)),
            ("0s", Some(0)),
            ("", None),
            ("h", None),
            ("1", None),
            ("-1h", None),
            ("+1h", None),
            ("1.5h", None),
            ("1 h", None),
            ("1w", None),
            ("1é", None),
            ("99999999999999999999h", None),
            ("18446744073709551615d", None),
        ];
        for (text, expected) in rows {
            assert_eq!(span(text).ok(), expected, "{text:?}");
        }
        println!("spans: {} cases", rows.len());
    }

    #[test]
    fn findings_add_up_by_rule_and_class() {
        let found = |rule, class, count, order: Option<u64>, at| StrictFound {
            key: KeyId(7),
            rule,
            class,
            diagnosis: Diagnosis::OtherChain,
            count,
            order: order.map(OrderId),
            at: Timestamp(at * SECOND),
        };
        let mut report = Report { since: Some(Timestamp(10 * SECOND)), ..Report::default() };
        for fact in [
            found(Rule::Orders, Class::Clean, 50, None, 9),
            found(Rule::Orders, Class::Clean, 2, Some(1), 10),
            found(Rule::S03, Class::Refused, 1, Some(2), 11),
            found(Rule::S07, Class::Depends, 1, Some(2), 11),
            found(Rule::Orders, Class::Refused, 1, Some(2), 11),
            found(Rule::S03, Class::Refused, 3, None, 70),
            found(Rule::Orders, Class::Refused, 3, None, 70),
        ] {
            report.add(&fact);
        }
        assert_eq!((report.sent(), report.clean(), report.clean_share()), (6, 2, 333));
        let json = report.json();
        assert_eq!(json["orders"], json!({"clean": 2, "unverifiable": 0, "depends": 0, "refused": 4}));
        assert_eq!(json["findings"][0]["rule"], "S03");
        let shown = |field: &str| json["findings"][0][field].clone();
        assert_eq!((shown("count"), shown("order"), shown("class")), (json!(4), json!(2), json!("refused")));
        assert_eq!((shown("first"), shown("last")), (json!("1970-01-01T00:00:11Z"), json!("1970-01-01T00:01:10Z")));
        let lines = report.lines();
        assert_eq!(lines[..2], ["signed orders 6 since 1970-01-01T00:00:10Z", "clean 2 (33.3 %)"]);
        assert!(lines[2].starts_with("S03 refused 4: "), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("S07 depends 1: ")), "{lines:?}");
        assert_eq!(Report::default().clean_share(), 1_000);
        println!("findings: 7 cases");
    }
}
