//! `grant` and `wallet`: what an administrator does for a user, on a running server through its admin listener, or in a
//! stopped directory (gateway/docs/billing.md §8). `refund` and `notice` need a running server.

use crate::Failure;
use crate::admin_client::{self, Unanswered, Usage};
use crate::desk::{Recovered, is_unused};
use crate::settings::{Settings, print_line};
use admin::notices::is_text;
use admin::users::{Deed, Done, Named, NoDeed, PLANS, balance, is_label, until};
use clap::Args;
use engine::time::Timestamp;
use gateway::admin_listener::{command, done};
use gateway::config::Config;
use host::clock::Clock;
use journal::recover::RecoverError;
use serde_json::{Value, json};
use std::path::PathBuf;
use wire::instant::ts_text;

#[derive(Args)]
pub struct Grant {
    #[command(flatten)]
    target: Target,
    /// The plan: free, pro, pro_plus or enterprise.
    #[arg(long)]
    plan: String,
    /// When it ends: an RFC 3339 time, or none.
    #[arg(long, value_name = "TIME|none")]
    until: String,
}

#[derive(Args)]
pub struct Refund {
    #[command(flatten)]
    target: Target,
    /// The payment, or its checkout session: the id at the provider.
    #[arg(long, value_name = "PAYMENT")]
    purchase: String,
}

#[derive(Args)]
pub struct Wallet {
    #[command(flatten)]
    target: Target,
    /// The kind of the wallet: competition.
    #[arg(long)]
    kind: String,
    /// Its cash in USD.
    #[arg(long, allow_hyphen_values = true)]
    balance: String,
    /// Its label, at most 64 characters.
    #[arg(long)]
    label: Option<String>,
}

#[derive(Args)]
pub struct Notice {
    #[command(flatten)]
    reach: Reach,
    /// The text: one line of at most 1000 characters.
    #[arg(long)]
    text: String,
    /// The user who gets it: the id, or the subject of identity tokens.
    #[arg(long, value_name = "ID|SUB", required_unless_present = "all", conflicts_with = "all")]
    user: Option<String>,
    /// All users get it.
    #[arg(long)]
    all: bool,
    /// With --all: only users with a higher id, to continue a call that was cut off.
    #[arg(long, value_name = "ID", conflicts_with = "user")]
    after: Option<u64>,
}

/// A user, and how to reach the server.
#[derive(Args)]
struct Target {
    #[command(flatten)]
    reach: Reach,
    /// The user: the id, or the subject of identity tokens.
    #[arg(long, value_name = "ID|SUB")]
    user: String,
}

