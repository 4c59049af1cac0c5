//! Where rows are searched: sorted files of stores, and earlier states of the log.

use super::Rebuilt;
use crate::ended::rows::{encode, key_bytes, object_of, take_head, take_order_of};
use crate::store::{Loose, Opener, Rows, Space, StoreError, Value, loose_files};
use engine::departed::{Leaving, Sharing, take_order, take_position, take_request};
use engine::order::Order;
use engine::user::{User, Users};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

/// Rows that show the keyspace of a file.
const LOOKED_AT: usize = 16;

/// Where rows are searched. Of several rows with one key that of the first source counts, and in one store that of the
/// latest move: stores go before states, whose rows may have left memory with other times after a correction of the clock.
#[derive(Default)]
pub struct Sources<'a> {
    /// Folders of stores, of the same log.
    pub stores: Vec<PathBuf>,
    /// Earlier states of the same log.
    pub states: Vec<&'a Users>,
    /// Stores and states of logs with the same identity that have no record in common with this one: they may be of a copy
    /// that went on by itself. A user with rows of them is whole only if the hashes say so.
    pub doubted: (Vec<PathBuf>, Vec<&'a Users>),
    /// Folders of histories whose manifests may count the rows by day. The first that does is opened, as by a start, when all
    /// sources were read. The store of the first one is the first source.
    pub counted_by: Vec<PathBuf>,
}

/// A row on its way: key, value.
pub(super) type Row = (Value, Value);
type Stream<'a> = Box<dyn Iterator<Item = Row> + 'a>;

/// A sorted file, and the source that it belongs to.
struct File {
    file: Loose,
    space: Space,
    source: usize,
}

/// The sources of a rebuild, opened.
pub(super) struct Opened<'a> {
    files: Vec<File>,
    states: Vec<(&'a Users, usize)>,
    /// Sources from this number on are doubted.
    doubted_from: usize,
    /// Files that could be opened, and damaged places in them.
    count: usize,
    damages: Cell<u64>,
    /// Those that could not.
    unreadable: Vec<String>,
}

impl<'a> Opened<'a> {
    /// # Errors
    /// [`StoreError`] if a folder cannot be listed.
    pub fn of(sources: &Sources<'a>) -> Result<Opened<'a>, StoreError> {
        let (doubted_stores, doubted_states) = &sources.doubted;
        let doubted_from = sources.stores.len() + sources.states.len();
        let mut opened = Opened {
            files: Vec::new(),
            states: Vec::new(),
            doubted_from,
            count: 0,
            damages: Cell::new(0),
            unreadable: Vec::new(),
        };
        let mut opener = Opener::new();
        let stores = sources.stores.iter().enumerate();
        for (source, store) in stores.chain((doubted_from..).zip(doubted_stores)) {
            for path in loose_files(store)? {
                match opener.open(&path) {
                    Ok(file) => {
                        opened.count += 1;
                        let space = space_of(file.rows());
                        opened.files.extend(space.map(|space| File { file, space, source }));
                    }
                    Err(error) => opened.unreadable.push(format!("{}: {error}", path.display())),
                }
            }
        }
        opened.states.extend(sources.states.iter().copied().zip(sources.stores.len()..));
        opened.states.extend(doubted_states.iter().copied().zip(doubted_from + doubted_stores.len()..));
        Ok(opened)
    }

    /// Closes the files, and notes what was found of them.
    pub fn close(self, rebuilt: &mut Rebuilt) {
        (rebuilt.files, rebuilt.damages) = (self.count, self.damages.get());
        rebuilt.unreadable = self.unreadable;
    }

    /// Whether a source is doubted.
    pub fn is_doubted(&self, source: usize) -> bool {
        source >= self.doubted_from
    }

    /// The rows of a keyspace by ascending keys, each once with its source. Rows of states are those that are not in `state`
    /// any more, as rows of a move at LSN `upto`.
    pub fn rows<'s>(&'s self, space: Space, state: &'s Users, upto: u64) -> Merged<'s> {
        let files = self.files.iter().filter(|file| file.space == space);
        let files = files.map(|of| {
            let stream: Stream<'s> = Box::new(Counting { rows: of.file.rows(), damages: &self.damages });
            (stream, of.source)
        });
        let states = self.states.iter().map(|(earlier, source)| (rows_of(space, earlier, state, upto), *source));
        Merged::of(files.chain(states).collect())
    }
}

/// Streams of rows, each by ascending keys, as one.
pub(super) struct Merged<'a> {
    streams: Vec<(Stream<'a>, usize)>,
    heads: BinaryHeap<Reverse<(Value, Value, usize)>>,
}

impl<'a> Merged<'a> {
    fn of(streams: Vec<(Stream<'a>, usize)>) -> Merged<'a> {
        let mut merged = Merged { heads: BinaryHeap::new(), streams };
        (0..merged.streams.len()).for_each(|at| merged.pull(at));
        merged
    }

    fn pull(&mut self, at: usize) {
        self.heads.extend(self.streams[at].0.next().map(|(key, value)| Reverse((key, value, at))));
    }
}

impl Iterator for Merged<'_> {
    type Item = (Row, usize);

    fn next(&mut self) -> Option<(Row, usize)> {
        let lsn_of = |value: &Value| take_head(&mut &value[..]).map_or(0, |head| head.lsn);
        let Reverse((key, mut value, at)) = self.heads.pop()?;
        let mut source = self.streams[at].1;
        self.pull(at);
        while self.heads.peek().is_some_and(|Reverse((other, ..))| *other == key)
            && let Some(Reverse((_, other, at))) = self.heads.pop()
        {
            self.pull(at);
            let other_source = self.streams[at].1;
            if (Reverse(other_source), lsn_of(&other)) > (Reverse(source), lsn_of(&value)) {
                (value, source) = (other, other_source);
            }
        }
        Some(((key, value), source))
    }
}

/// Rows of a file, whose damaged places are counted.
struct Counting<'a> {
    rows: Rows,
    damages: &'a Cell<u64>,
}

impl Iterator for Counting<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let before = self.rows.damages;
        let row = self.rows.next();
        self.damages.set(self.damages.get() + self.rows.damages - before);
        row
    }
}

