//! Where configuration values come from: flags over environment over file over default; and what is said when one
//! is wrong. Every reader names its key, its default and its range once; what no reader asked for is an error.

use super::DEFAULT;
use super::Secret;
use engine::time::Timestamp;
use serde::Deserialize as _;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use toml::de::{DeTable, DeValue};
use wire::instant;

/// Begins the name of every environment variable of ours.
const ENV_PREFIX: &str = "PAPERTAPE_";
/// Variables of that prefix that are no settings: what tests are told, and the commit that the program is built from, which
/// `cargo run` hands on to it.
const NOT_SETTINGS: &[&str] = &[
    "PAPERTAPE_VENUE_DATA",
    "PAPERTAPE_REQUIRE_VENUE_DATA",
    "PAPERTAPE_REQUIRE_CLIENTS",
    "PAPERTAPE_REQUIRE_EMULATOR",
    "PAPERTAPE_REQUIRE_NAUTILUS",
    "PAPERTAPE_SEED",
    "PAPERTAPE_GIT_SHA",
];

/// Everything that is wrong with the configuration, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

/// A raw value and where it stands.
struct Found {
    value: Raw,
    origin: String,
}

enum Raw {
    /// From environment and flags; lists are separated by commas.
    Text(String),
    Toml(toml::Value),
}

/// The layers, and what was read from them so far.
pub(super) struct Source {
    file_name: String,
    file: BTreeMap<String, toml::Value>,
    env: BTreeMap<String, String>,
    flags: BTreeMap<String, String>,
    known: Vec<String>,
    errors: Vec<String>,
    /// `key = value (origin)`, for the start-up log.
    pub(super) lines: Vec<String>,
}

