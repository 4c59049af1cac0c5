//! The user `demo` of a first start, with a key: created only in an empty data directory and only on loopback.

use edge::app::Edge;
use edge::http::auth::RawKey;
use engine::command::{Answer, Command, CreateUser, IssueKey};
use engine::directory::Reservation;
use engine::user::Tier;

/// JWT `sub` of the demo user.
pub const SUB: &str = "demo";

/// Creates the user, with the highest tier so that no quota limits it, and its key.
pub async fn create(edge: &Edge) -> Option<RawKey> {
    let now = edge.app.reads.clock.now();
    let Reservation::Reserved(user) = edge.app.reads.directory.reserve(SUB) else { return None };
    let create = Command::CreateUser(CreateUser {
        sub: Some(SUB.into()),
        email: None,
        grant: Some(Tier::Enterprise),
        api_balance: None,
    });
    let made = edge.engine.ask(user, create, now).await;
    if !matches!(made, Ok(Answer::Created(_))) {
        tracing::warn!(answer = ?made, "the demo user could not be created; run `papertape key --sub NAME` to get a \
            key");
        edge.app.reads.directory.give_back(user);
        return None;
    }
    let brand = &edge.app.front.settings.brand;
    let key = RawKey::mint(&brand.key_prefix, &brand.key_env).ok()?;
    let issue = Command::IssueKey(IssueKey {
        secret: key.secret(),
        name: Some("demo".into()),
        tier: None,
        permissions: None,
        bootstrap: true,
        by: None,
    });
    match edge.engine.ask(user, issue, now).await {
        Ok(Answer::Key(_)) => Some(key),
        answer => {
            tracing::warn!(?answer, "the demo key could not be created; run `papertape key --sub NAME` to get a key");
            None
        }
    }
}
