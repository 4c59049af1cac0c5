//! Filters over the client order ids and order hashes of rows that have left memory (engine/src/look_up/filters.rs):
//! most placements bring an id that was never used, and need no look-up.
//!
//! | File | Holds |
//! |---|---|
//! | `span.rs` | one filter: a blocked Bloom filter, of which a name reads one cache line |
//! | `files.rs` | the folder on disk |
//!
//! A filter covers a *span* of hours. Names are added to the newest span of their kind, with the hour of their order's
//! placement; a span counts for a question about a time as long as it has a name of that time or later. A fixed hour to
//! a span would make a question about three days read 72 cache lines, with 72 chances of a false answer. So a span
//! grows until it covers some eight hours, if memory allows. About ten of them answer a question, with a false-positive
//! rate below 1 % together.
//!
//! All spans are in memory, read from their files when they are opened. If they exceed the bound of bytes, the oldest
//! ids leave, and questions about their time are answered with [`May::Unknown`]. Hashes leave all together: they come
//! back when filters are rebuilt with a higher bound.
//!
//! The reader takes a lock that is held elsewhere only while a list is replaced, and reads words that the writer sets.

mod files;
mod span;
#[cfg(test)]
mod tests;

pub use files::FilterError;

use engine::id::UserId;
use engine::look_up::filters::{FilterKey, Filters, Kind, May};
use engine::time::Timestamp;
use files::{About, Files, Name, SpanFile};
use span::{Span, place_of};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Name of the folder beside the store.
pub const FILTERS_FOLDER: &str = "filters";
/// Bounds of `[history] filter_bytes`.
pub const FILTER_BYTES_MIN: u64 = 1 << 20;
pub const FILTER_BYTES_MAX: u64 = 16 << 30;

/// Bits of a span for each of its names: together with one cache line a name, 0.1 % false positives when it is full.
const BITS_PER_NAME: u64 = 16;
/// Names of the first span of a kind.
const FIRST_NAMES: u64 = 1 << 16;
/// Hours that a span of client order ids covers, where memory allows.
const SPAN_HOURS: u32 = 8;
/// A span that was full earlier than that is followed by one that is larger by this factor.
const GROWTH: u64 = 4;
/// A span has at most this part of the memory, so that what leaves memory is not most of it.
const SPANS_MIN: u64 = 8;
/// Order hashes have at most this part of the memory. They count for ever, so their filters are of use only while they
/// are whole: when they need more, all of them leave.
const HASHES_PART: u64 = 2;
/// Names are appended to a file; when it has this many bytes, or as many as the open spans, they are written.
const NAMES_BYTES_MIN: u64 = 1 << 20;

/// Answers questions of shards; closed until a [`FilterWriter`] opens it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct OpenFilters {
    view: Arc<RwLock<Option<View>>>,
    /// Users whose filters lack names of orders that were placed by these times.
    holes: Arc<OnceLock<BTreeMap<UserId, Timestamp>>>,
}

/// What is open.
#[derive(Debug)]
struct View {
    /// Names of orders that were placed before this hour are not in the spans; by kind.
    covers_from: [u32; Kind::ALL.len()],
    /// By kind, the oldest first.
    spans: [Vec<Arc<Span>>; Kind::ALL.len()],
}

impl Filters for OpenFilters {
    fn may_have(&self, user: UserId, kind: Kind, hash: u64, since: Timestamp) -> May {
        let hole = self.holes.get().and_then(|holes| holes.get(&user));
        if hole.is_some_and(|at| since <= *at) {
            return May::Unknown;
        }
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        let Some(View { covers_from, spans }) = &*view else { return May::Unknown };
        if since.hour() < covers_from[kind as usize] {
            return May::Unknown;
        }
        let place = place_of(user, kind, hash);
        let mut newest_first = spans[kind as usize].iter().rev();
        match newest_first.any(|span| span.last_hour() >= since.hour() && span.may_have(place)) {
            true => May::Perhaps,
            false => May::No,
        }
    }
}

impl OpenFilters {
    /// Names of these users that were placed by these times are unknown from now on. Once in a process.
    pub fn lack(&self, holes: BTreeMap<UserId, Timestamp>) {
        let _ = self.holes.set(holes);
    }

    /// Bytes that the filters take in memory.
    pub fn bytes(&self) -> u64 {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        view.iter().flat_map(|view| view.spans.iter().flatten()).map(|span| span.bytes()).sum()
    }

