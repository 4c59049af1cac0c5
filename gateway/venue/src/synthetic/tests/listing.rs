//! How many markets a first start lists, at every minute of all days: the range that the README states.

use super::*;
use crate::synthetic::world::{Series, World};

const README: &str = include_str!("../../../../../README.md");

const MINUTE: u64 = 60 * SECOND;
const MINUTES_OF_DAY: usize = (DAY / MINUTE) as usize;
/// All lengths of events divide it, and it divides the time from 1970 to [`BASE`].
const CYCLE: u64 = 420 * DAY;
const BASE: Timestamp = Timestamp(48 * CYCLE);
/// Days on which it is noon in New York at 17:00 and at 16:00 UTC: daily windows begin then.
const SEASONS: [Timestamp; 2] = [Timestamp(BASE.0 + 308 * DAY), Timestamp(BASE.0 + 124 * DAY)];
/// The place of summer time among them.
const SUMMER: usize = 1;

/// Markets that a start lists, and those that are listed by the end of a start that takes a minute.
type Listed = [usize; 2];

fn listed(world: World, series: Series, at: Timestamp) -> Listed {
    let (now, later) = (world.listed(series, at, RECENT), world.listed(series, at.plus(MINUTE), RECENT + MINUTE));
    [now.len(), later.len()]
}

/// Adds to the minutes of a period, which begins at `from`, what a series lists in each.
fn add(period: &mut [Listed], world: World, series: Series, from: Timestamp) {
    for (minute, sum) in (0..).zip(period) {
        let more = listed(world, series, from.plus(minute * MINUTE));
        *sum = [sum[0] + more[0], sum[1] + more[1]];
    }
}

/// What a world lists: plain events with the same length together, by the minutes of their period, and windows by the
/// minutes of a day in winter and in summer time. Nothing begins or ends within a minute.
struct Calendar {
    events: BTreeMap<usize, Vec<Listed>>,
    windows: [Vec<Listed>; 2],
}

impl Calendar {
    fn of(world: World) -> Calendar {
        let day = || vec![[0; 2]; MINUTES_OF_DAY];
        let (mut events, mut windows) = (BTreeMap::new(), [day(), day()]);
        for series in World::series() {
            match series {
                Series::Subject(subject) => {
                    let length = world.rhythm(subject).0;
                    assert!(CYCLE.is_multiple_of(length) && length.is_multiple_of(MINUTE), "{series:?}: {length}");
                    let minutes = (length / MINUTE) as usize;
                    add(events.entry(minutes).or_insert_with(|| vec![[0; 2]; minutes]), world, series, BASE);
                }
                Series::Windows(..) => {
                    let seasons = windows.iter_mut().zip(SEASONS);
                    seasons.for_each(|(windows, day)| add(windows, world, series, day));
                }
            }
        }
        Calendar { events, windows }
    }

    /// The markets of a start in this minute since 1970.
    fn at(&self, minute: usize, season: usize) -> Listed {
        let of_events = self.events.iter().map(|(minutes, period)| period[minute % minutes]);
        let of_windows = self.windows[season][minute % MINUTES_OF_DAY];
        of_events.fold(of_windows, |sum, more| [sum[0] + more[0], sum[1] + more[1]])
    }
}

#[test]
fn the_readme_states_how_many_markets_a_first_start_lists() {
    // The default of `venue.seed`.
    let world = World { seed: 1, liveliness: 1 };
    let calendar = Calendar::of(world);
    let (mut lowest, mut highest, mut counts) = (usize::MAX, 0, BTreeMap::<usize, usize>::new());
    for minute in 0..(CYCLE / MINUTE) as usize {
        for season in 0..SEASONS.len() {
            let [now, later] = calendar.at(minute, season);
            (lowest, highest) = (lowest.min(now), highest.max(later));
            *counts.entry(now).or_default() += 1;
        }
    }
    let (cases, mut passed) = (counts.values().sum::<usize>(), 0);
    let median = counts.iter().find(|(_, minutes)| {
        passed += **minutes;
        passed * 2 >= cases
    });
    let median = median.expect("there are minutes").0;
    println!("markets of a first start: {cases} cases, {lowest} to {highest}, median {median}");
    assert!(lowest > 180 && highest < 2 * lowest, "{lowest} to {highest}");
    let stated = format!("a synthetic venue of {lowest} to {highest} markets");
    assert!(README.contains(&stated), "README.md does not state {stated:?}");
}

/// The venue itself lists as many, at different hours of a week.
#[test]
fn a_first_poll_lists_what_its_calendar_says() {
    let calendar = Calendar::of(World { seed: 1, liveliness: 1 });
    let mut seen = BTreeMap::<usize, usize>::new();
    for step in 0..56 {
        let at = NOW.plus(step * (3 * HOUR + 7 * MINUTE + SECOND));
        let [now, later] = calendar.at((at.0 / MINUTE) as usize, SUMMER);
        let mut witness = Witness::default();
        let mut venue = Synthetic::new(1, at, Default::default());
        venue.poll(at, FOREVER, &mut |frame| witness.see(&frame));
        assert_eq!(witness.listings.len(), now, "at {at:?}");
        // A start that ends a minute later.
        let end = at.plus(MINUTE);
        while venue.poll(end, FOREVER, &mut |frame| witness.see(&frame)).venue_now < end {}
        assert_eq!(witness.listings.len(), later, "at {at:?} and a minute later");
        *seen.entry(now).or_default() += 1;
    }
    println!("first polls: 56 cases, {seen:?}");
    assert!(seen.len() > 3, "{seen:?}");
}
