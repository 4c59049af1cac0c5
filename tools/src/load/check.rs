//! After a run: compares the orders whose answers the client has with the orders that the server has.
//!
//! An acknowledged order must exist once; an acknowledged cancel must have happened; a refused order must not exist,
//! except a killed one, which must exist as cancelled; no other order may exist. An order without an answer may exist
//! or not. Users whose keys are refused are named; their orders cannot be read, and the orders of the other users are
//! still compared.

use super::ask::Ask;
use super::fate::{Fate, Fates};
use super::keys::Keys;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Orders per page: the most that the route returns.
const PAGE_ORDERS: usize = 200;
/// Ids that are listed for each kind of difference.
const NAMED_MAX: usize = 10;
/// Most orders of a run in a file: more than a server keeps, and a bound on what a wrong file may cost.
const ORDERS_MAX: u32 = 100_000_000;
/// Characters of a time up to its seconds.
const SECONDS_CHARS: usize = 19;

/// The orders of a run, as the JSON file stores them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// Prefix of the client's ids.
    pub run: String,
    /// The server's time before the first order.
    pub since: String,
    /// Ids of the users who sent orders.
    pub users: Vec<u64>,
    /// The same by connection; empty in files of earlier versions.
    #[serde(default)]
    pub carried: Vec<Vec<u64>>,
    /// [`Fates::write`] of each connection.
    pub fates: Vec<String>,
}

/// What to check.
#[derive(Clone)]
pub enum Check {
    /// The run that was just made.
    ThisRun,
    /// An earlier run.
    Earlier(Arc<Orders>),
}

impl Check {
    /// Parses the value of `--check`: nothing, or the path of a run's JSON file.
    pub fn parse(file: &str) -> Result<Check, String> {
        #[derive(Deserialize)]
        struct File {
            orders: Orders,
        }
        if file.is_empty() {
            return Ok(Check::ThisRun);
        }
        let text = std::fs::read(file).map_err(|error| format!("the file cannot be read: {error}"))?;
        let File { orders } = serde_json::from_slice(&text)
            .map_err(|error| format!("name a file of `papertape load --json FILE`; this is another one: {error}"))?;
        let mut left = ORDERS_MAX;
        for fates in &orders.fates {
            let Some(fates) = Fates::read(fates, left) else {
                let message = "its orders were changed: name an unchanged file of `papertape load --json FILE`";
                return Err(message.to_owned());
            };
            left -= fates.next();
        }
        Ok(Check::Earlier(Arc::new(orders)))
    }
}

/// The result of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    pub acknowledged: u64,
    pub cancels_acknowledged: u64,
    /// Acknowledged orders that are cancelled without an acknowledged cancel: cancelled by another client, by a limit,
    /// or by a cancel without an answer. They are not a difference.
    pub cancelled_otherwise: u64,
    /// As the table counts them, with the killed ones.
    pub refused: u64,
    /// Refused orders that the server has as cancelled ones: they could not be filled.
    pub killed: u64,
    /// Orders without an answer that exist, and that do not.
    pub unknown_there: u64,
    pub unknown_absent: u64,
    pub missing: Wrong,
    /// Orders that exist although they were refused, never sent, or sent once and exist twice.
    pub extra: Wrong,
    /// Orders with an acknowledged cancel that are not cancelled.
    pub not_cancelled: Wrong,
    /// Orders refused as killed that are not cancelled.
    pub not_killed: Wrong,
    /// Users whose orders could not be read, and why.
    pub unread: Wrong,
    /// Orders not found on connections of such users: they may be theirs.
    pub unchecked: u64,
}

/// Ids of orders or users with a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Wrong {
    pub count: u64,
    /// The first of them.
    pub ids: Vec<String>,
}

impl Wrong {
    pub fn add(&mut self, id: impl FnOnce() -> String) {
        self.count += 1;
        if self.ids.len() < NAMED_MAX {
            self.ids.push(id());
        }
    }
}

impl Compared {
    pub fn is_equal(&self) -> bool {
        !self.differs() && self.unread.count == 0
    }

    /// Whether the orders that could be compared differ.
    pub fn differs(&self) -> bool {
        self.missing.count + self.extra.count + self.not_cancelled.count + self.not_killed.count > 0
    }

