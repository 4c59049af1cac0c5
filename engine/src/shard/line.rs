//! Writes of a user whose earlier record is unreleased, or whose earlier write is being looked up: they wait undecided,
//! and are refused after too long.
//!
//! While the log syncs, writes of a user are decided one after the other, and their answers wait. Once the oldest
//! unreleased record is older than [`UNRELEASED_MAX_US`], the next write waits in this line. It is decided when that
//! record is released, or refused with `WaitedTooLong` after [`WAIT_MAX_US`]. Such a refusal depends on no record, so
//! it is sent even if the log is stuck.
//!
//! While a write needs rows that left memory ([`crate::look_up`]), later writes of its user wait here, too. The write
//! itself does not wait again when it comes back: it had its turn. A look-up that takes longer than [`WAIT_MAX_US`] is
//! over: its write is refused when it comes back, and the line goes on.

use super::{Outbox, Shard};
use crate::command::{Answer, Command, Envelope, IdSource, Placement};
use crate::id::UserId;
use crate::reject::Reject;
use crate::rules::{UNRELEASED_MAX_US, WAIT_MAX_US};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum count of commands in line, of all users of a shard; further ones are refused with `Busy`. Also that of
/// look-ups under way.
const LINE_MAX: usize = 1_024;

/// The line of one shard.
pub(super) struct Line<R> {
    waiting: VecDeque<Envelope<R>>,
    /// The oldest unreleased record at the last scan of the line.
    seen: Option<Timestamp>,
    /// Look-ups under way, at most one of a user.
    looking: BTreeMap<UserId, Looking>,
    /// A look-up has ended since the last scan of the line.
    has_ended: bool,
    next_ticket: u64,
}

/// A write that is being looked up.
struct Looking {
    ticket: u64,
    received_at: Timestamp,
    /// Ids of its requests that can conflict with others.
    ids: Vec<String>,
}

impl<R> Default for Line<R> {
    fn default() -> Line<R> {
        Line { waiting: VecDeque::new(), seen: None, looking: BTreeMap::new(), has_ended: false, next_ticket: 0 }
    }
}

impl<R> Line<R> {
    /// Whether a command of this user may have to wait for others in line, or for a look-up of the user.
    #[inline]
    fn may_hold_up(&self, owner: UserId) -> bool {
        !self.waiting.is_empty() || self.looking.contains_key(&owner)
    }

    /// Begins the look-up of a write of `owner`, which has no other one. Returns its ticket.
    ///
    /// # Errors
    /// `Busy` if too many are under way.
    pub fn begin_look_up(
        &mut self,
        owner: UserId,
        received_at: Timestamp,
        ids: Vec<String>,
        now: Timestamp,
    ) -> Result<u64, Reject> {
        if self.looking.len() >= LINE_MAX {
            self.end_overdue(now);
        }
        if self.looking.len() >= LINE_MAX {
            return Err(Reject::Busy);
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let before = self.looking.insert(owner, Looking { ticket, received_at, ids });
        assert!(before.is_none(), "a user has at most one look-up under way: user {owner}");
        Ok(ticket)
    }

    /// Ends a look-up. Returns whether it was under way, and not for too long.
    pub fn end_look_up(&mut self, owner: UserId, ticket: u64, now: Timestamp) -> bool {
        if self.looking.get(&owner).is_none_or(|looking| looking.ticket != ticket) {
            return false;
        }
        self.has_ended = true;
        let looking = self.looking.remove(&owner);
        looking.is_some_and(|looking| now.since(looking.received_at) <= WAIT_MAX_US)
    }

    /// Ends look-ups that began too long ago.
    fn end_overdue(&mut self, now: Timestamp) {
        let before = self.looking.len();
        self.looking.retain(|_, looking| now.since(looking.received_at) <= WAIT_MAX_US);
        self.has_ended |= self.looking.len() < before;
    }

    /// Whether commands wait for a look-up that has ended.
    #[inline]
    pub fn can_move(&self) -> bool {
        self.has_ended && !self.waiting.is_empty()
    }
}

impl<R> Shard<R> {
    /// Whether a command may have to wait in line. The first check of every command: one load and a comparison each.
    #[inline]
    pub(super) fn may_be_held_up(&self, owner: UserId, command: &Command, outbox: &mut impl Outbox<R>) -> bool {
        let late = outbox.oldest_unreleased().is_some_and(|at| self.now.since(at) > UNRELEASED_MAX_US);
        (late || self.line.may_hold_up(owner)) && takes_turns(command)
    }

    /// Whether commands wait in line: [`Shard::turn`] must be called soon, even without other work.
    pub fn holds_up(&self) -> bool {
        !self.line.waiting.is_empty()
    }

    /// The destination of the answer of the last command in line.
    pub fn last_held_up(&mut self) -> Option<&mut R> {
        self.line.waiting.back_mut().map(|envelope| &mut envelope.reply)
    }

    /// Puts a command in line, or runs it if its user's records are not late and no write of the user is looked up.
    #[cold]
    pub(super) fn line_up(&mut self, envelope: Envelope<R>, outbox: &mut impl Outbox<R>) {
        let owner = envelope.owner;
        self.line.end_overdue(self.now);
        let oldest = self.oldest_late(owner, outbox);
        let waits =
            self.line.looking.contains_key(&owner) || self.line.waiting.iter().any(|other| other.owner == owner);
        if oldest.is_none() && !waits {
            return self.take_now(envelope, outbox);
        }
        let refused = if self.now.since(envelope.received_at) > WAIT_MAX_US {
            Reject::WaitedTooLong
        } else if self.is_running(owner, &envelope.command, oldest) {
            Reject::StillRunning
        } else if self.line.waiting.len() >= LINE_MAX {
            Reject::Busy
        } else {
            if self.line.waiting.is_empty() {
                self.line.seen = outbox.oldest_unreleased();
            }
            return self.line.waiting.push_back(envelope);
        };
        outbox.answer_at_once(envelope.reply, Answer::Refused(refused));
    }