    /// Their count.
    pub fn spans(&self) -> usize {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        view.iter().flat_map(|view| &view.spans).map(Vec::len).sum()
    }

    fn publish(&self, view: Option<View>) {
        let before = std::mem::replace(&mut *self.view.write().unwrap_or_else(PoisonError::into_inner), view);
        // Outside of the lock, which readers wait for: it may be the last one that has a large span.
        drop(before);
    }
}

/// One span as the writer knows it.
#[derive(Debug)]
struct Written {
    span: Arc<Span>,
    /// Names added, repeats included.
    names: u64,
    /// How many it is made for.
    names_max: u64,
    /// The newest hour of its kind when it began.
    first_hour: u32,
    /// `None`: it has names that its file lacks, or has no file.
    file: Option<SpanFile>,
}

/// Adds names, and makes them durable. One at a time has a folder.
#[derive(Debug)]
pub struct FilterWriter {
    files: Files,
    bytes_max: u64,
    filters: OpenFilters,
    spans: [Vec<Written>; Kind::ALL.len()],
    covers_from: [u32; Kind::ALL.len()],
    /// Names since the last [`FilterWriter::sync`].
    added: Vec<Name>,
    /// The log's number up to which the names of rows that left memory are on disk.
    upto: u64,
    /// A write has failed: what is on disk is uncertain, so nothing more is promised.
    has_failed: bool,
}

impl FilterWriter {
    /// Begins filters without names in a folder, which is emptied; for a store without rows. `log` identifies the log, as for the store.
    ///
    /// # Errors
    /// [`FilterError::Io`].
    pub fn create(
        folder: &Path,
        log: u128,
        bytes_max: u64,
        filters: &OpenFilters,
    ) -> Result<FilterWriter, FilterError> {
        let mut writer = FilterWriter::empty(folder, log, bytes_max, filters)?;
        writer.write_spans()?;
        writer.publish();
        Ok(writer)
    }

    /// Filters without names, which are closed.
    fn empty(folder: &Path, log: u128, bytes_max: u64, filters: &OpenFilters) -> Result<FilterWriter, FilterError> {
        filters.publish(None);
        Ok(FilterWriter {
            files: Files::create(folder, log)?,
            bytes_max: bytes_max.clamp(FILTER_BYTES_MIN, FILTER_BYTES_MAX),
            filters: filters.clone(),
            spans: Default::default(),
            covers_from: [0; Kind::ALL.len()],
            added: Vec::new(),
            upto: 0,
            has_failed: false,
        })
    }

    /// Opens the filters of a folder and publishes them, if they have the names of all rows that left memory up to the
    /// log's number `needed`. Reads all of them; a start does not wait for that.
    ///
    /// # Errors
    /// Why the filters cannot be used. Then they are rebuilt, and `filters` stays closed.
    pub fn open(
        folder: &Path,
        log: u128,
        bytes_max: u64,
        filters: &OpenFilters,
        needed: u64,
    ) -> Result<FilterWriter, FilterError> {
        filters.publish(None);
        let (files, about) = Files::open(folder, log)?;
        // Nothing is published before it is known whether names are missing.
        let mut writer = FilterWriter {
            files,
            bytes_max: bytes_max.clamp(FILTER_BYTES_MIN, FILTER_BYTES_MAX),
            filters: OpenFilters::default(),
            spans: Default::default(),
            covers_from: about.covers_from,
            added: Vec::new(),
            upto: about.upto,
            has_failed: false,
        };
        for (kind, file) in about.spans {
            let span = writer.files.read_span(&file)?;
            let SpanFile { names, names_max, first_hour, .. } = file;
            let written = Written { span: Arc::new(span), names, names_max, first_hour, file: Some(file) };
            writer.spans[kind as usize].push(written);
        }
        let (batches, upto) = writer.files.read_names()?;
        for (kind, place, hour) in batches {
            writer.put(kind, place, hour);
        }
        writer.upto = writer.upto.max(upto);
        if writer.upto < needed {
            return Err(FilterError::Behind);
        }
        writer.filters = filters.clone();
        writer.shrink(Kind::ClientOrderId, 0);
        Ok(writer)
    }

