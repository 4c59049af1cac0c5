//! Points of a wallet in few bytes: blocks of them, in which each but the first is kept as its difference to the one
//! before it. A wallet that trades takes some ten bytes a point instead of 32.
//!
//! ```text
//! first point │ what changed u8, its steps │ what changed, its steps │ …        first point │ …
//! ```

use super::equity::Point;
use crate::amount::Cash;
use crate::bytes::{Bytes, CodecError, take_list};
use crate::mutation::packed::{Packer, bits, has, take_byte, take_step};
use std::collections::VecDeque;

/// Points of a block: it is read from its first one.
const BLOCK_POINTS: u32 = 64;

/// A list of points, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Points {
    /// All but the last have had [`BLOCK_POINTS`].
    blocks: VecDeque<Block>,
    /// The newest point, while there is one.
    last: Point,
    len: usize,
}

#[derive(Clone, Debug)]
struct Block {
    /// The oldest point that is left.
    first: Point,
    /// From each point to the next one; those before `begin` are of points that were removed.
    steps: Vec<u8>,
    begin: u32,
    /// Its points, and the oldest ones that were removed: so a block is used up, too, while points come and go.
    added: u32,
}

impl Points {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn first(&self) -> Option<&Point> {
        self.blocks.front().map(|block| &block.first)
    }

    pub fn last(&self) -> Option<&Point> {
        (self.len > 0).then_some(&self.last)
    }

    pub fn iter(&self) -> impl Iterator<Item = Point> + '_ {
        self.blocks.iter().flat_map(Block::points)
    }

    /// The last point that is not after `hour` and all later ones; some earlier ones may come before it. The points
    /// ascend.
    pub fn since(&self, hour: u32) -> impl Iterator<Item = Point> + '_ {
        let begun = self.blocks.partition_point(|block| block.first.hour <= hour);
        self.blocks.range(begun.saturating_sub(1)..).flat_map(Block::points)
    }

    pub fn push(&mut self, point: Point) {
        match self.blocks.back_mut().filter(|block| block.added < BLOCK_POINTS) {
            Some(block) => {
                put_step(&self.last, &point, &mut block.steps);
                block.added += 1;
                if block.added == BLOCK_POINTS {
                    block.steps.shrink_to_fit();
                }
            }
            None => {
                self.blocks.reserve_exact(1);
                self.blocks.push_back(Block { first: point, steps: Vec::new(), begin: 0, added: 1 });
            }
        }
        self.last = point;
        self.len += 1;
    }

    /// Removes the oldest point.
    pub fn pop_first(&mut self) -> Option<Point> {
        let block = self.blocks.front_mut()?;
        let mut points = block.points();
        let first = points.next()?;
        match points.next {
            Some(next) => {
                block.begin = (block.steps.len() - points.steps.len()) as u32;
                block.first = next;
            }
            None => _ = self.blocks.pop_front(),
        }
        self.len -= 1;
        Some(first)
    }

    /// Removes the newest point. O(points of a block).
    pub fn pop(&mut self) -> Option<Point> {
        let block = self.blocks.back_mut()?;
        let (mut points, mut before) = (block.points(), None);
        loop {
            let after = points.steps.len();
            let point = points.next()?;
            if points.next.is_none() {
                break;
            }
            before = Some((point, block.steps.len() - after));
        }
        let newest = self.last;
        match before {
            Some((point, steps_len)) => {
                block.steps.truncate(steps_len);
                block.added -= 1;
                self.last = point;
            }
            None => {
                self.blocks.pop_back();
                self.last = self.blocks.back().and_then(|block| block.points().last()).unwrap_or_default();
            }
        }
        self.len -= 1;
        Some(newest)
    }

    /// Bytes of memory beside itself.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let steps = self.blocks.iter().map(|block| block.steps.capacity());
        self.blocks.capacity() * size_of::<Block>() + steps.sum::<usize>()
    }
}

impl Block {
    fn points(&self) -> BlockPoints<'_> {
        BlockPoints { next: Some(self.first), steps: &self.steps[self.begin as usize..] }
    }
}

struct BlockPoints<'a> {
    next: Option<Point>,
    /// From `next` on.
    steps: &'a [u8],
}

impl Iterator for BlockPoints<'_> {
    type Item = Point;

    fn next(&mut self) -> Option<Point> {
        let point = self.next.take()?;
        if !self.steps.is_empty() {
            self.next = Some(take_step_from(&point, &mut self.steps).expect("steps are whole"));
        }
        Some(point)
    }
}

