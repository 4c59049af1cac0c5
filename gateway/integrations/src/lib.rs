//! Alerts: what is owed is delivered by mail, to chats and to webhooks (gateway/docs/integrations.md §5).
//!
//! What is owed, and to what, is state of the user in its shard. This package asks for it, sends it, and reports to the
//! shard what became of it. Nothing here is read before an answer of the server, and no order waits for it.
//!
//! | Module | Holds |
//! |---|---|
//! | [`settings`] | settings of all parts |
//! | [`owing`] | users that are owed something: a shard adds them, the dispatcher takes them |
//! | [`dispatcher`] | the job: one worker for each target that is owed something |
//! | [`sender`] | the port of the routes: tests, checks of addresses, last deliveries |
//! | [`target`] | which addresses alerts may go to |
//! | [`post`] | one HTTP request to a target |
//! | [`mailer`] | mail by SMTP, or as files |
//! | [`journal`] | the last deliveries of each target, in memory |
//! | [`figures`] | counts for monitors |
//!
//! May depend on `engine`, `wire`, `host` and `edge`. It writes no answer and reads no request: `edge` does.

pub mod dispatcher;
pub mod figures;
pub mod journal;
pub mod mailer;
pub mod owing;
pub mod post;
pub mod sender;
pub mod settings;
mod shards;
pub mod target;
#[cfg(test)]
mod testing;