    /// Makes the filters of a folder again from the names of all rows that left memory up to `upto`; ids of orders that
    /// were placed before the hour `ids_from` do not count. `names` is called twice, to count and to add.
    ///
    /// # Errors
    /// Those of `names`, and [`FilterError::Io`].
    pub fn rebuild<E: From<FilterError>, N: Iterator<Item = Result<FilterKey, E>>>(
        folder: &Path,
        log: u128,
        bytes_max: u64,
        filters: &OpenFilters,
        (upto, ids_from): (u64, u32),
        names: impl Fn() -> N,
    ) -> Result<FilterWriter, E> {
        let mut writer = FilterWriter::empty(folder, log, bytes_max, filters)?;
        // Names come in the order of users, so each span of time has its own filter from the start.
        let part = |key: &FilterKey| match key.kind {
            Kind::ClientOrderId if key.hour < ids_from => None,
            Kind::ClientOrderId => Some((key.kind, key.hour / SPAN_HOURS)),
            Kind::OrderHash => Some((key.kind, 0)),
        };
        let mut parts: BTreeMap<(Kind, u32), (u64, u32)> = BTreeMap::new();
        for key in names() {
            let key = key?;
            if let Some(part) = part(&key) {
                let (count, last_hour) = parts.entry(part).or_default();
                (*count, *last_hour) = (*count + 1, (*last_hour).max(key.hour));
            }
        }
        writer.covers_from[Kind::ClientOrderId as usize] = ids_from;
        let mut spans: BTreeMap<(Kind, u32), Arc<Span>> = BTreeMap::new();
        let mut bytes_left = writer.bytes_max;
        // The newest ids first: what does not fit is the oldest, and the hashes, which are asked for seldom.
        let of_ids = |((kind, _), _): &(&(Kind, u32), _)| *kind == Kind::ClientOrderId;
        let hashes = parts.iter().filter(|part| !of_ids(part));
        for (time @ (kind, _), (count, last_hour)) in parts.iter().filter(of_ids).rev().chain(hashes) {
            let bytes = Span::bytes_for(*count * BITS_PER_NAME);
            let covers_from = &mut writer.covers_from[*kind as usize];
            let part = if *kind == Kind::OrderHash { HASHES_PART } else { 1 };
            if *covers_from > *last_hour || bytes > bytes_left.min(writer.bytes_max / part) {
                *covers_from = (*covers_from).max(last_hour.saturating_add(1));
                continue;
            }
            bytes_left -= bytes;
            spans.insert(*time, Arc::new(Span::new(*count * BITS_PER_NAME)));
        }
        for key in names() {
            let key = key?;
            if let Some(span) = part(&key).and_then(|part| spans.get(&part)) {
                span.add(place_of(key.user, key.kind, key.hash), key.hour);
            }
        }
        for ((kind, _), span) in spans {
            let (names, first_hour) = (span.bytes() * 8 / BITS_PER_NAME, span.last_hour());
            writer.spans[kind as usize].push(Written { span, names, names_max: names, first_hour, file: None });
        }
        writer.upto = upto;
        writer.write_spans()?;
        writer.publish();
        Ok(writer)
    }

    /// The log's number up to which the names of rows that left memory are on disk.
    pub fn upto(&self) -> u64 {
        self.upto
    }

    /// Adds the name of a row that is about to leave memory. It is durable after [`FilterWriter::sync`]. A repeat
    /// changes nothing.
    pub fn add(&mut self, key: FilterKey) {
        let place = place_of(key.user, key.kind, key.hash);
        self.put(key.kind, place, key.hour);
        // Also a name that is in no filter: what it made leave is in the files yet, and must leave again at the next opening.
        self.added.push((key.kind, place, key.hour));
    }

    /// Makes all added names durable: those of rows that leave memory up to the log's number `upto`. Only then may the
    /// rows be dropped.
    ///
    /// # Errors
    /// [`FilterError::Io`]. After one, every further call fails.
    pub fn sync(&mut self, upto: u64) -> Result<(), FilterError> {
        if self.has_failed {
            return Err(FilterError::Failed);
        }
        self.has_failed = true;
        let upto = self.upto.max(upto);
        self.files.append(&self.added, upto)?;
        self.added.clear();
        self.upto = upto;
        let open_bytes: u64 = self.spans.iter().filter_map(|spans| Some(spans.last()?.span.bytes())).sum();
        if self.files.names_bytes() >= open_bytes.max(NAMES_BYTES_MIN) {
            self.write_spans()?;
        }
        self.has_failed = false;
        Ok(())
    }