/// The keyspace of a file, by its first rows; `None` for those that follow from others, and for prices.
pub(super) fn space_of(rows: Rows) -> Option<Space> {
    let mut sharing = Sharing::default();
    rows.take(LOOKED_AT).find_map(|(key, value)| {
        let mut body = &value[..];
        take_head(&mut body).ok()?;
        let object = object_of(&key)?;
        match key.len() {
            length if length == key_bytes(Space::Requests) => {
                let request = take_request(body, &mut sharing).ok()?;
                (request.order.0 == object).then_some(Space::Requests)
            }
            length if length == key_bytes(Space::Orders) => {
                let is_order = take_order(body, &mut sharing).is_ok_and(|found| found.order.id.0 == object);
                let is_position = take_position(body).is_ok_and(|found| found.id.0 == object);
                if is_order { Some(Space::Orders) } else { is_position.then_some(Space::Positions) }
            }
            length if length == key_bytes(Space::ByHash) => take_order_of(0, body).map(|_| Space::ByHash),
            _ => None,
        }
    })
}

/// The rows of an earlier state that have left since.
fn rows_of<'a>(space: Space, earlier: &'a Users, state: &'a Users, upto: u64) -> Stream<'a> {
    let of_user = move |user: &'a User| {
        let mut rows = Vec::new();
        let Some(now) = state.get(user.id) else { return rows };
        let has_left = |order: &&Order| !order.is_open() && now.order(order.id).is_none();
        let orders = user.orders().iter().filter(has_left).map(|order| order.id).collect();
        let closed = user.positions().iter().filter(|held| !held.is_open() && now.position(held.id).is_none());
        let leaving = Leaving { user: user.id, orders, positions: closed.map(|held| held.id).collect() };
        let encoded = encode(space, user, &leaving, upto, |row| {
            rows.push((row.key.into(), row.value.into()));
            Ok(())
        });
        encoded.expect("rows that have ended are in memory");
        rows
    };
    Box::new(earlier.iter().collect::<Vec<_>>().into_iter().flat_map(of_user))
}
