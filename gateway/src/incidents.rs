//! The file of incidents: what the operator reports, by hand or by `papertape incident` (gateway/docs/status.md §2). A
//! server reads it again when it changes; a broken one keeps what was known before.

use edge::api::status::{INCIDENT_STATES, Incident, IncidentNote, Service};
use engine::time::Timestamp;
use host::watched_file::{Look, WatchedFile};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wire::fields::is_longer;
use wire::instant::{self, ts_text};

/// Its name in the data directory.
pub const FILE: &str = "incidents.json";
/// Bytes of the file, and incidents in it, at most.
pub const BYTES_MAX: u64 = 1 << 20;
pub const INCIDENTS_MAX: usize = 500;
const UPDATES_MAX: usize = 100;
const TITLE_CHARS: usize = 200;
const TEXT_CHARS: usize = 2_000;
const ID_CHARS: usize = 64;
/// How long a change waits for another one, and how often it checks.
const LOCKED_WITHIN: Duration = Duration::from_secs(5);
const LOCK_CHECK_EVERY: Duration = Duration::from_millis(20);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    incidents: Vec<Row>,
}

/// The shape of the route's answer.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    title: String,
    status: String,
    started_at: String,
    resolved_at: Option<String>,
    services: Vec<String>,
    updates: Vec<Note>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    at: String,
    text: String,
}

/// The incidents of a file, newest first.
///
/// # Errors
/// The first defect, with its place.
pub fn read(content: &[u8]) -> Result<Vec<Incident>, String> {
    let Content { incidents } = serde_json::from_slice(content).map_err(|error| error.to_string())?;
    if incidents.len() > INCIDENTS_MAX {
        return Err(format!("incidents: has {} items, more than {INCIDENTS_MAX}", incidents.len()));
    }
    let read = |(index, row): (usize, Row)| incident(row).map_err(|defect| format!("incidents[{index}].{defect}"));
    let mut incidents: Vec<Incident> = incidents.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let mut ids = BTreeSet::new();
    if let Some(twice) = incidents.iter().find(|incident| !ids.insert(incident.id.as_str())) {
        return Err(format!("incidents: has the id {} twice", twice.id));
    }
    // The order of the file is kept among those of one moment.
    incidents.sort_by_key(|incident| std::cmp::Reverse(incident.started_at));
    Ok(incidents)
}

/// The text of a file.
pub fn text(incidents: &[Incident]) -> String {
    let row = |incident: &Incident| Row {
        id: incident.id.clone(),
        title: incident.title.clone(),
        status: incident.state.to_owned(),
        started_at: ts_text(incident.started_at),
        resolved_at: incident.resolved_at.map(ts_text),
        services: incident.services.iter().map(|service| service.id().to_owned()).collect(),
        updates: incident.updates.iter().map(|note| Note { at: ts_text(note.at), text: note.text.clone() }).collect(),
    };
    let content = Content { incidents: incidents.iter().map(row).collect() };
    serde_json::to_string_pretty(&content).expect("texts are JSON") + "\n"
}

