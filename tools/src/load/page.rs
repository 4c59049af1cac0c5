//! The report: one self-contained HTML page. It loads nothing and runs no script.

use super::chart::{self, escape};
use super::outcome::{Outcome, QUANTILES, Row, duration};
use std::fmt::Write as _;

/// Colours are named by what a curve shows; the page follows the reader's light or dark theme.
const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c2128; --paper: #ffffff; --faint: #8a929c; --grid: #d9dde2; --warn: #b3261e;
  --all: #1f5fbf; --rest: #2e8b57; --cross: #c2571a; --cancel: #7b4fb5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --paper: #14171b; --faint: #8a929c; --grid: #333a42;
  --warn: #ff8a80; --all: #6ea8ff; --rest: #63c98f; --cross: #f0955a; --cancel: #b593ec; } }
body { margin: 2rem auto; padding: 0 1rem; max-width: 60rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; } .figures td, .figures th { text-align: right; font-variant-numeric: tabular-nums; }
.figures td:first-child, .figures th:first-child { text-align: left; } th { font-weight: 600; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; } .warning { color: var(--warn); font-weight: 600; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--faint); }
.grid { stroke: var(--grid); } .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.all { stroke: var(--all); } .rest { stroke: var(--rest); } .cross { stroke: var(--cross); } .cancel { stroke: var(--cancel); }
.offered { stroke: var(--faint); stroke-dasharray: 6 4; } .refused { stroke: var(--warn); }
";

/// The whole page.
pub fn page(outcome: &Outcome) -> String {
    let mut out = String::new();
    write(outcome, &mut out).expect("writing to a string succeeds");
    out
}

fn write(outcome: &Outcome, out: &mut String) -> std::fmt::Result {
    let title = escape(&format!("Load of {}, {}", outcome.options.target, outcome.orders.since));
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">\n<style>{STYLE}</style>\n</head>\n<body>")?;
    writeln!(out, "<h1>{title}</h1>\n<pre>{}</pre>", escape(&outcome.options.command))?;
    writeln!(out, "<p>{}</p>", escape(outcome.loop_name()))?;
    for warning in outcome.warnings() {
        writeln!(out, "<p class=\"warning\">{}</p>", escape(&warning))?;
    }
    for (place, line) in outcome.compared.iter().flat_map(|compared| compared.lines()).enumerate() {
        let class = if place > 0 { " class=\"warning\"" } else { "" };
        writeln!(out, "<p{class}>check: {}</p>", escape(&line))?;
    }
    let rows = outcome.rows();
    table(outcome, &rows, out)?;
    let curves: Vec<_> = rows.iter().map(|row| (row.name, &row.latency)).collect();
    writeln!(out, "<h2>Latency by percentile</h2>\n{}", chart::percentiles(&curves))?;
    let series = &outcome.ran.tally.series;
    writeln!(out, "<h2>Answers over time</h2>\n{}", chart::throughput(series, outcome.ran.lasted, outcome.offered()))?;
    writeln!(out, "<h2>Counts</h2>\n<table>")?;
    for (name, count) in outcome.counts() {
        writeln!(out, "<tr><td>{}</td><td>{count}</td></tr>", escape(&name))?;
    }
    writeln!(out, "</table>\n<p>{}</p>\n<h2>Facts</h2>\n<table>", escape(&outcome.left()))?;
    for (name, value) in outcome.facts() {
        writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", escape(&name), escape(&value))?;
    }
    writeln!(out, "</table>\n</body>\n</html>")
}

