//! Payments of rebates when a UTC day begins (engine/docs/execution.md §5): server time.
//!
//! They come after the points of the hour, so that the points of midnight are without them, and, as all that ends by
//! time, not while the clock is in doubt. Each user is paid in a record of its own; the state says who is still to be
//! paid, so a start in between continues.

use super::{Outbox, Room, Shard};
use crate::fact;
use crate::id::UserId;
use crate::mutation::Mutation;
use crate::rules::USERS_PAID_PER_TURN_MAX;

impl<R> Shard<R> {
    /// The next user to be paid, if it may be paid now.
    pub(super) fn rebates_due(&self) -> Option<UserId> {
        let may_pay = || {
            let has_points = self.cycles.have_begun() && !self.hourly.is_due(self.now);
            has_points && self.last_sweeps.by_server_time()
        };
        self.users.rebated_on(self.now.day()).filter(|_| may_pay())
    }

    /// Pays some users, if any are to be paid and the log has ample room. True when it has paid one.
    pub(super) fn pay_rebates(&mut self, outbox: &mut impl Outbox<R>) -> bool {
        let mut paid_count = 0;
        while paid_count < USERS_PAID_PER_TURN_MAX && outbox.room() == Room::Ample {
            let Some(owner) = self.rebates_due() else { break };
            let (now, user) = (self.now, self.users.get(owner).expect("an indexed user is in its shard"));
            let due = user.rebates_due(now.day());
            self.facts
                .extend(due.map(|(wallet, amount)| Mutation::RebatePaid(fact::RebatePaid { wallet, amount, at: now })));
            self.commit(owner, outbox);
            paid_count += 1;
        }
        paid_count > 0
    }
}
