//! Correction of the clock: events that a wrong clock recorded later than the correction get its time.
//!
//! It is the latest possible time of these events, and keeps ids and times of a user ascending together. What the clock
//! decided before (expired orders, prices of fills) stays decided. Requested dates stay: expirations of orders, ends of
//! grants, cutoffs.
//!
//! Rows that have left memory are out of reach: [`Users::newest_departed`] shows whether one of them is later.
//!
//! [`Users::newest_departed`]: super::Users::newest_departed

use super::{ApiKey, User, Wallet, WalletRare};
use crate::rules::ROTATION_OVERLAP_US;
use crate::time::{Date, Timestamp};

impl User {
    /// Limits all past times of this user to at most `at`.
    pub(crate) fn set_back(&mut self, at: Timestamp) {
        // The start of 1970 encodes no moment.
        let at = at.max(Timestamp(1));
        self.created_at = self.created_at.min(at);
        self.wallets.iter_mut().for_each(|wallet| wallet.set_back(at));
        self.keys.iter_mut().for_each(|key| key.set_back(at));
        // Orders counted on a future day count for today: no user gets a second cap.
        self.quota.day = self.quota.day.min(at.day());
        if let Some(billing) = &mut self.billing {
            billing.set_back(at);
        }
        let Some(trading) = &mut self.trading else { return };
        trading.orders.each_mut(|order| order.set_back(at));
        trading.fills.each_mut(|fill| fill.at = fill.at.min(at));
        trading.positions.each_mut(|position| {
            position.opened_at = position.opened_at.min(at);
            position.closed_at = position.closed_at.map(|closed_at| closed_at.min(at));
            if let Some(settlement) = &mut position.settlement {
                settlement.at = settlement.at.min(at);
            }
        });
        if let Some(requests) = &mut trading.requests {
            requests.rows.each_mut(|request| {
                request.first.filled_at = request.first.filled_at.map(|filled_at| filled_at.min(at));
            });
        }
        if let Some(backtests) = &mut trading.backtests {
            backtests.set_back(at);
        }
        if let Some(alerts) = &mut trading.alerts {
            alerts.set_back(at);
        }
        trading.set_tallies_back(at);
        if let Some(realism) = &mut trading.realism {
            realism.set_back(at);
        }
        trading.equity.iter_mut().for_each(|equity| equity.set_back(at.hour()));
        trading.resets.iter_mut().for_each(|(_, reset_at)| *reset_at = (*reset_at).min(at));
    }
}

impl Wallet {
    fn set_back(&mut self, at: Timestamp) {
        self.created_at = self.created_at.min(at);
        if let Some(archived_at) = self.archived_at().filter(|archived_at| *archived_at > at) {
            self.set_rare(WalletRare { archived_at: Some(archived_at.min(at)), ..self.rare() });
        }
        let mut rebates = self.rebates();
        rebates.set_back(at);
        if rebates != self.rebates() {
            self.set_rebates(rebates);
        }
    }
}

impl ApiKey {
    fn set_back(&mut self, at: Timestamp) {
        self.created_at = self.created_at.min(at);
        for date in [&mut self.revoked_at, &mut self.last_used_at] {
            *date = earlier(*date, at);
        }
        // The old key of a rotation is valid for that long at most, and the rotation was not later than now.
        self.expires_at = earlier(self.expires_at, at.plus(ROTATION_OVERLAP_US));
    }
}

