//! The goals that are numbers, each once: a scenario's result names the goals of its figures, and the table *Status* of
//! `RESULTS.md` shows the same numbers in the same order (a test compares them).

use std::fmt;

/// Bytes of an idle user, of an order in any state, and of an idle socket.
const USER_BYTES_MAX: f64 = 600.0;
const ORDER_BYTES_MAX: f64 = 250.0;
const SOCKET_BYTES_MAX: f64 = 24_576.0;

/// The goal of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    pub scenario: &'static str,
    /// How its row of the table begins.
    pub row: &'static str,
    pub what: &'static str,
    pub bound: Bound,
    pub unit: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    Least(f64),
    Most(f64),
}

/// In the order of the table.
#[rustfmt::skip]
pub const GOALS: &[Goal] = &[
    least("commit", "P1 ", "records, 1 a commit, beside raw", 0.97, "×"),
    least("commit", "P2 ", "records, 64 a commit, beside raw", 0.97, "×"),
    least("commit", "P2 ", "records, 64 a commit, beside the best peer", 1.05, "×"),
    least("commit", "P3 ", "records, 1,024 a commit, beside raw", 1.0, "×"),
    least("commit", "P3 ", "records, 1,024 a commit, beside the best peer", 2.0, "×"),
    least("acks", "P4 ", "acknowledged beside writeahead", 5.0, "×"),
    least("acks", "P4 ", "acknowledged beside raft-engine", 12.0, "×"),
    most("device", "P5 ", "written by the device for a record of 128 bytes", 4_608.0, "bytes"),
    least("append", "P6 ", "beside bare copy and checksum", 0.95, "×"),
    least("append", "P6 ", "beside wal-db", 12.0, "×"),
    least("frames", "P7 frames", "beside a bare scan", 0.9, "×"),
    least("frames", "P7 frames", "beside writeahead", 3.0, "×"),
    least("recovery", "P7 whole", "the whole state", 10e6, "facts a second"),
    least("busy", "P8 ", "durable rate beside itself when quiet", 0.5, "×"),
    most("book", "P9 ", "one operation", 0.067, "µs"),
    least("book", "P9 ", "beside matchcore", 1.75, "×"),
    least("book", "P9 ", "beside orderbook-rs", 20.0, "×"),
    least("book", "P10 ", "2,048 books beside one", 0.4, "×"),
    most("walk", "P11 ", "ten levels with fees", 30.0, "ns"),
    least("walk", "P11 ", "rust_decimal beside it", 12.0, "×"),
    most("answer", "P12 ", "p50", 0.15, "µs"),
    most("answer", "P12 ", "p99", 1.0, "µs"),
    most("answer", "P12 ", "p99.9", 20.0, "µs"),
    least("http", "P13 ", "process, 16 x 1, beside a bare hyper", 0.95, "×"),
    least("http", "P13 ", "process, 64 x 1, beside a bare hyper", 0.95, "×"),
    least("http", "P13 ", "process, 16 x 16, beside a bare hyper", 0.75, "×"),
    most("http", "P13 ", "p99 beside its p99, full speed", 1.5, "×"),
    most("http", "P13 ", "p99 beside its p99, open load: one offered rate", 1.5, "×"),
    least("http", "P14 ", "power, 16 x 1, beside a bare hyper", 0.30, "×"),
    least("http", "P14 ", "power, 64 x 1, beside a bare hyper", 0.60, "×"),
    least("http", "P14 ", "power, 256 x 1, beside a bare hyper", 0.80, "×"),
    most("http", "P14 ", "power, 1 x 1, p50 beside bare p50 + 1.3 × raw p50", 1.0, "×"),
    most("http", "P15 ", "busy polling, p50 of one connection", 25.0, "µs"),
    least("http", "P15 ", "busy polling beside sleeping", 3.0, "×"),
    least("reads", "P16 ", "each read beside a bare hyper", 0.95, "×"),
    most("ladder", "P16 ", "top of a book", 3.0, "ns"),
    most("ladder", "P16 ", "50 levels of a book", 25.0, "ns"),
    least("trade", "P17 ", "16 x 32, requests beside the library's echo", 3.0, "×"),
    least("trade", "P17 ", "16 x 32, in batches or not", 1.5e6, "orders a second"),
    least("fanout", "P18 ", "1,000 listeners by 8, beside raw writes", 0.9, "×"),
    least("fanout", "P18 ", "1,000 listeners by 8, beside write_frame", 5.0, "×"),
    least("fanout", "P18 ", "1,000 listeners by 8, beside tungstenite's feed and flush", 1.1, "×"),
    least("service", "P19 ", "durable over HTTP, beside the paper trader", 30.0, "×"),
    least("service", "P19 ", "over HTTP, process, beside the paper trader", 45.0, "×"),
    least("service", "P19 ", "in process, beside the paper trader", 2_500.0, "×"),
    least("backtest", "P19 ", "commands beside hftbacktest", 2.0, "×"),
    least("replay", "P20 ", "replay beside a start, with the same digest each time", 0.9, "×"),
    most("replay", "P20 ", "snapshot of 1 M orders", 0.2, "s"),
    most("replay", "P20 ", "p99 beside a snapshot, of its value alone", 2.0, "×"),
    most("fold", "folding", "time of a message beside parsing alone", 1.0, "×"),
    most("memory", "memory", "idle user with one key", USER_BYTES_MAX, "bytes"),
    most("memory", "memory", "order", ORDER_BYTES_MAX, "bytes"),
    most("sockets", "idle socket", "memory of one", SOCKET_BYTES_MAX, "bytes"),
    most("sockets", "idle server", "processor time of a second, without clients", 10_000.0, "µs"),
    least("archive", "A1 ", "import beside reading all columns", 0.5, "×"),
    least("archive", "A2 ", "build beside parsing the lines", 0.6, "×"),
    least("archive", "A3 ", "fold beside decoding eight columns", 0.5, "×"),
    least("archive", "A3 ", "fold beside the hour's lines", 8.0, "×"),
    most("archive", "A4 ", "p99, cold", 50.0, "ms"),
    most("archive", "A4 ", "p99, warm", 2.0, "ms"),
    least("archive", "A4 ", "book, cold, beside DuckDB 2.0.1", 10.0, "×"),
    least("archive", "A5 ", "replay beside packed lines", 3.0, "×"),
    least("backtest", "A6 ", "ticks without orders beside hftbacktest", 0.5, "×"),
    least("backtest", "A6 ", "commands beside hftbacktest", 1.0, "×"),
    most("large_hour", "A7 ", "beyond the memory of the sort", 64.0, "MiB"),
    least("beside", "A7 ", "with a build and a back-test beside without", 0.95, "×"),
    least("peripheral", "peripheral", "P13 with all providers beside without", 0.99, "×"),
    least("growth", "growth", "in process, beside the small size", 0.4, "×"),
    least("growth", "growth", "over HTTP, beside the small size", 0.85, "×"),
    most("growth", "start with 1 M", "start over 1 M open orders, and linear", 1.0, "s"),
    most("endurance", "H1 ", "memory of the last quarter beside the second", 1.05, "×"),
    most("endurance", "H1 ", "p99.9 of the last quarter beside the first", 1.5, "×"),
    most("history", "H2 ", "memory that an ended order leaves", 2.0, "bytes"),
    most("history", "H3 ", "an ended order on disk, merged", 300.0, "bytes"),
    most("history", "H4 ", "start with many ended orders beside few", 1.2, "×"),
    most("history", "H4 ", "start on top of the open segment", 1.0, "s"),
    most("history", "H5 ", "time of a snapshot with many ended orders beside few", 1.2, "×"),
    most("history", "H5 ", "bytes of it beside few", 1.2, "×"),
    least("history", "H6 ", "rate of orders beside the mover, of that without", 0.95, "×"),
    most("history", "H7 ", "one order by its id from the store, p50", 30.0, "µs"),
    most("history", "H7 ", "one order by its id from the store, p99", 300.0, "µs"),
    most("history", "H7 ", "over HTTP beside an open one", 2.0, "×"),
    least("history", "H8 ", "trades.csv", 300_000.0, "rows a second"),
    most("history", "H8 ", "memory more", 64.0, "MiB"),
    most("history", "H8 ", "p99 of orders beside it", 1.3, "×"),
    most("history", "H9 ", "P9 after many ended orders beside after none", 1.1, "×"),
    most("history", "H10 ", "written for an ended order", 2_000.0, "bytes"),
];

