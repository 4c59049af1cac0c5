//! Commands and answers that need rows which have left memory: they are read later, in any order, or not at all. Later
//! writes of the same user wait in a line until then.

use super::turn::Turn;
use super::{InFlight, Verdict, World};
use crate::judge;
use crate::model::Expected;
use crate::planted::Plant;
use engine::command::{Answer, Command, Envelope, IdSource, Placement};
use engine::id::UserId;
use engine::look_up::LookUp;
use engine::reject::Reject;
use engine::shard::elsewhere::Elsewhere;
use engine::shard::shard_of;
use engine::time::Timestamp;
use journal::commit::Reply;
use sha2::Digest as _;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::sync_channel;

/// How long a write waits at most, µs.
const WAIT_MAX: u64 = 2_000_000;

/// A command in the inbox of a shard, or the end of its look-up. The numbers are those of [`InFlight`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Queued {
    Asked(u64),
    /// With what was found.
    Found(u64),
    /// Nothing can be found.
    Ended {
        owner: u64,
        number: u64,
    },
}

/// Writes of a shard that wait for a look-up of their user, oldest first, and the look-ups.
#[derive(Default)]
pub(super) struct Line {
    waiting: VecDeque<u64>,
    /// By user.
    looking: BTreeMap<u64, Looking>,
}

struct Looking {
    number: u64,
    received_at: u64,
    /// Ids that no other write may bring meanwhile.
    ids: Vec<String>,
}

impl Line {
    fn end_overdue(&mut self, now: u64) {
        self.looking.retain(|_, looking| now.saturating_sub(looking.received_at) <= WAIT_MAX);
    }

    /// Whether it was under way, and not for too long.
    fn end(&mut self, owner: u64, number: u64, now: u64) -> bool {
        self.end_overdue(now);
        let is_under_way = self.looking.get(&owner).is_some_and(|looking| looking.number == number);
        if is_under_way {
            self.looking.remove(&owner);
        }
        is_under_way
    }
}

/// What a client waits for that has to be read.
pub(super) struct Read {
    number: u64,
    asked: InFlight,
    what: What,
}

pub(super) enum What {
    Answer(Box<Elsewhere>),
    Command(Box<LookUp>),
}

impl World {
    /// Notes what a shard answered in this turn. Commands that it handed back are not decided yet.
    pub(super) fn handed_back(&mut self) -> BTreeMap<u64, Box<LookUp>> {
        let mut handed_back = BTreeMap::new();
        for (number, asked) in self.asked.iter_mut().filter(|(_, asked)| asked.early.is_none()) {
            match asked.receiver.try_recv() {
                Ok(Answer::LookUp(look_up)) => drop(handed_back.insert(*number, look_up)),
                Ok(answer) => asked.early = Some(answer),
                Err(_) => {}
            }
        }
        handed_back
    }

    /// The commands of the line that need not wait any more.
    pub(super) fn move_line(&mut self, turn: &mut Turn) -> Verdict {
        let line = &mut self.lines[turn.shard];
        if line.waiting.is_empty() {
            return Ok(());
        }
        line.end_overdue(turn.moment.now);
        let mut held_up = Vec::new();
        for number in std::mem::take(&mut line.waiting) {
            let asked = &self.asked[&number];
            let (owner, waited) = (asked.owner.0, turn.moment.now.saturating_sub(asked.received_at));
            if waited > WAIT_MAX {
                self.refuse_at_once(number, Reject::WaitedTooLong);
            } else if held_up.contains(&owner) || self.lines[turn.shard].looking.contains_key(&owner) {
                held_up.push(owner);
                self.lines[turn.shard].waiting.push_back(number);
            } else {
                self.take_one(number, turn)?;
            }
        }
        Ok(())
    }

    /// What arrives at a shard.
    pub(super) fn arrive(&mut self, queued: Queued, turn: &mut Turn) -> Verdict {
        match queued {
            Queued::Asked(number) if takes_turns(&self.asked[&number].command) => self.line_up(number, turn),
            Queued::Asked(number) => self.take_one(number, turn),
            Queued::Found(number) => {
                let owner = self.asked[&number].owner.0;
                if self.lines[turn.shard].end(owner, number, turn.moment.now) {
                    return self.take_one(number, turn);
                }
                self.refuse_at_once(number, Reject::WaitedTooLong);
                Ok(())
            }
            Queued::Ended { owner, number } => {
                self.lines[turn.shard].end(owner, number, turn.moment.now);
                Ok(())
            }
        }
    }

    /// A write waits after those of its user that wait or are looked up.
    fn line_up(&mut self, number: u64, turn: &mut Turn) -> Verdict {
        let line = &mut self.lines[turn.shard];
        line.end_overdue(turn.moment.now);
        let InFlight { owner, command, received_at, .. } = &self.asked[&number];
        let mine = |other: &&u64| self.asked[*other].owner == *owner;
        let looking = line.looking.get(&owner.0);
        if looking.is_none() && !line.waiting.iter().any(|other| mine(&other)) {
            return self.take_one(number, turn);
        }
        let ids = shown_ids(command);
        let waits = |id: &String| {
            let others = line.waiting.iter().filter(mine);
            others.into_iter().any(|other| shown_ids(&self.asked[other].command).contains(id))
        };
        let is_looked_up = |id: &String| looking.is_some_and(|looking| looking.ids.contains(id));
        if turn.moment.now.saturating_sub(*received_at) > WAIT_MAX {
            self.refuse_at_once(number, Reject::WaitedTooLong);
        } else if ids.iter().any(|id| waits(id) || is_looked_up(id)) {
            self.refuse_at_once(number, Reject::StillRunning);
        } else {
            line.waiting.push_back(number);
            self.count.waits += 1;
        }
        Ok(())
    }

