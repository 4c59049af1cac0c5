//! Facts ↔ bytes: the payload of a journal record is the facts of one command, one behind the other.
//!
//! The layout is bincode's fixed-width little-endian one, frozen by the golden bytes in the tests: a variant's number
//! as u32, then its fields; a text or list has its length as u64 before it; an option has one byte. wincode writes and
//! reads the same bytes several times faster, and a test proves them equal. The version goes into the record's header.

use wincode::config::Configuration;
use wincode::{SchemaRead, SchemaWrite};

/// Format of the payloads that this build writes.
pub const VERSION: u16 = 1;

/// Format of a payload with the fact that a directory was restored. Nothing else differs from [`VERSION`]; builds that do
/// not know the fact refuse the record by this number.
pub const VERSION_RESTORED: u16 = 2;

/// Format of a payload with the fact that the clock was set back. It stands alone in its record; builds that do not know it
/// refuse the record by this number.
pub const VERSION_SET_BACK: u16 = 3;

/// The newest format that this build reads.
const VERSION_NEWEST: u16 = VERSION_SET_BACK;

/// A record, and so anything in it, is smaller than this; a longer list or text is refused before it is allocated.
const BYTES_MAX: usize = 1 << 20;

type Layout = Configuration<true, BYTES_MAX>;

/// What can be journaled: facts about users and facts about markets.
pub trait Fact: SchemaWrite<Layout, Src = Self> + for<'de> SchemaRead<'de, Layout, Dst = Self> {}

impl<F> Fact for F where F: SchemaWrite<Layout, Src = F> + for<'de> SchemaRead<'de, Layout, Dst = F> {}

/// Why bytes are not facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// Written by a build that this one cannot read.
    Version(u16),
    /// A length goes beyond the bytes, or the bytes end too early.
    Length,
    /// A text is not UTF-8.
    Text,
    /// No such variant, or a byte that is neither no nor yes.
    Variant,
    /// A row names another that is not there.
    Reference,
    /// Bytes behind the end.
    Rest,
}

impl std::fmt::Display for CodecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CodecError::Version(version) => {
                write!(f, "format {version} is unknown; this build knows up to {VERSION_NEWEST}")
            }
            CodecError::Length => f.write_str("a length goes beyond the bytes"),
            CodecError::Text => f.write_str("a text is not UTF-8"),
            CodecError::Variant => f.write_str("no such variant"),
            CodecError::Reference => f.write_str("a row names another that is not there"),
            CodecError::Rest => f.write_str("bytes behind the end"),
        }
    }
}

impl std::error::Error for CodecError {}

/// Appends the facts of one command.
pub fn encode<F: Fact>(facts: &[F], out: &mut Vec<u8>) {
    for fact in facts {
        write(fact, out);
    }
}

/// The facts in a payload.
pub fn decode<F: Fact>(version: u16, payload: &[u8]) -> Result<Facts<'_, F>, CodecError> {
    if !(VERSION..=VERSION_NEWEST).contains(&version) {
        return Err(CodecError::Version(version));
    }
    Ok(Facts { rest: payload, fact: std::marker::PhantomData })
}

/// Hands each fact of a payload to `take` and says how many there were: the same as going through [`decode`], without
/// moving a fact once it is read.
#[inline]
pub fn each<F: Fact>(version: u16, payload: &[u8], mut take: impl FnMut(&F)) -> Result<usize, CodecError> {
    if !(VERSION..=VERSION_NEWEST).contains(&version) {
        return Err(CodecError::Version(version));
    }
    let (mut rest, mut count) = (payload, 0);
    while !rest.is_empty() {
        match <F as SchemaRead<'_, Layout>>::get(&mut rest) {
            Ok(ref fact) => take(fact),
            Err(error) => return Err(named(error)),
        }
        count += 1;
    }
    Ok(count)
}

/// Facts as they are read; ends at the end of the payload or behind the first error.
#[derive(Clone, Debug)]
pub struct Facts<'a, F> {
    rest: &'a [u8],
    fact: std::marker::PhantomData<F>,
}

impl<F: Fact> Iterator for Facts<'_, F> {
    type Item = Result<F, CodecError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let fact = read(&mut self.rest);
        if fact.is_err() {
            self.rest = &[];
        }
        Some(fact)
    }
}

/// Appends one value in the layout.
#[inline]
pub(crate) fn write<F: Fact>(value: &F, out: &mut Vec<u8>) {
    wincode::config::serialize_into(&mut *out, value, Layout::new())
        .expect("a value in memory is far smaller than a record");
}

/// Takes one value off the front.
#[inline]
pub(crate) fn read<F: Fact>(input: &mut &[u8]) -> Result<F, CodecError> {
    <F as SchemaRead<'_, Layout>>::get(&mut *input).map_err(named)
}

#[cold]
fn named(error: wincode::ReadError) -> CodecError {
    match error {
        wincode::ReadError::InvalidUtf8Encoding(_) => CodecError::Text,
        wincode::ReadError::InvalidTagEncoding(_) | wincode::ReadError::InvalidBoolEncoding(_) => CodecError::Variant,
        _ => CodecError::Length,
    }
}

#[cfg(test)]
pub(crate) mod tests;
