//! The history store of a world: rows that have left memory, in memory of the test. It survives kills, loses a part of
//! what was not synced in a power loss, opens late, fails at random, and is read later than it is asked.

use crate::planted::Plant;
use engine::command::{Command, Envelope};
use engine::departed::{self, Departed, Departures, EndedOrder, EndedRequest, Leaving, Sharing};
use engine::id::{MARKETS, MarketId, OrderId, PositionId, TradeId, UserId};
use engine::look_up::filters::{Filters, Kind, May, id_hash, order_hash};
use engine::order::{Fill, Order};
use engine::ring::Ring;
use engine::time::{HOUR, SECOND, Timestamp};
use engine::user::{Position, Remembered, User, Users};
use journal::commit::Reply;
use journal::mover::{DropRows, EndedStore, Mover, Window};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard};
use tests::chance::Chance;
use wal::Lsn;

/// Moments of a move at which the process may die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MovePoint {
    /// A row was written, and not synced.
    RowWritten,
    /// All rows are synced; the snapshot still has them.
    StoreSynced,
    /// The snapshot without them is there; no shard has received them yet.
    SnapshotPublished,
    /// Segments that the snapshots cover were recycled.
    SegmentRecycled,
    /// A shard has dropped a piece of the rows.
    RowDropped,
}

impl MovePoint {
    pub const ALL: [MovePoint; 5] = [
        MovePoint::RowWritten,
        MovePoint::StoreSynced,
        MovePoint::SnapshotPublished,
        MovePoint::SegmentRecycled,
        MovePoint::RowDropped,
    ];
}

/// Called at each passage of a point, without a lock. It may kill the process.
pub type Pass = Arc<dyn Fn(MovePoint) + Send + Sync>;

/// The disk of the store, which all lives of a server share.
#[derive(Clone)]
pub struct Ended {
    disk: Arc<Mutex<Disk>>,
    pass: Pass,
}

/// A row as it was packed.
struct Row<T> {
    /// Of the move that wrote it first.
    lsn: u64,
    is_synced: bool,
    bytes: Vec<u8>,
    row: T,
}

type Table<T> = BTreeMap<(UserId, u64), Row<T>>;

/// Tables by users and the ids of their orders, fills and positions.
#[derive(Default)]
struct Tables {
    orders: Table<EndedOrder>,
    /// Its order.
    fills: Table<OrderId>,
    positions: Table<Position>,
    /// By the order: the id's text.
    requests: Table<(String, Remembered)>,
}

struct Disk {
    tables: Tables,
    /// LSNs of the moves that are complete.
    moves: Vec<u64>,
    chance: Chance,
    plant: Option<Plant>,
    /// Rows of complete moves, and moves that ended early.
    moved: u64,
    failed: u64,
    /// The first row that a later move would have changed.
    wrong: Option<String>,
}

impl Ended {
    pub fn new(seed: u64, plant: Option<Plant>, pass: Pass) -> Ended {
        let disk = Disk {
            tables: Tables::default(),
            moves: Vec::new(),
            chance: Chance::seeded(seed),
            plant,
            moved: 0,
            failed: 0,
            wrong: None,
        };
        Ended { disk: Arc::new(Mutex::new(disk)), pass }
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().expect("nothing panics while it has the disk")
    }

    /// The mover of a life, with a window of its own.
    pub fn mover(&self, inboxes: &[Arc<Ring<Envelope<Reply>>>]) -> Mover {
        let mut chance = self.lock().chance.fork();
        let window = Window {
            hot_us: *chance.pick(&[0, 0, SECOND, 60 * SECOND, HOUR]),
            rows_max: *chance.pick(&[0, 2, 16, 4_096, 4_096]),
            orders_max: *chance.pick(&[0, 8, 64, usize::MAX, usize::MAX]),
        };
        let writer = Writer {
            store: self.clone(),
            opens_after: chance.below(3),
            gives_up: chance.percent(50),
            has_failed: false,
            chance: chance.fork(),
        };
        let drop_rows = self.drop_rows(inboxes.to_vec(), chance.fork());
        Mover::new(Box::new(writer), window, drop_rows)
    }

    /// Hands rows to the shards; now and then the queue of one of them is full, when others have them already.
    fn drop_rows(&self, inboxes: Vec<Arc<Ring<Envelope<Reply>>>>, mut chance: Chance) -> DropRows {
        let (pass, plant) = (self.pass.clone(), self.lock().plant);
        Box::new(move |departures| {
            pass(MovePoint::SnapshotPublished);
            let full = chance.percent(15).then(|| chance.below(inboxes.len()));
            let departures = match plant {
                Some(Plant::WrongSum) => &Arc::new(with_wrong_sums(departures)),
                _ => departures,
            };
            for inbox in &inboxes[..full.unwrap_or(inboxes.len())] {
                let command = Command::Depart(departures.clone());
                let envelope = Envelope { owner: MARKETS, command, received_at: Timestamp(0), reply: Reply::Discard };
                assert!(inbox.push(envelope).is_ok(), "a world does not fill a queue");
            }
            full.is_none()
        })
    }