fn table(outcome: &Outcome, rows: &[Row], out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "<h2>Figures</h2>\n<table class=\"figures\">\n<tr><th>operation</th><th>answers</th><th>a second</th>"
    )?;
    write!(out, "<th>refused</th>")?;
    for (name, _) in QUANTILES {
        write!(out, "<th>{name}</th>")?;
    }
    writeln!(out, "</tr>")?;
    for Row { name, counts, latency, achieved } in rows {
        write!(
            out,
            "<tr><td>{name}</td><td>{}</td><td>{achieved:.0}</td><td>{}</td>",
            counts.answered(),
            counts.refused
        )?;
        for (_, quantile) in QUANTILES {
            let shown =
                if latency.is_empty() { "–".to_owned() } else { duration(latency.value_at_quantile(quantile)) };
            write!(out, "<td>{}</td>", escape(&shown))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table>")?;
    match outcome.offered() {
        Some(offered) => writeln!(out, "<p>Offered: {offered:.0} operations a second.</p>"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::check::{Compared, Orders};
    use crate::load::drive::{Ran, Unopened};
    use crate::load::kind::Kind;
    use crate::load::options::{Mix, Rate, Target};
    use crate::load::outcome::RunOptions;
    use crate::load::protocol::Transport;
    use crate::load::tally::Tally;
    use engine::time::Timestamp;
    use serde_json::json;
    use std::time::Duration;

    /// Hostile texts in every field that the page shows.
    const HOSTILE: &str = "</td><script src='//x'>alert(\"1\")</script>&\u{0}";

    fn outcome(answers: u64, rate: Rate) -> Outcome {
        let second = Duration::from_secs(1);
        let mut tally = Tally::new(second);
        for number in 0..answers {
            let due = Duration::from_millis(number);
            let (status, code) = if number % 2 == 0 { (200, None) } else { (400, Some(HOSTILE)) };
            tally.offered += 2;
            tally.answered(Kind::ALL[number as usize % 3], due, 2 * due, status, code, status == 200);
        }
        tally.broken(HOSTILE);
        tally.came(Duration::ZERO, 2 * second);
        tally.unsent = 3;
        let mut compared = Compared::default();
        compared.missing.count = 1;
        compared.missing.ids = vec![HOSTILE.to_owned()];
        let machine = json!({"processor": HOSTILE}).as_object().cloned().expect("an object");
        Outcome {
            options: RunOptions {
                command: HOSTILE.to_owned(),
                target: Target { host: HOSTILE.to_owned(), port: 1, authority: HOSTILE.to_owned() },
                rate,
                duration: second,
                connections: 1,
                pipeline: 1,
                mix: Mix::parse("rest=50,cross=50").expect("it is valid"),
                transport: Transport::Rest,
                users: 1,
                tiers: HOSTILE.to_owned(),
            },
            ran: Ran {
                tally,
                lasted: second,
                interrupted: true,
                unopened: Unopened { count: 1, why: Some(HOSTILE.to_owned()) },
                waited: None,
                cores_used: Some(0.99),
                load_before: Some(HOSTILE.to_owned()),
                load_after: None,
                fates: Vec::new(),
                users_used: vec![vec![0]],
                resting: 1,
                cleaned: None,
            },
            orders: Orders {
                run: HOSTILE.to_owned(),
                since: HOSTILE.to_owned(),
                users: vec![1],
                carried: vec![vec![1]],
                fates: Vec::new(),
            },
            machine,
            server: json!({"version": {"version": HOSTILE}, "status": {"uptime_seconds": 7}}),
            restarted: Some(Timestamp(1_800_000_000_000_000)),
            compared: Some(compared),
        }
    }

    #[test]
    fn a_page_is_whole_and_loads_nothing() {
        let outcomes = [(0, Rate::Max), (1, Rate::PerSecond(1)), (1_000, Rate::PerSecond(1_000)), (999, Rate::Max)];
        for (answers, rate) in outcomes {
            let outcome = outcome(answers, rate);
            let page = page(&outcome);
            assert!(chart::check_well_formed(&page) > 100);
            assert_eq!(page.matches("<svg ").count(), 2);
            // The name of an XML vocabulary is not an address that is requested.
            let asked = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
            for outside in ["<script", "<link", "<img", "<iframe", " src=", " href=", "url(", "@import"] {
                let times = asked.matches(outside).count();
                let harmless = if outside == " src=" { HOSTILE.matches(outside).count() } else { 0 };
                assert!(times == 0 || harmless > 0, "{outside}: {times}");
            }
            assert!(!page.contains(HOSTILE), "shown unescaped");
        }
        println!("pages: {} cases", outcomes.len());
    }

    #[test]
    fn doubts_about_the_client_are_in_every_output() {
        let outcome = outcome(10, Rate::PerSecond(1_000));
        let (page, text, json) = (page(&outcome), crate::load::text::table(&outcome), outcome.json());
        let warnings = outcome.warnings();
        let expected = [
            "saturated: it used 99 %",
            "was late: 1 of 20 operations",
            "1 of 1 connections were not open",
            "answers a second were achieved of",
            "never sent",
            "refusals",
            "restarted during the run, at about 2027-01-15T08:00:00Z",
            "interrupted",
        ];
        for (warning, expected) in warnings.iter().zip(expected) {
            assert!(warning.contains(expected), "{warning}");
            assert!(page.contains(&escape(warning)) && text.contains(warning), "{warning}");
        }
        assert_eq!(warnings.len(), expected.len());
        assert_eq!(json["server_started_anew_at"], json!("2027-01-15T08:00:00Z"));
        assert_eq!((&json["client"]["saturated"], &json["warnings"]), (&json!(true), &json!(warnings)));
        let mut outcome = outcome;
        outcome.ran.cores_used = None;
        // A long pause counts, and a share of short ones. A few late sends among many do not count in an open loop, nor
        // do answers to a full pipeline in a closed one.
        let millis = Duration::from_millis;
        let (open, closed) = (Rate::PerSecond(1_000), Rate::Max);
        let rows: [(Rate, u64, Duration, bool); 10] = [
            (open, 1, millis(99), false),
            (open, 1, millis(101), true),
            (open, 9, millis(2), false),
            (open, 11, millis(2), true),
            (open, 500, Duration::from_micros(900), false),
            (closed, 1, millis(99), false),
            (closed, 1, millis(101), true),
            (closed, 9, millis(21), false),
            (closed, 11, millis(21), true),
            (closed, 500, millis(5), false),
        ];
        for (rate, late, lag, saturated) in rows {
            outcome.options.rate = rate;
            outcome.ran.tally.offered = 1_000;
            outcome.ran.tally.lag.reset();
            (late..1_000).for_each(|_| outcome.ran.tally.came(Duration::ZERO, Duration::ZERO));
            (0..late).for_each(|_| outcome.ran.tally.came(Duration::ZERO, lag));
            let word = if rate == open { "the client itself was late" } else { "the client itself was paused" };
            let warned = outcome.warnings().iter().any(|warning| warning.contains(word));
            assert_eq!((outcome.is_saturated(), warned), (saturated, saturated), "{rate:?}: {late} by {lag:?}");
        }
        outcome.ran.tally.lag.reset();
        let starved = [(None, false), (Some(0.09), false), (Some(0.11), true)];
        for (waited, saturated) in starved {
            outcome.ran.waited = waited;
            let warned = outcome.warnings().iter().any(|warning| warning.contains("the client itself was starved"));
            assert_eq!((outcome.is_saturated(), warned), (saturated, saturated), "{waited:?}");
        }
        // A tail that is the client's own delay counts, however few operations are in it.
        outcome.options.rate = open;
        (0..997).for_each(|_| outcome.ran.tally.came(Duration::ZERO, Duration::ZERO));
        (0..3).for_each(|_| outcome.ran.tally.came(Duration::ZERO, millis(50)));
        outcome.ran.waited = None;
        let tails = [(millis(80), true), (millis(200), false)];
        for (tail, saturated) in tails {
            outcome.ran.tally.latency.iter_mut().for_each(|latency| latency.reset());
            outcome.ran.tally.latency[0].saturating_record(tail.as_nanos() as u64);
            assert_eq!(outcome.is_saturated(), saturated, "{tail:?}");
        }
        println!("warnings: {} cases", expected.len() + rows.len() + starved.len() + tails.len());
    }
}
