//! The results of a run, as rows: the source of the table, the JSON file and the page.

use super::check::{Compared, Orders};
use super::drive::Ran;
use super::kind::Kind;
use super::options::{Mix, Rate, Target};
use super::protocol::Transport;
use super::stalls::{LATE, Stall};
use super::tally::{Counts, Tally};
use engine::time::Timestamp;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use std::time::Duration;
use wire::instant;

/// Quantiles that are reported.
pub const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
/// Values of the server's own report that are shown; the JSON file has all of it.
const SERVER_FACTS: [(&str, &str); 8] = [
    ("server version", "/version/version"),
    ("server commit", "/version/git_sha"),
    ("server state", "/status/status"),
    ("server up for [s]", "/status/uptime_seconds"),
    ("server data [bytes]", "/status/database/size_bytes"),
    ("server resting orders, last cycle", "/status/matching_engine/pending_orders"),
    ("server last cycle [ms]", "/status/matching_engine/last_cycle_ms"),
    ("server active markets", "/status/markets/active"),
];
/// Thresholds for doubts about the client itself: its share of a core, and the share of all operations that it handled
/// this much after their time, in any state of their connections.
const CORES_USED_MAX: f64 = 0.9;
const LAG_MAX: Duration = Duration::from_millis(1);
const LATE_MAX: f64 = 0.01;
/// Share of its time in which it was runnable and had no core.
const WAITED_MAX: f64 = 0.1;
/// Delay that shapes the highest percentiles, even if at most one operation in a hundred was late.
const TAIL: f64 = 0.999;
/// In a closed loop, where answers of a full pipeline take milliseconds, a delay counts as a pause only from the first
/// value. In either loop, a delay of the second value is reported however few operations it affects: it shapes the
/// highest percentiles.
pub const STANDSTILL_LEAST: Duration = Duration::from_millis(20);
const STANDSTILL_MAX: Duration = Duration::from_millis(100);
/// Shares of the offered rate and of all answers that are reported.
const ACHIEVED_MIN: f64 = 0.95;
const REFUSED_MAX: f64 = 0.01;

/// The options of the run.
pub struct RunOptions {
    pub command: String,
    pub target: Target,
    pub rate: Rate,
    pub duration: Duration,
    pub connections: usize,
    pub pipeline: usize,
    pub mix: Mix,
    pub transport: Transport,
    pub users: usize,
    pub tiers: String,
}

/// A run with everything that is reported about it.
pub struct Outcome {
    pub options: RunOptions,
    pub ran: Ran,
    pub orders: Orders,
    pub machine: Map<String, Value>,
    /// The server's answers about itself, from [`super::facts::server`].
    pub server: Value,
    /// When the server restarted during the run, from [`super::facts::restarted`].
    pub restarted: Option<Timestamp>,
    pub compared: Option<Compared>,
}

/// One line of the table: a kind, or all kinds.
pub struct Row {
    pub name: &'static str,
    pub counts: Counts,
    pub latency: Histogram<u64>,
    /// Answers a second.
    pub achieved: f64,
}

impl Outcome {
    fn tally(&self) -> &Tally {
        &self.ran.tally
    }

    /// The kinds that were requested or happened, then all of them.
    pub fn rows(&self) -> Vec<Row> {
        let tally = self.tally();
        let seconds = self.seconds();
        let row =
            |name, counts: Counts, latency| Row { name, counts, latency, achieved: counts.answered() as f64 / seconds };
        let kinds = Kind::ALL
            .into_iter()
            .filter(|kind| self.options.mix.percent(*kind) > 0 || tally.kinds[*kind as usize] != Counts::default());
        let mut rows: Vec<Row> = kinds
            .map(|kind| row(kind.name(), tally.kinds[kind as usize], tally.latency[kind as usize].clone()))
            .collect();
        rows.push(row("all", tally.total(), tally.total_latency()));
        rows
    }

    /// From the beginning to the end of the schedule or to the last answer, the later of the two.
    pub fn seconds(&self) -> f64 {
        self.ran.lasted.max(self.tally().last_answer).as_secs_f64()
    }

    /// Operations a second that were due, in an open loop.
    pub fn offered(&self) -> Option<f64> {
        match self.options.rate {
            Rate::PerSecond(_) => Some(self.tally().offered as f64 / self.ran.lasted.as_secs_f64()),
            Rate::Max => None,
        }
    }

