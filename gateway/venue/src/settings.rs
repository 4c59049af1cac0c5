//! The settings of live venues. A venue declares its own as one table (`settings!`), from which its struct, its rows in
//! the configuration and the reading are made.

use super::origin::Origin;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// A setting of a venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name inside the section of the venue.
    pub name: &'static str,
    pub kind: Kind,
    meaning: &'static str,
}

/// The type of a setting, with its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The address of a REST service, to which paths are appended.
    HttpAddress(&'static str),
    SocketAddress(&'static str),
    /// The id of a key; may be absent.
    KeyId,
    /// May be absent.
    Path,
    /// A number, and its bounds.
    Count(u64, RangeInclusive<u64>),
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Empty: absent.
    Text(String),
    Count(u64),
}

/// The settings of all venues that differ from their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<String, Value>);

impl Row {
    /// For `settings!`.
    pub(crate) const fn new(name: &'static str, kind: Kind, meaning: &'static str) -> Row {
        Row { name, kind, meaning }
    }

    /// The dotted key in the configuration.
    pub fn key(&self, origin: Origin) -> String {
        format!("venue.{}.{}", origin.name(), self.name)
    }

    /// Its effect, in full sentences.
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim_start()
    }

    fn default(&self) -> Value {
        match &self.kind {
            Kind::HttpAddress(default) | Kind::SocketAddress(default) => Value::Text((*default).into()),
            Kind::KeyId | Kind::Path => Value::Text(String::new()),
            Kind::Count(default, _) => Value::Count(*default),
        }
    }
}

impl Values {
    /// Sets the value of a key of [`Row::key`].
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        self.0.insert(key.into(), value);
    }

    /// The value of a setting, or its default.
    pub(crate) fn get(&self, origin: Origin, row: &Row) -> Value {
        self.0.get(&row.key(origin)).cloned().unwrap_or_else(|| row.default())
    }
}

/// The type of a field of a venue's settings.
pub(crate) trait Field {
    /// Its value.
    fn of(value: Value) -> Self;
}

impl Field for String {
    fn of(value: Value) -> String {
        match value {
            Value::Text(text) => text,
            Value::Count(_) => panic!("a text that is declared as a count"),
        }
    }
}

impl Field for Option<String> {
    fn of(value: Value) -> Option<String> {
        Some(String::of(value)).filter(|text| !text.is_empty())
    }
}

impl Field for Option<PathBuf> {
    fn of(value: Value) -> Option<PathBuf> {
        Option::<String>::of(value).map(PathBuf::from)
    }
}

impl Field for usize {
    fn of(value: Value) -> usize {
        match value {
            Value::Count(count) => count.try_into().unwrap_or(usize::MAX),
            Value::Text(_) => panic!("a count that is declared as a text"),
        }
    }
}

/// Declares the settings of a venue: a struct whose fields have their rows beside them. The documentation of a field is
/// its meaning in the reference of settings.
macro_rules! settings {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident of $venue:expr;
        $( $(#[doc = $meaning:literal])+ $field:ident: $type:ty = $kind:expr; )*
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[doc = $meaning])+ pub $field: $type, )*
        }

        impl $name {
            /// Its rows.
            pub const ROWS: &'static [$crate::settings::Row] =
                &[$( $crate::settings::Row::new(stringify!($field), $kind, concat!($($meaning),+)) ),*];

            /// Reads them.
            pub fn of(values: &$crate::settings::Values) -> $name {
                const ORIGIN: $crate::tape::Origin = $crate::tape::Origin::of($venue).expect("a live venue has a row");
                let mut rows = $name::ROWS.iter();
                let mut next = || values.get(ORIGIN, rows.next().expect("a row for each field"));
                $name { $( $field: $crate::settings::Field::of(next()), )* }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::of(&$crate::settings::Values::default())
            }
        }
    };
}
pub(crate) use settings;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_every_venue_is_complete() {
        let mut cases = 0;
        for origin in Origin::all() {
            for row in origin.registration().settings {
                let key = row.key(origin);
                assert!(row.meaning().ends_with('.'), "{key}: {}", row.meaning());
                if let Kind::Count(default, range) = &row.kind {
                    assert!(range.contains(default), "{key}");
                }
                let mut values = Values::default();
                assert_eq!(values.get(origin, row), row.default(), "{key}");
                let other = match row.kind {
                    Kind::Count(..) => Value::Count(77),
                    _ => Value::Text("another".into()),
                };
                values.set(key, other.clone());
                assert_eq!(values.get(origin, row), other);
                cases += 1;
            }
        }
        assert!(cases > 0);
        println!("settings of venues: {cases} cases");
    }

    #[test]
    fn values_reach_their_fields() {
        let mut values = Values::default();
        values.set("venue.kalshi.api", Value::Text("http://a".into()));
        values.set("venue.kalshi.key_id", Value::Text("k".into()));
        values.set("venue.kalshi.private_key_file", Value::Text("file".into()));
        values.set("venue.kalshi.markets_max", Value::Count(7));
        let read = crate::kalshi::stream::Settings::of(&values);
        assert_eq!((&*read.api, read.key_id.as_deref(), read.markets_max), ("http://a", Some("k"), 7));
        assert_eq!(read.private_key_file, Some(PathBuf::from("file")));
        assert_eq!(read.socket, crate::kalshi::stream::Settings::default().socket);
        println!("fields of settings: 5 cases");
    }
}
