//! Memory and disk over the minutes, as a picture: a panel for each, with its own scale, and lines where the server was
//! restarted.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const PANEL_HEIGHT: f64 = 150.0;
/// Around the panels: room for the labels.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BETWEEN: f64 = 50.0;
/// Lines of a scale above zero.
const STEPS: f64 = 4.0;
/// Labels below the panels, at most.
const MINUTES_SHOWN_MAX: usize = 12;

/// A minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    pub memory_bytes: u64,
    pub disk_bytes: u64,
    /// How the server was restarted in it.
    pub restart: Option<&'static str>,
}

/// What a panel shows of a minute.
type Shown = fn(&Point) -> u64;

/// The picture, as SVG.
///
/// # Panics
/// Without a point.
pub fn svg(points: &[Point]) -> String {
    let height = TOP + 2.0 * PANEL_HEIGHT + 2.0 * BETWEEN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let panels: [(&str, &str, Shown); 2] = [
        ("memory of the server, without filters", "#1f5fa8", |point| point.memory_bytes),
        ("files of the server: log, snapshots, store", "#a8541f", |point| point.disk_bytes),
    ];
    for (number, (title, colour, of)) in panels.into_iter().enumerate() {
        let top = TOP + number as f64 * (PANEL_HEIGHT + BETWEEN);
        panel(points, top, (title, colour), of, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn panel(points: &[Point], top: f64, (title, colour): (&str, &str), of: Shown, out: &mut String) {
    let mut add = |line: std::fmt::Arguments<'_>| writeln!(out, "{line}").expect("writing to a string succeeds");
    let most = points.iter().map(of).max().expect("a run has minutes");
    let (step, unit, divisor) = scale(most);
    let (right, bottom) = (WIDTH - RIGHT, top + PANEL_HEIGHT);
    let x = |minute: f64| LEFT + minute / points.len() as f64 * (right - LEFT);
    let y = |bytes: f64| bottom - bytes / (STEPS * step) * PANEL_HEIGHT;
    add(format_args!("<text x=\"{LEFT}\" y=\"{:.1}\" font-weight=\"bold\">{title}</text>", top - 10.0));
    for line in 0..=STEPS as usize {
        let bytes = line as f64 * step;
        let (at, label) = (y(bytes), bytes / divisor);
        add(format_args!("<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>"));
        add(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label} {unit}</text>",
            LEFT - 6.0,
            at + 4.0
        ));
    }
    for (minute, word) in points.iter().enumerate().filter_map(|(minute, point)| Some((minute, point.restart?))) {
        let at = x(minute as f64 + 0.5);
        add(format_args!(
            "<line x1=\"{at:.1}\" y1=\"{top:.1}\" x2=\"{at:.1}\" y2=\"{bottom:.1}\" stroke=\"#888888\" \
             stroke-dasharray=\"4 3\"/>"
        ));
        add(format_args!("<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555555\">{word}</text>", at + 4.0, top + 12.0));
    }
    let curve: Vec<String> = points
        .iter()
        .enumerate()
        .map(|(minute, point)| format!("{:.1},{:.1}", x(minute as f64 + 1.0), y(of(point) as f64)))
        .collect();
    let curve = curve.join(" ");
    add(format_args!("<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{curve}\"/>"));
    let every = points.len().div_ceil(MINUTES_SHOWN_MAX);
    for minute in (0..=points.len()).step_by(every) {
        let (at, below) = (x(minute as f64), bottom + 15.0);
        add(format_args!("<text x=\"{at:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{minute}</text>"));
    }
    add(format_args!("<text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">minutes</text>", bottom + 30.0));
}

/// The distance of the lines of a scale that holds this many bytes: 1, 2 or 5 times a power of ten. Then their unit, and
/// its bytes.
fn scale(most: u64) -> (f64, &'static str, f64) {
    let least = (most as f64).max(STEPS) / STEPS;
    let power = 10_f64.powi(least.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(10.0 * power);
    let (unit, divisor) = if step >= 1e9 {
        ("GB", 1e9)
    } else if step >= 1e6 {
        ("MB", 1e6)
    } else {
        ("kB", 1e3)
    };
    (step, unit, divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_holds_its_greatest_value_in_round_steps() {
        let rows = [
            (0, (1.0, "kB")),
            (4_000, (1e3, "kB")),
            (4_001, (2e3, "kB")),
            (399_000_000, (1e8, "MB")),
            (401_000_000, (2e8, "MB")),
            (1_999_000_000, (5e8, "MB")),
            (3_900_000_000, (1e9, "GB")),
            (39_000_000_000, (1e10, "GB")),
        ];
        for (most, (step, unit)) in rows {
            let (found, shown, _) = scale(most);
            assert!(((found - step) / step).abs() < 1e-9 && shown == unit, "{most}: {found} {shown}");
            assert!(STEPS * found >= most as f64, "{most}");
        }
        println!("scales: {} cases", rows.len());
    }

    #[test]
    fn both_curves_have_every_minute_and_every_restart() {
        let mut cases = 0;
        for minutes in [1, 2, 6, 60, 600] {
            let restarts = [(minutes / 3, "killed"), (2 * minutes / 3, "stopped cleanly")];
            let points: Vec<Point> = (0..minutes)
                .map(|minute| Point {
                    memory_bytes: 400_000_000 + minute as u64,
                    disk_bytes: 30_000_000 * minute as u64,
                    restart: restarts.iter().find(|(at, _)| *at == minute).map(|(_, word)| *word),
                })
                .collect();
            let picture = svg(&points);
            let curves: Vec<&str> =
                picture.split("points=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
            assert_eq!(curves.len(), 2);
            for curve in curves {
                let places: Vec<(f64, f64)> = curve
                    .split(' ')
                    .map(|place| place.split_once(',').expect("two numbers"))
                    .map(|(x, y)| (x.parse().expect("a number"), y.parse().expect("a number")))
                    .collect();
                assert_eq!(places.len(), minutes);
                assert!(places.is_sorted_by(|one, next| one.0 < next.0), "from left to right");
                let is_inside = |(x, y): &(f64, f64)| (LEFT..=WIDTH - RIGHT).contains(x) && *y >= TOP && *y <= 400.0;
                assert!(places.iter().all(is_inside), "{minutes}: {curve}");
            }
            let marked = points.iter().filter(|point| point.restart.is_some()).count();
            assert_eq!(picture.matches("stroke-dasharray").count(), 2 * marked);
            assert_eq!(picture.matches("<text").count(), picture.matches("</text>").count());
            cases += 1;
        }
        println!("pictures: {cases} cases");
    }
}