    /// One line, and one more for each kind of difference.
    pub fn lines(&self) -> Vec<String> {
        let Compared { acknowledged, cancels_acknowledged, refused, unknown_there, unknown_absent, .. } = self;
        let word = match (self.differs(), self.is_equal()) {
            (true, _) => "DIFFERENT",
            (false, true) => "equal",
            (false, false) => "INCOMPLETE",
        };
        let killed = match self.killed {
            0 => String::new(),
            count => format!(" ({count} of them killed: on the server, as cancelled)"),
        };
        let mut lines = vec![format!(
            "{word}: {acknowledged} orders and {cancels_acknowledged} cancels acknowledged, {refused} orders refused{killed}, \
             {} without an answer ({unknown_there} happened, {unknown_absent} did not)",
            unknown_there + unknown_absent
        )];
        if self.cancelled_otherwise > 0 {
            lines[0].push_str(&format!(
                "; {} of the orders are cancelled without an acknowledged cancel",
                self.cancelled_otherwise
            ));
        }
        for (what, wrong) in [
            ("acknowledged or killed, and missing on the server", &self.missing),
            ("on the server without an acknowledgement", &self.extra),
            ("acknowledged as cancelled and not cancelled", &self.not_cancelled),
            ("refused as killed and not cancelled", &self.not_killed),
        ] {
            if wrong.count > 0 {
                let more = if wrong.count > wrong.ids.len() as u64 { ", …" } else { "" };
                lines.push(format!("{} {what}: {}{more}", wrong.count, wrong.ids.join(", ")));
            }
        }
        if self.unread.count > 0 {
            let more = if self.unread.count > self.unread.ids.len() as u64 { "; …" } else { "" };
            lines.push(format!(
                "the orders of {} users could not be read, and {} orders of their connections not be checked: {}{more}",
                self.unread.count,
                self.unchecked,
                self.unread.ids.join("; ")
            ));
        }
        lines
    }
}

#[derive(Deserialize)]
struct Page {
    orders: Vec<Row>,
    next_cursor: Option<String>,
    has_more: bool,
}

/// An order as the server lists it.
#[derive(Deserialize)]
struct Row {
    client_order_id: Option<String>,
    status: String,
    created_at: String,
}

/// What the server has of one connection's orders: how often each is listed, and whether it is cancelled.
type Seen = Vec<(u8, bool)>;

/// Reads the orders of every user who sent any, newest first, back to the beginning of the run.
pub async fn compare(ask: &mut Ask, keys: &Keys, orders: &Orders) -> Result<Compared, String> {
    let mut by_id: HashMap<u64, Vec<&str>> = HashMap::new();
    keys.users.iter().for_each(|user| by_id.entry(user.user_id).or_default().push(&user.api_key));
    let fates: Vec<Fates> = orders.fates.iter().map(|text| Fates::read(text, u32::MAX).unwrap_or_default()).collect();
    let mut seen: Vec<Seen> = fates.iter().map(|fates| vec![(0, false); fates.next() as usize]).collect();
    let mut compared = Compared::default();
    // A user may have sent with several keys; each of them lists the same orders, so one is enough.
    let users: BTreeSet<u64> = orders.users.iter().copied().collect();
    let mut unread = BTreeSet::new();
    for user in users {
        let mut refused = format!("not in {}", keys.file.display());
        let mut is_read = false;
        for key in by_id.get(&user).into_iter().flatten() {
            match read(ask, key, orders, |row| look(row, &orders.run, &mut seen, &mut compared)).await? {
                Ok(()) => is_read = true,
                Err(why) => refused = why,
            }
            if is_read {
                break;
            }
        }
        if !is_read {
            compared.unread.add(|| format!("user {user}: {refused}"));
            unread.insert(user);
        }
    }
    for (lane, (fates, seen)) in fates.iter().zip(&seen).enumerate() {
        let carried = orders.carried.get(lane);
        let in_doubt = !unread.is_empty() && carried.is_none_or(|users| users.iter().any(|user| unread.contains(user)));
        for (number, (fate, seen)) in fates.iter().zip(seen).enumerate() {
            judge(fate, *seen, in_doubt, || format!("{}-{lane}-{number}", orders.run), &mut compared);
        }
    }
    Ok(compared)
}

/// Reads the orders of a key's user, newest first, back to the beginning of the run; the inner error is the refusal of
/// the key.
async fn read(
    ask: &mut Ask,
    key: &str,
    orders: &Orders,
    mut show: impl FnMut(&Row),
) -> Result<Result<(), String>, String> {
    let mut cursor = None;
    loop {
        let from = cursor.map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let page: Page = match ask.read_as(&format!("/v1/orders?limit={PAGE_ORDERS}{from}"), key).await? {
            Ok(page) => page,
            Err(refused) => return Ok(Err(refused)),
        };
        page.orders.iter().for_each(&mut show);
        let older = page.orders.last().is_some_and(|row| is_before(&row.created_at, &orders.since));
        cursor = page.next_cursor.filter(|_| page.has_more && !older);
        if cursor.is_none() {
            return Ok(Ok(()));
        }
    }
}

