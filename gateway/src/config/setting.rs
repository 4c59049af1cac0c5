//! One setting: its key, type, default, bounds and meaning. Reading, error texts, the start-up print and the reference
//! all come from this record.

use super::source::{Raw, Values};
use engine::time::Timestamp;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use wire::instant;

/// Prefix of the environment variables of all settings.
pub(super) const ENV_PREFIX: &str = "PAPERTAPE_";

/// A row of the table of settings.
pub struct Setting {
    key: Cow<'static, str>,
    kind: Kind,
    meaning: Cow<'static, str>,
    /// Shown instead of the default if the value alone does not explain what happens.
    unset: Option<&'static str>,
}

/// The type of a setting.
enum Kind {
    Integer {
        default: u64,
        range: RangeInclusive<u64>,
    },
    Boolean {
        default: bool,
    },
    /// `auto` (the default), `true` or `false`; the function computes what `auto` means, from the settings above.
    Switch {
        auto: fn(&Values) -> bool,
    },
    /// One of the words; the empty text only if it is the default.
    Word {
        default: &'static str,
        words: Vec<&'static str>,
        /// Values that only earlier versions wrote, each with the word that it means now.
        synonyms: &'static [(&'static str, &'static str)],
    },
    Text {
        default: String,
        rule: Rule,
        is_quoted: bool,
    },
    Moment {
        default: Option<Timestamp>,
    },
    List {
        default: Vec<String>,
        rule: Rule,
    },
    Secret,
    Secrets,
    /// Every key under this one; each entry is a text.
    Map {
        rule: Rule,
    },
}

/// Which texts are allowed.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    /// The name of the type in the reference.
    pub what: &'static str,
    /// In words, to follow *allowed is*.
    pub allowed: &'static str,
    /// The text as it is stored and shown; `None` if it is not allowed.
    pub read: fn(&str) -> Option<String>,
}

/// A value that was read and is within its bounds.
#[derive(Clone)]
pub(super) enum Value {
    Integer(u64),
    Boolean(bool),
    Text(String),
    Moment(Option<Timestamp>),
    List(Vec<String>),
    Secrets(Vec<super::Secret>),
}