/// How to reach the server.
#[derive(Args)]
struct Reach {
    #[command(flatten)]
    settings: Settings,
    /// The admin listener of a running server, like http://127.0.0.1:9464 (default: admin.listen of the settings).
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// The file with the admin token (default: that of the settings).
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Grant {
    pub fn run(self) -> Result<(), Failure> {
        let Grant { target, plan, until: end } = self;
        let tier = PLANS.iter().find(|(name, _)| *name == plan).map(|(_, tier)| *tier);
        let tier = tier.ok_or_else(|| Usage("--plan must be one of free, pro, pro_plus, enterprise".to_owned()))?;
        let until = until(&end).ok_or_else(|| Usage("--until must be an RFC 3339 time, or none".to_owned()))?;
        let body = json!({"user": target.user, "plan": plan, "until": until.map_or("none".to_owned(), ts_text)});
        let shown = target.administer("/v1/admin/grants", body, Deed::Grant { tier, until })?;
        let user = shown.user;
        print_line(match until {
            None => format!("user {user} has the plan {plan}, without end"),
            Some(end) if shown.now < end => format!("user {user} has the plan {plan}, until {}", ts_text(end)),
            Some(end) => format!("user {user} had the plan {plan} until {}: it has ended", ts_text(end)),
        });
        Ok(())
    }
}

impl Refund {
    pub fn run(self) -> Result<(), Failure> {
        let Refund { target, purchase } = self;
        let config = target.reach.settings.load(Vec::new())?;
        let body = json!({"user": target.user, "purchase": purchase});
        let answer = target.reach.sent(&config, "/v1/admin/refunds", &body, Because::Running)?;
        let refund = answer["refund"].as_str().ok_or("the answer names no refund")?;
        print_line(format_args!("the provider returns {purchase}: {refund}"));
        Ok(())
    }
}

impl Wallet {
    pub fn run(self) -> Result<(), Failure> {
        let Wallet { target, kind, balance: text, label } = self;
        if kind != "competition" {
            return Err(Usage("--kind must be competition".to_owned()).into());
        }
        let wrong = || Usage("--balance is an amount in USD above zero with at most six decimals".to_owned());
        let balance = balance(&text).ok_or_else(wrong)?;
        if label.as_deref().is_some_and(|label| !is_label(label)) {
            return Err(Usage("--label has more than 64 characters".to_owned()).into());
        }
        let body = json!({"user": target.user, "kind": kind, "balance": text, "label": label});
        let shown = target.administer("/v1/admin/wallets", body, Deed::OpenWallet { label, balance })?;
        let wallet = shown.wallet.ok_or("the answer names no wallet")?;
        print_line(format_args!("user {} has the wallet {wallet} with {text} USD", shown.user));
        Ok(())
    }
}

impl Notice {
    pub fn run(self) -> Result<(), Failure> {
        let Notice { reach, text, user, all, after } = self;
        if !is_text(&text) {
            return Err(Usage("--text is one line of 1 to 1000 characters".to_owned()).into());
        }
        let config = reach.settings.load(Vec::new())?;
        let give = |body: &Value| reach.sent(&config, "/v1/admin/notices", body, Because::Running);
        let (users, owed) = match user {
            Some(user) => {
                let given = Given::of(&give(&json!({"text": text, "user": user}))?)?;
                (given.users, given.owed)
            }
            None => to_all(after.unwrap_or(0), |after| give(&json!({"text": text, "all": all, "after": after})))?,
        };
        print_line(format_args!("the notice goes to {owed} of {users} users"));
        Ok(())
    }
}

/// What a call says about a notice.
struct Given {
    users: u64,
    owed: u64,
    next_after: Option<u64>,
}

impl Given {
    fn of(answer: &Value) -> Result<Given, Failure> {
        let count = |field: &str| answer[field].as_u64().ok_or("the answer names no number of users");
        Ok(Given { users: count("users")?, owed: count("owed")?, next_after: answer["next_after"].as_u64() })
    }
}

/// Calls until no users are left. Returns those that were asked, and those to whom the notice is owed.
fn to_all(first: u64, give: impl Fn(u64) -> Result<Value, Failure>) -> Result<(u64, u64), Failure> {
    let (mut after, mut users, mut owed) = (first, 0, 0);
    loop {
        let given = give(after).and_then(|answer| Given::of(&answer)).map_err(|error| {
            format!(
                "{error}; the users up to {after} were asked: go on with --after {after}, or with the higher id that \
                 the server names"
            )
        })?;
        (users, owed) = (users + given.users, owed + given.owed);
        match given.next_after {
            Some(next) if next > after => after = next,
            Some(_) => return Err("the answer names no user to go on from".into()),
            None => return Ok((users, owed)),
        }
    }
}

/// What was done, in numbers.
struct Shown {
    user: u64,
    wallet: Option<u64>,
    /// Server time.
    now: Timestamp,
}

/// Why a server is asked.
#[derive(Clone, Copy)]
enum Because {
    /// The options name its admin listener.
    Named,
    /// Another process has the directory.
    Locked,
    /// A stopped directory cannot do it.
    Running,
}

impl Target {
    /// In the directory itself if no server has it, else by the server that has it.
    fn administer(self, path: &str, body: Value, deed: Deed) -> Result<Shown, Failure> {
        let config = self.reach.settings.load(Vec::new())?;
        if self.reach.admin.is_some() {
            return self.there(&config, path, &body, Because::Named);
        }
        let unused = || format!("{}: there are no users in this directory", config.data.dir.display());
        if is_unused(&config.data.dir)? {
            return Err(unused().into());
        }
        match Recovered::of(&config) {
            Ok(recovered) if recovered.is_new() => Err(unused().into()),
            Ok(recovered) => self.here(recovered, &config, deed),
            Err(RecoverError::Log(wal::Error::Locked { .. })) => self.there(&config, path, &body, Because::Locked),
            Err(error) => Err(error.into()),
        }
    }

