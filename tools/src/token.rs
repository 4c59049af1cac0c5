//! `token`: an identity JWT for the dashboard routes of the own server.

use crate::Failure;
use crate::settings::{self, Settings, print_line};
use clap::Args;
use edge::http::jwt;
use gateway::config::Config;
use host::clock::Clock;

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
    /// Lifetime of the token in seconds.
    #[arg(long, default_value_t = 3_600, value_parser = settings::integer(1..=31_536_000), allow_hyphen_values = true)]
    ttl: u64,
}

impl Token {
    pub fn run(self) -> Result<(), Failure> {
        if self.sub.is_empty() || self.sub.chars().count() > 128 {
            return Err("--sub has 1 to 128 characters".into());
        }
        let mut config = self.settings.load(Vec::new())?;
        print_line(signed(&mut config, &self.sub, self.email.as_deref(), self.ttl)?);
        Ok(())
    }
}

/// A token for `sub` that is valid for `ttl` seconds, signed with the first secret of the configuration or of its data
/// directory.
///
/// # Errors
/// The data directory has no secret, or it cannot be read.
pub fn signed(config: &mut Config, sub: &str, email: Option<&str>, ttl: u64) -> Result<String, Failure> {
    if config.auth.jwt_secrets.is_empty() {
        // A secret made here would be one that no server uses: the directory's name was mistyped.
        let (dir, kept) = (&config.data.dir, config.kept_jwt_secret());
        if !kept.try_exists().map_err(|error| format!("{}: {error}", kept.display()))? {
            let way = "the first start of the server creates one; or set auth.jwt_secret";
            return Err(format!("{}: this directory has no secret of a server; {way}", dir.display()).into());
        }
        config.complete_secrets()?;
    }
    let secret = config.auth.jwt_secrets.first().expect("the secrets are complete");
    Ok(jwt::sign(secret, sub, email, Clock::wall().now(), ttl))
}
