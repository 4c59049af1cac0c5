//! The last deliveries of each target, in memory: they begin again with a restart.

use ahash::AHashMap;
use edge::api::integrations::port::{DELIVERIES_MAX, Delivery};
use engine::id::UserId;
use engine::user::alerts::TARGETS_PER_CHANNEL_MAX;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};

/// Targets of a user whose deliveries are kept: those of both channels. A delivery in flight to a removed target can make
/// one more: then the target with the oldest newest delivery is forgotten.
const TARGETS_MAX: usize = 2 * TARGETS_PER_CHANNEL_MAX;
/// Deliveries of all users. At the bound the user without news for the longest time is forgotten.
const ROWS_MAX: usize = 500_000;

#[derive(Debug)]
pub struct Deliveries {
    all: Mutex<All>,
    rows_max: usize,
}

impl Default for Deliveries {
    fn default() -> Deliveries {
        Deliveries { all: Mutex::default(), rows_max: ROWS_MAX }
    }
}

#[derive(Debug, Default)]
struct All {
    users: AHashMap<UserId, OfUser>,
    /// The users, by their last news.
    by_news: BTreeMap<u64, UserId>,
    /// Number of the last news; the first is 1.
    last: u64,
    /// Deliveries of all users.
    rows: usize,
}

#[derive(Debug, Default)]
struct OfUser {
    /// Number of its last news; 0: none yet.
    news: u64,
    /// Rows of each target, newest first. They are few, and not in order.
    targets: Vec<(u32, VecDeque<Delivery>)>,
}

impl OfUser {
    fn rows(&self) -> usize {
        self.targets.iter().map(|(_, rows)| rows.len()).sum()
    }

    /// Makes room for another target if there is none.
    fn make_room(&mut self) {
        if self.targets.len() >= TARGETS_MAX {
            let newest = |(_, rows): &(u32, VecDeque<Delivery>)| rows.front().map(|newest| newest.at);
            if let Some(at) = (0..self.targets.len()).min_by_key(|at| newest(&self.targets[*at])) {
                self.targets.swap_remove(at);
            }
        }
    }

    fn note(&mut self, target: u32, delivery: Delivery) {
        let found = self.targets.iter().position(|(known, _)| *known == target);
        let at = found.unwrap_or_else(|| {
            self.make_room();
            self.targets.push((target, VecDeque::new()));
            self.targets.len() - 1
        });
        let (_, rows) = &mut self.targets[at];
        rows.truncate(DELIVERIES_MAX - 1);
        rows.push_front(delivery);
    }
}

impl Deliveries {
    pub fn note(&self, user: UserId, target: u32, delivery: Delivery) {
        let all = &mut *self.all.lock();
        let own = all.users.entry(user).or_default();
        all.by_news.remove(&own.news);
        let before = own.rows();
        own.note(target, delivery);
        all.rows = all.rows + own.rows() - before;
        all.last += 1;
        own.news = all.last;
        all.by_news.insert(all.last, user);
        while all.rows > self.rows_max && all.users.len() > 1 {
            let oldest = all.by_news.pop_first().and_then(|(_, user)| all.users.remove(&user));
            all.rows -= oldest.as_ref().map_or(0, OfUser::rows);
        }
    }

    /// Forgets those of a target that was removed.
    pub fn forget(&self, user: UserId, target: u32) {
        let all = &mut *self.all.lock();
        let Some(own) = all.users.get_mut(&user) else { return };
        let before = own.rows();
        own.targets.retain(|(known, _)| *known != target);
        all.rows -= before - own.rows();
        if own.targets.is_empty() {
            all.by_news.remove(&own.news);
            all.users.remove(&user);
        }
    }

    /// Those of a target, newest first.
    pub fn of(&self, user: UserId, target: u32) -> Vec<Delivery> {
        let all = self.all.lock();
        let own = all.users.get(&user).and_then(|own| own.targets.iter().find(|(known, _)| *known == target));
        own.map_or_else(Vec::new, |(_, rows)| rows.iter().cloned().collect())
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

    /// The moments of the rows of a target.
    fn moments(all: &Deliveries, user: u64, target: u32) -> Vec<u64> {
        all.of(UserId(user), target).iter().map(|delivery| delivery.at.0).collect()
    }

    /// Users, and rows of all users, as they are counted and as they are.
    fn counts(all: &Deliveries) -> (usize, usize) {
        let all = all.all.lock();
        assert_eq!(all.rows, all.users.values().map(OfUser::rows).sum::<usize>());
        assert_eq!(all.by_news.len(), all.users.len());
        (all.users.len(), all.rows)
    }

    #[test]
    fn the_newest_are_kept() {
        let all = Deliveries::default();
        for at in 1..=60 {
            all.note(UserId(1), 1, delivery(at));
        }
        assert_eq!(moments(&all, 1, 1), (11..=60).rev().collect::<Vec<_>>());
        assert!(moments(&all, 1, 2).is_empty() && moments(&all, 2, 1).is_empty());
        assert_eq!(counts(&all), (1, 50));
    }

    #[test]
    fn those_of_a_removed_target_are_forgotten() {
        let all = Deliveries::default();
        for (user, target) in [(1, 1), (1, 1), (1, 2), (2, 1)] {
            all.note(UserId(user), target, delivery(1));
        }
        all.forget(UserId(1), 1);
        assert_eq!((moments(&all, 1, 1), moments(&all, 1, 2), moments(&all, 2, 1)), (vec![], vec![1], vec![1]));
        assert_eq!(counts(&all), (2, 2));
        // The last one, an unknown one, and one of an unknown user.
        for (user, target, left) in [(1, 2, (1, 1)), (1, 2, (1, 1)), (2, 9, (1, 1)), (3, 1, (1, 1)), (2, 1, (0, 0))] {
            all.forget(UserId(user), target);
            assert_eq!(counts(&all), left, "{target} of {user}");
        }
    }

    #[test]
    fn the_target_of_a_user_without_news_is_forgotten() {
        let all = Deliveries::default();
        let count = TARGETS_MAX as u32;
        for target in 1..=count {
            all.note(UserId(1), target, delivery(10 + u64::from(target)));
        }
        all.note(UserId(1), 1, delivery(90));
        all.note(UserId(1), count + 1, delivery(91));
        let left: Vec<u32> = (1..=count + 1).filter(|target| !moments(&all, 1, *target).is_empty()).collect();
        assert_eq!(left, [1].into_iter().chain(3..=count + 1).collect::<Vec<_>>());
        assert_eq!(counts(&all), (1, TARGETS_MAX + 1));
    }

    #[test]
    fn the_user_without_news_is_forgotten() {
        let all = Deliveries { all: Mutex::default(), rows_max: 4 };
        for (at, user) in [1, 2, 3, 1, 4].into_iter().enumerate() {
            all.note(UserId(user), 1, delivery(at as u64));
        }
        let left: Vec<u64> = (1..=4).filter(|user| !moments(&all, *user, 1).is_empty()).collect();
        assert_eq!((left, counts(&all)), (vec![1, 3, 4], (3, 4)));
        // One user alone keeps its own.
        for at in 0..9 {
            all.note(UserId(5), 1, delivery(at));
        }
        assert_eq!(counts(&all), (1, 9));
    }
}