/// Appends the difference of two points: what changed as bits, the hour only if it is not the next one; then the steps.
fn put_step(from: &Point, to: &Point, out: &mut Vec<u8>) {
    let amounts = [(from.cash, to.cash), (from.value, to.value), (from.baseline, to.baseline)];
    let [cash, value, baseline] = amounts.map(|(from, to)| from != to);
    let is_later = to.hour != from.hour.wrapping_add(1);
    let mut packer = Packer::onto(out);
    packer.byte(bits([is_later, cash, value, baseline]));
    if is_later {
        packer.step(from.hour.into(), to.hour.into());
    }
    for (from, to) in amounts.into_iter().filter(|(from, to)| from != to) {
        packer.step(from.0 as u64, to.0 as u64);
    }
    packer.end();
}

/// Reads what [`put_step`] wrote after the same point.
fn take_step_from(from: &Point, input: &mut &[u8]) -> Result<Point, CodecError> {
    let changed = take_byte(input)?;
    let hour = match has(changed, 0) {
        true => take_step(from.hour.into(), input)? as u32,
        false => from.hour.wrapping_add(1),
    };
    let mut amounts = [from.cash, from.value, from.baseline];
    for (amount, at) in amounts.iter_mut().zip(1..) {
        if has(changed, at) {
            *amount = Cash(take_step(amount.0 as u64, input)? as i64);
        }
    }
    let [cash, value, baseline] = amounts;
    Ok(Point { hour, cash, value, baseline })
}