fn incident(row: Row) -> Result<Incident, String> {
    let Row { id, title, status, started_at, resolved_at, services, updates } = row;
    check_id(&id).map_err(|defect| format!("id: {defect}"))?;
    check_text(&title, TITLE_CHARS).map_err(|defect| format!("title: {defect}"))?;
    let state = INCIDENT_STATES.into_iter().find(|state| *state == status);
    let state = state.ok_or_else(|| format!("status: is not one of {}", INCIDENT_STATES.join(", ")))?;
    let started_at = moment(&started_at).map_err(|defect| format!("started_at: {defect}"))?;
    let resolved_at = resolved_at.as_deref().map(moment).transpose();
    let resolved_at = resolved_at.map_err(|defect| format!("resolved_at: {defect}"))?;
    if resolved_at.is_some_and(|at| at < started_at) {
        return Err("resolved_at: is before started_at".to_owned());
    }
    if resolved_at.is_some() != (state == "resolved") {
        return Err("resolved_at: is there if the status is resolved, and only then".to_owned());
    }
    let mut known = Vec::new();
    for name in &services {
        match Service::of(name) {
            Some(service) if !known.contains(&service) => known.push(service),
            _ => return Err(format!("services: each of {} is there at most once", Service::IDS.join(", "))),
        }
    }
    if updates.len() > UPDATES_MAX {
        return Err(format!("updates: has {} items, more than {UPDATES_MAX}", updates.len()));
    }
    let note = |(index, Note { at, text }): (usize, Note)| {
        let at = moment(&at).map_err(|defect| format!("updates[{index}].at: {defect}"))?;
        check_text(&text, TEXT_CHARS).map_err(|defect| format!("updates[{index}].text: {defect}"))?;
        Ok::<_, String>(IncidentNote { at, text })
    };
    let mut updates = updates.into_iter().enumerate().map(note).collect::<Result<Vec<_>, _>>()?;
    updates.sort_by_key(|note| note.at);
    Ok(Incident { id, title, state, started_at, resolved_at, services: known, updates })
}

fn check_id(id: &str) -> Result<(), String> {
    let is_sound = (1..=ID_CHARS).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_sound { Ok(()) } else { Err(format!("is not 1 to {ID_CHARS} of a-z, 0-9 and -")) }
}

fn check_text(text: &str, chars_max: usize) -> Result<(), String> {
    match text {
        "" => Err("is empty".to_owned()),
        text if is_longer(text, chars_max) => Err(format!("has more than {chars_max} characters")),
        text if text.chars().any(char::is_control) => Err("has a control character".to_owned()),
        _ => Ok(()),
    }
}

fn moment(text: &str) -> Result<Timestamp, String> {
    let read = Some(text).filter(|text| text.contains('T')).and_then(instant::read);
    read.ok_or_else(|| "is not a time like 2026-10-02T09:05:00Z".to_owned())
}

/// The file as a server reads it.
pub struct IncidentsFile(WatchedFile);

impl IncidentsFile {
    pub fn new(path: &Path) -> IncidentsFile {
        IncidentsFile(WatchedFile::new(path, BYTES_MAX))
    }

    /// Looks at the file; `None`: it has not changed. A defect is logged.
    ///
    /// # Errors
    /// The defect.
    pub fn look(&mut self) -> Option<Result<Vec<Incident>, String>> {
        let found = match self.0.look() {
            Look::Same => return None,
            Look::Gone => Ok(Vec::new()),
            Look::New(content) => read(&content),
            Look::Failed(error) => Err(error.to_string()),
        };
        if let Err(problem) = &found {
            let file = self.0.path().display().to_string();
            tracing::warn!(file, problem, "the file of incidents is broken; what it held before stays");
        }
        Some(found)
    }
}

/// A change of an incident.
#[derive(Clone, Debug)]
pub enum Change {
    Open {
        /// `None`: the day and a number.
        id: Option<String>,
        title: String,
        services: Vec<Service>,
        /// Of [`INCIDENT_STATES`], not the last one.
        state: &'static str,
        text: Option<String>,
    },
    Update {
        id: String,
        state: Option<&'static str>,
        text: String,
    },
    Resolve {
        id: String,
        text: Option<String>,
    },
}