    /// Where latencies begin.
    pub fn loop_name(&self) -> &'static str {
        match self.options.rate {
            Rate::PerSecond(_) => "open loop: latency counts from the scheduled time of each operation",
            Rate::Max => {
                "closed loop (max): each connection keeps its pipeline full, latency counts from the send; operations \
                          that a stalled server would have delayed are not in it"
            }
        }
    }

    /// Whether this client could not keep up.
    pub fn is_saturated(&self) -> bool {
        self.ran.cores_used.is_some_and(|cores| cores >= CORES_USED_MAX) || self.is_starved() || self.is_late()
    }

    /// Whether other programs had the core that it needed.
    fn is_starved(&self) -> bool {
        self.ran.waited.is_some_and(|waited| waited >= WAITED_MAX)
    }

    /// Whether at least half of the tail of an open loop's latencies is the client's own delay.
    fn is_tail_own(&self) -> bool {
        let (lag, latency) = (self.tally().lag.value_at_quantile(TAIL), self.tally().total_latency());
        let is_open = matches!(self.options.rate, Rate::PerSecond(_));
        is_open && u128::from(lag) > LAG_MAX.as_nanos() && 2 * lag >= latency.value_at_quantile(TAIL)
    }

    /// Operations that the client itself handled late; in a closed loop, late looks at its own clock. Waiting for a
    /// connection counts as the server's time.
    fn late(&self) -> u64 {
        self.tally().lag.count_between(self.lag_bound().as_nanos() as u64 + 1, u64::MAX)
    }

    /// The delay from which an operation counts as late.
    fn lag_bound(&self) -> Duration {
        match self.options.rate {
            Rate::PerSecond(_) => LAG_MAX,
            Rate::Max => STANDSTILL_LEAST,
        }
    }

    fn is_late(&self) -> bool {
        let of = match self.options.rate {
            Rate::PerSecond(_) => self.tally().offered,
            Rate::Max => self.tally().lag.len(),
        };
        self.late() as f64 > LATE_MAX * of as f64 || self.longest_lag() >= STANDSTILL_MAX || self.is_tail_own()
    }

    fn longest_lag(&self) -> Duration {
        Duration::from_nanos(self.tally().lag.max())
    }

    pub fn lag_p99(&self) -> Duration {
        Duration::from_nanos(self.tally().lag.value_at_quantile(0.99))
    }

    /// Warnings about the figures.
    pub fn warnings(&self) -> Vec<String> {
        let (tally, total, mut warnings) = (self.tally(), self.tally().total(), Vec::new());
        if let Some(cores) = self.ran.cores_used.filter(|cores| *cores >= CORES_USED_MAX) {
            warnings.push(format!(
                "the client itself was saturated: it used {:.0} % of the one core that it has, so rate and latency \
                 are its own limits, not the server's",
                100.0 * cores
            ));
        }
        if let Some(waited) = self.ran.waited.filter(|_| self.is_starved()) {
            warnings.push(format!(
                "the client itself was starved: others had its core for {:.0} % of the time in which it was ready to \
                 run; rate and latency are theirs as much as the server's",
                100.0 * waited
            ));
        }
        if self.is_late() {
            let (late, bound) = (self.late(), duration(self.lag_bound().as_nanos() as u64));
            warnings.push(match self.options.rate {
                Rate::PerSecond(_) => format!(
                    "the client itself was late: {late} of {} operations came to their connections more than {bound} \
                     after their time, the latest {} after it; that is part of the latencies",
                    tally.offered,
                    duration(self.longest_lag().as_nanos() as u64)
                ),
                Rate::Max => format!(
                    "the client itself was paused: {late} of {} looks at its own clock came more than {bound} after \
                     their time, the latest {} after it; that is part of the latencies, and lowers the rate",
                    tally.lag.len(),
                    duration(self.longest_lag().as_nanos() as u64)
                ),
            });
        }
        if let Some(why) = &self.ran.unopened.why {
            warnings.push(format!(
                "{} of {} connections were not open when the run began: {why}",
                self.ran.unopened.count, self.options.connections
            ));
        }
        let achieved = total.answered() as f64 / self.seconds();
        if let Some(offered) = self.offered().filter(|offered| achieved < ACHIEVED_MIN * offered) {
            warnings
                .push(format!("{achieved:.0} answers a second were achieved of {offered:.0} operations that were due"));
        }
        if tally.unsent > 0 {
            warnings.push(format!(
                "{} operations were due and never sent, for lack of room on the connections: they are in no \
                 percentile, and would have been the slowest",
                tally.unsent
            ));
        }
        if total.unanswered > 0 {
            warnings.push(format!(
                "{} operations were sent and never answered: they are in no percentile",
                total.unanswered
            ));
        }
        if total.refused as f64 > REFUSED_MAX * total.answered() as f64 {
            warnings.push(format!(
                "{} of {} answers were refusals, and the percentiles include them: {}",
                total.refused,
                total.answered(),
                self.most_frequent_code()
            ));
        }
        if let Some(started) = self.restarted {
            warnings.push(format!(
                "the server restarted during the run, at about {} (its time): connections that it closed, busy or \
                 not, may have ended with the process before",
                instant::ts_text(started)
            ));
        }
        if self.ran.interrupted {
            warnings.push("interrupted before its time".to_owned());
        }
        warnings
    }

    /// The code of most refusals, and its count.
    pub fn most_frequent_code(&self) -> String {
        let most = self.tally().codes.iter().max_by_key(|(_, count)| **count);
        most.map_or("no code".to_owned(), |(code, count)| format!("{code}, {count} times"))
    }

    /// Name and value of every option, and of the facts about both machines.
    pub fn facts(&self) -> Vec<(String, String)> {
        let RunOptions { rate, duration, connections, pipeline, mix, transport, users, tiers, target, .. } =
            &self.options;
        let mut facts: Vec<(String, String)> = Vec::new();
        let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
        fact("server", target.to_string());
        for (name, place) in SERVER_FACTS {
            match self.server.pointer(place) {
                Some(Value::String(text)) => fact(name, text.clone()),
                Some(Value::Null) | None => {}
                Some(other) => fact(name, other.to_string()),
            }
        }
        fact("run", format!("{}, from {} on (the server's time)", self.orders.run, self.orders.since));
        let per_second = if *rate == Rate::Max { "" } else { " operations a second" };
        fact("options", format!("{rate}{per_second} for {} s, {mix}", duration.as_secs_f64()));
        fact("loop", self.loop_name().to_owned());
        fact("connections", format!("{connections} over {transport}, at most {pipeline} operations in flight on each"));
        fact("users", format!("{} of {users} in the keys file{tiers}", self.orders.users.len()));
        for (name, value) in &self.machine {
            fact(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        let load = |load: &Option<String>| load.as_deref().unwrap_or("?").to_owned();
        let (before, after) = (load(&self.ran.load_before), load(&self.ran.load_after));
        fact("load average", format!("{before} before, {after} after"));
        if let Some(cores) = self.ran.cores_used {
            let waited = self.ran.waited.map(|waited| format!(", waited for one {:.0} % of the time", 100.0 * waited));
            fact("client", format!("used {:.0} % of one core{}", 100.0 * cores, waited.unwrap_or_default()));
        }
        if !self.tally().lag.is_empty() {
            let (name, what) = match rate {
                Rate::PerSecond(_) => ("send lag", "operations"),
                Rate::Max => ("own lag", "looks at the client's clock"),
            };
            let [p99, longest] = [self.lag_p99(), self.longest_lag()].map(|lag| self::duration(lag.as_nanos() as u64));
            fact(name, format!("p99 {p99}, longest {longest}, of {} {what}", self.tally().lag.len()));
        }
        let stalls = &self.tally().stalls;
        if let Some(longest) = stalls.reported.iter().max_by_key(|stall| stall.longest) {
            let late = self::duration(LATE.as_nanos() as u64);
            let length = self::duration(longest.longest.as_nanos() as u64);
            let (count, at) = (stalls.reported.len() as u64 + stalls.unreported, longest.from.as_secs_f64());
            fact("stalls", format!("{count} with answers of {late} and more, the longest {length}, at {at:.3} s"));
        }
        facts
    }

    /// Counts besides the percentiles, each a name and a number.
    pub fn counts(&self) -> Vec<(String, u64)> {
        let tally = self.tally();
        let mut counts: Vec<(String, u64)> = Vec::new();
        counts.extend(tally.statuses.iter().map(|(status, count)| (format!("status {status}"), *count)));
        counts.extend(tally.codes.iter().map(|(code, count)| (format!("code {code}"), *count)));
        counts.extend(tally.transport.iter().map(|(what, count)| (format!("connection: {what}"), *count)));
        let others = [
            ("reconnects", tally.reconnects),
            ("connections that ended with nothing in flight", tally.rested),
            ("sent and never answered", tally.total().unanswered),
            ("due and never sent", tally.unsent),
            ("cancels with nothing to cancel, sent as rest", tally.replaced),
        ];
        counts.extend(others.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)));
        counts
    }

    /// What the run left in the venue's books.
    pub fn left(&self) -> String {
        match &self.ran.cleaned {
            None => format!("{} orders of this run still rest (--clean cancels them)", self.ran.resting),
            Some(cleaned) => {
                let unknown = self.tally().total().unanswered + cleaned.total().unanswered;
                let unknown = match unknown {
                    0 => String::new(),
                    count => {
                        format!("; the outcome of {count} operations without an answer is unknown, some may rest")
                    }
                };
                format!(
                    "{} resting orders were cancelled afterwards, {} still rest{unknown}",
                    cleaned.kinds[Kind::Cancel as usize].succeeded,
                    self.ran.resting
                )
            }
        }
    }

    pub fn json(&self) -> Value {
        let tally = self.tally();
        let rows: Map<String, Value> = self
            .rows()
            .into_iter()
            .map(|Row { name, counts, latency, achieved }| {
                let at = |(name, quantile): (&str, f64)| (name.to_owned(), json!(latency.value_at_quantile(quantile)));
                let row = json!({
                    "answered": counts.answered(),
                    "succeeded": counts.succeeded,
                    "refused": counts.refused,
                    "unanswered": counts.unanswered,
                    "achieved_per_second": achieved,
                    "mean_ns": latency.mean(),
                    "latency_ns": Value::Object(QUANTILES.into_iter().map(at).collect()),
                });
                (name.to_owned(), row)
            })
            .collect();
        let options = &self.options;
        json!({
            "command": options.command,
            "url": options.target.to_string(),
            "rate": options.rate.to_string(),
            "loop": self.loop_name(),
            "duration_s": options.duration.as_secs_f64(),
            "connections": options.connections,
            "pipeline": options.pipeline,
            "mix": options.mix.to_string(),
            "transport": options.transport.to_string(),
            "seconds": self.seconds(),
            "offered": tally.offered,
            "offered_per_second": self.offered(),
            "operations": rows,
            "statuses": tally.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect::<Map<_, _>>(),
            "codes": tally.codes,
            "transport_errors": tally.transport,
            "reconnects": tally.reconnects,
            "rested_and_closed": tally.rested,
            "unsent": tally.unsent,
            "cancels_replaced_by_rests": tally.replaced,
            "resting_afterwards": self.ran.resting,
            "interrupted": self.ran.interrupted,
            "client": {
                "saturated": self.is_saturated(),
                "cores_used": self.ran.cores_used,
                "waited_for_a_core": self.ran.waited,
                "send_lag_p99_ns": self.lag_p99().as_nanos() as u64,
                "send_lag_max_ns": self.longest_lag().as_nanos() as u64,
                "machine": self.machine,
                "load_average_before": self.ran.load_before,
                "load_average_after": self.ran.load_after,
            },
            "server": self.server,
            "server_started_anew_at": self.restarted.map(instant::ts_text),
            "warnings": self.warnings(),
            "series": {
                "width_ms": tally.series.width.as_millis() as u64,
                "succeeded": tally.series.stretches.iter().map(|stretch| stretch.succeeded).collect::<Vec<_>>(),
                "refused": tally.series.stretches.iter().map(|stretch| stretch.refused).collect::<Vec<_>>(),
            },
            "stalls": {
                "late_from_ms": LATE.as_millis() as u64,
                "reported": tally.stalls.reported.iter().map(stall).collect::<Vec<_>>(),
                "unreported": tally.stalls.unreported,
            },
            "check": self.compared,
            "orders": self.orders,
        })
    }
}