/// A type whose values are words of the configuration.
pub(super) trait Word: Copy + PartialEq {
    /// Every word with its value; these words are offered.
    fn words() -> Vec<(&'static str, Self)>;

    /// The word of a value.
    fn word(self) -> &'static str {
        Self::words().into_iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

pub(super) fn integer(
    key: impl Into<Cow<'static, str>>,
    default: u64,
    range: RangeInclusive<u64>,
    meaning: impl Into<Cow<'static, str>>,
) -> Setting {
    Setting::new(key, Kind::Integer { default, range }, meaning)
}

pub(super) fn boolean(key: &'static str, default: bool, meaning: &'static str) -> Setting {
    Setting::new(key, Kind::Boolean { default }, meaning)
}

pub(super) fn switch(
    key: &'static str,
    auto: fn(&Values) -> bool,
    unset: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting::new(key, Kind::Switch { auto }, meaning).unset(unset)
}

pub(super) fn word<T: Word>(key: &'static str, default: T, meaning: &'static str) -> Setting {
    words(key, default.word(), T::words().into_iter().map(|(word, _)| word), meaning)
}

/// A setting that is one of the words of `T`, or absent or empty for none of them. `unset` describes the latter.
pub(super) fn optional_word<T: Word>(key: &'static str, unset: &'static str, meaning: &'static str) -> Setting {
    words(key, "", T::words().into_iter().map(|(word, _)| word), meaning).unset(unset)
}

pub(super) fn words(
    key: &'static str,
    default: &'static str,
    words: impl IntoIterator<Item = &'static str>,
    meaning: &'static str,
) -> Setting {
    let words = words.into_iter().collect();
    Setting::new(key, Kind::Word { default, words, synonyms: &[] }, meaning)
}

/// A text that is shown in quotation marks.
pub(super) fn text(
    key: impl Into<Cow<'static, str>>,
    default: impl Into<String>,
    rule: Rule,
    meaning: &'static str,
) -> Setting {
    Setting::new(key, Kind::Text { default: default.into(), rule, is_quoted: true }, meaning)
}

/// A text that stands for a value of another type, shown as it was read.
pub(super) fn parsed(key: &'static str, default: impl Into<String>, rule: Rule, meaning: &'static str) -> Setting {
    Setting::new(key, Kind::Text { default: default.into(), rule, is_quoted: false }, meaning)
}

/// A path that need not be set.
pub(super) fn path(key: impl Into<Cow<'static, str>>, meaning: &'static str) -> Setting {
    const PATH: Rule = Rule { what: "path", allowed: "a path", read: |text| Some(text.to_owned()) };
    text(key, "", PATH, meaning)
}

pub(super) fn moment(key: &'static str, default: Option<Timestamp>, meaning: &'static str) -> Setting {
    Setting::new(key, Kind::Moment { default }, meaning)
}

pub(super) fn list(key: &'static str, default: &[&str], rule: Rule, meaning: &'static str) -> Setting {
    let default = default.iter().map(|text| (*text).to_owned()).collect();
    Setting::new(key, Kind::List { default, rule }, meaning)
}

pub(super) fn secret(key: &'static str, unset: &'static str, meaning: &'static str) -> Setting {
    Setting::new(key, Kind::Secret, meaning).unset(unset)
}

pub(super) fn secrets(key: &'static str, unset: &'static str, meaning: &'static str) -> Setting {
    Setting::new(key, Kind::Secrets, meaning).unset(unset)
}

pub(super) fn map(key: &'static str, rule: Rule, meaning: &'static str) -> Setting {
    Setting::new(key, Kind::Map { rule }, meaning)
}

impl Setting {
    fn new(key: impl Into<Cow<'static, str>>, kind: Kind, meaning: impl Into<Cow<'static, str>>) -> Setting {
        Setting { key: key.into(), kind, meaning: meaning.into(), unset: None }
    }

    /// Sets the words for what happens if the setting is absent.
    pub(super) fn unset(self, words: &'static str) -> Setting {
        Setting { unset: Some(words), ..self }
    }

    /// Accepts texts of earlier versions, with the words for which they stand.
    pub(super) fn synonyms(mut self, accepted: &'static [(&'static str, &'static str)]) -> Setting {
        if let Kind::Word { synonyms, .. } = &mut self.kind {
            *synonyms = accepted;
        }
        self
    }

    /// The dotted key; one for all keys below it ends with `.*`.
    pub fn key(&self) -> Cow<'_, str> {
        match self.kind {
            Kind::Map { .. } => Cow::Owned(format!("{}.*", self.key)),
            _ => Cow::Borrowed(&self.key),
        }
    }

    /// The environment variable of the key.
    pub fn variable(&self) -> String {
        variable(&self.key())
    }

    /// Its effect, in full sentences, with its unit.
    pub fn meaning(&self) -> &str {
        &self.meaning
    }

    /// The name of its type.
    pub fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Integer { .. } => "integer",
            Kind::Boolean { .. } => "boolean",
            Kind::Switch { .. } => "boolean or `auto`",
            Kind::Word { .. } => "word",
            Kind::Text { rule, .. } => rule.what,
            Kind::Moment { .. } => "time",
            Kind::List { .. } => "list",
            Kind::Secret => "secret",
            Kind::Secrets => "secret or list of secrets",
            Kind::Map { .. } => "section",
        }
    }

    /// The allowed values, in words: error messages write *allowed is* before it.
    pub fn allowed(&self) -> Cow<'static, str> {
        match &self.kind {
            Kind::Integer { range, .. } => format!("an integer from {} to {}", range.start(), range.end()).into(),
            Kind::Boolean { .. } => "true or false".into(),
            Kind::Switch { .. } => "auto, true or false".into(),
            Kind::Word { words, .. } => match words.split_last() {
                Some((last, [])) => (*last).into(),
                Some((last, first)) => format!("{} or {last}", first.join(", ")).into(),
                None => "nothing".into(),
            },
            Kind::Text { rule, .. } | Kind::List { rule, .. } | Kind::Map { rule } => rule.allowed.into(),
            Kind::Moment { .. } => "a date or an RFC 3339 time; \"\" for none".into(),
            Kind::Secret => "a text of at least 32 bytes".into(),
            Kind::Secrets => "a text, or a list of texts, of at least 32 bytes each".into(),
        }
    }

    /// What happens if it is absent, in words, unless the default alone explains it.
    pub fn unset_words(&self) -> Option<&'static str> {
        self.unset
    }

    /// The default as it may be written in a file, without quotation marks; empty if there is none.
    pub fn default_text(&self) -> String {
        match &self.kind {
            Kind::Integer { default, .. } => default.to_string(),
            Kind::Boolean { default } => default.to_string(),
            Kind::Word { default, .. } => (*default).to_owned(),
            Kind::Text { default, .. } => default.clone(),
            Kind::Moment { default } => default.as_ref().map_or_else(String::new, |at| instant::ts_text(*at)),
            Kind::List { default, .. } => default.join(", "),
            Kind::Switch { .. } => "auto".to_owned(),
            Kind::Secret | Kind::Secrets | Kind::Map { .. } => String::new(),
        }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.kind, Kind::Map { .. })
    }

    /// The value if no layer sets it; `above`: the settings before it in the table.
    pub(super) fn default(&self, above: &Values) -> Value {
        match &self.kind {
            Kind::Integer { default, .. } => Value::Integer(*default),
            Kind::Boolean { default } => Value::Boolean(*default),
            Kind::Switch { auto } => Value::Boolean(auto(above)),
            Kind::Word { default, .. } => Value::Text((*default).to_owned()),
            Kind::Text { default, .. } => Value::Text(default.clone()),
            Kind::Moment { default } => Value::Moment(*default),
            Kind::List { default, .. } => Value::List(default.clone()),
            Kind::Secret | Kind::Secrets => Value::Secrets(Vec::new()),
            Kind::Map { .. } => Value::Text(String::new()),
        }
    }

    /// Reads the value of a layer; `None` if it is not allowed.
    pub(super) fn read(&self, raw: &Raw, above: &Values) -> Option<Value> {
        match &self.kind {
            Kind::Integer { range, .. } => raw.integer().filter(|value| range.contains(value)).map(Value::Integer),
            Kind::Boolean { .. } => raw.boolean().map(Value::Boolean),
            Kind::Switch { auto } if raw.is_auto() => Some(Value::Boolean(auto(above))),
            Kind::Switch { .. } => raw.boolean().map(Value::Boolean),
            Kind::Word { default, words, synonyms } => {
                let text = raw.text().or_else(|| raw.boolean().map(|value| value.to_string()))?;
                let meant = synonyms.iter().find(|(synonym, _)| *synonym == text).map(|(_, word)| *word);
                let word = meant.or_else(|| words.iter().copied().find(|word| *word == text));
                word.or_else(|| default.is_empty().then_some("").filter(|_| text.is_empty()))
                    .map(|word| Value::Text(word.to_owned()))
            }
            Kind::Text { rule, .. } => (rule.read)(&raw.text()?).map(Value::Text),
            Kind::Map { rule } => (rule.read)(&raw.text().or_else(|| raw.decimal())?).map(Value::Text),
            Kind::Moment { .. } => raw.moment().map(Value::Moment),
            Kind::List { rule, .. } => {
                raw.list()?.iter().map(|text| (rule.read)(text)).collect::<Option<_>>().map(Value::List)
            }
            Kind::Secret => raw.secret().map(|secret| Value::Secrets(vec![secret])),
            Kind::Secrets => raw.secrets().map(Value::Secrets),
        }
    }

    /// A value as the start prints it; secrets are not shown.
    pub(super) fn show(&self, value: &Value) -> String {
        match (value, &self.kind) {
            (Value::Secrets(secrets), Kind::Secret) if secrets.is_empty() => "none".to_owned(),
            (Value::Secrets(_), Kind::Secret) => "not shown".to_owned(),
            (Value::Secrets(secrets), _) => format!("[{} secrets, not shown]", secrets.len()),
            (Value::Text(text), Kind::Text { is_quoted: true, .. } | Kind::Map { .. }) => format!("{text:?}"),
            (Value::Text(text), _) if text.is_empty() => "none".to_owned(),
            (Value::Text(text), _) => text.clone(),
            (Value::Integer(value), _) => value.to_string(),
            (Value::Boolean(value), _) => value.to_string(),
            (Value::Moment(at), _) => at.map_or_else(|| "none".to_owned(), instant::ts_text),
            (Value::List(items), _) => format!("[{}]", items.join(", ")),
        }
    }
}

/// The environment variable of a dotted key.
pub(super) fn variable(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}
