//! Ids of the objects that a command creates.

use crate::fact;
use crate::id::{OBJECT_BITS, UserId};
use crate::mutation::Mutation;
use crate::rules::Rules;
use crate::time::Timestamp;
use crate::user::prefixes::PREFIXES_MAX;
use crate::user::{FIRST_OBJECT, User};

/// Object numbers that are left unused, so that a command never runs out of them midway.
const OBJECTS_SPARE: u32 = 1 << 16;

/// Generates the ids of one command's new objects.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    next: u64,
}

impl Numbers {
    /// For a user that is about to be created.
    pub fn first(owner: UserId) -> Numbers {
        Numbers { next: owner.object(FIRST_OBJECT) }
    }

    /// Continues after the user's last number; `None` when the object numbers are used up.
    pub fn of(user: &User) -> Option<Numbers> {
        (user.numbers_used() < (1 << OBJECT_BITS) - OBJECTS_SPARE).then(|| Numbers { next: user.next_object_id() })
    }

    /// The next object id.
    pub fn take(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }
}

/// Whether the user needs another prefix, because few numbers of the present one are left. The previous formats have none.
#[inline]
pub fn are_ending(user: &User, rules: &Rules) -> bool {
    user.numbers_used() >= rules.numbers_per_prefix && rules.formats.is_newest()
}

/// Whether the user may have one more prefix.
pub fn may_extend(user: &User) -> bool {
    user.granted_prefixes().len() < PREFIXES_MAX
}

/// The user continues with a prefix that no user has.
pub fn extended(prefix: UserId, now: Timestamp) -> Mutation {
    Mutation::NumbersExtended(fact::NumbersExtended { prefix, at: now })
}