    /// Filters over the names that are stored; some lives have none.
    pub fn filters(&self) -> Option<Arc<dyn Filters>> {
        let disk = &mut *self.lock();
        let noise = disk.chance.draw();
        disk.chance.percent(60).then(|| Arc::new(Names { store: self.clone(), noise }) as Arc<dyn Filters>)
    }

    /// The process is gone; after a power loss, so is a part of what was not synced.
    pub fn die(&self, power: bool) {
        let Disk { tables, chance, .. } = &mut *self.lock();
        if power {
            lose(&mut tables.orders, chance);
            lose(&mut tables.fills, chance);
            lose(&mut tables.positions, chance);
            lose(&mut tables.requests, chance);
        }
    }

    /// The LSN up to which moves are complete.
    pub fn upto(&self) -> u64 {
        self.lock().moves.last().copied().unwrap_or(0)
    }

    /// Rows of complete moves, and moves that ended early.
    pub fn counts(&self) -> (u64, u64) {
        let disk = self.lock();
        (disk.moved, disk.failed)
    }

    /// What a move found wrong.
    pub fn wrong(&self) -> Option<String> {
        self.lock().wrong.clone()
    }

    /// Gives the rows of a user that left up to this LSN, as the judge sees them.
    pub fn judged<T>(&self, owner: UserId, upto: u64, judge: impl FnOnce(&Rows<'_>) -> T) -> T {
        let disk = self.lock();
        let (doubles, frees, fails_after) = (false, false, Cell::new(None));
        judge(&Rows { tables: &disk.tables, owner, upto, doubles, frees, fails_after })
    }

    /// Gives the same rows as the server reads them, which may fail in between.
    pub fn read<T>(&self, owner: UserId, upto: u64, heals: bool, read: impl FnOnce(&Rows<'_>) -> T) -> T {
        let disk = &mut *self.lock();
        let chance = &mut disk.chance;
        let fails_after = (chance.percent(6) && !heals).then(|| chance.below(6));
        let upto = match disk.plant {
            Some(Plant::OldStore) => disk.moves.iter().copied().rfind(|lsn| *lsn < upto).unwrap_or(0),
            _ => upto,
        };
        let (doubles, frees) = (disk.plant == Some(Plant::RowTwice), disk.plant == Some(Plant::HashesFreed));
        read(&Rows { tables: &disk.tables, owner, upto, doubles, frees, fails_after: Cell::new(fails_after) })
    }
}

/// Half of what was not synced is lost.
fn lose<T>(table: &mut Table<T>, chance: &mut Chance) {
    table.retain(|_, row| row.is_synced || chance.percent(50));
}

fn sync<T>(table: &mut Table<T>) {
    table.values_mut().for_each(|row| row.is_synced = true);
}

impl Tables {
    fn sync(&mut self) {
        let Tables { orders, fills, positions, requests } = self;
        sync(orders);
        sync(fills);
        sync(positions);
        sync(requests);
    }
}

/// The planted hand-over: the hash of a row is another one.
fn with_wrong_sums(departures: &Departures) -> Departures {
    let mut wrong = departures.clone();
    wrong.pieces.iter_mut().for_each(|(_, sum)| sum[7] ^= 1);
    wrong
}

/// The store of one life, as the mover sees it.
struct Writer {
    store: Ended,
    /// Turns of the keeper until it is open.
    opens_after: usize,
    /// After an error nothing moves in this life.
    gives_up: bool,
    has_failed: bool,
    chance: Chance,
}

impl EndedStore for Writer {
    fn prepare(&mut self) -> bool {
        self.opens_after = self.opens_after.saturating_sub(1);
        self.opens_after == 0
    }

    fn write(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn, _: u32) -> Result<(), Box<dyn Error>> {
        if self.opens_after > 0 || (self.gives_up && self.has_failed) {
            return Err("it is not open".into());
        }
        let rows: usize = leaving.iter().map(|of| of.orders.len() + of.positions.len()).sum();
        let fails_after = self.chance.percent(8).then(|| self.chance.below(rows + 1));
        let plant = self.store.lock().plant;
        let mut written = 0;
        for of in leaving {
            let user = users.get(of.user).expect("it has rows that leave");
            let orders = of.orders.iter().map(|id| Named::Order(*id));
            for row in orders.chain(of.positions.iter().map(|id| Named::Position(*id))) {
                if fails_after == Some(written) {
                    self.has_failed = true;
                    self.store.lock().failed += 1;
                    return Err("the disk has no room".into());
                }
                written += 1;
                if plant == Some(Plant::LostRow) && written.is_multiple_of(8) {
                    continue;
                }
                self.store.lock().write(user, row, upto.0);
                (self.store.pass)(MovePoint::RowWritten);
            }
        }
        if plant != Some(Plant::StoreNotSynced) {
            self.store.lock().tables.sync();
        }
        (self.store.pass)(MovePoint::StoreSynced);
        let disk = &mut *self.store.lock();
        disk.moves.push(upto.0);
        disk.moved += written as u64;
        Ok(())
    }
}

/// A row that leaves with what belongs to it.
#[derive(Clone, Copy)]
enum Named {
    Order(OrderId),
    Position(PositionId),
}

impl Disk {
    fn write(&mut self, user: &User, row: Named, lsn: u64) {
        let written = match row {
            Named::Order(id) => self.write_order(user, id, lsn),
            Named::Position(id) => {
                let position = user.position(id).expect("it is there until it was written");
                let mut bytes = Vec::new();
                departed::put_position(position, &mut bytes);
                let row = departed::take_position(&bytes).expect("it was packed just now");
                put(&mut self.tables.positions, (user.id, id.0), lsn, bytes, row)
            }
        };
        if let Err(why) = written {
            self.wrong.get_or_insert(why);
        }
    }

    fn write_order(&mut self, user: &User, id: OrderId, lsn: u64) -> Result<(), String> {
        let Tables { orders, fills, requests, .. } = &mut self.tables;
        let order = user.order(id).expect("it is there until it was written");
        let (mut bytes, mut sharing) = (Vec::new(), Sharing::default());
        departed::put_order(order, &user.fills_of(order), &mut bytes);
        let ended = departed::take_order(&bytes, &mut sharing).map_err(|error| format!("order {id}: {error}"))?;
        for fill in &ended.fills {
            put(fills, (user.id, fill.id.0), lsn, id.0.to_le_bytes().to_vec(), id)?;
        }
        put(orders, (user.id, id.0), lsn, bytes, ended)?;
        let request = user.request_of(id).filter(|_| self.plant != Some(Plant::IdsFreedEarly));
        if let Some(request) = request {
            let mut bytes = Vec::new();
            departed::put_request(request, &mut bytes);
            let row = departed::take_request(&bytes, &mut sharing).map_err(|error| format!("request {id}: {error}"))?;
            let text = request.id(order).expect("a request has an id").to_owned();
            put(requests, (user.id, id.0), lsn, bytes, (text, row))?;
        }
        Ok(())
    }
}

/// Adds a row. One that is there, of a move that ended early, stays.
fn put<T>(table: &mut Table<T>, key: (UserId, u64), lsn: u64, bytes: Vec<u8>, row: T) -> Result<(), String> {
    match table.get(&key) {
        Some(there) if there.bytes != bytes => {
            Err(format!("row {} of the store differs from the one in memory", key.1))
        }
        Some(_) => Ok(()),
        None => {
            table.insert(key, Row { lsn, is_synced: false, bytes, row });
            Ok(())
        }
    }
}

/// Names of the stored requests and signed orders, and a few that are none.
struct Names {
    store: Ended,
    noise: u64,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

impl Filters for Names {
    fn may_have(&self, user: UserId, kind: Kind, hash: u64, since: Timestamp) -> May {
        if (hash ^ self.noise).is_multiple_of(8) {
            return if (hash ^ self.noise).is_multiple_of(16) { May::Perhaps } else { May::Unknown };
        }
        let disk = self.store.lock();
        let tables = &disk.tables;
        if kind == Kind::OrderHash {
            let mut orders = tables.orders.range((user, 0)..=(user, u64::MAX));
            let has_it = orders.any(|(_, row)| row.row.order.terms.order_hash().map(order_hash) == Some(hash));
            return if has_it { May::Perhaps } else { May::No };
        }
        let mut named = tables.requests.range((user, 0)..=(user, u64::MAX));
        let has_it = named.any(|(order, row)| {
            let counts = tables.orders.get(order).is_some_and(|order| order.row.order.created_at >= since);
            counts && id_hash(&row.row.0) == hash
        });
        if has_it { May::Perhaps } else { May::No }
    }
}

/// Why a row cannot be read.
#[derive(Debug)]
pub struct Unreadable;

/// The rows of one user that have left memory up to a record.
pub struct Rows<'a> {
    tables: &'a Tables,
    owner: UserId,
    upto: u64,
    /// The planted store has some rows twice.
    doubles: bool,
    /// The planted store does not know the hashes of signed orders.
    frees: bool,
    /// Rows that can still be read; `None`: all.
    fails_after: Cell<Option<usize>>,
}

impl<'a> Rows<'a> {
    /// Descending.
    fn below<T>(&self, table: &'a Table<T>, before: Option<u64>) -> impl Iterator<Item = (u64, &'a T)> + use<'a, T> {
        let (doubles, upto) = (self.doubles, self.upto);
        let rows = table.range((self.owner, 0)..(self.owner, before.unwrap_or(u64::MAX))).rev();
        let rows = rows.filter(move |(_, row)| row.lsn <= upto);
        rows.flat_map(move |((_, id), row)| {
            let times = if doubles && id.is_multiple_of(3) { 2 } else { 1 };
            std::iter::repeat_n((*id, &row.row), times)
        })
    }

    fn find<T>(&self, table: &'a Table<T>, id: u64) -> Option<&'a T> {
        let row = table.get(&(self.owner, id)).filter(|row| row.lsn <= self.upto)?;
        Some(&row.row)
    }

    fn reads<T>(&self, row: T) -> Result<T, Unreadable> {
        match self.fails_after.get() {
            Some(0) => return Err(Unreadable),
            Some(left) => self.fails_after.set(Some(left - 1)),
            None => {}
        }
        Ok(row)
    }

    /// All orders, ascending.
    pub fn all_orders(&self) -> impl Iterator<Item = &'a EndedOrder> + use<'a> {
        let mut orders: Vec<&EndedOrder> = self.below(&self.tables.orders, None).map(|(_, row)| row).collect();
        orders.reverse();
        orders.into_iter()
    }

    /// All positions, ascending.
    pub fn all_positions(&self) -> impl Iterator<Item = &'a Position> + use<'a> {
        let mut positions: Vec<&Position> = self.below(&self.tables.positions, None).map(|(_, row)| row).collect();
        positions.reverse();
        positions.into_iter()
    }

    /// Whether this order is one of them.
    pub fn has_order(&self, id: u64) -> bool {
        self.find(&self.tables.orders, id).is_some()
    }

    /// The newest request with this id: its order, and the digest of its body.
    pub fn newest_request(&self, id: &str) -> Option<(&'a EndedOrder, &'a Remembered)> {
        let mut named = self.below(&self.tables.requests, None).filter(|(_, (text, _))| text == id);
        let (order, (_, request)) = named.next()?;
        Some((self.find(&self.tables.orders, order)?, request))
    }
}

impl Departed for Rows<'_> {
    type Error = Unreadable;

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, Unreadable> {
        self.reads(self.find(&self.tables.orders, id.0).cloned())
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, Unreadable> {
        self.reads(self.find(&self.tables.positions, id.0).cloned())
    }

    fn orders(
        &self,
        market: Option<MarketId>,
        before: Option<OrderId>,
    ) -> impl Iterator<Item = Result<EndedOrder, Unreadable>> {
        let rows = self.below(&self.tables.orders, before.map(|id| id.0)).map(|(_, row)| row);
        let rows = rows.filter(move |row| market.is_none_or(|only| row.order.terms.instrument.market() == only));
        rows.map(|row| self.reads(row.clone()))
    }

    fn fills(&self, before: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), Unreadable>> {
        self.below(&self.tables.fills, before.map(|id| id.0)).map(|(id, order)| {
            let ended = self.find(&self.tables.orders, order.0).ok_or(Unreadable)?;
            let fill = ended.fills.iter().find(|fill| fill.id.0 == id).ok_or(Unreadable)?;
            self.reads((fill.clone(), ended.order.clone()))
        })
    }

    fn positions(&self, before: Option<PositionId>) -> impl Iterator<Item = Result<Position, Unreadable>> {
        self.below(&self.tables.positions, before.map(|id| id.0)).map(|(_, row)| self.reads(row.clone()))
    }

    fn request(&self, client_order_id: &str) -> Result<Option<EndedRequest>, Unreadable> {
        let newest = self.newest_request(client_order_id);
        self.reads(newest.map(|(order, request)| EndedRequest { request: request.clone(), order: order.clone() }))
    }

    fn request_of(&self, order: &Order) -> Result<Option<Remembered>, Unreadable> {
        self.reads(self.find(&self.tables.requests, order.id.0).map(|(_, request)| request.clone()))
    }

    fn signed_order(&self, hash: &[u8; 32]) -> Result<Option<OrderId>, Unreadable> {
        let orders = self.below(&self.tables.orders, None).map(|(id, row)| (id, row.order.terms.order_hash()));
        let mut signed = orders.filter(|(_, signed)| *signed == Some(hash) && !self.frees);
        self.reads(signed.next().map(|(id, _)| OrderId(id)))
    }
}
