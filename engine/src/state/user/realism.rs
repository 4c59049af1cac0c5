//! The realism of a user: the sets that were chosen for keys, and the last journaled places of resting orders in the
//! queues of their levels.

use crate::amount::{Bps, Qty};
use crate::bytes::{Bytes, CodecError, put_list, row, take_list};
use crate::id::{KeyId, OrderId};
use crate::time::{Date, Timestamp};

/// The place of a resting order at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueNote {
    pub order: OrderId,
    /// Shares of the venue before it.
    pub ahead: Qty,
    pub confidence: Bps,
    pub at: Timestamp,
    /// The recording's time, if a recording drives the venue's clock.
    pub venue_at: Date,
}

row!(QueueNote { order, ahead, confidence, at, venue_at });

/// The set that was chosen for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    key: KeyId,
    set: Box<str>,
}

row!(Choice { key, set });

/// Both lists are in id order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Realism {
    choices: Vec<Choice>,
    notes: Vec<QueueNote>,
}

impl QueueNote {
    /// Venue time of the note.
    pub fn venue_time(&self) -> Timestamp {
        self.venue_at.get().unwrap_or(self.at)
    }
}

impl Realism {
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty() && self.notes.is_empty()
    }

    pub fn set_of(&self, key: KeyId) -> Option<&str> {
        let at = self.choices.binary_search_by_key(&key, |choice| choice.key).ok()?;
        Some(&self.choices[at].set)
    }

    pub fn choices(&self) -> impl Iterator<Item = (KeyId, &str)> + '_ {
        self.choices.iter().map(|choice| (choice.key, &*choice.set))
    }

    /// Chooses a set for a key, or none.
    pub fn choose(&mut self, key: KeyId, set: Option<&str>) {
        match (self.choices.binary_search_by_key(&key, |choice| choice.key), set) {
            (Ok(at), Some(set)) => self.choices[at].set = set.into(),
            (Ok(at), None) => drop(self.choices.remove(at)),
            (Err(at), Some(set)) => self.choices.insert(at, Choice { key, set: set.into() }),
            (Err(_), None) => {}
        }
    }

    pub fn note_of(&self, order: OrderId) -> Option<&QueueNote> {
        self.notes.binary_search_by_key(&order, |note| note.order).ok().map(|at| &self.notes[at])
    }

    pub fn note(&mut self, note: QueueNote) {
        match self.notes.binary_search_by_key(&note.order, |known| known.order) {
            Ok(at) => self.notes[at] = note,
            Err(at) => self.notes.insert(at, note),
        }
    }

    /// The order has ended.
    pub fn drop_note(&mut self, order: OrderId) {
        if let Ok(at) = self.notes.binary_search_by_key(&order, |note| note.order) {
            self.notes.remove(at);
        }
    }

    /// Limits its times to at most `at`.
    pub fn set_back(&mut self, at: Timestamp) {
        self.notes.iter_mut().for_each(|note| note.at = note.at.min(at));
    }

    /// Whether the lists are in order, keys and orders are known, and there is something.
    pub fn is_sound(&self, has_key: impl Fn(KeyId) -> bool, rests: impl Fn(OrderId) -> bool) -> bool {
        !self.is_empty()
            && self.choices.is_sorted_by(|choice, next| choice.key < next.key)
            && self.notes.is_sorted_by(|note, next| note.order < next.order)
            && self.choices.iter().all(|choice| has_key(choice.key))
            && self.notes.iter().all(|note| rests(note.order))
    }
}

impl Bytes for Realism {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self.choices.len(), self.choices.iter(), out);
        put_list(self.notes.len(), self.notes.iter(), out);
    }

    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let mut realism = Realism::default();
        take_list(input, |choice| realism.choices.push(choice))?;
        take_list(input, |note| realism.notes.push(note))?;
        Ok(realism)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(order: u64, ahead: u64) -> QueueNote {
        QueueNote {
            order: OrderId(order),
            ahead: Qty(ahead),
            confidence: Bps(8_500),
            at: Timestamp(50),
            venue_at: Some(Timestamp(7)).into(),
        }
    }

    #[test]
    fn choices_and_notes_come_back_from_their_bytes() {
        let mut realism = Realism::default();
        for (key, set) in
            [(7, Some("venue")), (3, Some("thin")), (7, Some("mine")), (5, Some("é")), (5, None), (9, None)]
        {
            realism.choose(KeyId(key), set);
        }
        let choices: Vec<_> = realism.choices().collect();
        assert_eq!(choices, [(KeyId(3), "thin"), (KeyId(7), "mine")]);
        [note(4, 1), note(2, 2), note(4, 3), note(6, 9)].into_iter().for_each(|note| realism.note(note));
        realism.drop_note(OrderId(6));
        assert_eq!((realism.note_of(OrderId(4)), realism.note_of(OrderId(6))), (Some(&note(4, 3)), None));
        let mut bytes = Vec::new();
        realism.put(&mut bytes);
        assert_eq!(Realism::take(&mut &bytes[..]), Ok(realism.clone()));
        let cut = (0..bytes.len()).filter(|end| Realism::take(&mut &bytes[..*end]).is_ok()).count();
        assert_eq!(cut, 0);
        let is_sound = |realism: &Realism| realism.is_sound(|key| key.0 < 9, |order| order.0 < 9);
        assert!(is_sound(&realism) && !is_sound(&Realism::default()));
        let mut others = [realism.clone(), realism.clone(), realism.clone(), realism.clone()];
        others[0].choices.swap(0, 1);
        others[1].notes.swap(0, 1);
        others[2].notes[1].order = OrderId(9);
        others[3].choices[1].key = KeyId(9);
        assert!(others.iter().all(|other| !is_sound(other)));
        realism.set_back(Timestamp(20));
        assert_eq!(
            realism.note_of(OrderId(2)).map(|note| (note.at, note.venue_time())),
            Some((Timestamp(20), Timestamp(7)))
        );
        println!("realism of a user: {} cases", 6 + bytes.len() + 6);
    }
}