/// Why a file was not changed.
#[derive(Debug)]
pub enum ChangeError {
    /// The file as it is has a defect.
    Broken(String),
    /// This change is not possible.
    Refused(String),
    Io(io::Error),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Broken(why) => write!(f, "the file is broken, and was not changed: {why}"),
            ChangeError::Refused(why) => f.write_str(why),
            ChangeError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {}

impl From<io::Error> for ChangeError {
    fn from(error: io::Error) -> ChangeError {
        ChangeError::Io(error)
    }
}

/// The incidents of a file, newest first; none without a file.
///
/// # Errors
/// [`ChangeError`].
pub fn list(path: &Path) -> Result<Vec<Incident>, ChangeError> {
    match WatchedFile::new(path, BYTES_MAX).look() {
        Look::Gone | Look::Same => Ok(Vec::new()),
        Look::New(content) => read(&content).map_err(ChangeError::Broken),
        Look::Failed(error) => Err(ChangeError::Broken(error.to_string())),
    }
}

/// Changes a file, which is replaced whole; a server may read it meanwhile. One change waits for another. Returns the
/// incident after the change.
///
/// # Errors
/// [`ChangeError`]; the file is then as it was.
pub fn change(path: &Path, change: Change, now: Timestamp) -> Result<Incident, ChangeError> {
    let _lock = locked(path)?;
    let mut incidents = list(path)?;
    let changed = apply(&mut incidents, change, now).map_err(ChangeError::Refused)?;
    let text = text(&incidents);
    // Also bounds the length of its texts.
    read(text.as_bytes()).map_err(ChangeError::Refused)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(ChangeError::Refused(format!("the file would have more than {BYTES_MAX} bytes")));
    }
    replace(path, &text)?;
    Ok(changed)
}

fn apply(incidents: &mut Vec<Incident>, change: Change, now: Timestamp) -> Result<Incident, String> {
    // Whole seconds, as people write them.
    let now = Timestamp::from_secs(now.secs());
    let note = |text: String| IncidentNote { at: now, text };
    let (id, state, text) = match change {
        Change::Open { id, title, services, state, text } => {
            let id = id.unwrap_or_else(|| free_id(incidents, now));
            if incidents.iter().any(|incident| incident.id == id) {
                return Err(format!("there is an incident {id} already"));
            }
            let updates = text.map(note).into_iter().collect();
            let incident = Incident { id, title, state, started_at: now, resolved_at: None, services, updates };
            incidents.insert(0, incident.clone());
            return Ok(incident);
        }
        Change::Update { id, state, text } => (id, state, Some(text)),
        Change::Resolve { id, text } => (id, Some("resolved"), text),
    };
    let found = incidents.iter_mut().find(|incident| incident.id == id);
    let incident = found.ok_or_else(|| format!("there is no incident {id}"))?;
    if incident.resolved_at.is_some() {
        return Err(format!("the incident {id} is resolved"));
    }
    if let Some(state) = state {
        incident.state = state;
    }
    if state == Some("resolved") {
        incident.resolved_at = Some(now.max(incident.started_at));
    }
    incident.updates.extend(text.map(note));
    Ok(incident.clone())
}

/// `2026-10-02-1`, or with the next number that is free.
fn free_id(incidents: &[Incident], now: Timestamp) -> String {
    let day = ts_text(now)[..10].to_owned();
    let free = (1..).map(|number: u32| format!("{day}-{number}"));
    let mut free = free.filter(|id| incidents.iter().all(|incident| incident.id != *id));
    free.next().expect("a file has fewer incidents than there are numbers")
}

/// The lock of a file's changes, a file beside it: the file itself is replaced.
fn locked(path: &Path) -> io::Result<File> {
    let beside = with_ending(path, "lock");
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&beside)?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(_) if begun.elapsed() < LOCKED_WITHIN => std::thread::sleep(LOCK_CHECK_EVERY),
            Err(error) => return Err(io::Error::from(error)),
        }
    }
}