impl Source {
    /// `file`: its name and its text. `flags`: dotted keys and their texts.
    pub(super) fn new(
        file: Option<(&str, &str)>,
        env: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Source, ConfigError> {
        let mut flat = BTreeMap::new();
        if let Some((name, text)) = file {
            let table = values(text).map_err(|error| ConfigError(vec![format!("{name}: {error}")]))?;
            flatten("", table, &mut flat);
        }
        let env = env.into_iter().filter(|(name, _)| name.starts_with(ENV_PREFIX));
        Ok(Source {
            file_name: file.map_or_else(String::new, |(name, _)| name.to_owned()),
            file: flat,
            env: env.filter(|(name, _)| !NOT_SETTINGS.contains(&name.as_str())).collect(),
            flags: flags.into_iter().collect(),
            known: Vec::new(),
            errors: Vec::new(),
            lines: Vec::new(),
        })
    }

    /// What the layers say of a key, the one that counts first.
    fn found(&mut self, key: &str) -> Vec<Found> {
        self.known.push(key.to_owned());
        let variable = variable(key);
        let flag = self.flags.remove(key).map(|text| (Raw::Text(text), "command line".to_owned()));
        let in_env = self.env.remove(&variable).map(|text| (Raw::Text(text), format!("environment, {variable}")));
        let in_file = self.file.remove(key).map(|value| (Raw::Toml(value), self.file_name.clone()));
        [flag, in_env, in_file].into_iter().flatten().map(|(value, origin)| Found { value, origin }).collect()
    }

    /// Reads one value: `parse` makes it of its text, `allowed` says in words what it may be.
    fn value<T>(
        &mut self,
        key: &str,
        default: T,
        allowed: &str,
        parse: impl Fn(&Raw) -> Option<T>,
        show: impl FnOnce(&T) -> String,
    ) -> T {
        let mut read = None;
        // A layer that is overruled is read too: what is wrong in it would surprise whoever drops the other.
        for found in self.found(key) {
            match parse(&found.value) {
                Some(value) => {
                    read.get_or_insert((value, found.origin));
                }
                None => self.errors.push(format!("{key} ({}): allowed is {allowed}", found.origin)),
            }
        }
        let (value, origin) = read.unwrap_or((default, DEFAULT.to_owned()));
        self.lines.push(format!("{key} = {} ({origin})", show(&value)));
        value
    }

    pub(super) fn integer(&mut self, key: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let allowed = format!("an integer from {} to {}", range.start(), range.end());
        let parse = |raw: &Raw| match raw {
            Raw::Text(text) => text.parse().ok(),
            Raw::Toml(toml::Value::Integer(value)) => u64::try_from(*value).ok(),
            Raw::Toml(_) => None,
        };
        self.value(key, default, &allowed, |raw| parse(raw).filter(|value| range.contains(value)), u64::to_string)
    }

    pub(super) fn boolean(&mut self, key: &str, default: bool) -> bool {
        let parse = |raw: &Raw| match raw {
            Raw::Text(text) => text.to_ascii_lowercase().parse().ok(),
            Raw::Toml(value) => value.as_bool(),
        };
        self.value(key, default, "true or false", parse, bool::to_string)
    }

    /// `auto`, `true` or `false`; `auto` is what the umbrella says.
    pub(super) fn switch(&mut self, key: &str, umbrella: bool) -> bool {
        let parse = |raw: &Raw| match raw {
            Raw::Text(text) if text.eq_ignore_ascii_case("auto") => Some(umbrella),
            Raw::Text(text) => text.to_ascii_lowercase().parse().ok(),
            Raw::Toml(toml::Value::String(text)) if text == "auto" => Some(umbrella),
            Raw::Toml(value) => value.as_bool(),
        };
        self.value(key, umbrella, "auto, true or false", parse, bool::to_string)
    }

    /// A text with a meaning: `parse` says which texts are allowed, `allowed` says it in words.
    pub(super) fn parsed<T>(
        &mut self,
        key: &str,
        default: T,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
        show: impl FnOnce(&T) -> String,
    ) -> T {
        self.value(key, default, allowed, |raw| text(raw).and_then(|text| parse(&text)), show)
    }

    /// One of these words, each with its meaning; booleans are the words `true` and `false`. Of words of one meaning
    /// the first is shown. `allowed` names the words that are offered.
    pub(super) fn choice<T: Copy + PartialEq>(
        &mut self,
        key: &str,
        default: T,
        allowed: &str,
        words: &[(&str, T)],
    ) -> T {
        let meaning = |text: &str| words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        let parse = |raw: &Raw| match raw {
            Raw::Toml(toml::Value::Boolean(value)) => meaning(if *value { "true" } else { "false" }),
            raw => text(raw).and_then(|text| meaning(&text)),
        };
        let show = |value: &T| {
            let word = words.iter().find(|(_, meaning)| meaning == value);
            word.map_or_else(String::new, |(word, _)| (*word).to_owned())
        };
        self.value(key, default, allowed, parse, show)
    }

    pub(super) fn text(&mut self, key: &str, default: &str, allowed: &str, sound: impl Fn(&str) -> bool) -> String {
        let parse = |text: &str| sound(text).then(|| text.to_owned());
        self.parsed(key, default.to_owned(), allowed, parse, |text| format!("{text:?}"))
    }

    pub(super) fn moment(&mut self, key: &str, default: Option<Timestamp>) -> Option<Timestamp> {
        let allowed = "a date or an RFC 3339 time; \"\" for none";
        let parse = |raw: &Raw| match raw {
            Raw::Text(text) => parse_moment(text),
            Raw::Toml(toml::Value::String(text)) => parse_moment(text),
            Raw::Toml(toml::Value::Datetime(at)) => parse_moment(&at.to_string()),
            Raw::Toml(_) => None,
        };
        let show = |at: &Option<Timestamp>| at.map_or_else(|| "none".to_owned(), instant::ts_text);
        self.value(key, default, allowed, parse, show)
    }

    pub(super) fn list<T>(
        &mut self,
        key: &str,
        default: Vec<T>,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
        show: impl Fn(&T) -> String,
    ) -> Vec<T> {
        self.value(
            key,
            default,
            allowed,
            |raw| list(raw)?.iter().map(|text| parse(text)).collect(),
            |list| format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(", ")),
        )
    }