    fn here(&self, recovered: Recovered, config: &Config, deed: Deed) -> Result<Shown, Failure> {
        let mut desk = recovered.start(config)?;
        let user = match Named::of(&self.user) {
            Named::Id(id) => Some(id).filter(|id| desk.directory.exists(*id)),
            Named::Sub(sub) => desk.directory.by_sub(&sub),
        };
        let answer = match user {
            Some(user) => Some((user, desk.ask(user, command(deed))?)),
            None => None,
        };
        let now = server_time(config);
        desk.end()?;
        let unknown = || format!("there is no user {}", self.user);
        let (user, answer) = answer.ok_or_else(unknown)?;
        match done(answer) {
            Ok(Done::Granted) => Ok(Shown { user: user.0, wallet: None, now }),
            Ok(Done::Opened(wallet)) => Ok(Shown { user: user.0, wallet: Some(wallet.id.0), now }),
            Ok(Done::Refused(why)) => Err(why.into()),
            Ok(Done::Chose(_)) | Err(NoDeed::UnknownKey) => unreachable!("neither deed is about a key"),
            Err(NoDeed::UnknownUser) => Err(unknown().into()),
            Err(NoDeed::Busy) => Err("the log has no room".into()),
        }
    }

    fn there(&self, config: &Config, path: &str, body: &Value, because: Because) -> Result<Shown, Failure> {
        let answer = self.reach.sent(config, path, body, because)?;
        let user = answer["user_id"].as_u64().ok_or("the answer names no user")?;
        Ok(Shown { user, wallet: answer["wallet_id"].as_u64(), now: server_time(config) })
    }
}

impl Reach {
    /// The answer of the admin listener.
    fn sent(&self, config: &Config, path: &str, body: &Value, because: Because) -> Result<Value, Failure> {
        let dir = config.data.dir.display();
        let url = match (&self.admin, config.admin.listen) {
            (Some(url), _) => url.clone(),
            (None, Some(listen)) if listen.port() != 0 => format!("http://{listen}"),
            _ => {
                let (why, instead) = match because {
                    Because::Running => ("this works on a running server only".to_owned(), ""),
                    Because::Named | Because::Locked => {
                        (format!("another process has {dir}"), ", or stop the server if it is one")
                    }
                };
                return Err(format!(
                    "{why}, and the settings name no admin listener: give --admin and --token-file, or set \
                     admin.listen{instead}"
                )
                .into());
            }
        };
        let token_file = self.token_file.clone().or_else(|| config.admin.token_file.clone());
        let token_file = token_file.unwrap_or_else(|| config.kept_admin_token());
        admin_client::post(&url, &token_file, path, body).map_err(|error| {
            if !error.is::<Unanswered>() {
                return error;
            }
            match because {
                Because::Named => format!("{error}; no admin listener answers at {url}"),
                Because::Running => format!("{error}; this works on a running server only, and none answers at {url}"),
                Because::Locked => format!(
                    "{error}; another process has {dir}, and no admin listener answers at {url}: if it is a server, \
                     open its admin listener or stop it"
                ),
            }
            .into()
        })
    }
}

/// Server time now.
fn server_time(config: &Config) -> Timestamp {
    Clock::ahead_of_wall(config.server.clock_ahead_file.as_deref()).now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_notice_to_all_goes_on_until_no_users_are_left() {
        let part = |users: u64, next: Option<u64>| Ok(json!({"users": users, "owed": 1, "next_after": next}));
        type Calls = Vec<Result<Value, &'static str>>;
        type Found = Result<(u64, u64), &'static str>;
        // (the first id, the answers; the ids that are sent, and the result or a part of the error)
        let rows: [(u64, Calls, &[u64], Found); 6] = [
            (0, vec![part(5, None)], &[0], Ok((5, 1))),
            (7, vec![part(32, Some(39)), part(3, Some(42)), part(1, None)], &[7, 39, 42], Ok((36, 3))),
            (0, vec![part(32, Some(32)), Err("no answer in time")], &[0, 32], Err("go on with --after 32")),
            (9, vec![Err("no answer in time")], &[9], Err("go on with --after 9")),
            (0, vec![part(32, Some(32)), Ok(json!({}))], &[0, 32], Err("go on with --after 32")),
            (9, vec![part(1, Some(9))], &[9], Err("no user to go on from")),
        ];
        for (row, (first, calls, sent, expected)) in rows.iter().enumerate() {
            let asked = RefCell::new(Vec::new());
            let found = to_all(*first, |after| {
                asked.borrow_mut().push(after);
                calls[asked.borrow().len() - 1].clone().map_err(Failure::from)
            });
            assert_eq!(*asked.borrow(), *sent, "row {row}");
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, *expected, "row {row}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "row {row}: {error}"),
                (found, _) => panic!("row {row}: {found:?}"),
            }
        }
        println!("notices to all: {} cases", rows.len());
    }
}
