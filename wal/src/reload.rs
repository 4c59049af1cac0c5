//! Files that are read from the device again before a log is believed, beside the replay that does not need them yet.
//!
//! After a failed sync the kernel may still show pages that never reached the device. Where a sync may have failed, the
//! device is asked: in the last segment that has its name, and in all that have none yet. Segments before were synced
//! without a failure, or the one behind them would not have got its name. These are the files that will be written to.
//!
//! Headers are needed first, and read from the device first. What is dirty in memory is no file's doubt: the sync of every
//! segment that recovery keeps is the one that tells of a failure nobody has seen.
//!
//! **Spares.** As many as are wanted are read to their end, because the log goes on in them and they must be all zeros. The
//! others are removed, and only their heads are read. No promised record is in them:
//!
//! - A death of the process loses no header. It is stored before the first record behind it, into the same mapping; and what
//!   has a header is a segment, whatever its name says ([`crate::contents::read_contents`]).
//! - Nothing that loss of power may not take is in a file of this name. Before a record counts as synced, its file is synced
//!   from the first byte on and then gets another name, durably ([`crate::sync`]).
//!
//! So what a spare without a header may hold is remains of records that nobody was promised. They can still prove that
//! *others* were, whose segment is damaged. Where anything at all is torn (behind the end of the log, in a spare that is
//! wanted, in the head of another), every one is therefore read to its end before the end of the log is believed
//! (`scan/judgement.rs`). Not seen are remains behind a head of zeros, where nothing else is torn.

use crate::behind::BLOCK_BYTES;
use crate::behind::{is_zero, is_zero_from};
use crate::contents::{Contents, SpareFile};
use crate::error::Error;
use crate::names::{Name, parse_name};
use crate::segment::PAGE_BYTES;
use crate::storage::{Beside, Storage, StoredFile};
use crate::sys;
use std::collections::BTreeSet;
use std::io;

/// Bytes at the front of a file that are forgotten at once, so that its header is the device's: where a page of the system
/// has 4 KiB, it keeps no more in one piece.
const FORGOTTEN_BYTES: u64 = 2 << 20;

/// Bytes at the front of a spare that are looked at although nobody wants it.
const HEAD_BYTES: usize = BLOCK_BYTES;

/// Has the headers of the files that may hold what never reached the device read from there: of the last segment that has
/// its name, and of all that have a spare's.
///
/// # Errors
/// [`Error::Io`]; [`Error::Place`] for what is no plain file.
pub(crate) fn forget_heads<S: Storage>(storage: &S) -> Result<(), Error> {
    let listed = storage.list().map_err(Error::io("list", &storage.place()))?;
    let names = || listed.iter().map(|(name, _)| name);
    let last = names().filter(|name| matches!(parse_name(name), Name::Segment(_))).max();
    let spares = names().filter(|name| matches!(parse_name(name), Name::Spare(_)));
    let forgotten_bytes = if sys::page_bytes() == PAGE_BYTES { FORGOTTEN_BYTES } else { u64::MAX };
    for name in last.into_iter().chain(spares) {
        storage.open_to_read(name).map_err(Error::io("open", name))?.forget(forgotten_bytes);
    }
    Ok(())
}

/// Which spares the log can go on with: so many, of this length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub count: usize,
    pub bytes: u64,
}

/// What is known of the spares. Those in neither set are not all zeros, or cannot be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownSpares {
    /// All zeros, on the device too, and wanted.
    pub zero: BTreeSet<String>,
    /// Not wanted, and zeros as far as they were read.
    pub unread: BTreeSet<String>,
}

/// Files that are being read again: the segment, and beside it the spares one after the other. Whoever reads one waits for
/// it first.
#[derive(Default)]
pub(crate) struct Reloads {
    under_way: Vec<Reload>,
    known: KnownSpares,
}

struct Reload {
    names: Vec<String>,
    of: Beside<KnownSpares>,
}

impl Reloads {
    /// Starts to read them.
    pub fn start<S: Storage>(storage: &S, contents: &Contents, wanted: Wanted) -> Reloads {
        let named = contents.segments.iter().filter(|segment| segment.is_named).map(|segment| &segment.name);
        let last: Vec<String> = named.max().cloned().into_iter().collect();
        let unnamed = contents.segments.iter().filter(|segment| !segment.is_named);
        let unnamed: Vec<String> = unnamed.map(|segment| segment.name.clone()).collect();
        let start = |segments: Vec<String>, spares: Vec<SpareFile>| {
            let names = segments.iter().chain(spares.iter().map(|spare| &spare.name)).cloned().collect();
            let storage_of = storage.clone();
            let work = move || {
                segments.iter().for_each(|name| reload(&storage_of, name));
                look_at_spares(&storage_of, spares, wanted)
            };
            Reload { names, of: storage.beside(work) }
        };
        let work = [(last, Vec::new()), (unnamed, contents.spares.clone())];
        let work = work.into_iter().filter(|(segments, spares)| !(segments.is_empty() && spares.is_empty()));
        let under_way = work.map(|(segments, spares)| start(segments, spares)).collect();
        Reloads { under_way, known: KnownSpares::default() }
    }

    /// Waits for one file, if it is read again at all.
    pub fn wait_for(&mut self, name: &str) {
        if let Some(at) = self.under_way.iter().position(|reload| reload.names.iter().any(|of| of == name)) {
            let of = self.under_way.swap_remove(at).of;
            self.learn(of.wait());
        }
    }

    /// Waits for all of them. Of spares in a directory that was not read again nothing is known.
    pub fn wait(&mut self) -> &mut KnownSpares {
        while let Some(reload) = self.under_way.pop() {
            self.learn(reload.of.wait());
        }
        &mut self.known
    }

    fn learn(&mut self, known: KnownSpares) {
        self.known.zero.extend(known.zero);
        self.known.unread.extend(known.unread);
    }
}

impl Drop for Reloads {
    /// Nobody reads on for a log that is given up.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.wait();
        }
    }
}

/// Reads a file from the device. What fails here fails for whoever needs the file, too, and is told then.
fn reload<S: Storage>(storage: &S, name: &str) {
    if let Ok(file) = storage.open_to_read(name) {
        file.reload();
    }
}

/// Reads spares from the device until as many as are wanted are found to be all zeros; of the others it reads the heads.
fn look_at_spares<S: Storage>(storage: &S, spares: Vec<SpareFile>, wanted: Wanted) -> KnownSpares {
    let mut known = KnownSpares::default();
    for SpareFile { name, bytes, .. } in spares {
        if bytes == wanted.bytes && known.zero.len() < wanted.count {
            reload(storage, &name);
            if is_zero_from(storage, &name, 0).unwrap_or(false) {
                known.zero.insert(name);
            }
        } else if has_zero_head(storage, &name).unwrap_or(false) {
            known.unread.insert(name);
        }
    }
    known
}

/// Whether the first [`HEAD_BYTES`] of a file, which are the device's, are zeros.
fn has_zero_head<S: Storage>(storage: &S, name: &str) -> io::Result<bool> {
    let mut head = vec![0; HEAD_BYTES];
    let bytes = storage.open_to_read(name)?.read_at(&mut head, 0)?;
    Ok(is_zero(&head[..bytes]))
}
