//! The turns of a shard: the model decides the same commands at the same time, and the results are compared.

use super::{Died, Verdict, Why, World, words};
use crate::judge;
use crate::model::{Expected, Moment};
use crate::store::{MovePoint, Rows};
use engine::command::Command;
use engine::id::{MARKETS, UserId};
use engine::look_up::LookUp;
use engine::mutation::Mutation;
use engine::mutation::codec::each;
use engine::print::Print;
use engine::shard::{Room, shard_of};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A turn of a shard, for the model.
pub(super) struct Turn {
    pub shard: usize,
    pub moment: Moment,
    /// Records of this life before it.
    before: usize,
    /// Users that may have changed.
    touched: Vec<u64>,
    /// Commands that the shard did not decide because it lacked rows, by number.
    pub handed_back: BTreeMap<u64, Box<LookUp>>,
}

impl World {
    /// Runs a turn of a shard, and the model on the same commands.
    pub(super) fn turn(&mut self, shard: usize, now: u64) -> Verdict {
        if self.life.is_behind() && self.guarded(|world| world.life.commit())?.is_none() {
            return Ok(());
        }
        let room = self.life.room();
        let (before, left) = (self.life.tape.len(), self.left(shard));
        let turned = catch_unwind(AssertUnwindSafe(|| self.life.turn(shard, now, room)));
        let died = match turned {
            Ok(()) => false,
            Err(panic) if panic.is::<Died>() => true,
            Err(panic) => return Err(format!("a shard panicked: {}", words(&*panic))),
        };
        self.shard_now[shard] = now.max(self.shard_now[shard]);
        let moment = Moment { now: self.shard_now[shard], room };
        let handed_back = self.handed_back();
        self.note_prefixes(before);
        let mut turn = Turn { shard, moment, before, touched: Vec::new(), handed_back };
        self.note_hour(&mut turn);
        self.move_line(&mut turn)?;
        while let Some(queued) = self.inboxes[shard].pop_front() {
            self.arrive(queued, &mut turn)?;
        }
        self.work(&mut turn);
        let Turn { mut touched, handed_back, .. } = turn;
        self.match_records(before, died)?;
        if died {
            return self.sudden_death();
        }
        if let Some((owner, _)) = self.model.granted.iter().find(|(_, left)| !left.is_empty()) {
            return Err(format!("user {owner} was granted a prefix that it does not need"));
        }
        if let Some(look_up) = handed_back.values().next() {
            return Err(format!("a command was looked up that had to wait: {look_up:?}"));
        }
        let dropped = self.left(shard) - left;
        if dropped > 0 {
            self.count.dropped += dropped;
            touched.extend(self.model.users.keys().copied().filter(|id| self.is_of(*id, shard)));
        }
        touched.sort_unstable();
        touched.dedup();
        let users = self.life.shards[shard].users();
        for owner in touched {
            match (self.model.user(owner), users.get(UserId(owner))) {
                (Some(expected), Some(found)) => {
                    let judge = |rows: &Rows<'_>| judge::user(expected, found, rows, self.now, true);
                    let judged = self.ended.judged(UserId(owner), users.departed_upto(), judge);
                    judged.map_err(|why| format!("user {owner}: {why}"))?;
                }
                (None, None) => {}
                (expected, _) => return Err(format!("user {owner}: known is {}", expected.is_some())),
            }
        }
        users.check_all()?;
        self.check_hand_over(shard)?;
        if dropped > 0 && self.move_fuse.burns(&MovePoint::ALL, MovePoint::RowDropped) {
            return self.sudden_death();
        }
        Ok(())
    }

    /// The model gets the prefixes of the records that the shard has just made.
    fn note_prefixes(&mut self, before: usize) {
        self.model.granted.clear();
        for (owner, payload) in &self.life.tape[before..] {
            if *owner == MARKETS.0 {
                continue;
            }
            let granted = self.model.granted.entry(*owner).or_default();
            let known = granted.len();
            let prefix = |fact: &Mutation| {
                if let Mutation::NumbersExtended(extended) = fact {
                    granted.push_back(extended.prefix.0);
                }
            };
            // What a planted mistake left unreadable, the recovery finds.
            _ = each(self.setup.rules.formats.record(), payload, prefix);
            self.count.prefixes += (granted.len() - known) as u64;
        }
    }

    fn is_of(&self, user: u64, shard: usize) -> bool {
        shard_of(UserId(user), self.life.shards.len()) == shard
    }

    /// Orders and positions of a shard that have left its memory.
    fn left(&self, shard: usize) -> u64 {
        let departed = self.life.shards[shard].users().iter().filter_map(|user| user.departed());
        departed.map(|departed| u64::from(departed.orders + departed.positions)).sum()
    }

