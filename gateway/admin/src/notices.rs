//! `POST /v1/admin/notices`: a notice of the operator to one user, or to all (gateway/docs/integrations.md §6).

use crate::namespace::Reply;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::users::{Named, named, object, required};
use engine::id::UserId;
use host::thread::Stop;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use wire::fields::Body;
use wire::write;

/// Longest text, in characters.
pub const TEXT_CHARS_MAX: usize = 1_000;
/// How long the shard of a user may take.
const DONE_WITHIN: Duration = Duration::from_secs(10);
/// Users of a notice to all whose shards are asked at the same time: their records leave room for those of orders.
const ASKED_MAX: u64 = 32;
/// The pause before shards without room are asked again, and how often.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
const AGAIN_MAX: u32 = 40;
/// Each user has a copy of the text until it is delivered: at this count of owed alerts, a notice to all waits.
const OWED_MAX: u64 = 10_000;
/// After this time a notice to all is answered, however far it came.
const ENDS_AFTER: Duration = Duration::from_secs(60);

/// The users of a server, as notices reach them.
pub trait Notifies {
    /// Gives a notice to a user. Its shard is asked by the call itself; the future says whether it is owed to anything,
    /// when that is in the log. `None`: the user does not exist.
    fn notify(&self, user: UserId, text: &str) -> Option<Notifying>;

    /// Alerts that are owed to anything, all kinds together.
    fn owed(&self) -> u64;

    /// The highest id that a user may have now.
    fn last_user(&self) -> UserId;
}

/// Whether a notice is owed to anything.
pub type Notifying = Pin<Box<dyn Future<Output = Result<bool, NotNotified>>>>;

/// Why a user has no notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNotified {
    /// The queue of the user's shard is full, or its log has no room: another attempt may succeed.
    Busy,
    /// The log writes a format that has no notices.
    NoStore,
    /// The shard of the user has ended.
    Lost,
}

/// Whether a text can be a notice: one line, not blank, of bounded length.
pub fn is_text(text: &str) -> bool {
    let breaks_lines = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    (1..=TEXT_CHARS_MAX).contains(&text.chars().count()) && !text.trim().is_empty() && !text.chars().any(breaks_lines)
}

/// The body of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoticeRequest {
    pub(crate) text: String,
    pub(crate) to: To,
}

/// Who gets a notice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum To {
    One(Named),
    /// All users with a higher id.
    All {
        after: u64,
    },
}

impl NoticeRequest {
    /// # Errors
    /// [`Refusal::NotObject`], [`Refusal::Fields`].
    pub(crate) fn read(body: &[u8]) -> Result<NoticeRequest, Refusal> {
        let value = object(body)?;
        let mut body = Body::new(&value);
        let wrong = "is not one line of 1 to 1,000 characters without control characters";
        let text = required(&mut body, "text", wrong, |text| is_text(text).then(|| text.to_owned()));
        let is_for_all = body.boolean("all").unwrap_or(false);
        let after = body.integer("after", 0..=u64::MAX);
        let is_for_one = body.get("user").is_some();
        if is_for_all == is_for_one && body.problems.is_empty() {
            body.problems.add("body", "user", "missing", "exactly one of user and all is required");
        }
        if is_for_one && after.is_some() {
            body.problems.add("body", "after", "value_error", "is only for a notice to all");
        }
        let to = match is_for_all {
            true => Some(To::All { after: after.unwrap_or(0) }),
            false => named(&mut body).map(To::One),
        };
        match (text, to) {
            (Some(text), Some(to)) if body.problems.is_empty() => Ok(NoticeRequest { text, to }),
            _ => Err(Refusal::Fields(body.problems)),
        }
    }
}

/// Users that were asked, those of them to whom the notice is owed, and the user to go on from if others are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Given {
    users: u64,
    owed: u64,
    next_after: Option<u64>,
}

impl Given {
    fn reply(self) -> Reply {
        tracing::info!(users = self.users, owed = self.owed, "an administrator gave a notice");
        let mut json = Vec::with_capacity(64);
        write::object(&mut json, |o| {
            o.integer("users", self.users);
            o.integer("owed", self.owed);
            o.integer_or_null("next_after", self.next_after);
        });
        Reply::Json(json)
    }
}

