//! Files that are read from the device again before a log is trusted, concurrently with the replay that does not need
//! them yet.
//!
//! After a failed sync the kernel may still return pages that never reached the device. The files whose sync may have
//! failed are therefore read from the device: the last named segment, and all segments without a name. Earlier segments
//! were synced without a failure, or the next one would not have got its name. These are also the files that will be
//! written to.
//!
//! Headers are needed first, and are read from the device first. Dirty pages in memory need no check: recovery syncs
//! every segment that it keeps, and that sync reports a failure.
//!
//! **Spares.** As many as are wanted are read to their end, because the log continues in them and they must be all
//! zeros. The others are removed, and only their heads are read. No promised record is in them:
//!
//! - A death of the process loses no header. It is stored before the first record after it, into the same mapping; and a
//!   file with a header is a segment under any name ([`crate::contents::read_contents`]).
//! - A file of this name holds nothing that must survive loss of power. Before a record counts as synced, its file is synced
//!   from the first byte on and then renamed, durably ([`crate::sync`]).
//!
//! So a spare without a header holds at most remains of unpromised records. They can still prove that *other* records
//! were promised, whose segment is damaged. If anything is torn (after the end of the log, in a wanted spare, in the
//! head of another), every spare is therefore read to its end before the end of the log is trusted
//! (`scan/judgement.rs`). Remains after a head of zeros are missed if nothing else is torn.

use crate::contents::{Contents, SpareFile};
use crate::error::Error;
use crate::names::{Name, parse_name};
use crate::segment::PAGE_BYTES;
use crate::storage::{Background, Storage, StoredFile};
use crate::sys;
use crate::trailing::BLOCK_BYTES;
use crate::trailing::{is_zero, is_zero_from};
use std::collections::BTreeSet;
use std::io;

/// Bytes at the front of a file that are dropped from the cache together, so that the header is read from the device:
/// with pages of 4 KiB the system keeps no larger piece.
const FORGOTTEN_BYTES: u64 = 2 << 20;

/// Bytes at the front of an unwanted spare that are read.
const HEAD_BYTES: usize = BLOCK_BYTES;

/// Makes the next read of the headers go to the device, for files that may hold what never reached it: the last named
/// segment, and all files with a spare's name.
///
/// # Errors
/// [`Error::Io`]; [`Error::Place`] if one is not a plain file.
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

/// Which spares the log can continue with: how many, and of which length in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpareNeeds {
    pub count: usize,
    pub bytes: u64,
}

/// What is known about the spares. Those in neither set are not all zeros, or cannot be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownSpares {
    /// All zeros, on the device too, and wanted.
    pub zero: BTreeSet<String>,
    /// Not wanted, and zeros as far as they were read.
    pub unread: BTreeSet<String>,
}

/// Files that are being read again: the segment, and concurrently the spares one after the other. A reader of such a
/// file waits for it first.
#[derive(Default)]
pub(crate) struct Reloads {
    running: Vec<Reload>,
    known: KnownSpares,
}

struct Reload {
    names: Vec<String>,
    of: Background<KnownSpares>,
}

impl Reloads {
    /// Starts to read them.
    pub fn start<S: Storage>(storage: &S, contents: &Contents, wanted: SpareNeeds) -> Reloads {
        let named = contents.segments.iter().filter(|segment| segment.is_named).map(|segment| &segment.name);
        let last: Vec<String> = named.max().cloned().into_iter().collect();
        let unnamed = contents.segments.iter().filter(|segment| !segment.is_named);
        let unnamed: Vec<String> = unnamed.map(|segment| segment.name.clone()).collect();
        let start = |segments: Vec<String>, spares: Vec<SpareFile>| {
            let names = segments.iter().chain(spares.iter().map(|spare| &spare.name)).cloned().collect();
            let storage_of = storage.clone();
            let work = move || {
                segments.iter().for_each(|name| reload(&storage_of, name));
                examine_spares(&storage_of, spares, wanted)
            };
            Reload { names, of: storage.in_background(work) }
        };
        let work = [(last, Vec::new()), (unnamed, contents.spares.clone())];
        let work = work.into_iter().filter(|(segments, spares)| !(segments.is_empty() && spares.is_empty()));
        let running = work.map(|(segments, spares)| start(segments, spares)).collect();
        Reloads { running, known: KnownSpares::default() }
    }

    /// Waits for one file, if it is being read again.
    pub fn wait_for(&mut self, name: &str) {
        if let Some(at) = self.running.iter().position(|reload| reload.names.iter().any(|of| of == name)) {
            let of = self.running.swap_remove(at).of;
            self.learn(of.wait());
        }
    }

    /// Waits for all of them. Nothing is known about the spares of a directory that is not read again.
    pub fn wait(&mut self) -> &mut KnownSpares {
        while let Some(reload) = self.running.pop() {
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
    /// A dropped log must not leave readers running.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.wait();
        }
    }
}

/// Reads a file from the device. A failure here is ignored: the file's reader gets it, too.
fn reload<S: Storage>(storage: &S, name: &str) {
    if let Ok(file) = storage.open_to_read(name) {
        file.reload();
    }
}

/// Reads spares from the device until enough of them are found to be all zeros; reads only the heads of the others.
fn examine_spares<S: Storage>(storage: &S, spares: Vec<SpareFile>, wanted: SpareNeeds) -> KnownSpares {
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

/// Whether the first [`HEAD_BYTES`] of a file, as the device has them, are zeros.
fn has_zero_head<S: Storage>(storage: &S, name: &str) -> io::Result<bool> {
    let mut head = vec![0; HEAD_BYTES];
    let bytes = storage.open_to_read(name)?.read_at(&mut head, 0)?;
    Ok(is_zero(&head[..bytes]))
}
