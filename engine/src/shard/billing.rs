//! Billing of a user: the customer, and events of the payment provider (gateway/docs/billing.md §4). Calls to the
//! provider are not part of a shard.

use super::{Outbox, Shard};
use crate::command::{Answer, BillingEvent};
use crate::decide::billing;
use crate::id::UserId;
use crate::reject::Reject;
use crate::user::User;

impl<R> Shard<R> {
    /// One record for an event and its effect; none for an event that is known.
    pub(super) fn bill(&mut self, owner: UserId, event: BillingEvent, outbox: &mut impl Outbox<R>) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        match billing::event(user, event, &self.rules, self.now, &mut self.facts) {
            Err(reject) => Answer::Refused(reject),
            Ok(outcome) => {
                self.commit(owner, outbox);
                Answer::Billed(outcome)
            }
        }
    }

    /// Notes the customer of the user, unless there is one.
    pub(super) fn note_customer(&mut self, owner: UserId, customer: String, outbox: &mut impl Outbox<R>) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        if let Err(reject) = billing::note_customer(user, customer, &self.rules, self.now, &mut self.facts) {
            return Answer::Refused(reject);
        }
        self.commit(owner, outbox);
        self.users.get(owner).map_or(Answer::Refused(Reject::UserNotFound), view)
    }
}

/// Billing of a user, empty if it was never used.
pub(super) fn view(user: &User) -> Answer {
    Answer::Billing(Box::new(user.billing().cloned().unwrap_or_default()))
}
