//! What readers keep in memory: open hours and decoded segments. The least recently used are dropped when their bytes
//! exceed the bound, or there are too many hours: each has two open files.

use crate::book::{OpenHour, Segment};
use ahash::AHashMap;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most hours that are open.
pub(super) const HOURS_MAX: usize = 128;

/// What a value is of. The number of an hour is new whenever its files are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    Hour(u64),
    /// Hour, token of its index, number among the token's segments.
    Segment(u64, u32, u32),
}

#[derive(Clone)]
pub(crate) enum Value {
    Hour(Arc<OpenHour>),
    Segment(Arc<Segment>),
}

/// A bounded set of values.
pub(crate) struct Cache {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Value, bytes, and when it was used.
    values: AHashMap<Key, (Value, usize, u64)>,
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
    hours: usize,
}

impl Key {
    fn is_hour(&self) -> bool {
        matches!(self, Key::Hour(_))
    }
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache { bytes_max, inner: Mutex::default() }
    }

    pub(crate) fn get(&self, key: Key) -> Option<Value> {
        let mut inner = self.inner.lock();
        let Inner { values, by_use, uses, .. } = &mut *inner;
        let (value, _, used) = values.get_mut(&key)?;
        *uses += 1;
        by_use.remove(used);
        by_use.insert(*uses, key);
        *used = *uses;
        Some(value.clone())
    }

    /// Keeps a value, and drops others for it. One larger than the bound is not kept.
    pub(crate) fn put(&self, key: Key, value: Value, bytes: usize) {
        if bytes > self.bytes_max {
            return;
        }
        let mut inner = self.inner.lock();
        inner.remove(key);
        inner.uses += 1;
        let used = inner.uses;
        inner.values.insert(key, (value, bytes, used));
        inner.by_use.insert(used, key);
        inner.bytes += bytes;
        inner.hours += usize::from(key.is_hour());
        if inner.hours > HOURS_MAX
            && let Some(oldest) = inner.by_use.values().copied().find(Key::is_hour)
        {
            inner.remove(oldest);
        }
        while inner.bytes > self.bytes_max {
            let Some((_, oldest)) = inner.by_use.first_key_value() else { break };
            let oldest = *oldest;
            inner.remove(oldest);
        }
    }

    /// Drops what is of an hour.
    pub(crate) fn forget(&self, hour: u64) {
        let mut inner = self.inner.lock();
        let is_of = |key: &Key| matches!(key, Key::Hour(of) | Key::Segment(of, ..) if *of == hour);
        let keys: Vec<Key> = inner.values.keys().copied().filter(is_of).collect();
        keys.into_iter().for_each(|key| inner.remove(key));
    }

    /// Hours that are open.
    #[cfg(test)]
    pub(super) fn hours(&self) -> usize {
        self.inner.lock().hours
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.inner.lock().bytes
    }
}

impl Inner {
    fn remove(&mut self, key: Key) {
        if let Some((_, bytes, used)) = self.values.remove(&key) {
            self.by_use.remove(&used);
            self.bytes -= bytes;
            self.hours -= usize::from(key.is_hour());
        }
    }
}