/// Gives a notice to one user.
///
/// # Errors
/// [`Refusal::NoUser`], [`Refusal::Impossible`], [`Refusal::Unavailable`], [`Refusal::Unknown`], [`Refusal::Lost`].
pub(crate) async fn to_one(node: &impl Node, user: &Named, text: &str) -> Result<Reply, Refusal> {
    let user = node.user(user).map_err(|_| Refusal::NoUser)?;
    let notifying = node.notify(user, text).ok_or(Refusal::NoUser)?;
    match tokio::time::timeout(DONE_WITHIN, notifying).await.map_err(|_| Refusal::Unknown)? {
        Ok(true) => Ok(Given { users: 1, owed: 1, next_after: None }.reply()),
        Ok(false) => {
            Err(Refusal::Impossible("The user has neither an address nor a chat or webhook that takes notices."))
        }
        Err(NotNotified::Busy) => Err(Refusal::Unavailable("the shard of the user has no room now".to_owned())),
        Err(NotNotified::NoStore) => Err(no_store()),
        Err(NotNotified::Lost) => Err(Refusal::Lost),
    }
}

/// Gives a notice to all users, in the order of their ids, for [`ENDS_AFTER`]. It goes on when the peer leaves, and until
/// the server stops.
///
/// # Errors
/// [`Refusal::Unavailable`] says from where on to repeat it; [`Refusal::Lost`].
pub(crate) async fn to_all<N: Node>(
    node: &Arc<N>,
    text: String,
    after: u64,
    control: OwnedSemaphorePermit,
) -> Result<Reply, Refusal> {
    let node = Arc::clone(node);
    let giving = tokio::task::spawn_local(async move {
        let _control = control;
        each(&*node, node.stop(), &text, after, ENDS_AFTER).await
    });
    giving.await.map_err(|_| Refusal::Lost)?.map(Given::reply)
}

