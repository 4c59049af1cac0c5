//! The id prefixes of a user, and its object numbers over all of them.
//!
//! ```text
//! number   0 ··· 2²⁸ − 1   │ 2²⁸ ··· 2·2²⁸ − 1        │ 2·2²⁸ ···
//! id       user × 2²⁸ + …  │ first prefix × 2²⁸ + …   │ second prefix × 2²⁸ + …
//! ```
//!
//! Nearly all users have their own id alone: then a number is the lowest 28 bits of an id, and nothing is searched. Each
//! prefix is higher than those before it, so ids ascend as numbers do.

use super::User;
use crate::bytes::{Bytes, CodecError, put_list, take_list};
use crate::id::{OBJECT_BITS, USER_ID_MAX, UserId, object_number};

/// Maximum count of prefixes beside a user's own id: object numbers have 32 bits.
pub const PREFIXES_MAX: usize = (1 << (u32::BITS - OBJECT_BITS)) - 1;

/// The prefixes that a user was granted, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefixes(Option<Box<Granted>>);

/// Ascending; not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Granted(Vec<UserId>);

impl Prefixes {
    pub const fn new() -> Prefixes {
        Prefixes(None)
    }

    /// The prefixes, oldest first.
    pub fn granted(&self) -> &[UserId] {
        self.0.as_deref().map_or(&[], |granted| &granted.0)
    }

    /// Adds a prefix.
    ///
    /// # Panics
    /// When it is not above those before it, or one too many.
    pub fn grant(&mut self, owner: UserId, prefix: UserId) {
        let last = self.granted().last().copied().unwrap_or(owner);
        assert!(
            prefix > last && prefix.0 <= USER_ID_MAX && self.granted().len() < PREFIXES_MAX,
            "prefixes ascend: {prefix} after {last} of user {owner}"
        );
        self.0.get_or_insert_default().0.push(prefix);
    }

    /// The number of an object of this user. An object of another user may have any, so a look-up compares the whole id.
    #[inline]
    pub fn number(&self, object: u64) -> u32 {
        match &self.0 {
            None => object_number(object),
            Some(granted) => number_among(&granted.0, object),
        }
    }

    /// The id of a user's object.
    ///
    /// # Panics
    /// When the number has a prefix that was not granted.
    #[inline]
    pub fn object(&self, owner: UserId, number: u32) -> u64 {
        match (number >> OBJECT_BITS) as usize {
            0 => owner.object(number),
            nth => self.granted()[nth - 1].object(number & ((1 << OBJECT_BITS) - 1)),
        }
    }

    /// Whether ids of the user have this prefix.
    #[inline]
    pub fn has(&self, owner: UserId, prefix: UserId) -> bool {
        prefix == owner || self.granted().contains(&prefix)
    }

    /// The number of an object; `None`: it does not belong to this user.
    #[inline]
    pub fn number_of(&self, owner: UserId, object: u64) -> Option<u32> {
        let prefix = UserId::of_object(object);
        match &self.0 {
            None => (prefix == owner).then(|| object_number(object)),
            Some(granted) => self.has(owner, prefix).then(|| number_among(&granted.0, object)),
        }
    }
}

#[cold]
fn number_among(granted: &[UserId], object: u64) -> u32 {
    let prefix = UserId::of_object(object);
    let nth = granted.binary_search(&prefix).map_or(0, |at| at as u32 + 1);
    nth << OBJECT_BITS | object_number(object)
}

impl User {
    /// The id of this user's object number `number`.
    ///
    /// # Panics
    /// When the number has a prefix that was not granted.
    #[inline]
    pub fn object(&self, number: u32) -> u64 {
        self.trading().prefixes.object(self.id, number)
    }

    /// Whether an id has a prefix of this user.
    #[inline]
    pub fn has_object(&self, object: u64) -> bool {
        self.trading().prefixes.has(self.id, UserId::of_object(object))
    }

    /// The number of an object of this user; `None`: the id has another prefix.
    #[inline]
    pub fn number_of(&self, object: u64) -> Option<u32> {
        self.trading().prefixes.number_of(self.id, object)
    }

    /// The prefixes of the user's ids, oldest first: its own id, then those that were granted.
    pub fn prefixes(&self) -> impl Iterator<Item = UserId> + '_ {
        std::iter::once(self.id).chain(self.granted_prefixes().iter().copied())
    }

    /// The prefixes that the user was granted, oldest first.
    pub fn granted_prefixes(&self) -> &[UserId] {
        self.trading().prefixes.granted()
    }

    /// The id that the next object gets. If the numbers are used up, no object gets it.
    #[inline]
    pub fn next_object_id(&self) -> u64 {
        let prefix = self.granted_prefixes().last().copied().unwrap_or(self.id);
        prefix.object(self.numbers_used().min((1 << OBJECT_BITS) - 1))
    }

    /// Count of numbers of the present prefix that are used: at most 2²⁸.
    #[inline]
    pub fn numbers_used(&self) -> u32 {
        self.next_object - ((self.granted_prefixes().len() as u32) << OBJECT_BITS)
    }

    /// From now on ids have this prefix; the numbers of the one before that are left stay unused.
    pub(super) fn extend_numbers(&mut self, prefix: UserId) {
        let owner = self.id;
        let prefixes = &mut self.trading_mut().prefixes;
        prefixes.grant(owner, prefix);
        self.next_object = (prefixes.granted().len() as u32) << OBJECT_BITS;
    }
}

