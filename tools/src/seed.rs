//! `seed`: creates many users, each with one key, directly in the log of a stopped server.

use crate::Failure;
use crate::desk::{Desk, Recovered};
use crate::settings::{self, Settings, print_line};
use clap::Args;
use edge::http::auth::RawKey;
use engine::amount::Cash;
use engine::command::{Answer, Command, CreateUser, IssueKey};
use engine::id::UserId;
use engine::rules::CASH_MAX;
use engine::user::Tier;
use gateway::config::TIERS;
use std::fmt;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::NamedTempFile;
use tools::signals::Signals;
use wire::decimal::Decimal;

#[derive(Args)]
pub struct Seed {
    #[command(flatten)]
    settings: Settings,
    /// Number of users.
    #[arg(long, value_parser = settings::integer(1..=10_000_000), allow_hyphen_values = true)]
    users: u64,
    /// Their tier, granted without an end: free, pro, pro_plus or enterprise.
    #[arg(long)]
    tier: String,
    /// Cash of each API wallet in USD.
    #[arg(long, allow_hyphen_values = true)]
    balance: String,
    /// File for the keys: one JSON line per user with the key and its UUID, readable only by its owner.
    #[arg(long)]
    out: PathBuf,
}

impl Seed {
    pub fn run(self) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut config = self.settings.load(Vec::new())?;
        let tier = TIERS.iter().find(|(_, name)| *name == self.tier).map(|(tier, _)| *tier);
        let tier = tier.ok_or("--tier must be one of free, pro, pro_plus, enterprise")?;
        let balance = Decimal::parse(&self.balance).ok().and_then(Decimal::cash_exact);
        // Half of what a wallet may hold, so that it can still win.
        let most = Cash(CASH_MAX.0 / 2);
        let balance = balance.filter(|cash| (0..=most.0).contains(&cash.0)).ok_or_else(|| {
            let most = most.0 / Cash::from_dollars(1).0;
            format!("--balance is an amount in USD from 0 to {most} with at most six decimals, such as 25000.00")
        })?;

        let signals = Signals::catch()?;
        let recovered = Recovered::of(&config)?;
        if recovered.is_new() {
            // A new directory. The next start would mistake missing secrets beside existing records for lost ones.
            config.complete_secrets().map_err(|error| format!("a secret: {error}"))?;
        }
        // Only the lock proves that no other process uses the directory.
        let mut keys = KeysFile::begin(&self.out).map_err(|error| self.unwritten(error))?;
        let mut desk = recovered.start(&config)?;
        for made in 0..self.users {
            if let Some(mut interrupted) = signals.received() {
                interrupted.also.push(format!("{made} users were created, but their keys could not be written"));
                return Err(interrupted.into());
            }
            let user = desk.directory.reserve_anonymous();
            let key = RawKey::mint(&config.brand.key_prefix, &config.brand.key_env)?;
            create(&mut desk, user, tier, balance, &key)?;
            // Neither a key nor the name of a tier needs an escape.
            keys.line(format_args!(
                r#"{{"user_id":{},"api_key":"{}","venue_api_key":"{}","tier":"{}"}}"#,
                user.0,
                key.expose(),
                key.expose_alias(),
                self.tier
            ))
            .map_err(|error| self.unwritten(error))?;
        }
        // The users first: a file with keys of missing users would be worse than users without a file.
        desk.end()?;
        keys.end(&self.out).map_err(|error| self.unwritten(error))?;
        print_line(format_args!(
            "{} users in {:.1} s; their keys are in {}",
            self.users,
            begun.elapsed().as_secs_f64(),
            self.out.display()
        ));
        Ok(())
    }

    fn unwritten(&self, error: io::Error) -> String {
        format!("{}: {error}", self.out.display())
    }
}

/// The keys, which exist only in this file. They are written to a temporary file and moved to their place when they are
/// complete and on the device; if the command fails, no file is left.
struct KeysFile(BufWriter<NamedTempFile>);

impl KeysFile {
    /// # Errors
    /// A system error; or the file exists already: its keys could not be replaced.
    fn begin(place: &Path) -> io::Result<KeysFile> {
        // A file that appears meanwhile is found at the end.
        if place.symlink_metadata().is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "exists already, and may hold keys that are stored nowhere else; name a new file",
            ));
        }
        let mut prefix = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        prefix.push(".");
        let mode = Permissions::from_mode(0o600);
        let folder = folder(place);
        let file = tempfile::Builder::new().prefix(&prefix).permissions(mode).tempfile_in(folder);
        // The system names the temporary file, which means nothing to the caller.
        let file =
            file.map_err(|error| io::Error::new(error.kind(), format!("no file in its folder: {}", error.kind())))?;
        Ok(KeysFile(BufWriter::new(file)))
    }

    fn line(&mut self, line: fmt::Arguments<'_>) -> io::Result<()> {
        writeln!(self.0, "{line}")
    }

    fn end(self, place: &Path) -> io::Result<()> {
        let file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(place).map_err(|error| error.error)?;
        File::open(folder(place))?.sync_all()
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A user with a key.
fn create(desk: &mut Desk, user: UserId, tier: Tier, balance: Cash, key: &RawKey) -> Result<(), Failure> {
    let create = CreateUser { sub: None, email: None, grant: Some(tier), api_balance: Some(balance) };
    match desk.ask(user, Command::CreateUser(create))? {
        Answer::Created(_) => {}
        answer => return Err(format!("user {user} was not created: {answer:?}").into()),
    }
    let issue = IssueKey { secret: key.secret(), name: None, tier: None, permissions: None, bootstrap: true, by: None };
    match desk.ask(user, Command::IssueKey(issue))? {
        Answer::Key(_) => Ok(()),
        answer => Err(format!("the key of user {user} was not created: {answer:?}").into()),
    }
}
