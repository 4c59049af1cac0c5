//! This server as the admin namespace sees it: its log, its directory, and backups of it.

use crate::backup::{BackupError, Running, Source, Stream};
use crate::instruments::Instruments;
use crate::runtime::Inboxes;
use admin::notices::{NotNotified, Notifies, Notifying};
use admin::users::{Deed, Done, Named, NoDeed};
use admin::{
    ClockStatus, Copying, Declaring, Doing, Horizon, Lost, NoBackup, NoRefund, NoStep, Node, NotDeclared, Refunding,
    RunStatus, Status, Stays, Taken,
};
use edge::api::billing::provider::Failed;
use edge::api::health::bytes_in;
use edge::app::App;
use edge::engine_client::Reply;
use engine::command::{Answer, Command, Envelope, Query};
use engine::id::{MARKETS, UserId};
use engine::realism::RealismSets;
use engine::rehearsal::{ADDRESSES_MAX, DeclaredAddress};
use engine::reject::Reject;
use engine::shard::shard_of;
use engine::time::Timestamp;
use host::moments::{StepBy, Stepped};
use host::thread::Stop;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;
use wal::{Files, Lsn, Scan, Snapshots};

/// Files of the data directory that are counted for its size.
const FILES_MAX: usize = 100_000;

/// A server that runs.
pub struct ServerNode {
    app: Arc<App>,
    running: Running,
    inboxes: Inboxes,
    /// Of the alerts that are owed.
    instruments: Instruments,
    /// The last horizon: finding its time requires reading a segment.
    horizon: Mutex<Option<Horizon>>,
}

impl ServerNode {
    pub fn new(app: Arc<App>, running: Running, inboxes: Inboxes, instruments: Instruments) -> ServerNode {
        ServerNode { app, running, inboxes, instruments, horizon: Mutex::new(None) }
    }

    /// Sends a command to the shard of a user.
    ///
    /// # Errors
    /// [`NoDeed::Busy`].
    fn ask(&self, user: UserId, command: Command) -> Result<oneshot::Receiver<Answer>, NoDeed> {
        let (sender, receiver) = oneshot::channel();
        let received_at = self.app.reads.clock.now();
        let envelope = Envelope { owner: user, command, received_at, reply: Reply::Request(sender) };
        let inbox = &self.inboxes[shard_of(user, self.inboxes.len())];
        inbox.push(envelope).map_err(|_| NoDeed::Busy)?;
        Ok(receiver)
    }

    /// The newest snapshot and the horizon.
    fn read_horizon(&self) -> Result<(Option<Lsn>, Horizon), wal::Error> {
        let Running { directory, marks, covered, .. } = &self.running;
        // Nothing is released between the two reads.
        let _pin = covered.pin();
        let storage = Files::open_existing(directory)?;
        let snapshots = Snapshots::of(&storage)?.list()?;
        let first = wal::segments(&storage)?.first().map_or(Lsn(1), |segment| segment.first_lsn);
        // The log reaches back to the older of the kept snapshots.
        let older = snapshots.iter().nth_back(1).or(snapshots.last()).copied();
        let lsn = if first <= Lsn(1) { Lsn(1) } else { older.unwrap_or(first) };
        let mut known = self.horizon.lock();
        if let Some(horizon) = known.filter(|known| known.lsn == lsn.0 && known.at.is_some()) {
            return Ok((snapshots.last().copied(), horizon));
        }
        let after = if first <= lsn { lsn.before() } else { lsn };
        let synced = marks.synced();
        let at = match after < synced {
            true => Scan::open(&storage, after)?.until(synced).next()?.map(|entry| Timestamp(entry.time)),
            false => None,
        };
        let horizon = Horizon { lsn: lsn.0, at };
        *known = Some(horizon);
        Ok((snapshots.last().copied(), horizon))
    }
}

