//! The role of another instance of this program in a process of its own: the one hidden subcommand.
//!
//! A role is passed as one JSON argument, so that no options need to be composed or parsed.

use crate::{beside, busy, history, large_hour, memory, pulse, reference, seats, server};
use clap::Parser as _;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;

/// The subcommand before a role.
pub const NAME: &str = "role";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Role {
    /// The server of that configuration; with a pulse, on the venue under remote control.
    Server { config: PathBuf, has_pulse: bool },
    /// A bare reference server. The template is its answer, or the text of its frames.
    Reference { kind: reference::Kind, template: Option<PathBuf> },
    /// Another role beside the building of hours from these lines, and back-tests.
    Working { tape: PathBuf, role: Box<Role> },
    /// A process that builds an hour and measures itself.
    Build(large_hour::Task),
    /// Another role on one core, with all its threads.
    On { core: usize, role: Box<Role> },
    /// The load client.
    Load(Load),
    /// The load client, which compares a model with the history of a server.
    Reconcile { url: String, keys: PathBuf, model: PathBuf },
    /// A process that computes while it is enabled.
    Busy,
    /// A process that fills its memory and measures it.
    Weigh(memory::Task),
    /// A process whose orders end and leave its memory, which it measures.
    Leave(history::Task),
}

/// One run of the load client that compares the orders afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub url: String,
    pub keys: PathBuf,
    pub connections: usize,
    pub seconds: f64,
    /// Operations a second; `None` = at full speed.
    pub rate: Option<f64>,
    pub mix: String,
    /// Output file of its figures.
    pub json: PathBuf,
    /// Folder of the model of all orders.
    pub model: PathBuf,
}

/// The load client, with the options of `papertape load`.
#[derive(clap::Parser)]
struct Kit {
    #[command(flatten)]
    load: tools::load::Load,
}

impl Role {
    /// Runs the role to its end.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        match self {
            Role::Server { config, has_pulse: true } => pulse::serve(&config),
            Role::Server { config, has_pulse: false } => server::serve(&config),
            Role::Reference { kind, template } => Ok(reference::serve(kind, template.as_deref())?),
            Role::Working { tape, role } => beside::work(tape, *role),
            Role::Build(task) => task.run(),
            Role::On { core, role } => {
                // Before any thread starts: threads inherit the cores of their creator.
                seats::stay_on(core)?;
                role.run()
            }
            Role::Load(load) => load.run(),
            Role::Reconcile { url, keys, model } => {
                let [keys, model] = [keys, model].map(|path| path.display().to_string());
                let Kit { load } = Kit::parse_from(["load", "--url", &url, "--keys", &keys, "--check-history", &model]);
                load.run().map_err(|error| error.to_string().into())
            }
            Role::Busy => {
                busy::be();
                Ok(())
            }
            Role::Weigh(task) => {
                task.run();
                Ok(())
            }
            Role::Leave(task) => {
                task.run();
                Ok(())
            }
        }
    }

    /// Another instance of this program, in this role. It inherits none of the product's settings from the environment.
    pub fn command(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("a running program has a path"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PAPERTAPE_") {
                command.env_remove(name);
            }
        }
        command.arg(NAME).arg(serde_json::to_string(self).expect("paths of the benches are UTF-8"));
        command
    }
}

impl FromStr for Role {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Role, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl Load {
    fn run(self) -> Result<(), Box<dyn Error>> {
        let Load { url, keys, connections, seconds, rate, mix, json, model } = self;
        let [keys, json, model] = [keys, json, model].map(|path| path.display().to_string());
        let rate = rate.map_or("max".to_owned(), |rate| format!("{rate:.0}"));
        let (connections, seconds) = (connections.to_string(), seconds.to_string());
        let Kit { load } = Kit::parse_from([
            "load",
            "--check",
            "--url",
            &url,
            "--keys",
            &keys,
            "--connections",
            &connections,
            "--duration",
            &seconds,
            "--rate",
            &rate,
            "--mix",
            &mix,
            "--json",
            &json,
            "--model",
            &model,
        ]);
        load.run().map_err(|error| error.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_arrives_as_it_was_given() {
        let load = Load {
            url: "http://127.0.0.1:1".into(),
            keys: "/a b/keys".into(),
            connections: 3,
            seconds: 0.5,
            rate: Some(1e3),
            mix: "rest=100".into(),
            json: "-x".into(),
            model: "m".into(),
        };
        let task =
            memory::Task { filling: memory::Filling::Copy, users: 1, orders: 2, snapshot: "--users 7 \"é\"".into() };
        let roles = [
            Role::Server { config: "--config".into(), has_pulse: true },
            Role::Reference { kind: reference::Kind::Echo, template: None },
            Role::Load(load.clone()),
            Role::Load(Load { rate: None, ..load }),
            Role::Reconcile { url: "http://127.0.0.1:1".into(), keys: "k".into(), model: "m n".into() },
            Role::Busy,
            Role::On { core: 1, role: Box::new(Role::Busy) },
            Role::Weigh(task),
            Role::Leave(history::Task { users: 3, orders: 4 }),
        ];
        for role in &roles {
            let command = role.command();
            let args: Vec<_> = command.get_args().map(|arg| arg.to_str().expect("UTF-8")).collect();
            let [name, text] = args[..] else { panic!("two words: {args:?}") };
            assert_eq!((name, &text.parse::<Role>().expect("its own words")), (NAME, role));
        }
        assert!("busy".parse::<Role>().is_err());
        println!("roles: {} cases", roles.len() + 1);
    }
}
