//! A strict parser of `GET /metrics`: each family once with help and type, units in names, every row of its family's
//! kind, histograms that rise to their count, and the end mark.

use crate::binary::workspace;
use crate::http::{Response, ask_raw};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;

const UNITS: [&str; 2] = ["seconds", "bytes"];

/// One answer.
#[derive(Debug)]
pub struct Exposition {
    families: BTreeMap<String, Family>,
}

#[derive(Debug)]
struct Family {
    kind: String,
    /// Rows by their full name and labels.
    rows: BTreeMap<(String, Labels), f64>,
}

type Labels = Vec<(String, String)>;

/// Sends a request to a metrics listener.
pub fn ask(address: SocketAddr, method: &str, target: &str) -> Option<Response> {
    ask_raw(address, format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
}

/// Reads the metrics, which must succeed.
#[track_caller]
pub fn scrape(address: SocketAddr) -> Exposition {
    let answer = ask(address, "GET", "/metrics").expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.lossy());
    assert_eq!(
        answer.header("Content-Type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "the text format names itself"
    );
    Exposition::read(answer.text()).unwrap_or_else(|why| panic!("{why} in:\n{}", answer.text()))
}

impl Exposition {
    /// Parses a whole text.
    ///
    /// # Errors
    /// The first violation of the format.
    pub fn read(text: &str) -> Result<Exposition, String> {
        let body = text.strip_suffix("# EOF\n").ok_or("no end mark")?;
        if !body.is_empty() && !body.ends_with('\n') {
            return Err("a line without its end".into());
        }
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let (mut helped, mut open) = (String::new(), String::new());
        for line in body.lines() {
            let wrong = |what: &str| format!("{what}: {line:?}");
            if let Some(rest) = line.strip_prefix("# ") {
                let mut words = rest.splitn(3, ' ');
                let (what, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                let word = words.next().unwrap_or_default();
                if !is_name(name) || word.is_empty() {
                    return Err(wrong("a name and a text were expected"));
                }
                match what {
                    "HELP" => helped = name.to_owned(),
                    "TYPE" if helped == name => {
                        if !["counter", "gauge", "histogram", "info"].contains(&word) {
                            return Err(wrong("an unknown type"));
                        }
                        let family = Family { kind: word.to_owned(), rows: BTreeMap::new() };
                        if families.insert(name.to_owned(), family).is_some() {
                            return Err(wrong("a family twice"));
                        }
                        open = name.to_owned();
                    }
                    "UNIT" if open == name && UNITS.contains(&word) && name.ends_with(&format!("_{word}")) => {}
                    _ => return Err(wrong("a line out of place")),
                }
                continue;
            }
            let (name, labels, value) = row(line).ok_or_else(|| wrong("not a row"))?;
            let family = families.get_mut(&open).ok_or_else(|| wrong("a row without its family"))?;
            let suffix = name.strip_prefix(open.as_str()).ok_or_else(|| wrong("a row of another family"))?;
            let fits = match family.kind.as_str() {
                "counter" => suffix == "_total" && value >= 0.0,
                "gauge" => suffix.is_empty(),
                "info" => suffix == "_info" && value == 1.0,
                _ => ["_bucket", "_sum", "_count"].contains(&suffix) && value >= 0.0,
            };
            if !fits || !value.is_finite() {
                return Err(wrong("a row that does not fit its family"));
            }
            if family.rows.insert((name, labels), value).is_some() {
                return Err(wrong("a row twice"));
            }
        }
        for (name, family) in families.iter().filter(|(_, family)| family.kind == "histogram") {
            sound_histogram(name, family)?;
        }
        Ok(Exposition { families })
    }

    /// Names as documented: with `_total` and `_info`.
    pub fn names(&self) -> BTreeSet<String> {
        let suffix = |kind: &str| match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        self.families.iter().map(|(name, family)| format!("{name}{}", suffix(&family.kind))).collect()
    }

    /// Every row, without its value.
    pub fn rows(&self) -> BTreeSet<String> {
        let rows = self.families.values().flat_map(|family| family.rows.keys());
        rows.map(|(name, labels)| format!("{name}{labels:?}")).collect()
    }

    /// The value of a row by its whole name, and labels in any order.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut labels: Labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        labels.sort();
        let wanted = (name.to_owned(), labels);
        self.families.values().find_map(|family| family.rows.get(&wanted)).copied()
    }

    /// A row that must be there.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.get(name, labels).unwrap_or_else(|| panic!("no row {name}{labels:?} among {:#?}", self.rows()))
    }

    /// Counters and the counts of histograms: values that may only rise.
    pub fn rising(&self) -> impl Iterator<Item = (&(String, Labels), f64)> {
        let families = self.families.values().filter(|family| ["counter", "histogram"].contains(&family.kind.as_str()));
        families.flat_map(|family| family.rows.iter().map(|(row, value)| (row, *value)))
    }
}

