//! The report: one HTML page with everything in it. It loads nothing and runs nothing.

use super::chart::{self, escape};
use super::outcome::{Outcome, QUANTILES, Row, duration};
use std::fmt::Write as _;

/// Colours are named by what a curve shows; the page follows the reader's light or dark.
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
    write(outcome, &mut out).expect("a string grows");
    out
}

fn write(outcome: &Outcome, out: &mut String) -> std::fmt::Result {
    let title = escape(&format!("Load of {}, {}", outcome.asked.target, outcome.orders.since));
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">\n<style>{STYLE}</style>\n</head>\n<body>")?;
    writeln!(out, "<h1>{title}</h1>\n<pre>{}</pre>", escape(&outcome.asked.command))?;
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