impl Notifies for ServerNode {
    fn notify(&self, user: UserId, text: &str) -> Option<Notifying> {
        if !self.app.reads.directory.exists(user) {
            return None;
        }
        let asked = self.ask(user, Command::Notify { text: text.to_owned() });
        Some(Box::pin(async move {
            let receiver = asked.map_err(|_| NotNotified::Busy)?;
            match receiver.await.map_err(|_| NotNotified::Lost)? {
                Answer::Notified(is_owed) => Ok(is_owed),
                Answer::Refused(Reject::NoAlertStore) => Err(NotNotified::NoStore),
                _ => Err(NotNotified::Busy),
            }
        }))
    }

    fn owed(&self) -> u64 {
        // With the users that the dispatcher has not looked at yet.
        self.instruments.alerts.owed() + self.instruments.commit.listener.owing.len() as u64
    }

    fn last_user(&self) -> UserId {
        UserId(self.app.reads.directory.users_count() as u64)
    }
}

impl Node for ServerNode {
    fn status(&self) -> Result<Status, String> {
        let (snapshot, horizon) = self.read_horizon().map_err(|error| error.to_string())?;
        let mut files_left = FILES_MAX;
        let data_bytes = bytes_in(&self.running.directory, &mut files_left);
        let marks = &self.running.marks;
        Ok(Status {
            instance: self.app.instance.id.clone(),
            appended: marks.appended().0,
            synced: marks.synced().0,
            snapshot: snapshot.map(|lsn| lsn.0),
            horizon,
            is_on_venue_time: self.app.moments.is_some(),
            data_bytes,
        })
    }

    fn backup(&self, with_secrets: bool, stays: Stays) -> Result<Copying, NoBackup> {
        let now = self.app.reads.clock.now();
        let source = Source::live(&self.running, with_secrets, now, stays).map_err(no_backup)?;
        Ok(Box::new(move |into| {
            let manifest = source.copy(Stream::begin(into)).map_err(|error| error.to_string())?;
            let (lsn, with_secrets, files) = (manifest.lsn, manifest.with_secrets, manifest.files.len());
            let bytes = manifest.files.iter().map(|file| file.bytes).sum();
            Ok(Taken { lsn, files, bytes, with_secrets })
        }))
    }

    fn clock(&self) -> ClockStatus {
        let reads = &self.app.reads;
        let server_at = reads.clock.now();
        let run = self.app.moments.as_ref().map(|moments| moments.view());
        ClockStatus {
            server_at,
            venue_at: reads.books.venue_now(server_at),
            wall_at: reads.clock.wall_now(),
            lsn: self.running.marks.appended().0,
            run: run.map(|view| RunStatus { is_stepping: view.is_stepping, following: view.following }),
        }
    }

    fn step(&self, by: StepBy) -> Result<oneshot::Receiver<Stepped>, NoStep> {
        let moments = self.app.moments.as_ref().ok_or(NoStep::NotControlled)?;
        moments.step(by).map_err(NoStep::Refused)
    }

    fn administer(&self, user: &Named, deed: Deed) -> Result<(UserId, Doing), NoDeed> {
        let user = self.user(user)?;
        let receiver = self.ask(user, command(deed))?;
        Ok((user, Box::pin(async move { receiver.await.map(done).map_err(|_| Lost) })))
    }

    fn refund(&self, user: &Named, payment: String) -> Result<(UserId, Refunding), NoDeed> {
        let user = self.user(user)?;
        let (app, asked) = (Arc::clone(&self.app), self.ask(user, Command::Query(Query::Billing)));
        let refunding = async move {
            let desk = app.billing.as_ref().ok_or(NoRefund::Impossible("This server has no payment provider."))?;
            // Its event could not be noted.
            if !app.reads.rules.formats.is_newest() {
                return Err(NoRefund::Busy);
            }
            let receiver = asked.map_err(|_| NoRefund::Busy)?;
            let Ok(Answer::Billing(billing)) = receiver.await else { return Err(NoRefund::Busy) };
            let mut purchase = billing.purchase(&payment);
            if purchase.is_none()
                && let Some(paid) = desk.provider.payment_of(&payment).await.map_err(no_refund)?
            {
                purchase = billing.purchase(&paid);
            }
            let purchase = purchase.ok_or(NoRefund::Impossible("The user has made no such purchase."))?;
            if purchase.is_refunded() {
                return Err(NoRefund::Impossible("The purchase was returned already."));
            }
            let failed = billing.failed_refunds(&purchase.payment);
            let refund = desk.provider.refund(&purchase.payment, failed, app.reads.clock.now()).await;
            let refund = refund.map_err(no_refund)?;
            refund.ok_or(NoRefund::Impossible("The provider of this server cannot return it."))
        };
        Ok((user, Box::pin(refunding)))
    }

