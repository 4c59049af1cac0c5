//! Counts of the events in a world.

use crate::model::User;
use engine::command::Answer;
use std::collections::BTreeMap;

/// Counts of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub steps: u64,
    pub answers: u64,
    /// By name.
    pub refusals: BTreeMap<String, u64>,
    pub orders: u64,
    pub fills: u64,
    /// Orders that a trade matched, by the model.
    pub prints: u64,
    pub settlements: u64,
    pub kills: u64,
    pub crashes: u64,
    /// Kills in the middle of an operation, of these the failed syncs.
    pub sudden: u64,
    pub failed_syncs: u64,
    pub lost_records: u64,
    pub snapshots: u64,
    pub unknown: u64,
    /// Full hours with points, by shard; points and generations of wallets at the end.
    pub hours: u64,
    pub points: u64,
    pub generations: u64,
    /// Orders and positions that moved to the history store, moves that ended early, and rows that shards dropped.
    pub moved: u64,
    pub failed_moves: u64,
    pub dropped: u64,
    /// Commands that were looked up, answers that were completed, and either that could not be read; writes that waited
    /// for a look-up.
    pub look_ups: u64,
    pub completions: u64,
    pub unread: u64,
    pub waits: u64,
    /// Kills at a point of a move, by its name.
    pub move_kills: BTreeMap<String, u64>,
    /// Digests of the state in memory that were compared with the recovered one.
    pub digests: u64,
    /// Prefixes that were granted.
    pub prefixes: u64,
}

impl Count {
    pub(super) fn hear(&mut self, answer: &Answer) {
        self.answers += 1;
        match answer {
            Answer::Refused(reject) | Answer::Killed { reject, .. } => {
                let name = format!("{reject:?}");
                let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                *self.refusals.entry(name.to_owned()).or_default() += 1;
            }
            Answer::Settled { positions, .. } => self.settlements += positions,
            _ => {}
        }
    }

    pub(super) fn sum(&mut self, users: &BTreeMap<u64, User>) {
        self.orders += users.values().map(|user| user.orders.len() as u64).sum::<u64>();
        let fills = |user: &User| user.orders.values().map(|order| order.fills.len() as u64).sum::<u64>();
        self.fills += users.values().map(fills).sum::<u64>();
        for wallet in users.values().flat_map(|user| &user.wallets) {
            self.points += wallet.points.len() as u64;
            self.generations += u64::from(wallet.generation - 1);
        }
    }

    /// Adds another world's figures.
    pub fn add(&mut self, other: &Count) {
        let Count {
            steps,
            answers,
            refusals,
            orders,
            fills,
            prints,
            settlements,
            kills,
            crashes,
            sudden,
            failed_syncs,
            lost_records,
            snapshots,
            unknown,
            hours,
            points,
            generations,
            moved,
            failed_moves,
            dropped,
            look_ups,
            completions,
            unread,
            waits,
            move_kills,
            digests,
            prefixes,
        } = other;
        self.steps += steps;
        self.answers += answers;
        for (name, times) in refusals {
            *self.refusals.entry(name.clone()).or_default() += times;
        }
        self.orders += orders;
        self.fills += fills;
        self.prints += prints;
        self.settlements += settlements;
        self.kills += kills;
        self.crashes += crashes;
        self.sudden += sudden;
        self.failed_syncs += failed_syncs;
        self.lost_records += lost_records;
        self.snapshots += snapshots;
        self.unknown += unknown;
        self.hours += hours;
        self.points += points;
        self.generations += generations;
        self.moved += moved;
        self.failed_moves += failed_moves;
        self.dropped += dropped;
        self.look_ups += look_ups;
        self.completions += completions;
        self.unread += unread;
        self.waits += waits;
        for (point, times) in move_kills {
            *self.move_kills.entry(point.clone()).or_default() += times;
        }
        self.digests += digests;
        self.prefixes += prefixes;
    }
}
