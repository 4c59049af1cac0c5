//! The results of a run, as text for a terminal.

use super::outcome::{Outcome, QUANTILES, Row, duration};
use std::fmt::Write as _;

/// Width of the columns of names and figures.
const NAME: usize = 24;
const FIGURE: usize = 10;

/// All rows, without the ids.
pub fn table(outcome: &Outcome) -> String {
    let mut out = String::new();
    write(outcome, &mut out).expect("writing to a string succeeds");
    out
}

fn write(outcome: &Outcome, out: &mut String) -> std::fmt::Result {
    for (name, value) in outcome.facts() {
        writeln!(out, "{name:<NAME$}  {value}")?;
    }
    if let Some(offered) = outcome.offered() {
        writeln!(out, "{:<NAME$}  {offered:.0} a second", "offered")?;
    }
    writeln!(out)?;
    write!(out, "{:<8}{:>FIGURE$}{:>FIGURE$}{:>FIGURE$}", "", "answers", "a second", "refused")?;
    for (name, _) in QUANTILES {
        write!(out, "{name:>FIGURE$}")?;
    }
    writeln!(out)?;
    for Row { name, counts, latency, achieved } in outcome.rows() {
        write!(out, "{name:<8}{:>FIGURE$}{achieved:>FIGURE$.0}{:>FIGURE$}", counts.answered(), counts.refused)?;
        for (_, quantile) in QUANTILES {
            let shown = if latency.is_empty() { "-".to_owned() } else { duration(latency.value_at_quantile(quantile)) };
            write!(out, "{shown:>FIGURE$}")?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    for (name, count) in outcome.counts() {
        writeln!(out, "{count:>FIGURE$}  {name}")?;
    }
    writeln!(out, "{}", outcome.left())?;
    for warning in outcome.warnings() {
        writeln!(out, "WARNING: {warning}")?;
    }
    for line in outcome.compared.iter().flat_map(|compared| compared.lines()) {
        writeln!(out, "check: {line}")?;
    }
    Ok(())
}