    /// What a shard was told to drop is in the store, and a snapshot lacks it.
    fn check_hand_over(&self, shard: usize) -> Verdict {
        let upto = self.life.shards[shard].users().departed_upto();
        if upto > self.ended.upto() {
            return Err(format!("rows up to {upto} leave memory, the store has them up to {}", self.ended.upto()));
        }
        let newest = self.snapshots().last().copied().unwrap_or(0);
        if upto > newest {
            return Err(format!("rows up to {upto} leave memory, the newest snapshot is of {newest}"));
        }
        Ok(())
    }

    /// The model decides a command, unless the shard handed it back.
    pub(super) fn take_one(&mut self, at: u64, turn: &mut Turn) -> Verdict {
        let asked = &self.asked[&at];
        let Turn { shard, moment, before, .. } = *turn;
        match asked.command {
            Command::Cycle { .. } => {
                self.hours[shard].has_books = true;
                self.held_up[shard].1.push_back(at);
                self.work(turn);
            }
            Command::Settle { .. } => {
                self.held_up[shard].0.push_back(at);
                self.work(turn);
            }
            Command::MeetPrints => {
                self.prints[shard].1.push(at);
                self.work(turn);
            }
            _ => {
                let waited = moment.now.saturating_sub(asked.received_at);
                let (owner, command) = (asked.owner.0, asked.command.clone());
                if let Some(look_up) = turn.handed_back.remove(&at) {
                    self.look_up(at, look_up, shard);
                    let refused = self.model.refuses(owner, &command, moment, waited);
                    return refused.map_or(Ok(()), |why| Err(format!("{command:?} was looked up, {why:?} is right")));
                }
                turn.touched.push(owner);
                let background = matches!(command, Command::Query(_) | Command::NoteKeyUsed { .. });
                if moment.room == Room::ReserveOnly && !background {
                    self.model.note_early(owner, &mut self.hours[shard], moment.now);
                }
                let expected = self.model.take(owner, &command, moment, waited);
                self.expect(at, expected, before);
            }
        }
        Ok(())
    }

    /// The feed hands a trade to all shards.
    pub(crate) fn hand_print(&mut self, print: Print) {
        for shard in 0..self.life.shards.len() {
            self.life.shards[shard].print_lane().push(print);
            self.prints[shard].0.push(print);
        }
        self.ask_all(|| Command::MeetPrints, Why::Print);
    }

    /// Work larger than a command: all trades, one settlement or one cycle.
    fn work(&mut self, turn: &mut Turn) {
        let Turn { shard, moment, before, .. } = *turn;
        if moment.room == Room::None {
            self.prints[shard].0.clear();
            return;
        }
        self.note_hour(turn);
        let touched = &mut turn.touched;
        let count = self.life.shards.len();
        let of_shard = move |id: u64| shard_of(UserId(id), count) == shard;
        let (prints, waiting) = std::mem::take(&mut self.prints[shard]);
        if !prints.is_empty() || !waiting.is_empty() {
            for print in prints.iter().filter(|_| moment.room == Room::Ample) {
                self.count.prints += self.model.print(of_shard, print, moment.now);
            }
            touched.extend(self.model.users.keys().copied().filter(|id| of_shard(*id)));
            waiting.into_iter().for_each(|at| self.expect(at, Expected::Done, before));
            return;
        }
        let (settlements, cycles) = &mut self.held_up[shard];
        let Some(at) = settlements.pop_front().or_else(|| cycles.pop_front()) else { return };
        let expected = match self.asked[&at].command {
            Command::Settle { market } => self.model.settle(of_shard, market.0, &mut self.hours[shard], moment.now),
            Command::Cycle { venue_now, .. } => self.model.cycle(of_shard, venue_now.0, moment),
            _ => unreachable!("only these are held up"),
        };
        touched.extend(self.model.users.keys().copied().filter(|id| of_shard(*id)));
        self.expect(at, expected, before);
    }

    /// Points are made once there was a cycle and while there is ample room.
    fn note_hour(&mut self, turn: &mut Turn) {
        let Turn { shard, moment, .. } = *turn;
        if moment.room != Room::Ample || !self.hours[shard].is_due(moment.now) {
            return;
        }
        let count = self.life.shards.len();
        let of_shard = move |id: u64| shard_of(UserId(id), count) == shard;
        self.model.note_hours(of_shard, &mut self.hours[shard], moment.now);
        self.count.hours += 1;
        turn.touched.extend(self.model.users.keys().copied().filter(|id| of_shard(*id)));
    }

    fn expect(&mut self, at: u64, expected: Expected, before: usize) {
        let upto = self.base + (before + self.model.records.len()) as u64;
        self.asked.get_mut(&at).expect("it waits").expected = Some((expected, upto));
    }
}