    /// Runs the commands that no longer need to wait, in the order of each user, and refuses those that waited too
    /// long.
    #[inline]
    pub(super) fn move_line(&mut self, outbox: &mut impl Outbox<R>) {
        if !self.line.waiting.is_empty() {
            self.look_through_line(outbox);
        }
    }

    #[cold]
    fn look_through_line(&mut self, outbox: &mut impl Outbox<R>) {
        self.line.end_overdue(self.now);
        let oldest = outbox.oldest_unreleased();
        let has_moved = std::mem::take(&mut self.line.has_ended) || oldest != self.line.seen;
        self.line.seen = oldest;
        let mut held_up = BTreeSet::new();
        for _ in 0..self.line.waiting.len() {
            let Some(envelope) = self.line.waiting.pop_front() else { return };
            let owner = envelope.owner;
            if self.now.since(envelope.received_at) > WAIT_MAX_US {
                outbox.answer_at_once(envelope.reply, Answer::Refused(Reject::WaitedTooLong));
            } else if !has_moved
                || held_up.contains(&owner)
                || self.line.looking.contains_key(&owner)
                || self.oldest_late(owner, outbox).is_some()
            {
                held_up.insert(owner);
                self.line.waiting.push_back(envelope);
            } else {
                self.take_now(envelope, outbox);
            }
        }
    }

    /// When the oldest unreleased record of a user was made, if that is too long ago.
    fn oldest_late(&self, owner: UserId, outbox: &mut impl Outbox<R>) -> Option<Timestamp> {
        outbox.oldest_unreleased_of(owner).filter(|at| self.now.since(*at) > UNRELEASED_MAX_US)
    }

    /// Whether a placement, or one of a batch, repeats the id of one that waits in line or is looked up, or of one with
    /// an unreleased record.
    fn is_running(&self, owner: UserId, command: &Command, oldest: Option<Timestamp>) -> bool {
        let is_waiting = |id: &str| {
            let mut others = self.line.waiting.iter().filter(|envelope| envelope.owner == owner);
            others.any(|envelope| placements(&envelope.command).iter().any(|other| shown_id(other) == Some(id)))
        };
        let looking = self.line.looking.get(&owner);
        let is_looked_up = |id: &str| looking.is_some_and(|looking| looking.ids.iter().any(|other| other == id));
        let user = self.users.get(owner);
        let made_at = |id: &str| {
            let user = user?;
            user.order(user.remembered(id, Timestamp(0))?.order).map(|order| order.created_at)
        };
        let is_unreleased =
            |id: &str| oldest.is_some_and(|oldest| made_at(id).is_some_and(|made_at| made_at >= oldest));
        placements(command)
            .iter()
            .filter_map(shown_id)
            .any(|id| is_waiting(id) || is_looked_up(id) || is_unreleased(id))
    }
}

/// The placements of a command.
fn placements(command: &Command) -> &[Placement] {
    match command {
        Command::Place(placement) => std::slice::from_ref(&**placement),
        Command::PlaceBatch(placements) => placements,
        _ => &[],
    }
}

/// The ids of a command's requests that can conflict with other requests.
pub(super) fn shown_ids(command: &Command) -> Vec<String> {
    placements(command).iter().filter_map(shown_id).map(str::to_owned).collect()
}

/// The id of a request, if it can conflict with another request.
fn shown_id(placement: &Placement) -> Option<&str> {
    let request = placement.request.as_ref()?;
    (request.source != IdSource::Implicit).then_some(request.client_order_id.as_str())
}

/// Whether a command takes the user's turn (gateway/docs/wire.md §7, row 16): placements, cancels and resets. Keys can
/// be revoked at any time, and background work of the server does not wait.
fn takes_turns(command: &Command) -> bool {
    match command {
        Command::Place(_)
        | Command::PlaceBatch(_)
        | Command::Cancel { .. }
        | Command::CancelOrders { .. }
        | Command::CancelAll { .. }
        | Command::CancelMarket { .. }
        | Command::ArchiveWallet { .. }
        | Command::ResetWallet { .. }
        | Command::ResetApiWallet { .. } => true,
        Command::CreateUser(_)
        | Command::SetGrant { .. }
        | Command::IssueKey(_)
        | Command::RenameKey { .. }
        | Command::RotateKey { .. }
        | Command::RevokeKey { .. }
        | Command::NoteKeyUsed { .. }
        | Command::NoteStrict { .. }
        | Command::DeclareAddress { .. }
        | Command::Beat { .. }
        | Command::BeatByName { .. }
        | Command::EndBeats
        | Command::Settle { .. }
        | Command::Cycle { .. }
        | Command::MeetPrints
        | Command::Depart(_)
        | Command::CutHistory { .. }
        | Command::OpenWallet { .. }
        | Command::RelabelWallet { .. }
        | Command::CreateBacktest(_)
        | Command::StartBacktest { .. }
        | Command::EndBacktest { .. }
        | Command::OpenCompetition { .. }
        | Command::NoteCustomer { .. }
        | Command::Bill(_)
        | Command::AddAlertTarget(_)
        | Command::ChangeAlertTarget { .. }
        | Command::RemoveAlertTarget { .. }
        | Command::ChooseMail { .. }
        | Command::NoteAlert { .. }
        | Command::Notify { .. }
        | Command::NoteEmail { .. }
        | Command::ChooseRealism { .. }
        // They had their turn.
        | Command::Found(_)
        | Command::EndLookUp { .. }
        | Command::Query(_) => false,
    }
}