    /// One secret or a list of them, each at least 32 bytes; shown nowhere.
    pub(super) fn secrets(&mut self, key: &str) -> Vec<Secret> {
        let parse = |raw: &Raw| {
            let texts = match raw {
                // A secret may contain commas: only the file can hold several.
                Raw::Text(text) => vec![text.clone()],
                Raw::Toml(toml::Value::String(text)) => vec![text.clone()],
                Raw::Toml(_) => list(raw)?,
            };
            let long_enough = !texts.is_empty() && texts.iter().all(|text| text.len() >= 32);
            long_enough.then(|| texts.into_iter().map(Secret::new).collect())
        };
        let show = |secrets: &Vec<Secret>| format!("[{} secrets, not shown]", secrets.len());
        self.value(key, Vec::new(), "a text, or a list of texts, of at least 32 bytes each", parse, show)
    }

    /// One secret of at least 32 bytes, or none; shown nowhere.
    pub(super) fn secret(&mut self, key: &str) -> Option<Secret> {
        let parse = |raw: &Raw| match raw {
            Raw::Text(text) | Raw::Toml(toml::Value::String(text)) if text.len() >= 32 => {
                Some(Some(Secret::new(text.clone())))
            }
            _ => None,
        };
        let show = |secret: &Option<Secret>| if secret.is_some() { "not shown" } else { "none" }.to_owned();
        self.value(key, None, "a text of at least 32 bytes", parse, show)
    }

    /// All keys under `prefix.`, whatever their names.
    pub(super) fn map(
        &mut self,
        prefix: &str,
        allowed: &str,
        sound: impl Fn(&str, &str) -> bool,
    ) -> Vec<(String, String)> {
        let dotted = format!("{prefix}.");
        let from_env = format!("{}_", variable(prefix));
        let mut keys: Vec<String> =
            self.file.keys().chain(self.flags.keys()).filter(|key| key.starts_with(&dotted)).cloned().collect();
        keys.extend(
            self.env
                .keys()
                .filter_map(|name| name.strip_prefix(&from_env))
                .map(|name| format!("{dotted}{}", name.to_ascii_lowercase())),
        );
        keys.sort_unstable();
        keys.dedup();
        let mut entries = Vec::new();
        for key in keys {
            let name = key[dotted.len()..].to_owned();
            let value = self.text(&key, "", allowed, |value| sound(&name, value));
            entries.push((name, value));
        }
        self.known.push(format!("{dotted}*"));
        entries
    }

    /// Notes what is wrong beyond a single setting.
    pub(super) fn wrong(&mut self, message: String) {
        self.errors.push(message);
    }

    /// Says what nobody asked for, and everything else that is wrong.
    pub(super) fn finish(mut self) -> Result<Vec<String>, ConfigError> {
        let unknown = self.file.keys().map(|key| (key.clone(), self.file_name.clone()));
        let unknown = unknown.chain(self.flags.keys().map(|key| (key.clone(), "command line".to_owned())));
        for (key, origin) in unknown.collect::<Vec<_>>() {
            let inside = format!("{key}.");
            if self.known.iter().any(|known| known.starts_with(&inside)) {
                let (_, allowed) = self.near(|section| inside.starts_with(section));
                self.errors.push(format!("{key} ({origin}): allowed is a section with {}", allowed.join(", ")));
                continue;
            }
            let (section, allowed) = self.near(|section| key.starts_with(section));
            let allowed = match section {
                "" => allowed.iter().map(|key| format!("[{}]", key.trim_end_matches(".*"))).collect(),
                _ => allowed,
            };
            self.errors.push(format!("{key} ({origin}): unknown key; allowed are {}", allowed.join(", ")));
        }
        for name in self.env.keys() {
            let (_, allowed) = self.near(|section| name.starts_with(&variable(section)));
            let allowed: Vec<_> = allowed.iter().map(|key| variable(key)).collect();
            self.errors.push(format!("{name} (environment): unknown key; allowed are {}", allowed.join(", ")));
        }
        if self.errors.is_empty() { Ok(self.lines) } else { Err(ConfigError(self.errors)) }
    }

