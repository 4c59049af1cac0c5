//! Rows of a snapshot as bytes, field by field, in the layout of the journal: fixed width, little-endian, a length
//! before a text or list. Reading checks every length against the remaining bytes before it allocates.

use crate::gathered::Gathered;
use crate::id::UserId;
use crate::time::{Date, Timestamp};
use wincode::config::Configuration;
use wincode::{SchemaRead, SchemaWrite};

/// Records, and so their parts, are smaller than this; a longer list or text is refused before it is allocated.
const BYTES_MAX: usize = 1 << 20;

pub(crate) type Layout = Configuration<true, BYTES_MAX>;

/// A type with the journal's layout.
pub trait Encodable: SchemaWrite<Layout, Src = Self> + for<'de> SchemaRead<'de, Layout, Dst = Self> + Sized {}

impl<T> Encodable for T where T: SchemaWrite<Layout, Src = T> + for<'de> SchemaRead<'de, Layout, Dst = T> {}

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// Written by a build that this one cannot read; it reads formats up to `newest`.
    Version { found: u16, newest: u16 },
    /// A length exceeds the bytes, or the bytes end too early.
    Length,
    /// A text is not UTF-8.
    Text,
    /// An unknown variant, or a flag byte that is neither 0 nor 1.
    Variant,
    /// A row refers to another that does not exist.
    Reference,
    /// Bytes after the end.
    Rest,
    /// The clock was set back to `at`, before the newest time in rows of this user that have left memory.
    SetBack { user: UserId, newest: Timestamp, at: Timestamp },
}

impl std::fmt::Display for CodecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CodecError::Version { found, newest } => {
                write!(f, "format {found} is unknown; this build reads up to {newest}")
            }
            CodecError::Length => f.write_str("a length exceeds the bytes"),
            CodecError::Text => f.write_str("a text is not UTF-8"),
            CodecError::Variant => f.write_str("unknown variant"),
            CodecError::Reference => f.write_str("a row refers to a missing row"),
            CodecError::Rest => f.write_str("bytes after the end"),
            CodecError::SetBack { user, newest, at } => write!(
                f,
                "the clock is set back to {} µs since 1970, but rows of user {user} that have left memory are of {} µs: \
                 their times would stay in the future. Start from a snapshot from before they left, with the records \
                 since, or restore a backup",
                at.0, newest.0
            ),
        }
    }
}

impl std::error::Error for CodecError {}

/// Appends one value.
#[inline]
pub(crate) fn write<T: Encodable>(value: &T, out: &mut Vec<u8>) {
    wincode::config::serialize_into(&mut *out, value, Layout::new())
        .expect("a value in memory is far smaller than a record");
}

/// The same for a value with many fields, or for several values.
#[inline]
pub(crate) fn gather<T: Encodable>(value: &T, gathered: &mut Gathered<'_>) {
    wincode::config::serialize_into(gathered, value, Layout::new())
        .expect("a value in memory is far smaller than a record");
}

/// Reads one value from the front.
#[inline]
pub(crate) fn read<T: Encodable>(input: &mut &[u8]) -> Result<T, CodecError> {
    <T as SchemaRead<'_, Layout>>::get(&mut *input).map_err(named)
}

#[cold]
pub(crate) fn named(error: wincode::ReadError) -> CodecError {
    match error {
        wincode::ReadError::InvalidUtf8Encoding(_) => CodecError::Text,
        wincode::ReadError::InvalidTagEncoding(_) | wincode::ReadError::InvalidBoolEncoding(_) => CodecError::Variant,
        _ => CodecError::Length,
    }
}

/// A row, or a field of one.
pub(crate) trait Bytes: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(input: &mut &[u8]) -> Result<Self, CodecError>;
}

/// Lists the fields of a struct in their order; a missing field does not compile.
macro_rules! row {
    ($name:ty { $($field:ident),* $(,)? }) => {
        impl $crate::bytes::Bytes for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $( $crate::bytes::Bytes::put(&self.$field, out); )*
            }
            fn take(input: &mut &[u8]) -> Result<Self, $crate::bytes::CodecError> {
                Ok(Self { $( $field: $crate::bytes::Bytes::take(input)? ),* })
            }
        }
    };
}
pub(crate) use row;

/// Types with the same layout in journal and snapshot.
macro_rules! leaf {
    ($($name:ty),* $(,)?) => {$(
        impl $crate::bytes::Bytes for $name {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                $crate::bytes::write(self, out);
            }
            #[inline]
            fn take(input: &mut &[u8]) -> Result<Self, $crate::bytes::CodecError> {
                $crate::bytes::read(input)
            }
        }
    )*};
}
pub(crate) use leaf;

leaf! {
    bool, u32, u64, [u8; 20], [u8; 32],
    crate::id::UserId, crate::id::WalletId, crate::id::KeyId, crate::id::OrderId,
    crate::amount::Cash, crate::amount::Qty, crate::amount::Bps,
    crate::time::Timestamp, crate::time::UtcDay,
    (crate::id::WalletId, crate::time::Timestamp),
}

impl<T: Bytes> Bytes for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.is_some().into());
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(if bool::take(input)? { Some(T::take(input)?) } else { None })
    }
}

/// The layout of `Option<Timestamp>`.
impl Bytes for Date {
    fn put(&self, out: &mut Vec<u8>) {
        self.get().put(out);
    }
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        match Bytes::take(input)? {
            Some(Timestamp(0)) => Err(CodecError::Variant),
            at => Ok(Date::from(at)),
        }
    }
}

impl Bytes for Box<str> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let len = usize::try_from(u64::take(input)?).map_err(|_| CodecError::Length)?;
        let (text, rest) = input.split_at_checked(len).ok_or(CodecError::Length)?;
        *input = rest;
        Ok(std::str::from_utf8(text).map_err(|_| CodecError::Text)?.into())
    }
}

/// Writes a list: its length, then its rows.
pub(crate) fn put_list<'a, T: Bytes + 'a>(len: usize, rows: impl Iterator<Item = &'a T>, out: &mut Vec<u8>) {
    (len as u64).put(out);
    for row in rows {
        row.put(out);
    }
}

/// Reads a list row by row, so that a wrong length runs out of bytes, not of memory.
pub(crate) fn take_list<T: Bytes>(input: &mut &[u8], mut push: impl FnMut(T)) -> Result<(), CodecError> {
    for _ in 0..u64::take(input)? {
        push(T::take(input)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A date has the bytes of an option, and none of them means the start of 1970.
    #[test]
    fn a_date_is_its_option() {
        let mut cases = 0;
        for at in [None, Some(Timestamp(1)), Some(Timestamp(u64::MAX))] {
            let (mut date, mut option) = (Vec::new(), Vec::new());
            Date::from(at).put(&mut date);
            at.put(&mut option);
            assert_eq!(date, option, "{at:?}");
            assert_eq!(Date::take(&mut &date[..]).map(Date::get), Ok(at));
            cases += 1;
        }
        let mut zero = Vec::new();
        Some(Timestamp(0)).put(&mut zero);
        assert_eq!(Date::take(&mut &zero[..]), Err(CodecError::Variant), "it would decode as none");
        println!("dates: {} cases", cases + 1);
    }
}