/// Another name beside a file.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // The log removes leftovers of this name from a data directory.
    let making = with_ending(path, "making");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&making)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&making, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-10-02T09:14:05Z and a fraction.
    const NOW: Timestamp = Timestamp(1_790_932_445_500_000);

    fn row(changes: &str) -> String {
        let mut fields: Vec<(&str, &str)> = vec![
            ("id", "\"a-1\""),
            ("title", "\"Late\""),
            ("status", "\"monitoring\""),
            ("started_at", "\"2026-10-02T09:05:00Z\""),
            ("resolved_at", "null"),
            ("services", "[\"api\"]"),
            ("updates", "[]"),
        ];
        for change in changes.split(';').filter(|change| !change.is_empty()) {
            let (name, value) = change.split_once('=').expect("a change");
            fields.retain(|(known, _)| *known != name);
            if !value.is_empty() {
                fields.push((name, value));
            }
        }
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{\"incidents\":[{{{}}}]}}", fields.join(","))
    }

    #[test]
    fn each_defect_has_its_place() {
        let long = format!("title=\"{}\"", "x".repeat(201));
        let rows = [
            ("", None),
            ("status=\"resolved\";resolved_at=\"2026-10-02T09:05:00Z\"", None),
            ("resolved_at=", None),
            ("services=[]", None),
            ("services=[\"api\",\"market_data\",\"matching_engine\",\"websocket\"]", None),
            ("updates=[{\"at\":\"2026-10-02T09:06:00+02:00\",\"text\":\"é\"}]", None),
            ("id=", Some("missing field `id`")),
            ("x=1", Some("unknown field `x`")),
            ("title=1", Some("invalid type")),
            ("id=\"\"", Some("incidents[0].id: is not 1 to 64 of a-z, 0-9 and -")),
            ("id=\"../x\"", Some("incidents[0].id: is not 1 to 64")),
            ("title=\"\"", Some("incidents[0].title: is empty")),
            (&long, Some("incidents[0].title: has more than 200 characters")),
            ("title=\"a\\u0000b\"", Some("incidents[0].title: has a control character")),
            (
                "status=\"open\"",
                Some("incidents[0].status: is not one of investigating, identified, monitoring, resolved"),
            ),
            ("started_at=\"yesterday\"", Some("incidents[0].started_at: is not a time")),
            ("started_at=\"1790932445\"", Some("incidents[0].started_at: is not a time")),
            ("status=\"resolved\"", Some("incidents[0].resolved_at: is there if the status is resolved")),
            ("resolved_at=\"2026-10-02T09:05:00Z\"", Some("incidents[0].resolved_at: is there if")),
            ("status=\"resolved\";resolved_at=\"2026-10-02T09:04:59Z\"", Some("incidents[0].resolved_at: is before")),
            ("services=[\"billing\"]", Some("incidents[0].services: each of api, market_data")),
            ("services=[\"api\",\"api\"]", Some("incidents[0].services: each of")),
            ("updates=[{\"at\":\"x\",\"text\":\"a\"}]", Some("incidents[0].updates[0].at: is not a time")),
            (
                "updates=[{\"at\":\"2026-10-02T09:06:00Z\",\"text\":\"\"}]",
                Some("incidents[0].updates[0].text: is empty"),
            ),
        ];
        for (changes, expected) in rows {
            match (read(row(changes).as_bytes()), expected) {
                (Ok(incidents), None) => assert_eq!(read(text(&incidents).as_bytes()), Ok(incidents), "{changes}"),
                (Err(defect), Some(expected)) => assert!(defect.contains(expected), "{changes}: {defect}"),
                (found, _) => panic!("{changes}: {found:?}"),
            }
        }
        let one = &row("")[14..row("").len() - 2];
        let many = |count: usize| format!("{{\"incidents\":[{}]}}", vec![one; count].join(","));
        for (content, expected) in [
            (many(2), "incidents: has the id a-1 twice"),
            (many(501), "incidents: has 501 items, more than 500"),
            ("[]".to_owned(), "expected struct"),
            (String::new(), "EOF"),
            ("[".repeat(10_000), "invalid type"),
        ] {
            let defect = read(content.as_bytes()).expect_err("a defect");
            assert!(defect.contains(expected), "{expected}: {defect}");
        }
        assert!(read(b"{\"incidents\":[\"\xff\"]}").is_err());
        println!("incidents: {} cases", rows.len() + 6);
    }

    #[test]
    fn incidents_are_newest_first_and_updates_oldest_first() {
        let content = r#"{"incidents":[
            {"id":"b","title":"B","status":"monitoring","started_at":"2026-10-01T00:00:00Z","resolved_at":null,
             "services":[],"updates":[{"at":"2026-10-01T02:00:00Z","text":"two"},{"at":"2026-10-01T01:00:00Z","text":"one"}]},
            {"id":"a","title":"A","status":"monitoring","started_at":"2026-10-02T00:00:00Z","resolved_at":null,
             "services":[],"updates":[]}]}"#;
        let incidents = read(content.as_bytes()).expect("sound");
        assert_eq!([incidents[0].id.as_str(), incidents[1].id.as_str()], ["a", "b"]);
        assert_eq!([incidents[1].updates[0].text.as_str(), incidents[1].updates[1].text.as_str()], ["one", "two"]);
    }

    fn open(id: Option<&str>, title: &str) -> Change {
        let (id, title) = (id.map(str::to_owned), title.to_owned());
        Change::Open { id, title, services: vec![Service::Api], state: "investigating", text: None }
    }

    #[test]
    fn a_file_is_changed_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(FILE);
        let made = change(&path, open(None, "Late"), NOW).expect("opened");
        assert_eq!((made.id.as_str(), ts_text(made.started_at).as_str()), ("2026-10-02-1", "2026-10-02T09:14:05Z"));
        assert_eq!(change(&path, open(None, "Later"), NOW).expect("opened").id, "2026-10-02-2");
        let update = |id: &str, text: &str, state| Change::Update { id: id.to_owned(), state, text: text.to_owned() };
        let resolve = |id: &str| Change::Resolve { id: id.to_owned(), text: Some("Done.".to_owned()) };
        let updated = change(&path, update("2026-10-02-1", "We know.", Some("identified")), NOW.plus(60_000_000));
        assert_eq!(
            updated.map(|incident| (incident.state, incident.updates.len())).expect("updated"),
            ("identified", 1)
        );
        let resolved = change(&path, resolve("2026-10-02-1"), NOW.plus(120_000_000)).expect("resolved");
        assert_eq!(resolved.resolved_at.map(ts_text).as_deref(), Some("2026-10-02T09:16:05Z"));
        let before = fs::read(&path).expect("it is there");
        for (wrong, expected) in [
            (resolve("2026-10-02-1"), "the incident 2026-10-02-1 is resolved"),
            (update("2026-10-02-1", "x", None), "the incident 2026-10-02-1 is resolved"),
            (update("nothing", "x", None), "there is no incident nothing"),
            (update("2026-10-02-2", "", None), "incidents[0].updates[0].text: is empty"),
            (update("2026-10-02-2", &"x".repeat(2_001), None), "has more than 2000 characters"),
            (open(Some("2026-10-02-2"), "x"), "there is an incident 2026-10-02-2 already"),
            (open(Some("A B"), "x"), "incidents[0].id: is not 1 to 64"),
            (open(None, "a\nb"), "incidents[0].title: has a control character"),
        ] {
            let error = change(&path, wrong, NOW).expect_err("refused").to_string();
            assert!(error.contains(expected), "{expected}: {error}");
            assert_eq!(fs::read(&path).expect("it is there"), before, "{expected}");
        }
        fs::write(&path, "{").expect("written");
        let error = change(&path, open(None, "x"), NOW).expect_err("broken").to_string();
        assert!(error.contains("the file is broken, and was not changed"), "{error}");
        assert_eq!(fs::read(&path).expect("it is there"), b"{");
        assert!(change(&dir.path().join("missing").join(FILE), open(None, "x"), NOW).is_err());
        println!("changes of incidents: 14 cases");
    }

    /// Changes of several commands follow each other, and a reader meets whole files only.
    #[test]
    fn concurrent_changes_are_all_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(FILE);
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let path = path.clone();
                std::thread::spawn(move || {
                    for number in 0..10 {
                        let id = format!("w{writer}-{number}");
                        change(&path, open(Some(&id), "x"), NOW).expect("opened");
                        assert!(list(&path).expect("whole").iter().any(|incident| incident.id == id));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        assert_eq!(list(&path).expect("whole").len(), 40);
        println!("concurrent changes: 40 cases");
    }
}
