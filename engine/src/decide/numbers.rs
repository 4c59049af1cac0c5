//! Ids of the objects that a command creates.

use crate::id::{OBJECT_BITS, UserId};
use crate::user::{FIRST_OBJECT, User};

/// Object numbers that are left unused, so that a command never runs out of them midway.
const OBJECTS_SPARE: u32 = 1 << 16;

/// Generates the ids of one command's new objects.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    owner: UserId,
    next: u32,
}

impl Numbers {
    /// For a user that is about to be created.
    pub fn first(owner: UserId) -> Numbers {
        Numbers { owner, next: FIRST_OBJECT }
    }

    /// Continues after the user's last number; `None` when the object numbers are used up.
    pub fn of(user: &User) -> Option<Numbers> {
        (user.next_object < (1 << OBJECT_BITS) - OBJECTS_SPARE)
            .then_some(Numbers { owner: user.id, next: user.next_object })
    }

    /// The next object id.
    pub fn take(&mut self) -> u64 {
        let id = self.owner.object(self.next);
        self.next += 1;
        id
    }
}