/// A stall, for the JSON file.
fn stall(stall: &Stall) -> Value {
    json!({
        "from_ms": stall.from.as_millis() as u64,
        "to_ms": stall.to.as_millis() as u64,
        "longest_us": stall.longest.as_micros() as u64,
        "answers": stall.answers,
        "client_us": stall.own.as_micros() as u64,
    })
}

/// Three digits and a unit.
pub fn duration(nanos: u64) -> String {
    let shown = |value: f64, unit: &str| match value {
        value if value >= 100.0 => format!("{value:.0} {unit}"),
        value if value >= 10.0 => format!("{value:.1} {unit}"),
        value => format!("{value:.2} {unit}"),
    };
    match nanos {
        nanos if nanos >= 1_000_000_000 => shown(nanos as f64 / 1e9, "s"),
        nanos if nanos >= 1_000_000 => shown(nanos as f64 / 1e6, "ms"),
        nanos => shown(nanos as f64 / 1e3, "us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let cases = [
            (0, "0.00 us"),
            (999, "1.00 us"),
            (12_345, "12.3 us"),
            (999_499, "999 us"),
            (1_000_000, "1.00 ms"),
            (250_000_000, "250 ms"),
            (2_004_000_000, "2.00 s"),
        ];
        for (nanos, expected) in cases {
            assert_eq!(duration(nanos), expected, "{nanos}");
        }
        println!("durations: {} cases", cases.len());
    }
}