/// Buckets rise in their bounds and their counts, to infinity and to the count.
fn sound_histogram(name: &str, family: &Family) -> Result<(), String> {
    let of = |suffix: &str| {
        let whole = format!("{name}{suffix}");
        family.rows.iter().filter(move |((row, _), _)| *row == whole)
    };
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for ((_, labels), count) in of("_bucket") {
        let bound = labels.iter().find(|(name, _)| name == "le").ok_or_else(|| format!("{name}: no bound"))?;
        let bound = if bound.1 == "+Inf" { Ok(f64::INFINITY) } else { bound.1.parse::<f64>() };
        let bound = bound.map_err(|error| format!("{name}: {error}"))?;
        let others = labels.iter().filter(|(name, _)| name != "le").cloned().collect();
        series.entry(others).or_default().push((bound, *count));
    }
    if series.len() != of("_count").count() || series.len() != of("_sum").count() {
        return Err(format!("{name}: buckets, sums and counts are not of the same rows"));
    }
    for ((_, labels), count) in of("_count") {
        let buckets = series.get_mut(labels).ok_or_else(|| format!("{name}: a count without buckets"))?;
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let rises = buckets.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
        if !rises || buckets.last() != Some(&(f64::INFINITY, *count)) {
            return Err(format!("{name}: buckets {buckets:?} do not rise to {count}"));
        }
    }
    Ok(())
}

/// Name, labels in order, value.
fn row(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, value) = match rest.strip_prefix('{') {
        None => (Labels::new(), rest),
        Some(rest) => labels(rest)?,
    };
    let value = value.strip_prefix(' ')?;
    (is_name(name) && !value.contains(' ')).then_some(())?;
    Some((name.to_owned(), labels, value.parse().ok()?))
}

/// Labels up to the closing bracket, and the rest of the line.
fn labels(text: &str) -> Option<(Labels, &str)> {
    let (mut labels, mut rest) = (Labels::new(), text);
    while !rest.starts_with('}') {
        let (name, quoted) = rest.split_once("=\"")?;
        let (mut value, mut characters) = (String::new(), quoted.char_indices());
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    escaped @ ('"' | '\\') => escaped,
                    _ => return None,
                }),
                (_, plain) => value.push(plain),
            }
        };
        (is_name(name) && !labels.iter().any(|(known, _)| known == name)).then_some(())?;
        labels.push((name.to_owned(), value));
        rest = &quoted[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) if !more.starts_with('}') => rest = more,
            Some(_) => return None,
            None => {}
        }
    }
    labels.sort();
    Some((labels, &rest[1..]))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The families that `gateway/docs/metrics.md` names.
pub fn documented() -> BTreeSet<String> {
    let reference = fs::read_to_string(workspace().join("gateway/docs/metrics.md")).expect("the reference can be read");
    let words = reference.split('`').skip(1).step_by(2);
    let is_family = |word: &&str| {
        (word.starts_with("papertape_") || word.starts_with("process_"))
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    words.filter(is_family).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::Exposition;

    const SOUND: &str = "# HELP a_seconds How long.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
        a_seconds_sum{k=\"x\"} 0.5\na_seconds_count{k=\"x\"} 3\na_seconds_bucket{k=\"x\",le=\"0.1\"} 2\n\
        a_seconds_bucket{k=\"x\",le=\"+Inf\"} 3\n# HELP b How many.\n# TYPE b counter\nb_total 7\n\
        # HELP c What.\n# TYPE c gauge\nc{q=\"a\\\"b\"} -1\n# EOF\n";

    #[test]
    fn a_sound_text_is_read() {
        let read = Exposition::read(SOUND).expect("sound");
        assert_eq!(read.names().into_iter().collect::<Vec<_>>(), ["a_seconds", "b_total", "c"]);
        assert_eq!(read.get("b_total", &[]), Some(7.0));
        assert_eq!(read.get("c", &[("q", "a\"b")]), Some(-1.0));
        assert_eq!((read.rows().len(), read.rising().count()), (6, 5));
        println!("sound texts: 4 cases");
    }

    #[test]
    fn an_unsound_text_is_not() {
        let rows = [
            ("# EOF\n", ""),
            ("# HELP b How many.\n", ""),
            ("# TYPE b counter\n", "# TYPE b counting\n"),
            ("b_total 7", "b 7"),
            ("b_total 7", "b_total -7"),
            ("b_total 7", "b_total seven"),
            ("b_total 7", "b_total 7\nb_total 7"),
            ("b_total 7", "c 7"),
            ("# HELP c", "# HELP b"),
            ("# UNIT a_seconds seconds", "# UNIT a_seconds bytes"),
            ("le=\"+Inf\"} 3", "le=\"+Inf\"} 4"),
            ("le=\"0.1\"} 2", "le=\"0.1\"} 9"),
            ("le=\"0.1\"", "le=\"+Inf\",x=\"y\""),
            ("a_seconds_sum{k=\"x\"} 0.5\n", ""),
            ("{k=\"x\",le=\"0.1\"}", "{k=\"x\",k=\"y\",le=\"0.1\"}"),
            ("{q=\"a\\\"b\"}", "{q=\"a\"b\"}"),
            ("{q=\"a\\\"b\"}", "{q=\"a\",}"),
        ];
        for (from, to) in rows {
            assert!(SOUND.contains(from), "{from}");
            let text = SOUND.replacen(from, to, 1);
            assert!(Exposition::read(&text).is_err(), "{from:?} became {to:?}");
        }
        println!("unsound texts: {} cases", rows.len());
    }
}
