//! `token`: an identity JWT for the dashboard routes of one's own server.

use crate::Failure;
use crate::settings::{Settings, say};
use clap::Args;
use gateway::clock::Clock;
use gateway::http::jwt;

#[derive(Args)]
pub struct Token {
    #[command(flatten)]
    settings: Settings,
    /// The user id at the identity provider.
    #[arg(long)]
    sub: String,
    /// The user's e-mail address.
    #[arg(long)]
    email: Option<String>,
    /// Life of the token in seconds.
    #[arg(long, default_value_t = 3_600, value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    ttl: u64,
}

impl Token {
    pub fn run(self) -> Result<(), Failure> {
        if self.sub.is_empty() || self.sub.chars().count() > 128 {
            return Err("--sub has 1 to 128 characters".into());
        }
        let mut config = self.settings.load(Vec::new())?;
        if config.auth.jwt_secrets.is_empty() {
            // The directory is made as the server would make it, for the secret that is kept in it.
            wal::Files::open(&config.data.dir)?;
            config.complete_secrets()?;
        }
        let secret = config.auth.jwt_secrets.first().expect("the secrets are complete");
        say(format_args!("{}", jwt::sign(secret, &self.sub, self.email.as_deref(), Clock::wall().now(), self.ttl)));
        Ok(())
    }
}
