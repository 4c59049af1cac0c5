//! The two charts of a report, as SVG: latency by percentile, and answers over time. Pure text; no script, no network.

use super::outcome::duration;
use super::tally::Series;
use hdrhistogram::Histogram;
use std::fmt::Write as _;
use std::time::Duration;

/// Size of a chart, and the margins for the axes.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 44.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;
/// Points of a curve for each decade.
const POINTS_PER_DECADE: u32 = 24;
/// Most nines of a percentile that are drawn.
const DECADES_MAX: u32 = 7;

/// Text, escaped for HTML and SVG text and attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Characters that no document may contain, in any notation.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// An SVG drawing under construction.
struct Drawing(String);

impl Drawing {
    fn begin(label: &str) -> Drawing {
        Drawing(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\">\n",
            escape(label)
        ))
    }

    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let out = &mut self.0;
        writeln!(out, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
            .expect("writing to a string succeeds");
    }

    fn text(&mut self, anchor: &str, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        writeln!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
            .expect("writing to a string succeeds");
    }

    fn curve(&mut self, class: &str, points: &[(f64, f64)]) {
        write!(self.0, "<polyline class=\"curve {class}\" points=\"").expect("writing to a string succeeds");
        for (x, y) in points {
            write!(self.0, "{x:.1},{y:.1} ").expect("writing to a string succeeds");
        }
        self.0.push_str("\"/>\n");
    }

    /// Names of the curves, in their colours, above the drawing.
    fn legend(&mut self, names: &[(&str, &str)]) {
        for (place, (class, name)) in names.iter().enumerate() {
            let x = LEFT + 150.0 * place as f64;
            self.line(&format!("curve {class}"), (x, TOP - 15.0), (x + 24.0, TOP - 15.0));
            self.text("start", (x + 30.0, TOP - 11.0), name);
        }
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Position of a point of the axis.
fn across(part: f64) -> f64 {
    LEFT + part * (WIDTH - LEFT - RIGHT)
}

fn up(part: f64) -> f64 {
    HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
}

/// Latency by percentile: each decade to the right is one more nine, each line upward is ten times as long.
pub fn percentiles(curves: &[(&'static str, &Histogram<u64>)]) -> String {
    let mut drawing = Drawing::begin("Latency by percentile");
    let drawn: Vec<_> = curves.iter().filter(|(_, latency)| !latency.is_empty()).collect();
    let most = drawn.iter().map(|(_, latency)| latency.len()).max().unwrap_or(1);
    // The last percentile that covers more than one latency.
    let decades = ((most as f64).log10().ceil() as u32).clamp(1, DECADES_MAX);
    let least = drawn.iter().map(|(_, latency)| latency.min()).min().unwrap_or(1).max(1);
    let greatest = drawn.iter().map(|(_, latency)| latency.max()).max().unwrap_or(1).max(1);
    let low = (least as f64).log10().floor();
    let high = (greatest as f64).log10().ceil().max(low + 1.0);
    let height = |nanos: u64| up(((nanos.max(1) as f64).log10() - low) / (high - low));
    for decade in 0..=decades {
        let x = across(f64::from(decade) / f64::from(decades));
        drawing.line("grid", (x, up(0.0)), (x, up(1.0)));
        let name = match decade {
            0 => "min".to_owned(),
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            nines => format!("99.{} %", "9".repeat(nines as usize - 2)),
        };
        drawing.text("middle", (x, HEIGHT - BOTTOM + 18.0), &name);
    }
    for power in low as i32..=high as i32 {
        let nanos = 10f64.powi(power);
        let y = up((f64::from(power) - low) / (high - low));
        drawing.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
        drawing.text("end", (LEFT - 8.0, y + 4.0), &duration(nanos as u64));
    }
    for (class, latency) in &drawn {
        let points: Vec<_> = (0..=decades * POINTS_PER_DECADE)
            .map(|point| {
                let part = f64::from(point) / f64::from(decades * POINTS_PER_DECADE);
                let quantile = 1.0 - 10f64.powf(-part * f64::from(decades));
                (across(part), height(latency.value_at_quantile(quantile)))
            })
            .collect();
        drawing.curve(class, &points);
    }
    drawing.legend(&drawn.iter().map(|(class, _)| (*class, *class)).collect::<Vec<_>>());
    drawing.text("middle", (across(0.5), HEIGHT - 8.0), "percentile (each step is a tenth of what is left)");
    drawing.end()
}

/// Answers a second over time, and the offered rate.
pub fn throughput(series: &Series, lasted: Duration, offered: Option<f64>) -> String {
    let mut drawing = Drawing::begin("Answers over time");
    let width = series.width.as_secs_f64();
    let seconds = lasted.as_secs_f64().max(width * series.stretches.len() as f64).max(width);
    let rates = |pick: fn(&super::tally::Stretch) -> u64| -> Vec<f64> {
        let count = (seconds / width).ceil() as usize;
        (0..count).map(|place| series.stretches.get(place).map_or(0, pick) as f64 / width).collect()
    };
    let (succeeded, refused) = (rates(|stretch| stretch.succeeded), rates(|stretch| stretch.refused));
    let greatest = succeeded.iter().chain(&refused).copied().chain(offered).fold(1.0, f64::max);
    let (step, top) = steps(greatest);
    let mut at = 0.0;
    while at <= top + step / 2.0 {
        let y = up(at / top);
        drawing.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
        drawing.text("end", (LEFT - 8.0, y + 4.0), &format!("{at:.0}"));
        at += step;
    }
    let (step, _) = steps(seconds);
    let mut at = 0.0;
    while at <= seconds {
        let x = across(at / seconds);
        drawing.line("grid", (x, up(0.0)), (x, up(1.0)));
        let digits = if step < 1.0 { 1 } else { 0 };
        drawing.text("middle", (x, HEIGHT - BOTTOM + 18.0), &format!("{at:.digits$}"));
        at += step;
    }
    // A rate belongs to the whole of its interval.
    let stairs = |rates: &[f64]| -> Vec<(f64, f64)> {
        let edge = |place: usize| across((place as f64 * width / seconds).min(1.0));
        let stair = |(place, rate): (usize, &f64)| [(edge(place), up(rate / top)), (edge(place + 1), up(rate / top))];
        rates.iter().enumerate().flat_map(stair).collect()
    };
    let mut names = vec![("all", "succeeded")];
    if let Some(offered) = offered {
        let end = across((lasted.as_secs_f64() / seconds).min(1.0));
        drawing.curve("offered", &[(LEFT, up(offered / top)), (end, up(offered / top))]);
        names.push(("offered", "offered"));
    }
    drawing.curve("all", &stairs(&succeeded));
    if refused.iter().any(|rate| *rate > 0.0) {
        drawing.curve("refused", &stairs(&refused));
        names.push(("refused", "refused"));
    }
    drawing.legend(&names);
    let label =
        format!("seconds since the beginning; answers a second in intervals of {} ms", series.width.as_millis());
    drawing.text("middle", (across(0.5), HEIGHT - 8.0), &label);
    drawing.end()
}

/// A round distance of marks, and the first multiple of it above the maximum; there are four to ten marks.
fn steps(greatest: f64) -> (f64, f64) {
    let power = 10f64.powf(greatest.log10().floor());
    let step = [0.1, 0.2, 0.5, 1.0].map(|part| part * power).into_iter().find(|step| greatest / step <= 10.0);
    let step = step.unwrap_or(power);
    (step, step * (greatest / step - 1e-9).ceil().max(1.0))
}

/// Checks that elements are closed in order, and that texts hold no bare `<`, `>` or `&`.
#[cfg(test)]
#[track_caller]
pub fn check_well_formed(text: &str) -> usize {
    let (mut open, mut rest, mut elements) = (Vec::new(), text, 0);
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a bare > in {:?}", &rest[..at]);
        let end = at + rest[at..].find('>').expect("an element ends");
        let element = &rest[at + 1..end];
        assert!(!element.contains('<'), "{element:?}");
        assert_eq!(element.matches('"').count() % 2, 0, "{element:?}");
        let is_void = element.starts_with("meta ") || element.starts_with("!DOCTYPE ") || element.ends_with('/');
        match element.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "closed in order"),
            None if is_void => {}
            None => open.push(element.split([' ', '\n']).next().expect("a name")),
        }
        elements += 1;
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "left open: {open:?}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "a number is not finite");
    elements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::kind::Kind;
    use crate::load::tally::Tally;

    fn tally(latencies: impl Iterator<Item = u64>) -> Tally {
        let mut tally = Tally::new(Duration::from_secs(10));
        for (number, nanos) in latencies.enumerate() {
            let due = Duration::from_micros(100 * number as u64);
            tally.answered(Kind::Rest, due, due + Duration::from_nanos(nanos), 200, None, number % 3 > 0);
        }
        tally
    }

    #[test]
    fn charts_are_well_formed_for_any_content() {
        let tallies = [
            tally(std::iter::empty()),
            tally([0].into_iter()),
            tally([5; 10].into_iter()),
            tally((1..100_000).map(|number| number * 40_000)),
            tally([1, 3_600_000_000_000, u64::MAX / 4].into_iter()),
        ];
        let mut cases = 0;
        for tally in &tallies {
            let latency = tally.total_latency();
            let chart = percentiles(&[("rest", &tally.latency[0]), ("all", &latency)]);
            assert!(check_well_formed(&chart) > 8, "{chart}");
            for (lasted, offered) in [(Duration::from_secs(10), Some(1e6)), (Duration::from_millis(100), None)] {
                assert!(check_well_formed(&throughput(&tally.series, lasted, offered)) > 8);
                cases += 1;
            }
        }
        println!("charts: {cases} cases");
    }

    #[test]
    fn a_higher_percentile_is_never_lower() {
        let tally = tally((1..10_000).map(|number| number * number));
        let chart = percentiles(&[("all", &tally.total_latency())]);
        let points = chart.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a curve");
        let heights: Vec<f64> = points
            .split_whitespace()
            .map(|point| point.split_once(',').expect("two numbers").1.parse().expect("a number"))
            .collect();
        assert!(heights.windows(2).all(|two| two[1] <= two[0]), "{heights:?}");
        let inside = heights.iter().all(|y| (up(1.0)..=up(0.0)).contains(y));
        assert!(inside, "{heights:?}");
        println!("points: {} cases", heights.len());
    }

    #[test]
    fn marks_are_round() {
        let cases = [
            (1.0, 0.1, 1.0),
            (10.0, 1.0, 10.0),
            (11.0, 2.0, 12.0),
            (999.0, 100.0, 1_000.0),
            (52_000.0, 10_000.0, 60_000.0),
        ];
        for (greatest, step, top) in cases {
            let (made, enough) = steps(greatest);
            assert!(
                (made - step).abs() < 1e-9 * step && (enough - top).abs() < 1e-9 * top,
                "{greatest}: {made}, {enough}"
            );
        }
        println!("marks: {} cases", cases.len());
    }

    #[test]
    fn texts_cannot_leave_their_place() {
        let cases = [
            ("a", "a"),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a\"b'c&d", "a&quot;b&#39;c&amp;d"),
            ("&lt;", "&amp;lt;"),
            ("a\u{0}\u{1b}b\u{ffff}", "a\u{fffd}\u{fffd}b\u{fffd}"),
            ("zeile\n\t2 ü", "zeile\n\t2 ü"),
        ];
        for (text, expected) in cases {
            assert_eq!(escape(text), expected);
        }
        println!("escapes: {} cases", cases.len());
    }
}
