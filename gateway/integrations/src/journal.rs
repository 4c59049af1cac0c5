//! The last deliveries of each target, in memory: they begin again with a restart.

use ahash::AHashMap;
use edge::api::integrations::port::{DELIVERIES_MAX, Delivery};
use engine::id::UserId;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Targets whose deliveries are kept. At the bound the one with the oldest newest delivery is forgotten.
const TARGETS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Deliveries(Mutex<AHashMap<(UserId, u32), VecDeque<Delivery>>>);

impl Deliveries {
    pub fn note(&self, user: UserId, target: u32, delivery: Delivery) {
        self.note_within(user, target, delivery, TARGETS_MAX);
    }

    fn note_within(&self, user: UserId, target: u32, delivery: Delivery, targets_max: usize) {
        let mut all = self.0.lock();
        if all.len() >= targets_max && !all.contains_key(&(user, target)) {
            let newest = |rows: &VecDeque<Delivery>| rows.front().map(|newest| newest.at);
            let oldest = all.iter().min_by_key(|(key, rows)| (newest(rows), **key)).map(|(key, _)| *key);
            oldest.and_then(|key| all.remove(&key));
        }
        let rows = all.entry((user, target)).or_default();
        rows.truncate(DELIVERIES_MAX - 1);
        rows.push_front(delivery);
    }

    /// Those of a target, newest first.
    pub fn of(&self, user: UserId, target: u32) -> Vec<Delivery> {
        self.0.lock().get(&(user, target)).map_or_else(Vec::new, |rows| rows.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edge::api::integrations::port::DeliveryOutcome;
    use engine::time::Timestamp;
    use engine::user::alerts::AlertKind;

    fn delivery(at: u64) -> Delivery {
        Delivery {
            at: Timestamp(at),
            event: [0; 16],
            kind: AlertKind::OrderFilled,
            attempt: 1,
            outcome: DeliveryOutcome::Delivered,
            status: Some(200),
            error: None,
        }
    }

    #[test]
    fn the_newest_are_kept() {
        let (all, user) = (Deliveries::default(), UserId(1));
        for at in 1..=60 {
            all.note(user, 1, delivery(at));
        }
        let moments: Vec<u64> = all.of(user, 1).iter().map(|delivery| delivery.at.0).collect();
        assert_eq!(moments, (11..=60).rev().collect::<Vec<_>>());
        assert!(all.of(user, 2).is_empty() && all.of(UserId(2), 1).is_empty());
    }

    #[test]
    fn the_target_without_news_is_forgotten() {
        let (all, user) = (Deliveries::default(), UserId(1));
        for (target, at) in [(1, 10), (2, 20), (1, 30), (3, 40)] {
            all.note_within(user, target, delivery(at), 2);
        }
        let left: Vec<bool> = (1..=3).map(|target| !all.of(user, target).is_empty()).collect();
        assert_eq!(left, [true, false, true]);
    }
}