/// A list of points, each in its own width: snapshots and digests do not depend on how they are kept here.
impl Bytes for Points {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len as u64).put(out);
        self.iter().for_each(|point| point.put(out));
    }
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let mut points = Points::default();
        take_list(input, |point| points.push(point))?;
        Ok(points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::put_list;
    use crate::user::sample::Dice;

    /// A point after another one: usually of a later hour, with amounts that changed much, little or not.
    fn point_after(last: Option<&Point>, any_hour: bool, dice: &mut Dice) -> Point {
        let last = last.copied().unwrap_or_default();
        let mut amount = |from: Cash| match dice.below(6) {
            0 | 1 => from,
            2 => Cash(from.0.wrapping_add(1 - 2 * dice.below(2) as i64)),
            3 => Cash(from.0.wrapping_add(dice.below(1 << 36) as i64 - (1 << 35))),
            4 => Cash(dice.next() as i64),
            _ => dice.pick(&[Cash(0), Cash(i64::MIN), Cash(i64::MAX), Cash(-1)]),
        };
        let (cash, value, baseline) = (amount(last.cash), amount(last.value), amount(last.baseline));
        let hour = match dice.below(4) {
            0 if any_hour => dice.pick(&[0, 1, u32::MAX, last.hour, last.hour.wrapping_sub(1)]),
            1 => last.hour.wrapping_add(1 + dice.below(3_000) as u32),
            _ => last.hour.wrapping_add(1),
        };
        Point { hour, cash, value, baseline }
    }

    fn bytes_of<'a>(len: usize, points: impl Iterator<Item = &'a Point>) -> Vec<u8> {
        let mut out = Vec::new();
        put_list(len, points, &mut out);
        out
    }

    #[test]
    fn points_are_those_of_a_plain_list() {
        let (mut cases, mut longest) = (0, 0);
        for seed in 0..24 {
            let mut dice = Dice(seed);
            // Of a snapshot that is read: in any order, refused later.
            let any_hour = seed % 4 == 0;
            let (mut points, mut model) = (Points::default(), VecDeque::<Point>::new());
            let (mut adds, mut count) = (80, 0);
            for turn in 0..2_000 {
                if turn % 200 == 0 {
                    // Long lists, lists of a few points that move on, and empty ones.
                    (adds, count) = (dice.pick(&[40, 50, 80, 95]), dice.pick(&[1, 5, 70, 400]));
                }
                match dice.below(100) {
                    at if at < adds => {
                        let point = point_after(model.back(), any_hour, &mut dice);
                        points.push(point);
                        model.push_back(point);
                    }
                    at if at % 3 == 0 => assert_eq!(points.pop(), model.pop_back(), "seed {seed}, turn {turn}"),
                    _ => assert_eq!(points.pop_first(), model.pop_front(), "seed {seed}, turn {turn}"),
                }
                while model.len() > count {
                    assert_eq!(points.pop_first(), model.pop_front(), "seed {seed}, turn {turn}");
                }
                assert_eq!((points.len(), points.first(), points.last()), (model.len(), model.front(), model.back()));
                longest = longest.max(model.len());
                if turn % 7 == 0 {
                    assert!(points.iter().eq(model.iter().copied()), "seed {seed}, turn {turn}");
                    let mut out = Vec::new();
                    points.put(&mut out);
                    assert_eq!(out, bytes_of(model.len(), model.iter()), "seed {seed}, turn {turn}");
                    let again = Points::take(&mut &out[..]).expect("just written");
                    assert!(again.iter().eq(model.iter().copied()));
                    if dice.chance(10) {
                        points = again;
                    }
                    // No block keeps more than its points had.
                    assert!(points.blocks.len() <= 2 + model.len().div_ceil(BLOCK_POINTS as usize));
                    assert!(points.blocks.iter().all(|block| block.steps.len() <= 36 * (BLOCK_POINTS as usize - 1)));
                    cases += 1;
                }
                if !any_hour && turn % 11 == 0 && !model.is_empty() {
                    let hour = match dice.below(3) {
                        0 => model[dice.below(model.len() as u64) as usize].hour,
                        _ => dice.below(u64::from(model[model.len() - 1].hour) + 3) as u32,
                    };
                    let until = points.since(hour).take_while(|point| point.hour <= hour).last();
                    assert_eq!(until, model.iter().rev().find(|point| point.hour <= hour).copied(), "hour {hour}");
                    assert!(
                        points
                            .since(hour)
                            .skip_while(|point| point.hour <= hour)
                            .eq(model.iter().copied().filter(|point| point.hour > hour))
                    );
                    let before = points.since(hour).take_while(|point| point.hour <= hour).count();
                    assert!(before <= BLOCK_POINTS as usize, "{before} points before hour {hour}");
                    cases += 1;
                }
            }
        }
        println!("lists of points: {cases} cases, up to {longest} points");
        assert!(longest > 300);
    }

    /// Of bytes that no build wrote a list is read or refused, in time and memory of their count.
    #[test]
    fn a_wrong_count_of_points_is_refused() {
        let points: Vec<Point> = (1..=70).map(|hour| Point { hour, ..Point::default() }).collect();
        let whole = bytes_of(points.len(), points.iter());
        let mut cases = 0;
        for len in 0..whole.len() {
            assert!(Points::take(&mut &whole[..len]).is_err(), "cut at {len}");
            cases += 1;
        }
        for count in [71, 1 << 20, u64::MAX] {
            let mut wrong = whole.clone();
            wrong[..8].copy_from_slice(&count.to_le_bytes());
            let mut found = None;
            let info = allocation_counter::measure(|| found = Some(Points::take(&mut &wrong[..]).is_err()));
            assert_eq!(found, Some(true), "{count} points");
            assert!(info.bytes_max < 16 << 10, "{} bytes for {count} points", info.bytes_max);
            cases += 1;
        }
        println!("lists of points that are refused: {cases} cases");
    }

    #[test]
    fn the_bytes_of_steps_are_golden() {
        let from = Point { hour: 500_000, cash: Cash(9_960_000_000), value: Cash(39_000_000), baseline: Cash(7) };
        // (the next point, its bytes)
        let rows: [(Point, &[u8]); 5] = [
            (Point { hour: 500_001, ..from }, &[0]),
            (Point { hour: 500_001, value: Cash(39_000_001), ..from }, &[4, 2]),
            (Point { hour: 500_003, cash: Cash(9_959_999_999), ..from }, &[3, 6, 1]),
            (Point { hour: 500_001, baseline: Cash(-57), ..from }, &[8, 127]),
            (
                Point { hour: 500_000, cash: Cash(9_960_000_064), value: Cash(0), ..from },
                &[7, 0, 128, 1, 255, 222, 152, 37],
            ),
        ];
        for (to, expected) in &rows {
            let mut out = Vec::new();
            put_step(&from, to, &mut out);
            assert_eq!(out, *expected, "{to:?}");
            let mut input = &out[..];
            assert_eq!((take_step_from(&from, &mut input), input), (Ok(*to), &[][..]));
            for end in 0..out.len() {
                assert!(take_step_from(&from, &mut &out[..end]).is_err(), "{to:?} cut at {end}");
            }
        }
        println!("steps of points: {} cases", rows.len());
    }
}