impl Bytes for Prefixes {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self.granted().len(), self.granted().iter(), out);
    }

    /// Without a check against the user, which [`Prefixes::are_of`] makes.
    fn take(input: &mut &[u8]) -> Result<Prefixes, CodecError> {
        let mut granted = Vec::new();
        take_list(input, |prefix| granted.push(prefix))?;
        let ascend = granted.is_sorted_by(|prefix: &UserId, next| prefix < next);
        let is_bounded = granted.last().is_some_and(|last| last.0 <= USER_ID_MAX) && granted.len() <= PREFIXES_MAX;
        if !ascend || !is_bounded {
            return Err(CodecError::Reference);
        }
        Ok(Prefixes(Some(Box::new(Granted(granted)))))
    }
}

impl Prefixes {
    /// Whether a user with this id and next object can have them.
    pub fn are_of(&self, owner: UserId, next_object: u32) -> bool {
        let granted = self.granted();
        granted.first().is_none_or(|first| *first > owner) && (next_object >> OBJECT_BITS) as usize == granted.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ids_of_all_prefixes_are_each_others_inverse() {
        let owner = UserId(7);
        let mut prefixes = Prefixes::new();
        let (mut ids, mut cases) = (Vec::new(), 0);
        for nth in 0..=PREFIXES_MAX as u64 {
            if nth > 0 {
                prefixes.grant(owner, UserId(100 + 3 * nth));
            }
            for low in [0, 1, (1 << OBJECT_BITS) - 1] {
                let number = (nth as u32) << OBJECT_BITS | low;
                let id = prefixes.object(owner, number);
                assert_eq!((prefixes.number(id), object_number(id)), (number, low));
                assert_eq!(prefixes.number_of(owner, id), Some(number));
                assert!(prefixes.has(owner, UserId::of_object(id)) && id < 1 << 53);
                ids.push(id);
                cases += 1;
            }
        }
        assert!(ids.is_sorted_by(|id, next| id < next), "ids ascend as numbers do");
        // Of the present state, the numbers before are the same.
        for (at, id) in ids.iter().enumerate() {
            let number = ((at / 3) as u32) << OBJECT_BITS | object_number(*id);
            assert_eq!((prefixes.number(*id), prefixes.object(owner, number)), (number, *id));
            cases += 1;
        }
        for foreign in [6, 8, 100, 102, 104, 146] {
            assert!(!prefixes.has(owner, UserId(foreign)), "{foreign}");
            assert_eq!(prefixes.number_of(owner, UserId(foreign).object(1)), None, "{foreign}");
            cases += 1;
        }
        println!("object numbers: {cases} cases");
    }

    #[test]
    fn bytes_are_ascending_prefixes_or_an_error() {
        let mut cases = 0;
        let all: Vec<u64> = (1..=PREFIXES_MAX as u64).collect();
        // (prefixes, whether they are read)
        for (ids, is_read) in [
            (vec![9], true),
            (vec![9, 10, USER_ID_MAX], true),
            (all.clone(), true),
            (vec![], false),
            (vec![9, 9], false),
            (vec![10, 9], false),
            (vec![9, USER_ID_MAX + 1], false),
            ([all, vec![PREFIXES_MAX as u64 + 1]].concat(), false),
        ] {
            let ids: Vec<UserId> = ids.into_iter().map(UserId).collect();
            let mut bytes = Vec::new();
            put_list(ids.len(), ids.iter(), &mut bytes);
            let read = Prefixes::take(&mut &bytes[..]);
            assert_eq!(read.is_ok(), is_read, "{ids:?}");
            if let Ok(read) = read {
                let mut again = Vec::new();
                read.put(&mut again);
                assert_eq!((read.granted(), &again), (&ids[..], &bytes));
            }
            for end in 0..bytes.len() {
                assert!(Prefixes::take(&mut &bytes[..end]).is_err(), "{ids:?} cut at {end}");
                cases += 1;
            }
            cases += 1;
        }
        // A count without its prefixes.
        assert!(Prefixes::take(&mut &u64::MAX.to_le_bytes()[..]).is_err());
        println!("bytes of prefixes: {} cases", cases + 1);
    }

    #[test]
    fn prefixes_belong_to_a_user_below_them() {
        let of = |ids: &[u64]| {
            let mut prefixes = Prefixes::new();
            ids.iter().for_each(|id| prefixes.grant(UserId(1), UserId(*id)));
            prefixes
        };
        let bits = OBJECT_BITS;
        // (prefixes, owner, next object, whether they fit)
        let rows = [
            (of(&[]), 1, 5, true),
            (of(&[]), 1, 1 << bits, false),
            (of(&[]), 1, u32::MAX, false),
            (of(&[9]), 8, 1 << bits, true),
            (of(&[9]), 8, (2 << bits) - 1, true),
            (of(&[9]), 8, (1 << bits) - 1, false),
            (of(&[9]), 8, 2 << bits, false),
            (of(&[9]), 9, 1 << bits, false),
            (of(&[9]), 10, 1 << bits, false),
            (of(&[9, 12]), 8, 2 << bits, true),
        ];
        for (prefixes, owner, next, fits) in &rows {
            assert_eq!(prefixes.are_of(UserId(*owner), *next), *fits, "{prefixes:?} of {owner}, next {next}");
        }
        println!("prefixes of users: {} cases", rows.len());
    }

    #[test]
    #[should_panic(expected = "prefixes ascend")]
    fn a_prefix_is_above_those_before_it() {
        let mut prefixes = Prefixes::new();
        prefixes.grant(UserId(7), UserId(9));
        prefixes.grant(UserId(7), UserId(9));
    }

    #[test]
    #[should_panic(expected = "prefixes ascend")]
    fn a_user_has_a_bounded_count_of_prefixes() {
        let mut prefixes = Prefixes::new();
        (0..=PREFIXES_MAX as u64).for_each(|nth| prefixes.grant(UserId(7), UserId(9 + nth)));
    }
}