    fn user(&self, user: &Named) -> Result<UserId, NoDeed> {
        let directory = &self.app.reads.directory;
        let user = match user {
            Named::Id(id) => Some(*id).filter(|id| directory.exists(*id)),
            Named::Sub(sub) => directory.by_sub(sub),
        };
        user.ok_or(NoDeed::UnknownUser)
    }

    fn sets(&self) -> &RealismSets {
        &self.app.reads.rules.realism
    }

    fn declare(&self, address: [u8; 20], declared: DeclaredAddress) -> Result<Declaring, NotDeclared> {
        let app = Arc::clone(&self.app);
        if !app.reads.rules.formats.is_newest() {
            return Err(NotDeclared::NoStore);
        }
        let known = &app.rehearsal.addresses;
        if known.len() >= ADDRESSES_MAX && known.get(&address).is_none() {
            return Err(NotDeclared::Full);
        }
        let asked = self.ask(MARKETS, Command::DeclareAddress { address, declared });
        let receiver = asked.map_err(|_| NotDeclared::Busy)?;
        Ok(Box::pin(async move {
            match receiver.await.map_err(|_| Lost)? {
                Answer::Done => {
                    app.rehearsal.addresses.set(address, declared);
                    Ok(Ok(()))
                }
                _ => Ok(Err(NotDeclared::Busy)),
            }
        }))
    }

    fn stop(&self) -> &Stop {
        &self.running.stop
    }
}

/// The command of what an administrator does.
pub fn command(deed: Deed) -> Command {
    match deed {
        Deed::Grant { tier, until } => Command::SetGrant { tier, expires_at: until },
        Deed::OpenWallet { label, balance } => Command::OpenCompetition { label, balance },
        Deed::ChooseRealism { key, set } => Command::ChooseRealism { key, set },
    }
}

/// What the answer to that command says.
///
/// # Errors
/// [`NoDeed`] when nothing was decided.
pub fn done(answer: Answer) -> Result<Done, NoDeed> {
    match answer {
        Answer::Done => Ok(Done::Granted),
        Answer::Wallet(wallet) => Ok(Done::Opened(wallet)),
        Answer::Key(key) => Ok(Done::Chose(key.realism)),
        Answer::Refused(Reject::KeyNotFound) => Err(NoDeed::UnknownKey),
        Answer::Refused(Reject::NoRealismStore) => {
            Ok(Done::Refused("While the server writes the previous format, realism cannot be chosen."))
        }
        Answer::Refused(Reject::UserNotFound) => Err(NoDeed::UnknownUser),
        Answer::Refused(Reject::TooManyWallets) => {
            Ok(Done::Refused("There have been too many wallets, archived ones included; no more can be opened."))
        }
        _ => Err(NoDeed::Busy),
    }
}

fn no_refund(why: Failed) -> NoRefund {
    match why {
        Failed::Away | Failed::NoCustomer => NoRefund::Away,
        Failed::Busy => NoRefund::Busy,
    }
}

fn no_backup(error: BackupError) -> NoBackup {
    let why = error.to_string();
    match error {
        BackupError::Ending => NoBackup::Ending(why),
        BackupError::GivenUp(_) => NoBackup::GivenUp(why),
        _ => NoBackup::Failed(why),
    }
}
