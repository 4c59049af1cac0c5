//! The sources of configuration values: flags over environment over file over default. A key without a row in the table
//! is an error.

use super::Secret;
use super::setting::{ENV_PREFIX, Setting, Value, Word, variable};
use engine::time::Timestamp;
use serde::Deserialize as _;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use toml::de::{DeTable, DeValue};
use wire::instant;

/// The origin of a value that no layer sets.
pub(super) const DEFAULT: &str = "default";
/// Variables with that prefix that are not settings: those of tests, those of the bot of a back-test, and the commit that
/// the program was built from, which `cargo run` passes to it.
const NOT_SETTINGS: &[&str] = &[
    "PAPERTAPE_VENUE_DATA",
    "PAPERTAPE_REQUIRE_VENUE_DATA",
    "PAPERTAPE_REQUIRE_CLIENTS",
    "PAPERTAPE_REQUIRE_EMULATOR",
    "PAPERTAPE_REQUIRE_NAUTILUS",
    "PAPERTAPE_SEED",
    "PAPERTAPE_URL",
    "PAPERTAPE_KEY",
    "PAPERTAPE_ADMIN_URL",
    "PAPERTAPE_ADMIN_TOKEN",
    "PAPERTAPE_TOKENS",
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

/// The value of a key in one layer.
pub(super) enum Raw {
    /// From environment and flags; lists are separated by commas.
    Text(String),
    Toml(toml::Value),
}

/// The layers, and their errors.
pub(super) struct Source {
    file_name: String,
    file: BTreeMap<String, toml::Value>,
    env: BTreeMap<String, String>,
    flags: BTreeMap<String, String>,
    known: Vec<String>,
    errors: Vec<String>,
    /// `key = value (origin)`, for the start-up log.
    lines: Vec<String>,
}

/// Every setting, read.
#[derive(Default)]
pub(super) struct Values {
    values: BTreeMap<String, Value>,
    /// For each section whose keys may have any name: the names and their texts.
    entries: BTreeMap<String, Vec<(String, String)>>,
}

impl Source {
    /// `file`: its name and its text. `flags`: dotted keys and their texts.
    ///
    /// # Errors
    /// A file that is not TOML.
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

    /// Reads every setting of the table, in its order.
    pub(super) fn read(&mut self, table: &[Setting]) -> Values {
        let mut values = Values::default();
        for setting in table {
            let key = setting.key();
            self.known.push(key.clone().into_owned());
            match key.strip_suffix('*') {
                Some(dotted) if setting.is_map() => {
                    let mut entries = Vec::new();
                    for key in self.keys_below(dotted) {
                        if let Value::Text(text) = self.value(setting, &key, &values) {
                            entries.push((key[dotted.len()..].to_owned(), text));
                        }
                    }
                    values.entries.insert(dotted.trim_end_matches('.').to_owned(), entries);
                }
                _ => {
                    let value = self.value(setting, &key, &values);
                    values.values.insert(key.into_owned(), value);
                }
            }
        }
        values
    }

    /// Every key of any layer that begins with `dotted`.
    fn keys_below(&self, dotted: &str) -> Vec<String> {
        let from_env = variable(dotted);
        let named = self.file.keys().chain(self.flags.keys()).filter(|key| key.starts_with(dotted)).cloned();
        let in_env = self.env.keys().filter_map(|name| name.strip_prefix(&from_env));
        let mut keys: Vec<String> =
            named.chain(in_env.map(|name| format!("{dotted}{}", name.to_ascii_lowercase()))).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The value of one key, from the highest layer that has it.
    fn value(&mut self, setting: &Setting, key: &str, above: &Values) -> Value {
        let mut read = None;
        // Overruled layers are read too: their errors would otherwise appear only when the higher layer is removed.
        for (raw, origin) in self.found(key) {
            match setting.read(&raw, above) {
                Some(value) => {
                    read.get_or_insert((value, origin));
                }
                None => self.errors.push(format!("{key} ({origin}): allowed is {}", setting.allowed())),
            }
        }
        let (value, origin) = read.unwrap_or_else(|| (setting.default(above), DEFAULT.to_owned()));
        self.lines.push(format!("{key} = {} ({origin})", setting.show(&value)));
        value
    }

    /// The values of a key in the layers, the highest first, each with its origin.
    fn found(&mut self, key: &str) -> Vec<(Raw, String)> {
        let variable = variable(key);
        let flag = self.flags.remove(key).map(|text| (Raw::Text(text), "command line".to_owned()));
        let in_env = self.env.remove(&variable).map(|text| (Raw::Text(text), format!("environment, {variable}")));
        let in_file = self.file.remove(key).map(|value| (Raw::Toml(value), self.file_name.clone()));
        [flag, in_env, in_file].into_iter().flatten().collect()
    }

    /// Adds an error that concerns more than one setting.
    pub(super) fn wrong(&mut self, message: String) {
        self.errors.push(message);
    }

    /// The lines of the start, unless there are errors.
    ///
    /// # Errors
    /// Everything that is wrong, including unknown keys.
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

    /// What could be meant by an unknown key: the keys and, as `name.*`, the sections directly inside the innermost
    /// section that `encloses` it; and that section, which ends with a dot unless it is the top level.
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

impl Values {
    fn get(&self, key: &str) -> &Value {
        self.values.get(key).unwrap_or_else(|| panic!("{key} is not a row of the table above its reader"))
    }

    /// An integer, in the type of its field, which must fit the bounds.
    pub(super) fn number<T: TryFrom<u64>>(&self, key: &str) -> T {
        let Value::Integer(value) = self.get(key) else { panic!("{key} is not an integer") };
        T::try_from(*value).ok().unwrap_or_else(|| panic!("the bounds of {key} do not fit its field"))
    }

    pub(super) fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(self.number(key))
    }

    pub(super) fn seconds(&self, key: &str) -> Duration {
        Duration::from_secs(self.number(key))
    }

    pub(super) fn boolean(&self, key: &str) -> bool {
        let Value::Boolean(value) = self.get(key) else { panic!("{key} is not a boolean") };
        *value
    }

    pub(super) fn text(&self, key: &str) -> &str {
        let Value::Text(text) = self.get(key) else { panic!("{key} is not a text") };
        text
    }

    /// The text unless it is empty.
    pub(super) fn optional(&self, key: &str) -> Option<&str> {
        Some(self.text(key)).filter(|text| !text.is_empty())
    }

    pub(super) fn path(&self, key: &str) -> Option<PathBuf> {
        self.optional(key).map(PathBuf::from)
    }

    /// The parsed text; the rule of its row has checked it.
    pub(super) fn parsed<T: FromStr>(&self, key: &str) -> T {
        self.text(key).parse().ok().unwrap_or_else(|| panic!("the rule of {key} allows what its type does not"))
    }

    pub(super) fn word<T: Word>(&self, key: &str) -> T {
        self.optional_word(key).unwrap_or_else(|| panic!("{key} has no word"))
    }

    pub(super) fn optional_word<T: Word>(&self, key: &str) -> Option<T> {
        let text = self.text(key);
        T::words().into_iter().find(|(word, _)| *word == text).map(|(_, value)| value)
    }

    pub(super) fn list(&self, key: &str) -> &[String] {
        let Value::List(items) = self.get(key) else { panic!("{key} is not a list") };
        items
    }

    pub(super) fn moment(&self, key: &str) -> Option<Timestamp> {
        let Value::Moment(at) = self.get(key) else { panic!("{key} is not a time") };
        *at
    }

    pub(super) fn secrets(&self, key: &str) -> &[Secret] {
        let Value::Secrets(secrets) = self.get(key) else { panic!("{key} is not a secret") };
        secrets
    }

    /// Names and texts of a section whose keys may have any name.
    pub(super) fn entries(&self, key: &str) -> &[(String, String)] {
        self.entries.get(key).unwrap_or_else(|| panic!("{key} is not a section of the table"))
    }
}

impl Raw {
    pub(super) fn integer(&self) -> Option<u64> {
        match self {
            Raw::Text(text) => text.parse().ok(),
            Raw::Toml(value) => value.as_integer().and_then(|value| value.try_into().ok()),
        }
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match self {
            Raw::Text(text) => text.to_ascii_lowercase().parse().ok(),
            Raw::Toml(value) => value.as_bool(),
        }
    }

    pub(super) fn is_auto(&self) -> bool {
        match self {
            Raw::Text(text) => text.eq_ignore_ascii_case("auto"),
            Raw::Toml(value) => value.as_str() == Some("auto"),
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        match self {
            Raw::Text(text) => Some(text.clone()),
            Raw::Toml(toml::Value::String(text)) => Some(text.clone()),
            Raw::Toml(toml::Value::Integer(value)) => Some(value.to_string()),
            Raw::Toml(_) => None,
        }
    }

    /// The text of a decimal number of the file.
    pub(super) fn decimal(&self) -> Option<String> {
        match self {
            Raw::Toml(toml::Value::Float(value)) if value.is_finite() => Some(value.to_string()),
            _ => None,
        }
    }

    /// `Some(None)`: the empty text, which means no time.
    pub(super) fn moment(&self) -> Option<Option<Timestamp>> {
        let text = match self {
            Raw::Text(text) | Raw::Toml(toml::Value::String(text)) => text.clone(),
            Raw::Toml(toml::Value::Datetime(at)) => at.to_string(),
            Raw::Toml(_) => return None,
        };
        if text.is_empty() { Some(None) } else { instant::read(&text).map(Some) }
    }

    pub(super) fn list(&self) -> Option<Vec<String>> {
        match self {
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

    /// One secret.
    pub(super) fn secret(&self) -> Option<Secret> {
        match self {
            Raw::Text(text) | Raw::Toml(toml::Value::String(text)) => long_enough(text),
            Raw::Toml(_) => None,
        }
    }

    /// One secret or a list of them. Only the file can hold a list: a secret may contain commas.
    pub(super) fn secrets(&self) -> Option<Vec<Secret>> {
        match self {
            Raw::Toml(toml::Value::Array(_)) => {
                let texts = self.list().filter(|texts| !texts.is_empty())?;
                texts.iter().map(|text| long_enough(text)).collect()
            }
            one => Some(vec![one.secret()?]),
        }
    }
}

fn long_enough(text: &str) -> Option<Secret> {
    (text.len() >= 32).then(|| Secret::new(text.to_owned()))
}

/// The values of a file. A number beyond 64 bits becomes one that no setting accepts: TOML's own error names neither
/// the key nor its bounds, while the error of the setting names both.
fn values(file: &str) -> Result<toml::Table, toml::de::Error> {
    let mut table = DeTable::parse(file)?;
    table.get_mut().iter_mut().for_each(|(_, value)| make_refusable(value.get_mut()));
    toml::Table::deserialize(toml::Deserializer::from(table))
}

/// Replaces integers that are too long and floats that are too large, at any depth.
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