    /// What could be meant: the keys and, as `name.*`, the sections right inside the innermost section that `encloses` what
    /// nobody knows; and that section, which ends with a dot unless it is the whole.
    fn near(&self, encloses: impl Fn(&str) -> bool) -> (&str, Vec<String>) {
        let sections = self.known.iter().flat_map(|key| key.match_indices('.').map(|(dot, _)| &key[..=dot]));
        let innermost = sections.filter(|section| encloses(section)).max_by_key(|section| section.len());
        let section = innermost.unwrap_or_default();
        let mut inside: Vec<String> = Vec::new();
        for name in self.known.iter().filter_map(|key| key.strip_prefix(section)) {
            let near = match name.split_once('.') {
                Some((inner, _)) => format!("{section}{inner}.*"),
                None => format!("{section}{name}"),
            };
            if !inside.contains(&near) {
                inside.push(near);
            }
        }
        if section.is_empty() {
            inside.sort_unstable();
        }
        (section, inside)
    }
}

/// Environment variable of a dotted key.
fn variable(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}

fn parse_moment(text: &str) -> Option<Option<Timestamp>> {
    if text.is_empty() { Some(None) } else { instant::read(text).map(Some) }
}

fn text(raw: &Raw) -> Option<String> {
    match raw {
        Raw::Text(text) => Some(text.clone()),
        Raw::Toml(toml::Value::String(text)) => Some(text.clone()),
        Raw::Toml(toml::Value::Integer(value)) => Some(value.to_string()),
        Raw::Toml(_) => None,
    }
}

fn list(raw: &Raw) -> Option<Vec<String>> {
    match raw {
        Raw::Text(text) if text.trim().is_empty() => Some(Vec::new()),
        Raw::Text(text) => Some(text.split(',').map(|item| item.trim().to_owned()).collect()),
        Raw::Toml(toml::Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                toml::Value::String(text) => Some(text.clone()),
                toml::Value::Integer(value) => Some(value.to_string()),
                _ => None,
            })
            .collect(),
        Raw::Toml(_) => None,
    }
}

/// The values of a file. A number beyond 64 bits becomes one that no setting takes: TOML would refuse the file in words that
/// name neither the key nor its bounds, and whoever asks for the key refuses this in his own.
fn values(file: &str) -> Result<toml::Table, toml::de::Error> {
    let mut table = DeTable::parse(file)?;
    table.get_mut().iter_mut().for_each(|(_, value)| make_refusable(value.get_mut()));
    toml::Table::deserialize(toml::Deserializer::from(table))
}

/// Integers that are too long and floats that are too large, at any depth.
fn make_refusable(value: &mut DeValue<'_>) {
    let beyond = match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).is_err(),
        DeValue::Float(number) => number.as_str().parse::<f64>().is_ok_and(f64::is_infinite),
        _ => false,
    };
    match value {
        _ if beyond => *value = DeValue::parse("nan").expect("TOML has it").into_inner(),
        DeValue::Array(items) => items.iter_mut().for_each(|item| make_refusable(item.get_mut())),
        DeValue::Table(table) => table.iter_mut().for_each(|(_, value)| make_refusable(value.get_mut())),
        _ => {}
    }
}

fn flatten(prefix: &str, table: toml::Table, flat: &mut BTreeMap<String, toml::Value>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, flat),
            value => {
                flat.insert(key, value);
            }
        }
    }
}
