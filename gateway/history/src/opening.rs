//! The opening of the store, in pieces: the job does one in each turn, so that no start waits for it, and a stop does not
//! wait until earlier files are moved.

use super::earlier::{Move, Step};
use super::ended::EndedStore;
use super::prices::Prices;
use super::store::Store;
use std::path::PathBuf;

/// A store that is being opened.
pub struct Opening {
    folder: PathBuf,
    cache_bytes: u64,
    store: Option<Store>,
    ended: EndedStore,
    /// The move of earlier files; `None` without such files.
    moving: Option<Move>,
}

impl Opening {
    /// Touches nothing.
    pub fn new(folder: PathBuf, cache_bytes: u64, ended: EndedStore) -> Opening {
        Opening { folder, cache_bytes, store: None, ended, moving: None }
    }

    /// Opens the store, or moves a piece of the earlier files. A store that cannot be used stays as it is.
    pub fn step(&mut self) -> Step {
        let Opening { folder, cache_bytes, store, ended, moving } = self;
        let step = match (&mut *store, moving) {
            (Some(store), Some(moving)) => moving.step(store),
            (Some(_), None) => Ok(Step::Over),
            (none, moving) => Store::open(folder, *cache_bytes).and_then(|store| {
                ended.publish(store.spaces());
                *moving = Move::begin(folder, none.insert(store))?;
                Ok(Step::Again)
            }),
        };
        step.unwrap_or_else(|error| {
            tracing::warn!(%error, dir = %folder.display(), "the price history is kept only in memory: its store cannot \
                be used, and stays as it is");
            if store.take().is_none() {
                ended.publish(Err(error));
            }
            Step::Over
        })
    }

    /// The prices of the store; those in memory without one. Earlier files that were not moved are moved by the next
    /// start.
    pub fn end(self) -> Prices {
        let Opening { folder, cache_bytes, store, ended, .. } = self;
        match store {
            Some(store) => Prices::of(store, folder, cache_bytes, ended),
            None => Prices::in_memory(),
        }
    }
}