    /// A refusal that depends on no record.
    fn refuse_at_once(&mut self, number: u64, reject: Reject) {
        self.asked.get_mut(&number).expect("it waits").expected = Some((Expected::Refused(reject), 0));
    }

    /// A command that the shard handed back waits for a reader.
    pub(super) fn look_up(&mut self, number: u64, look_up: Box<LookUp>, shard: usize) {
        let asked = self.asked.remove(&number).expect("it was handed back");
        let (owner, received_at) = (asked.owner.0, asked.received_at);
        let looking = Looking { number, received_at, ids: shown_ids(&asked.command) };
        self.lines[shard].looking.insert(owner, looking);
        if self.scenario.plant == Some(Plant::Overtaking) {
            // The shard receives its end before what was found.
            self.send(asked.owner, look_up.end(), asked.received_at, Reply::Discard);
        }
        self.reads.push(Read { number, asked, what: What::Command(look_up) });
        self.count.look_ups += 1;
    }

    /// An answer that was released in part waits for a reader.
    pub(super) fn complete_later(&mut self, number: u64, asked: InFlight, elsewhere: Box<Elsewhere>) {
        self.reads.push(Read { number, asked, what: What::Answer(elsewhere) });
    }

    /// A reader serves one of those that wait.
    pub(super) fn read(&mut self, nth: usize) -> Verdict {
        if self.reads.is_empty() {
            return Ok(());
        }
        let read = self.reads.remove(nth % self.reads.len());
        self.serve(read)
    }

    /// Readers serve all that wait.
    pub(super) fn read_all(&mut self) -> Verdict {
        std::mem::take(&mut self.reads).into_iter().try_for_each(|read| self.serve(read))
    }

    fn serve(&mut self, read: Read) -> Verdict {
        let Read { number, asked, what } = read;
        match what {
            What::Answer(elsewhere) => {
                let (owner, upto) = (elsewhere.owner(), elsewhere.departed_upto());
                let completed = self.ended.read(owner, upto, self.heals, |rows| elsewhere.complete(rows));
                let Ok(answer) = completed else {
                    self.count.unread += 1;
                    return Ok(());
                };
                self.count.completions += 1;
                let InFlight { owner, command, expected, .. } = asked;
                let (expected, _) = expected.expect("it was released");
                self.story.update(format!("{answer:?}").as_bytes());
                judge::answer(&expected, &answer).map_err(|wrong| {
                    format!(
                        "{command:?} of user {owner}, completed: {wrong}\n  answer {answer:?}\n  right {expected:?}"
                    )
                })?;
                self.count.hear(&answer);
            }
            What::Command(look_up) => {
                let (owner, upto, end) = (look_up.owner(), look_up.upto(), look_up.end());
                let shard = shard_of(owner, self.life.shards.len());
                match self.ended.read(owner, upto, self.heals, |rows| look_up.found(rows)) {
                    Ok(Envelope { owner, command, received_at, reply: () }) => {
                        let (sender, receiver) = sync_channel(1);
                        self.send(owner, command, received_at.0, Reply::Thread(sender));
                        self.inboxes[shard].push_back(Queued::Found(number));
                        self.asked.insert(number, InFlight { receiver, ..asked });
                    }
                    Err(_) => {
                        // The client must look the order up.
                        self.count.unread += 1;
                        self.send(owner, end, asked.received_at, Reply::Discard);
                        self.inboxes[shard].push_back(Queued::Ended { owner: owner.0, number });
                    }
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, owner: UserId, command: Command, received_at: u64, reply: Reply) {
        let shard = shard_of(owner, self.life.shards.len());
        let envelope = Envelope { owner, command, received_at: Timestamp(received_at), reply };
        assert!(self.life.inboxes[shard].push(envelope).is_ok(), "a world does not fill a queue");
    }
}

/// Placements, cancels and resets are decided in the order of their user (gateway/docs/wire.md §7, row 16).
fn takes_turns(command: &Command) -> bool {
    matches!(
        command,
        Command::Place(_)
            | Command::PlaceBatch(_)
            | Command::Cancel { .. }
            | Command::CancelAll { .. }
            | Command::CancelMarket { .. }
            | Command::ArchiveWallet { .. }
            | Command::ResetWallet { .. }
            | Command::ResetApiWallet { .. }
    )
}

/// Ids of a command that a client chose.
fn shown_ids(command: &Command) -> Vec<String> {
    let placements: &[Placement] = match command {
        Command::Place(placement) => std::slice::from_ref(&**placement),
        Command::PlaceBatch(placements) => placements,
        _ => &[],
    };
    let requests = placements.iter().filter_map(|placement| placement.request.as_ref());
    let shown = requests.filter(|request| request.source != IdSource::Implicit);
    shown.map(|request| request.client_order_id.clone()).collect()
}
