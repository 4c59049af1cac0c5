//! Heartbeats: armed, beaten, ended (engine/docs/orders.md §6). Only arming, a new interval and an end are facts.

use super::{Outbox, Shard};
use crate::command::{Answer, BeatName};
use crate::fact;
use crate::id::UserId;
use crate::mutation::Mutation;
use crate::reject::Reject;
use crate::rules::SAFEGUARDS_PER_USER_MAX;
use crate::user::safeguard;

impl<R> Shard<R> {
    /// Arms a heartbeat, or beats it; only arming and a new interval are facts.
    pub(super) fn beat(
        &mut self,
        owner: UserId,
        label: String,
        interval_ms: u32,
        outbox: &mut impl Outbox<R>,
    ) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        let lapses_at = safeguard::lapses_at(interval_ms, self.now);
        let known = user.safeguards().iter().find(|known| *known.label == *label);
        if known.is_some_and(|known| known.interval_ms == interval_ms) {
            let lapses_at = self.users.beat(owner, &label, self.now).unwrap_or(lapses_at);
            return Answer::Beating { lapses_at };
        }
        if known.is_none() && user.safeguards().len() >= SAFEGUARDS_PER_USER_MAX {
            return Answer::Refused(Reject::TooManySafeguards);
        }
        self.facts.push(Mutation::SafeguardArmed(fact::SafeguardArmed { label, interval_ms, at: self.now }));
        self.commit(owner, outbox);
        Answer::Beating { lapses_at }
    }

    /// A beat in the venue's form. A first one is always accepted: a restarted client knows no name. So is any
    /// well-formed one while no name is known, as after a restart of the server.
    pub(super) fn beat_by_name(
        &mut self,
        owner: UserId,
        shown: BeatName,
        next: [u8; 16],
        outbox: &mut impl Outbox<R>,
    ) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        let armed = user.safeguards().iter().find(|known| *known.label == *safeguard::VENUE_LABEL);
        let current = armed.and_then(|armed| armed.beat);
        let right = match shown {
            BeatName::First => true,
            BeatName::Known(name) => armed.is_some() && current.is_none_or(|current| current == name),
            BeatName::Nonsense => false,
        };
        if !right {
            return Answer::WrongBeat { current };
        }
        let label = safeguard::VENUE_LABEL.to_owned();
        let answer = self.beat(owner, label, safeguard::VENUE_INTERVAL_MS, outbox);
        if let Answer::Beating { .. } = answer {
            self.users.name_beat(owner, safeguard::VENUE_LABEL, next);
        }
        answer
    }

    pub(super) fn end_beats(&mut self, owner: UserId, outbox: &mut impl Outbox<R>) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        let ended =
            |label: &str| Mutation::SafeguardEnded(fact::SafeguardEnded { label: label.to_owned(), at: self.now });
        self.facts.extend(user.safeguards().iter().map(|safeguard| ended(&safeguard.label)));
        self.commit(owner, outbox);
        Answer::Done
    }
}
