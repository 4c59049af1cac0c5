//! Refusals before a command runs: it has waited too long, the log or memory has no room for it, or its key has ended.

use super::{Outbox, Room, Shard};
use crate::command::Command;
use crate::id::UserId;
use crate::reject::Reject;
use crate::rules::WAIT_MAX_US;
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// Refuses a command before it runs: after a wait of more than 2 s, if the log has no room, and a placement if memory
    /// has no room for more ended rows.
    #[inline]
    pub(super) fn admit(
        &self,
        command: &Command,
        received_at: Timestamp,
        outbox: &impl Outbox<R>,
    ) -> Result<(), Reject> {
        let need = match command {
            // Background work waits for room in its own way, and not for the user's turn. A use that is not recorded
            // is not a loss.
            Command::Query(_)
            | Command::MeetPrints
            | Command::Cycle { .. }
            | Command::Depart(_)
            | Command::CutHistory { .. }
            | Command::Settle { .. }
            | Command::EndLookUp { .. }
            | Command::NoteKeyUsed { .. }
            | Command::NoteStrict { .. }
            | Command::DeclareAddress { .. } => return Ok(()),
            Command::Found(_) => unreachable!("a command that was looked up was unpacked"),
            Command::Place(_)
            | Command::PlaceBatch(_)
            | Command::CreateUser(_)
            | Command::IssueKey(_)
            | Command::RotateKey { .. }
            | Command::OpenWallet { .. }
            | Command::ResetWallet { .. }
            | Command::ResetApiWallet { .. }
            | Command::CreateBacktest(_)
            | Command::OpenCompetition { .. }
            | Command::NoteCustomer { .. }
            | Command::Bill(_)
            | Command::AddAlertTarget(_)
            | Command::NoteAlert { .. }
            | Command::Notify { .. }
            | Command::NoteEmail { .. } => Room::Ample,
            Command::SetGrant { .. }
            | Command::RenameKey { .. }
            | Command::ChooseRealism { .. }
            | Command::RevokeKey { .. }
            | Command::Cancel { .. }
            | Command::CancelOrders { .. }
            | Command::CancelAll { .. }
            | Command::CancelMarket { .. }
            | Command::RelabelWallet { .. }
            | Command::ArchiveWallet { .. }
            | Command::Beat { .. }
            | Command::BeatByName { .. }
            | Command::EndBeats
            | Command::StartBacktest { .. }
            | Command::EndBacktest { .. }
            | Command::ChangeAlertTarget { .. }
            | Command::RemoveAlertTarget { .. }
            | Command::ChooseMail { .. } => Room::ReserveOnly,
        };
        if self.now.since(received_at) > WAIT_MAX_US {
            return Err(Reject::WaitedTooLong);
        }
        match (outbox.room(), need) {
            (Room::Ample, _) | (Room::ReserveOnly, Room::ReserveOnly) => {}
            _ => return Err(Reject::NoRoom),
        }
        match command {
            Command::Place(_) | Command::PlaceBatch(_) => self.ended_room(),
            _ => Ok(()),
        }
    }

    /// Whether the key of the request is still usable. Keys are never removed from a user, so an unknown key was never
    /// issued and has no end.
    pub(super) fn key_usable(&self, owner: UserId, command: &Command) -> Result<(), Reject> {
        let Some(key) = command.authorising_key() else { return Ok(()) };
        let key = self.users.get(owner).and_then(|user| user.key(key));
        key.map_or(Ok(()), |key| key.usable(self.now))
    }
}
