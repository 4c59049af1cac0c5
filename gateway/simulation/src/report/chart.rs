//! One chart: an SVG that is stretched to its place, with the labels of its axes beside it as text, so that a narrow page
//! has lines and letters of the same size as a wide one.

use super::scale::{SIDE, Times, Values};
use super::text::{Html, scaled};
use engine::time::Timestamp;
use std::fmt::Write as _;

/// Distance of the columns of a line, in units of the chart: of all points in one, the first, the last, the highest and
/// the lowest are drawn.
const COLUMN: i64 = SIDE / 1_000;

pub(super) struct Chart {
    pub times: Times,
    pub values: Values,
    svg: Html,
    legend: Vec<(&'static str, String)>,
}

/// How a line goes from one point to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Straight,
    /// A value stays until the next one.
    Steps,
}

/// The points of one column.
#[derive(Clone, Copy, Debug)]
struct Column {
    x: i64,
    first: i64,
    low: i64,
    high: i64,
    last: i64,
}

impl Chart {
    pub fn new(times: Times, values: Values) -> Chart {
        let mut svg = Html::default();
        let mut grid = String::new();
        for mark in values.marks() {
            let _ = write!(grid, "M0 {}H{SIDE}", values.place(mark));
        }
        path(&mut svg, "grid", &grid);
        Chart { times, values, svg, legend: Vec::new() }
    }

    /// Explains a class of lines, areas or dots.
    pub fn explain(&mut self, class: &'static str, text: impl Into<String>) {
        self.legend.push((class, text.into()));
    }

    /// A line; an unknown value interrupts it.
    pub fn line(&mut self, class: &str, join: Join, points: impl IntoIterator<Item = (Timestamp, Option<i64>)>) {
        let drawn = drawn(join, self.placed(points));
        path(&mut self.svg, class, &drawn);
    }

    /// The area between a line of known values and a level.
    pub fn filled(&mut self, class: &str, points: impl IntoIterator<Item = (Timestamp, i64)>, level: i64) {
        let points = points.into_iter().map(|(at, value)| (at, Some(value)));
        let mut drawn = drawn(Join::Steps, self.placed(points));
        if !drawn.is_empty() {
            let _ = write!(drawn, "H{SIDE}V{0}H0Z", self.values.place(level));
            path(&mut self.svg, class, &drawn);
        }
    }

    /// The area between two values of each moment.
    pub fn band(&mut self, class: &str, points: &[(Timestamp, i64, i64)]) {
        let mut drawn = String::new();
        let upper = points.iter().map(|(at, _, upper)| (at, upper));
        let lower = points.iter().rev().map(|(at, lower, _)| (at, lower));
        for (number, (at, value)) in upper.chain(lower).enumerate() {
            let command = if number == 0 { 'M' } else { 'L' };
            let _ = write!(drawn, "{command}{} {}", self.times.place(*at), self.values.place(*value));
        }
        if !drawn.is_empty() {
            drawn.push('Z');
            path(&mut self.svg, class, &drawn);
        }
    }

    /// A dot with a text that a pointer shows.
    pub fn dot(&mut self, class: &str, at: Timestamp, value: i64, title: &str) {
        let (x, y) = (self.times.place(at), self.values.place(value));
        self.svg.raw("<path class=\"").raw(class).raw(&format!("\" d=\"M{x} {y}h0\">"));
        self.svg.element("title", "", title).raw("</path>");
    }

    fn placed(
        &self,
        points: impl IntoIterator<Item = (Timestamp, Option<i64>)>,
    ) -> impl Iterator<Item = (i64, Option<i64>)> {
        points.into_iter().map(|(at, value)| (self.times.place(at), value.map(|value| self.values.place(value))))
    }