    /// Drops filters whose client order ids were all placed before the hour `ids_from`, as those ids count no longer.
    pub fn forget(&mut self, ids_from: u32) {
        let kind = Kind::ClientOrderId as usize;
        // The newest one stays: names are added to it.
        while self.spans[kind].len() > 1 && self.spans[kind][0].span.last_hour() < ids_from {
            self.leave(Kind::ClientOrderId);
            self.publish();
        }
    }

    /// Adds a name to the newest span of its kind, unless all of that kind have left memory.
    fn put(&mut self, kind: Kind, place: u64, hour: u32) {
        let is_full = |newest: &Written| newest.names >= newest.names_max;
        if !self.have_left(kind) && self.spans[kind as usize].last().is_none_or(is_full) {
            self.begin_span(kind, hour);
        }
        if self.have_left(kind) {
            return;
        }
        let newest = self.spans[kind as usize].last_mut().expect("a span was begun");
        newest.span.add(place, hour);
        newest.names += 1;
        newest.file = None;
    }

    /// Begins the next span of a kind.
    fn begin_span(&mut self, kind: Kind, hour: u32) {
        let names_most = self.bytes_max / SPANS_MIN * 8 / BITS_PER_NAME;
        let (names_max, first_hour) = match self.spans[kind as usize].last() {
            None => (FIRST_NAMES, hour),
            Some(Written { span, names_max, first_hour, .. }) => {
                let hours = span.last_hour().saturating_sub(*first_hour);
                let names_max = match kind {
                    Kind::ClientOrderId if hours > GROWTH as u32 * SPAN_HOURS => names_max / GROWTH,
                    Kind::ClientOrderId if hours >= SPAN_HOURS => *names_max,
                    // The filters of hashes are never dropped, so their count must not grow with time.
                    _ => names_max.saturating_mul(GROWTH),
                };
                (names_max.max(FIRST_NAMES), span.last_hour())
            }
        };
        let names_max = names_max.min(names_most);
        self.shrink(kind, Span::bytes_for(names_max * BITS_PER_NAME));
        if self.have_left(kind) {
            return;
        }
        let span = Arc::new(Span::new(names_max * BITS_PER_NAME));
        self.spans[kind as usize].push(Written { span, names: 0, names_max, first_hour, file: None });
        self.publish();
    }

    /// Drops spans until one of that kind and size has room.
    fn shrink(&mut self, kind: Kind, coming: u64) {
        let bytes = |spans: &[Written]| -> u64 { spans.iter().map(|written| written.span.bytes()).sum() };
        let of_hashes = |coming| if kind == Kind::OrderHash { coming } else { 0 };
        let hashes = &self.spans[Kind::OrderHash as usize];
        if bytes(hashes) + of_hashes(coming) > self.bytes_max / HASHES_PART {
            while !self.spans[Kind::OrderHash as usize].is_empty() {
                self.leave(Kind::OrderHash);
            }
        }
        let coming = if self.have_left(kind) { 0 } else { coming };
        while self.spans.iter().map(|spans| bytes(spans)).sum::<u64>() + coming > self.bytes_max {
            self.leave(Kind::ClientOrderId);
        }
        self.publish();
    }

    /// Whether all filters of a kind have left memory for want of room.
    fn have_left(&self, kind: Kind) -> bool {
        kind == Kind::OrderHash && self.covers_from[kind as usize] > 0
    }

    /// Drops the oldest span of a kind.
    fn leave(&mut self, kind: Kind) {
        let left = self.spans[kind as usize].remove(0);
        let covers_from = &mut self.covers_from[kind as usize];
        *covers_from = (*covers_from).max(left.span.last_hour().saturating_add(1));
    }

    fn publish(&self) {
        let spans = |kind: Kind| self.spans[kind as usize].iter().map(|written| Arc::clone(&written.span)).collect();
        self.filters.publish(Some(View { covers_from: self.covers_from, spans: Kind::ALL.map(spans) }));
    }

    /// Writes the spans that have changed, and begins the next file of names.
    fn write_spans(&mut self) -> Result<(), FilterError> {
        let mut about = About { upto: self.upto, covers_from: self.covers_from, spans: Vec::new() };
        for kind in Kind::ALL {
            for written in &mut self.spans[kind as usize] {
                let file = match written.file {
                    Some(file) => file,
                    None => {
                        let Written { span, names, names_max, first_hour, .. } = &*written;
                        self.files.write_span(span, *names, *names_max, *first_hour)?
                    }
                };
                written.file = Some(file);
                about.spans.push((kind, file));
            }
        }
        self.files.begin(&about)
    }
}