async fn each(
    node: &impl Notifies,
    stop: &Stop,
    text: &str,
    first: u64,
    ends_after: Duration,
) -> Result<Given, Refusal> {
    // Users that come meanwhile are not asked.
    let last = node.last_user().0;
    let end = Instant::now() + ends_after;
    let (mut given, mut after) = (Given::default(), first);
    while after < last {
        let part = last.min(after.saturating_add(ASKED_MAX));
        let mut waiting: Vec<u64> = (after + 1..=part).collect();
        let mut again = 0;
        while let Some(next) = waiting.first() {
            after = next - 1;
            if stop.is_set() {
                return Err(given_up(given, after, "the server stops"));
            }
            if again == AGAIN_MAX {
                return Err(given_up(given, after, "not all shards have room"));
            }
            if Instant::now() >= end {
                // Without any progress the next call would end in the same way.
                return match after > first {
                    true => Ok(Given { next_after: Some(after), ..given }),
                    false => Err(given_up(given, after, "too many alerts are owed, or the shards do not answer")),
                };
            }
            if node.owed() >= OWED_MAX {
                tokio::time::sleep(AGAIN_AFTER).await;
                continue;
            }
            if again > 0 {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            waiting = ask(node, text, waiting, &mut given).await?;
            again += 1;
        }
        after = part;
    }
    Ok(given)
}

fn given_up(given: Given, after: u64, why: &str) -> Refusal {
    tracing::warn!(users = given.users, after, why, "a notice to all users was given up");
    Refusal::Unavailable(format!("{why}: the users up to {after} were asked; repeat it with \"after\": {after}"))
}

/// Asks the shards of these users at the same time. Returns the users that were not asked, or whose answer is unknown: a
/// repetition may give them the notice twice, and never leaves one out.
async fn ask(node: &impl Notifies, text: &str, users: Vec<u64>, given: &mut Given) -> Result<Vec<u64>, Refusal> {
    let asked: Vec<_> = users.into_iter().filter_map(|user| Some((user, node.notify(UserId(user), text)?))).collect();
    let (mut waiting, end) = (Vec::new(), Instant::now() + DONE_WITHIN);
    for (user, notifying) in asked {
        match timeout_at(end, notifying).await {
            Ok(Ok(is_owed)) => {
                given.users += 1;
                given.owed += u64::from(is_owed);
            }
            Ok(Err(NotNotified::NoStore)) => return Err(no_store()),
            Ok(Err(NotNotified::Busy | NotNotified::Lost)) | Err(_) => waiting.push(user),
        }
    }
    Ok(waiting)
}

fn no_store() -> Refusal {
    Refusal::Unavailable("notices cannot be kept while journal.write_formats is previous".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    /// Users from 1, whose shards first answer as a test wants.
    struct Users {
        last: u64,
        /// What the shard of a user answers first; later it takes the notice.
        first: fn(u64) -> Option<Result<bool, NotNotified>>,
        asked: RefCell<Vec<u64>>,
        /// Those that wait for an answer, and their highest number.
        waiting: Rc<Cell<(u64, u64)>>,
        /// What is owed, and by how much that is more each time.
        owed: (Cell<u64>, i64),
        /// When this count of users was asked, it is set.
        stop: (usize, Stop),
    }

    impl Users {
        fn new(last: u64, first: fn(u64) -> Option<Result<bool, NotNotified>>) -> Users {
            let (asked, waiting, owed) = (RefCell::default(), Rc::default(), (Cell::default(), 0));
            Users { last, first, asked, waiting, owed, stop: (usize::MAX, Stop::new()) }
        }

        fn give(&self, after: u64, ends_after: Duration) -> Result<Given, Refusal> {
            let runtime = host::runtime::runtime().expect("a runtime");
            runtime.block_on(each(self, &self.stop.1, "x", after, ends_after))
        }
    }

    impl Notifies for Users {
        fn notify(&self, user: UserId, text: &str) -> Option<Notifying> {
            assert_eq!(text, "x");
            let mut asked = self.asked.borrow_mut();
            let answer = if asked.contains(&user.0) { Ok(true) } else { (self.first)(user.0)? };
            asked.push(user.0);
            if asked.len() == self.stop.0 {
                self.stop.1.set();
            }
            let (count, most) = self.waiting.get();
            self.waiting.set((count + 1, most.max(count + 1)));
            let waiting = Rc::clone(&self.waiting);
            Some(Box::pin(async move {
                tokio::task::yield_now().await;
                waiting.set((waiting.get().0 - 1, waiting.get().1));
                answer
            }))
        }

        fn owed(&self) -> u64 {
            let owed = self.owed.0.get();
            self.owed.0.set(owed.saturating_add_signed(self.owed.1));
            owed
        }

        fn last_user(&self) -> UserId {
            UserId(self.last)
        }
    }

    #[test]
    fn all_users_are_asked_in_parts() {
        type First = fn(u64) -> Option<Result<bool, NotNotified>>;
        type Row = (First, u64, u64, Result<Given, Refusal>, usize);
        let takes: First = |user| Some(Ok(user % 2 == 0));
        let given = |users, owed| Ok(Given { users, owed, next_after: None });
        // (what a shard answers first, the last user, after; the result; how often shards were asked)
        let rows: [Row; 8] = [
            (takes, 0, 0, given(0, 0), 0),
            (takes, 1, 0, given(1, 0), 1),
            (takes, 100, 0, given(100, 50), 100),
            (takes, 100, 97, given(3, 2), 3),
            (takes, 100, 100, given(0, 0), 0),
            (takes, 100, u64::MAX, given(0, 0), 0),
            // Every third does not exist.
            (|user| (user % 3 > 0).then_some(Ok(true)), 100, 0, given(67, 67), 67),
            (|_| Some(Err(NotNotified::NoStore)), 100, 0, Err(no_store()), 32),
        ];
        for (row, (first, last, after, expected, asked)) in rows.iter().enumerate() {
            let users = Users::new(*last, *first);
            let found = users.give(*after, ENDS_AFTER);
            assert_eq!((&found, users.asked.borrow().len()), (expected, *asked), "row {row}");
            assert!(users.waiting.get().1 <= ASKED_MAX, "row {row}");
        }
        println!("notices to all: {} cases", rows.len());
    }

    /// A shard without room is asked again; when the server stops, the refusal names the user to go on from.
    #[test]
    fn users_without_room_are_asked_again() {
        let first = |user| Some(if user == 40 { Err(NotNotified::Busy) } else { Ok(true) });
        let all = Users::new(50, first);
        let given = Given { users: 50, owed: 50, next_after: None };
        assert_eq!((all.give(0, ENDS_AFTER), all.asked.borrow().len()), (Ok(given), 51));
        // (how many users were asked when the server stops, the user to go on from)
        let rows = [(0, 0), (32, 32), (50, 39), (1, 32)];
        for (count, after) in rows {
            let users = Users { stop: (count, Stop::new()), ..Users::new(50, first) };
            if count == 0 {
                users.stop.1.set();
            }
            let Err(Refusal::Unavailable(why)) = users.give(0, ENDS_AFTER) else { panic!("it is given up") };
            assert!(why.starts_with("the server stops") && why.ends_with(&format!("\"after\": {after}")), "{why}");
        }
        println!("users without room: {} cases", 1 + rows.len());
    }

    /// A call ends in time with the user to go on from, unless it came nowhere; and it waits while too much is owed.
    #[test]
    fn a_call_ends_in_time_and_is_paced() {
        let takes = |_| Some(Ok(true));
        let soon = AGAIN_AFTER / 2;
        let paced = Users { owed: (Cell::new(OWED_MAX), -1), ..Users::new(50, takes) };
        let given = Given { users: 50, owed: 50, next_after: None };
        assert_eq!(paced.give(0, ENDS_AFTER), Ok(given));
        let stalled = Users { owed: (Cell::new(OWED_MAX), 0), ..Users::new(50, takes) };
        let Err(Refusal::Unavailable(why)) = stalled.give(7, soon) else { panic!("it came nowhere") };
        assert!(why.ends_with("\"after\": 7") && stalled.asked.borrow().is_empty(), "{why}");
        let Err(Refusal::Unavailable(_)) = Users::new(50, takes).give(0, Duration::ZERO) else { panic!("no time") };
        // The second part waits for deliveries until the time is over.
        let late = Users { owed: (Cell::new(OWED_MAX - 1), 1), ..Users::new(50, takes) };
        let given = Given { users: 32, owed: 32, next_after: Some(32) };
        assert_eq!((late.give(0, soon), late.asked.borrow().len()), (Ok(given), 32));
        println!("ends of calls: 4 cases");
    }

    #[test]
    fn a_notice_is_one_line_of_bounded_length() {
        let longest = "é".repeat(TEXT_CHARS_MAX);
        let longer = "é".repeat(TEXT_CHARS_MAX + 1);
        let rows = [
            ("Maintenance at 22:00 UTC: https://status.example.net/7", true),
            ("Wartung 👩‍🔧 um 22 Uhr", true),
            (longest.as_str(), true),
            (longer.as_str(), false),
            ("", false),
            (" \u{a0}", false),
            ("two\nlines", false),
            ("Subject: x\r\nBcc: y@z.example", false),
            ("tab\there", false),
            ("bell\u{7}", false),
            ("next line\u{85}", false),
            ("line\u{2028}separator", false),
            ("paragraph\u{2029}separator", false),
            ("nul\u{0}", false),
        ];
        for (text, expected) in rows {
            assert_eq!(is_text(text), expected, "{text:?}");
        }
        println!("texts of notices: {} cases", rows.len());
    }

    #[test]
    fn bodies_are_read_or_name_their_first_wrong_field() {
        let request = |to| Ok(NoticeRequest { text: "x".to_owned(), to });
        let rows: Vec<(&str, Result<NoticeRequest, &str>)> = vec![
            (r#"{"text":"x","user":7}"#, request(To::One(Named::Id(UserId(7))))),
            (r#"{"text":"x","user":"7"}"#, request(To::One(Named::Id(UserId(7))))),
            (r#"{"text":"x","user":"ada","all":false}"#, request(To::One(Named::Sub("ada".to_owned())))),
            (r#"{"text":"x","all":true}"#, request(To::All { after: 0 })),
            (r#"{"text":"x","all":true,"after":41}"#, request(To::All { after: 41 })),
            (r#"{"text":"x","all":true,"after":18446744073709551615}"#, request(To::All { after: u64::MAX })),
            (r#"{"text":"x"}"#, Err("user")),
            (r#"{"text":"x","all":false}"#, Err("user")),
            (r#"{"text":"x","user":7,"all":true}"#, Err("user")),
            (r#"{"text":"x","user":7,"after":1}"#, Err("after")),
            (r#"{"text":"x","user":0}"#, Err("user")),
            (r#"{"text":"x","user":""}"#, Err("user")),
            (r#"{"text":"x","all":1}"#, Err("all")),
            (r#"{"text":"x","all":true,"after":-1}"#, Err("after")),
            (r#"{"text":"x","all":true,"after":1.5}"#, Err("after")),
            (r#"{"user":7}"#, Err("text")),
            (r#"{"text":null,"user":7}"#, Err("text")),
            (r#"{"text":7,"user":7}"#, Err("text")),
            (r#"{"text":"","user":7}"#, Err("text")),
            (r#"{"text":"a\nb","user":7}"#, Err("text")),
            (r#"{"text":"a\u0000b","user":7}"#, Err("text")),
            ("[]", Err("not an object")),
            ("", Err("not an object")),
        ];
        for (body, expected) in &rows {
            let found = NoticeRequest::read(body.as_bytes()).map_err(|refusal| match refusal {
                Refusal::Fields(problems) => problems.message().split(':').next().unwrap_or_default().to_owned(),
                Refusal::NotObject => "not an object".to_owned(),
                other => panic!("{other:?}"),
            });
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|field| *field), "{body}");
        }
        println!("bodies of notices: {} cases", rows.len());
    }
}