const fn least(scenario: &'static str, row: &'static str, what: &'static str, value: f64, unit: &'static str) -> Goal {
    Goal { scenario, row, what, bound: Bound::Least(value), unit }
}

const fn most(scenario: &'static str, row: &'static str, what: &'static str, value: f64, unit: &'static str) -> Goal {
    Goal { scenario, row, what, bound: Bound::Most(value), unit }
}

/// The goals of a scenario.
pub fn of(scenario: &str) -> impl Iterator<Item = &'static Goal> {
    GOALS.iter().filter(move |goal| goal.scenario == scenario)
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, value) = match self.bound {
            Bound::Least(value) => ("at least", value),
            Bound::Most(value) => ("at most", value),
        };
        let Goal { what, unit, .. } = self;
        write!(f, "{what}: {word} {value} {unit}")?;
        match self.row.split(' ').next() {
            Some(number) if number.starts_with(['P', 'A', 'H']) => write!(f, " ({number})"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = include_str!("../RESULTS.md");

    /// Heading and numbers in brackets of each row of the table.
    fn rows() -> Vec<(&'static str, Vec<f64>)> {
        let (_, from) = RESULTS.split_once("## Status").expect("the table's section");
        let (table, _) = from.split_once("\n## ").expect("dated sections follow");
        let rows = table.lines().filter_map(|line| line.strip_prefix("| ")).skip(1);
        rows.map(|row| {
            let (heading, figures) = row.split_once(" | ").expect("columns");
            let (figures, _) = figures.split_once(" | ").expect("three of them");
            let brackets = figures.split('(').skip(1).filter_map(|part| part.split_once(')'));
            (heading, brackets.flat_map(|(inside, _)| inside.split(", ")).map(number).collect())
        })
        .collect()
    }

    fn number(text: &str) -> f64 {
        let (digits, times) = text.strip_suffix(" M").map_or((text, 1.0), |digits| (digits, 1e6));
        times * digits.replace(',', "").parse::<f64>().unwrap_or_else(|_| panic!("a goal is a number: {text:?}"))
    }

    #[test]
    fn the_table_of_results_shows_these_goals() {
        let rows = rows();
        let mut shown = 0;
        for (heading, numbers) in &rows {
            let own = |goal: &&Goal| heading.starts_with(goal.row);
            let goals: Vec<f64> = GOALS
                .iter()
                .filter(own)
                .map(|goal| match goal.bound {
                    Bound::Least(value) | Bound::Most(value) => value,
                })
                .collect();
            assert_eq!(numbers, &goals, "{heading}");
            shown += goals.len();
        }
        assert_eq!(shown, GOALS.len(), "each has a row");
        println!("goals in the table: {shown} cases of {} rows", rows.len());
    }

    #[test]
    fn each_goal_belongs_to_a_scenario() {
        for goal in GOALS {
            let is_known = crate::SCENARIOS.iter().any(|scenario| scenario.name == goal.scenario);
            assert!(is_known || crate::APART.iter().any(|(name, _)| *name == goal.scenario), "{goal}");
        }
        assert_eq!(
            of("walk").map(Goal::to_string).collect::<Vec<_>>(),
            ["ten levels with fees: at most 30 ns (P11)", "rust_decimal beside it: at least 12 × (P11)"]
        );
        println!("goals: {} cases", GOALS.len());
    }
}