fn earlier(date: Date, at: Timestamp) -> Date {
    date.get().map(|moment| moment.min(at)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Cash;
    use crate::id::WalletId;
    use crate::shard::snapshot::put_user;
    use crate::time::{DAY, UtcDay};
    use crate::user::equity::{Equity, Point};
    use crate::user::sample::Sample;
    use crate::user::{Users, wallet::WalletKind};

    fn bytes(users: &Users) -> Vec<u8> {
        let mut out = Vec::new();
        users.iter().for_each(|user| put_user(user, &mut out));
        out
    }

    #[test]
    fn no_past_time_is_later_and_every_invariant_is_kept() {
        let (mut cases, mut moved) = (0, 0);
        for seed in 0..60 {
            let (mut users, mut sample) = (Users::default(), Sample::new(seed, 6, 8));
            for (owner, facts) in (0..300).map(|_| sample.record()) {
                facts.iter().for_each(|fact| users.apply(owner, fact));
            }
            let before = bytes(&users);
            let moments: Vec<Timestamp> =
                users.iter().flat_map(|user| user.orders().iter().map(|order| order.created_at)).collect();
            let Some(at) = moments.get(moments.len() / 2).copied() else { continue };
            // No time is later than the end of time.
            users.set_back(Timestamp(u64::MAX / 2));
            assert_eq!(bytes(&users), before, "seed {seed}");
            users.set_back(at);
            users.check_all().unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
            for user in users.iter() {
                let orders = user.orders().iter();
                let closed = orders.clone().filter_map(|order| order.closed()).map(|(_, at)| at);
                let mut moments: Vec<Timestamp> = orders.clone().map(|order| order.created_at).collect();
                assert!(moments.is_sorted(), "ids and times ascend together");
                assert!(user.fills().iter().is_sorted_by_key(|fill| fill.at), "ids and times ascend together");
                moments.extend(closed.chain(orders.filter_map(|order| order.filled_at())));
                moments.extend(user.fills().iter().map(|fill| fill.at));
                moments
                    .extend(user.positions().iter().flat_map(|held| [Some(held.opened_at), held.closed_at]).flatten());
                moments
                    .extend(user.wallets.iter().flat_map(|held| [Some(held.created_at), held.archived_at()]).flatten());
                let keys = user.keys.iter();
                moments.extend(keys.flat_map(|key| [key.revoked_at.get(), key.last_used_at.get()]).flatten());
                assert!(
                    moments.iter().all(|moment| *moment <= at),
                    "seed {seed}: {:?} after {at:?}",
                    moments.iter().max()
                );
                let points = user.wallets.iter().filter_map(|wallet| user.equity(wallet.id));
                for equity in points {
                    assert!(equity.ascends() && equity.last().is_none_or(|last| last.hour <= at.hour()));
                }
                assert!(user.quota.day <= at.day());
                cases += moments.len();
            }
            moved += usize::from(bytes(&users) != before);
            // A second correction changes nothing.
            let once = bytes(&users);
            users.set_back(at);
            assert_eq!(bytes(&users), once);
        }
        println!("moments: {cases} cases in {moved} states");
        assert!(cases > 1_000 && moved > 30);
    }

    #[test]
    fn uses_and_rotations_of_future_days_count_from_now() {
        let at = Timestamp(1_790_932_500_000_000);
        let year = 365 * DAY;
        // (time of the rotation, end of the old key after the correction)
        for (rotated_at, ends) in
            [(Timestamp(at.0 - 2 * DAY), Timestamp(at.0 - DAY)), (at, at.plus(DAY)), (at.plus(year), at.plus(DAY))]
        {
            assert_eq!(
                earlier(Some(rotated_at.plus(ROTATION_OVERLAP_US)).into(), at.plus(ROTATION_OVERLAP_US)).get(),
                Some(ends)
            );
        }
        assert_eq!(earlier(Date::NONE, at), Date::NONE);
        let mut user = User::new(crate::id::UserId(1), None, None, at.plus(year));
        user.quota.day = at.plus(year).day();
        user.quota.used = 7;
        user.wallets.push(Wallet::new(WalletId(5), WalletKind::Api, Cash(9), 1, at.plus(year)));
        user.set_back(at);
        assert_eq!((user.created_at, user.wallets[0].created_at), (at, at));
        assert_eq!((user.quota.used_on(at.day()), user.quota.used_on(UtcDay(at.day().0 + 1))), (7, 0));
    }

    #[test]
    fn points_of_future_hours_become_one() {
        let (now, year) = (497_000, 24 * 365);
        let point = |hour| Point { hour, cash: Cash(i64::from(hour)), value: Cash::ZERO, baseline: Cash(5) };
        // (hours with a point, remaining hours, the hour whose value the last one has)
        let rows = [
            (vec![], vec![], 0),
            (vec![now - 2, now], vec![now - 2, now], now),
            (vec![now - 2, now + 1], vec![now - 2, now], now + 1),
            (vec![now, now + 1, now + year], vec![now], now + year),
            (vec![now + 1, now + 2], vec![now], now + 2),
            // So far in the future that the older ones were reduced to days.
            (vec![now - 50, now - 49, now + year], vec![now - 49, now], now + year),
        ];
        let rows_count = rows.len();
        for (number, (hours, left, value)) in rows.into_iter().enumerate() {
            let mut equity = Equity::new(WalletId(1));
            hours.iter().for_each(|hour| equity.push(point(*hour)));
            equity.set_back(now);
            let found: Vec<u32> = equity.points().map(|point| point.hour).collect();
            match number + 1 < rows_count {
                true => assert_eq!(found, left, "{hours:?}"),
                // One point a day remains; the folding chooses its hour.
                false => assert_eq!(
                    (found.len(), found[0] / 24, found[found.len() - 1]),
                    (left.len(), left[0] / 24, now),
                    "{hours:?}: {found:?}"
                ),
            }
            assert_eq!(equity.last().map_or(0, |last| last.cash.0), i64::from(value), "{hours:?}");
            // A point of the next full hour is still accepted: `push` panics unless hours ascend.
            equity.push(point(now + 1));
        }
    }
}