    /// Writes the chart; `label` makes the text of a value, `about` is for readers that see no pictures.
    pub fn end(self, page: &mut Html, about: &str, label: impl Fn(i64) -> String) {
        let Chart { times, values, svg, legend } = self;
        if !legend.is_empty() {
            page.raw("<ul class=\"legend\">");
            for (class, text) in legend {
                page.raw("<li><svg viewBox=\"0 0 20 10\" aria-hidden=\"true\"><path class=\"").raw(class);
                let sample = match class {
                    "entry" | "exit" | "settlement" => "M10 5h0",
                    "band" | "fall" => "M0 1H20V9H0Z",
                    _ => "M0 5H20",
                };
                page.raw("\" d=\"").raw(sample).raw("\"/></svg>").text(&text).raw("</li>");
            }
            page.raw("</ul>");
        }
        page.raw("<div class=\"plot\"><div class=\"y\">");
        for mark in values.marks() {
            page.raw(&format!("<span style=\"top:{}\">", percent(values.place(mark))))
                .text(&label(mark))
                .raw("</span>");
        }
        page.raw(&format!(
            "</div><svg viewBox=\"0 0 {SIDE} {SIDE}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\""
        ));
        page.text(about).raw("\">").raw(&svg.end()).raw("</svg><div class=\"x\">");
        for (at, text) in times.marks() {
            let place = times.place(at);
            // Labels at the ends stay within the page.
            let class = match place {
                ..=300 => " class=\"first\"",
                9_700.. => " class=\"last\"",
                _ => "",
            };
            page.raw(&format!("<span{class} style=\"left:{}\">", percent(place))).text(&text).raw("</span>");
        }
        page.raw("</div></div>");
    }
}

/// A place of a chart as CSS has it.
fn percent(place: i64) -> String {
    let hundredths = scaled(place.unsigned_abs(), 10_000, SIDE.unsigned_abs());
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

fn path(svg: &mut Html, class: &str, drawn: &str) {
    if !drawn.is_empty() {
        svg.raw("<path class=\"").raw(class).raw("\" d=\"").raw(drawn).raw("\"/>");
    }
}

/// The commands of a line through these places, which are ascending.
fn drawn(join: Join, places: impl Iterator<Item = (i64, Option<i64>)>) -> String {
    let mut line = Line { join, out: String::new(), is_down: false };
    let mut column: Option<Column> = None;
    for (x, y) in places {
        let x = x / COLUMN * COLUMN;
        let Some(y) = y else {
            column.take().into_iter().for_each(|column| line.column(column));
            line.is_down = false;
            continue;
        };
        column = Some(match column {
            Some(column) if column.x == x => {
                Column { low: column.low.min(y), high: column.high.max(y), last: y, ..column }
            }
            before => {
                before.into_iter().for_each(|column| line.column(column));
                Column { x, first: y, low: y, high: y, last: y }
            }
        });
    }
    column.into_iter().for_each(|column| line.column(column));
    line.out
}

struct Line {
    join: Join,
    out: String,
    /// A line is being drawn.
    is_down: bool,
}

impl Line {
    fn column(&mut self, Column { x, first, low, high, last }: Column) {
        let out = &mut self.out;
        let _ = match (self.is_down, self.join) {
            (false, _) => write!(out, "M{x} {first}"),
            (true, Join::Straight) => write!(out, "L{x} {first}"),
            (true, Join::Steps) => write!(out, "H{x}V{first}"),
        };
        if low != high {
            let _ = write!(out, "V{low}V{high}V{last}");
        } else if !self.is_down {
            // A point alone is seen, too.
            out.push_str("h0");
        }
        self.is_down = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        type Points = &'static [(i64, Option<i64>)];
        let cases: [(Join, Points, &str); 8] = [
            (Join::Straight, &[], ""),
            (Join::Straight, &[(0, None)], ""),
            (Join::Straight, &[(0, Some(5))], "M0 5h0"),
            (Join::Straight, &[(0, Some(5)), (20, Some(7))], "M0 5h0L20 7"),
            (Join::Steps, &[(0, Some(5)), (20, Some(7)), (40, Some(7))], "M0 5h0H20V7H40V7"),
            (Join::Straight, &[(0, Some(5)), (20, None), (40, Some(7)), (60, Some(8))], "M0 5h0M40 7h0L60 8"),
            // Points of one column.
            (Join::Steps, &[(0, Some(5)), (1, Some(9)), (2, Some(1)), (9, Some(4)), (10, Some(6))], "M0 5V1V9V4H10V6"),
            (Join::Straight, &[(0, Some(5)), (1, None), (2, Some(7))], "M0 5h0M0 7h0"),
        ];
        for (join, places, expected) in cases {
            assert_eq!(drawn(join, places.iter().copied()), expected, "{places:?}");
        }
        // A long line has a bound.
        let long = (0..1_000_000).map(|number| (number / 100, Some(number * 7_919 % SIDE)));
        let text = drawn(Join::Steps, long);
        assert!(text.len() < 32_000, "{} bytes", text.len());
        println!("lines: {} cases", cases.len() + 1);
    }
}