/// Whether a time is in an earlier second than another; both as the server writes them.
fn is_before(time: &str, other: &str) -> bool {
    time.get(..SECONDS_CHARS) < other.get(..SECONDS_CHARS)
}

/// Records an order that the server has, if it belongs to this run.
fn look(row: &Row, run: &str, seen: &mut [Seen], compared: &mut Compared) {
    let Some(id) = row.client_order_id.as_deref() else { return };
    let Some(rest) = id.strip_prefix(run).and_then(|rest| rest.strip_prefix('-')) else { return };
    let place = rest.split_once('-').and_then(|(lane, number)| Some((lane.parse().ok()?, number.parse().ok()?)));
    let found = place.and_then(|(lane, number): (usize, usize)| seen.get_mut(lane)?.get_mut(number));
    match found {
        Some((times, cancelled)) => {
            *times = times.saturating_add(1);
            *cancelled = row.status == "CANCELLED";
        }
        None => compared.extra.add(|| id.to_owned()),
    }
}

/// `in_doubt`: an order that was not found may belong to a user whose orders were not read.
fn judge(fate: Fate, (times, cancelled): (u8, bool), in_doubt: bool, id: impl Fn() -> String, compared: &mut Compared) {
    if times > 1 {
        compared.extra.add(|| format!("{} {times} times", id()));
    }
    if in_doubt && times == 0 && fate != Fate::Refused {
        compared.unchecked += 1;
        return;
    }
    match fate {
        Fate::Placed | Fate::Cancelled => {
            compared.acknowledged += 1;
            if times == 0 {
                compared.missing.add(&id);
            }
            compared.cancelled_otherwise += u64::from(fate == Fate::Placed && cancelled);
        }
        Fate::Refused => {
            compared.refused += 1;
            if times > 0 {
                compared.extra.add(&id);
            }
        }
        Fate::Killed => {
            compared.refused += 1;
            compared.killed += 1;
            if times == 0 {
                compared.missing.add(&id);
            } else if !cancelled {
                compared.not_killed.add(&id);
            }
        }
        Fate::Unknown if times > 0 => compared.unknown_there += 1,
        Fate::Unknown => compared.unknown_absent += 1,
    }
    if fate == Fate::Cancelled {
        compared.cancels_acknowledged += 1;
        if times > 0 && !cancelled {
            compared.not_cancelled.add(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the orders of one connection with the server's.
    fn compared(fates: &str, rows: &[(&str, &str)]) -> Compared {
        compared_with(fates, rows, false)
    }

    fn compared_with(fates: &str, rows: &[(&str, &str)], in_doubt: bool) -> Compared {
        let fates = Fates::read(fates, u32::MAX).expect("fates");
        let (mut seen, mut compared) = (vec![vec![(0, false); fates.next() as usize]], Compared::default());
        for (id, status) in rows {
            let created_at = "2026-11-22T00:00:00Z".into();
            let row = Row { client_order_id: Some((*id).into()), status: (*status).into(), created_at };
            look(&row, "run", &mut seen, &mut compared);
        }
        for (number, (fate, seen)) in fates.iter().zip(&seen[0]).enumerate() {
            judge(fate, *seen, in_doubt, || format!("run-0-{number}"), &mut compared);
        }
        compared
    }

    #[test]
    fn an_order_of_an_unread_user_is_not_missing() {
        let rows = [
            ("p2", "1 orders of their connections"),
            ("p1u1", "1 orders of their connections"),
            ("p1r1", "0 orders of their connections"),
        ];
        for (fates, expected) in rows {
            let mut compared = compared_with(fates, &[("run-0-0", "PENDING")], true);
            compared.unread.add(|| "user 7: 401".to_owned());
            let text = compared.lines().join("\n");
            assert!(text.starts_with("INCOMPLETE: 1 orders") && text.contains(expected), "{fates}: {text}");
            assert!(text.ends_with(": user 7: 401") && !compared.is_equal() && !compared.differs(), "{fates}: {text}");
        }
        let mut compared = compared_with("p1", &[("run-0-0", "PENDING"), ("run-0-0", "PENDING")], true);
        compared.unread.add(|| "user 7: 401".to_owned());
        assert!(compared.lines()[0].starts_with("DIFFERENT"), "{compared:?}");
        println!("comparisons in doubt: {} cases", rows.len() + 1);
    }

    #[test]
    fn what_differs_is_named() {
        type Rows = &'static [(&'static str, &'static str)];
        const OPEN: &str = "PENDING";
        const GONE: &str = "CANCELLED";
        let cases: [(&str, Rows, &str); 15] = [
            ("", &[], "equal: 0 orders and 0 cancels"),
            ("p2", &[("run-0-0", OPEN), ("run-0-1", "FILLED")], "equal: 2 orders and 0 cancels acknowledged"),
            ("p1", &[("run-0-0", GONE)], "did not); 1 of the orders are cancelled without an acknowledged cancel"),
            ("p2", &[("run-0-1", OPEN)], "1 acknowledged or killed, and missing on the server: run-0-0"),
            ("c1", &[("run-0-0", GONE)], "equal: 1 orders and 1 cancels"),
            ("c1", &[("run-0-0", OPEN)], "1 acknowledged as cancelled and not cancelled: run-0-0"),
            ("c1", &[], "1 acknowledged or killed, and missing on the server: run-0-0"),
            ("r1", &[], "1 orders refused"),
            ("r1", &[("run-0-0", OPEN)], "1 on the server without an acknowledgement: run-0-0"),
            // A killed order counts as refused in the table; it exists, and no cancel of it was ever sent.
            (
                "p1k2",
                &[("run-0-0", OPEN), ("run-0-1", GONE), ("run-0-2", GONE)],
                "equal: 1 orders and 0 cancels acknowledged, 2 orders refused (2 of them killed: on the server, as \
                 cancelled), 0 without an answer (0 happened, 0 did not)\n",
            ),
            ("k1", &[], "1 acknowledged or killed, and missing on the server: run-0-0"),
            ("k1", &[("run-0-0", "FILLED")], "1 refused as killed and not cancelled: run-0-0"),
            (
                "u2",
                &[("run-0-1", OPEN)],
                "equal: 0 orders and 0 cancels acknowledged, 0 orders refused, 2 without an answer (1 happened, 1 did not)",
            ),
            (
                "p1",
                &[("run-0-0", OPEN), ("run-0-0", OPEN)],
                "1 on the server without an acknowledgement: run-0-0 2 times",
            ),
            (
                "p1",
                &[
                    ("run-0-0", OPEN),
                    ("run-0-1", OPEN),
                    ("run-1-0", OPEN),
                    ("run-x", OPEN),
                    ("runs-0-0", OPEN),
                    ("a", OPEN),
                ],
                "3 on the server without an acknowledgement: run-0-1, run-1-0, run-x",
            ),
        ];
        for (fates, rows, expected) in cases {
            let compared = compared(fates, rows);
            let text = compared.lines().join("\n") + "\n";
            assert!(text.contains(expected), "{fates} {rows:?}: {text}");
            let differs =
                [" server: ", " acknowledgement: ", "not cancelled: "].iter().any(|word| expected.contains(word));
            assert_eq!(compared.is_equal(), !differs, "{fates} {rows:?}: {text}");
        }
        let many = compared("p30", &[]);
        assert!(many.lines()[1].starts_with("30 acknowledged") && many.lines()[1].ends_with("run-0-9, …"), "{many:?}");
        println!("comparisons: {} cases", cases.len() + 1);
    }

    #[test]
    fn times_are_compared_by_their_seconds() {
        let (early, late) = ("2026-11-22T00:00:00.9Z", "2026-11-22T00:00:01Z");
        let cases = [(early, late, true), (late, early, false), (early, "2026-11-22T00:00:00Z", false)];
        for (time, other, expected) in cases {
            assert_eq!(is_before(time, other), expected, "{time} {other}");
        }
        println!("times: {} cases", cases.len());
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let folder = std::env::temp_dir().join(format!("papertape-check-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let write = |text: &str| {
            let file = folder.join("run.json");
            std::fs::write(&file, text).expect("the file can be written");
            Check::parse(file.to_str().expect("a plain path"))
        };
        let orders = r#"{"run":"a","since":"b","users":[1],"fates":["p1"]}"#;
        assert!(matches!(Check::parse(""), Ok(Check::ThisRun)));
        assert!(matches!(write(&format!("{{\"orders\":{orders},\"x\":1}}")), Ok(Check::Earlier(_))));
        let wrong = ["", "[]", "{}", &format!("{{\"orders\":{}}}", orders.replace("p1", "x"))];
        for text in wrong {
            assert!(write(text).is_err_and(|text| text.contains("--json FILE")), "{text}");
        }
        std::fs::remove_dir_all(&folder).expect("the file is valid");
        assert!(write_missing(&folder).is_err_and(|text| text.contains("cannot be read")));
        println!("files: {} cases", wrong.len() + 3);
    }

    fn write_missing(folder: &std::path::Path) -> Result<Check, String> {
        Check::parse(folder.join("run.json").to_str().expect("a plain path"))
    }
}
