//! Starts a log in its directory, after what was recovered.

use std::sync::mpsc;

use crate::dir::Dir;
use crate::epoch::{Identity, create_anew, write_identity};
use crate::error::Error;
use crate::files::Files;
use crate::log::{Log, LogStart, OpenSegment};
use crate::names::segment_name;
use crate::prepare::Preparer;
use crate::record::Kind;
use crate::recover::Recovered;
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader, fill_with_zeros};
use crate::snapshot::Snapshots;
use crate::storage::{DirectoryLock, SegmentMap, Storage, StoredFile};
use crate::sync::{OPENED_MAX, OpenFile, Opened, Syncer, Waker};
use crate::{Marks, Point, Points};

/// The parts of a running log. Each belongs to one thread; which one is the caller's choice.
pub struct Running<S: Storage = Files> {
    /// Appends records.
    pub log: Log<S>,
    /// Makes records durable.
    pub syncer: Syncer<S>,
    /// Prepares and recycles segments.
    pub preparer: Preparer<S>,
    /// Writes and reads snapshots.
    pub snapshots: Snapshots<S>,
    /// Watermarks, for every thread.
    pub marks: Marks,
    /// The epoch of this start.
    pub epoch: u32,
    /// Which copy of the directory this is; constant over starts.
    pub instance: [u8; 16],
}

impl<S: Storage> Dir<S> {
    /// Raises the epoch, makes it durable, and opens the log for appending after what was recovered. `time` (µs since
    /// 1970) goes into the record that marks the start.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::Io`] when there is no room for the first records or for the epoch file, even after a
    /// spare was given up for that.
    pub fn start(self, recovered: Recovered<S>, time: u64, waker: Waker) -> Result<Running<S>, Error> {
        let Dir { storage, lock, options, identity } = self;
        let id = match identity {
            Some(identity) => identity.id,
            None => storage.random_id().map_err(Error::io("read random bytes for", &storage.place()))?,
        };
        let epoch = identity.map_or(0, |identity| identity.epoch).checked_add(1).expect("2^32 starts");
        let open = match recovered.tail {
            Some(tail) => tail.open(&storage)?,
            None => {
                let header = SegmentHeader {
                    directory_id: id,
                    number: recovered.next_number,
                    first_lsn: recovered.last_lsn.next(),
                    previous_crc: recovered.last_crc,
                    bytes: options.segment_bytes,
                };
                create_segment(&storage, &header, &options.points)?
            }
        };
        // After the segment: if an epoch file exists, so does a segment, and a missing segment means that files were
        // removed.
        let instance = identity.map_or(id, |identity| identity.instance);
        let identity = Identity { id, epoch, floor: recovered.last_lsn, instance };
        let mut leftovers = recovered.spares;
        write_identity(&storage, &identity, &options.points).or_else(|error| {
            // On a full disk a spare makes room: even then the log must be readable, and orders and keys cancellable.
            let Some(spare) = leftovers.pop().filter(|_| error.is_full()) else { return Err(error) };
            storage.remove(&spare).map_err(Error::io("remove", &spare))?;
            storage.sync_directory().map_err(Error::io("sync directory of", &spare))?;
            write_identity(&storage, &identity, &options.points)
        })?;
        let describe = format!("pid {}\nepoch {epoch}\n", std::process::id());
        lock.describe(&describe).map_err(Error::io("write", crate::storage::LOCK_NAME))?;

        let marks = Marks::new(recovered.last_lsn, open.at as u64);
        let (opened_sender, opened) = mpsc::sync_channel::<Opened<S>>(OPENED_MAX as usize);
        let (spare_sender, spares) = mpsc::sync_channel(OPENED_MAX as usize);
        let mut preparer = Preparer::new(storage.clone(), lock.clone(), &options, marks.clone(), spare_sender);
        preparer.take_leftovers(leftovers)?;
        let OpenSegment { file, map, at, header } = open;
        let open = OpenFile {
            file,
            name: segment_name(header.first_lsn),
            is_named: true,
            first_lsn: header.first_lsn,
            base: 0,
            bytes: header.bytes,
            synced_to: at as u64,
        };
        let syncer = Syncer::new(
            storage.clone(),
            lock.clone(),
            marks.clone(),
            opened,
            open,
            identity,
            waker,
            options.points.clone(),
        );
        let mut log = Log::new(LogStart {
            map,
            at,
            header,
            last_lsn: recovered.last_lsn,
            last_crc: recovered.last_crc,
            last_time: recovered.last_time,
            epoch,
            segment_bytes: options.segment_bytes,
            marks: marks.clone(),
            spares,
            opened: opened_sender,
            points: options.points.clone(),
            lock,
        });
        let mut first = vec![(Kind::EpochStart, Vec::new())];
        first.extend(recovered.loss.map(|loss| (Kind::LossAccepted, loss.to_bytes())));
        for (kind, payload) in first {
            if log.append(kind, 0, 0, time, &payload).is_err() {
                preparer.turn()?;
                log.append(kind, 0, 0, time, &payload)?;
            }
        }
        let snapshots = Snapshots::new(storage, id, options.points);
        Ok(Running { log, syncer, preparer, snapshots, marks, epoch, instance })
    }
}

/// Creates a zeroed segment under a temporary name, writes its header, and renames it. Durable when done.
fn create_segment<S: Storage>(storage: &S, header: &SegmentHeader, points: &Points) -> Result<OpenSegment<S>, Error> {
    let name = segment_name(header.first_lsn);
    let making = format!("{name}.making");
    let file = create_anew(storage, &making)?;
    fill_with_zeros(&file, &making, header.bytes, |_| {})?;
    file.write_at(&header.encode(), 0).map_err(Error::io("write", &making))?;
    file.sync().map_err(Error::io("sync", &making))?;
    points.pass(Point::Rename);
    storage.rename(&making, &name).map_err(Error::io("rename", &making))?;
    storage.sync_directory().map_err(Error::io("sync directory of", &name))?;
    let mut map = storage.map(&file, header.bytes).map_err(Error::io("map", &name))?;
    map.touch(0, header.bytes as usize);
    Ok(OpenSegment { file, map, at: SEGMENT_HEADER_BYTES, header: *header })
}
