//! Facts ↔ bytes: the payload of a journal record is the facts of one command, one after the other.
//!
//! The layout is bincode's fixed-width little-endian one, frozen by the golden bytes in the tests: a variant's number
//! as u32, then its fields; a text or list has its length as u64 before it; an option has one byte. wincode writes and
//! reads it; a test proves that its bytes are those of bincode. The format's number goes into the record's header.

pub use crate::bytes::CodecError;
use crate::bytes::{Encodable, Layout, named, read, write};
use crate::market::mutation::MarketMutation;
use wincode::SchemaRead;

/// The newest format of a payload. What came with it: the hash of a signed order, the recording's time of a fill.
pub const VERSION: u16 = 4;

/// The first format.
pub const VERSION_FIRST: u16 = 1;

/// Format of a payload with the fact that a directory was restored, which stands alone in its record. Nothing else differs
/// from [`VERSION_FIRST`]; builds that do not know the fact refuse the record by this number.
pub const VERSION_RESTORED: u16 = 2;

/// Format of a payload with the fact that the clock was set back. It stands alone in its record; builds that do not know it
/// refuse the record by this number.
pub const VERSION_SET_BACK: u16 = 3;

/// What can be journaled: facts about users and facts about markets. How either stands in a format before the newest is
/// said in `mutation/earlier.rs`.
pub trait Fact: Encodable {
    /// Appends it in the layout of an earlier format. What came later is left out.
    fn write_earlier(&self, version: u16, out: &mut Vec<u8>);
    /// Takes one off the front that has the layout of an earlier format, and makes it one of the newest.
    ///
    /// # Errors
    /// [`CodecError`].
    fn read_earlier(version: u16, input: &mut &[u8]) -> Result<Self, CodecError>;
}

/// Appends the facts of one command, in the newest format or one before it.
pub fn encode<F: Fact>(version: u16, facts: &[F], out: &mut Vec<u8>) {
    for fact in facts {
        match version {
            VERSION => write(fact, out),
            earlier => fact.write_earlier(earlier, out),
        }
    }
}

/// The facts in a payload, in their newest form whatever its format.
///
/// # Errors
/// [`CodecError::Version`] of a format that this build does not know; what is wrong with a fact is said in its turn.
pub fn decode<F: Fact>(version: u16, payload: &[u8]) -> Result<Facts<'_, F>, CodecError> {
    known(version)?;
    Ok(Facts { version, rest: payload, fact: std::marker::PhantomData })
}

/// Hands each fact of a payload to `take` and says how many there were: the same as going through [`decode`], without
/// moving a fact once it is read.
///
/// # Errors
/// [`CodecError`]; the facts before the one that cannot be read were handed over.
#[inline]
pub fn each<F: Fact>(version: u16, payload: &[u8], mut take: impl FnMut(&F)) -> Result<usize, CodecError> {
    known(version)?;
    let (mut rest, mut count) = (payload, 0);
    while !rest.is_empty() {
        if version == VERSION {
            match <F as SchemaRead<'_, Layout>>::get(&mut rest) {
                Ok(ref fact) => take(fact),
                Err(error) => return Err(named(error)),
            }
        } else {
            take(&F::read_earlier(version, &mut rest)?);
        }
        count += 1;
    }
    Ok(count)
}

fn known(version: u16) -> Result<(), CodecError> {
    match version {
        VERSION_FIRST..=VERSION => Ok(()),
        found => Err(CodecError::Version { found, newest: VERSION }),
    }
}

/// Facts as they are read; ends at the end of the payload or after the first error.
#[derive(Clone, Debug)]
pub struct Facts<'a, F> {
    version: u16,
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
        let fact = match self.version {
            VERSION => read(&mut self.rest),
            earlier => F::read_earlier(earlier, &mut self.rest),
        };
        if fact.is_err() {
            self.rest = &[];
        }
        Some(fact)
    }
}

/// Whether a record about markets says that the clock was set back, which stands alone in it.
pub(crate) fn sets_back(payload: &[u8]) -> bool {
    const CLOCK_SET_BACK: u32 = 8;
    const { assert!(matches!(MarketMutation::KINDS[CLOCK_SET_BACK as usize].name.as_bytes(), b"ClockSetBack")) }
    number_of(&payload).is_ok_and(|(number, _)| number == CLOCK_SET_BACK)
}

/// The number of the fact at the front, and what follows the number.
#[inline]
pub(super) fn number_of<'a>(input: &&'a [u8]) -> Result<(u32, &'a [u8]), CodecError> {
    let (number, rest) = input.split_first_chunk().ok_or(CodecError::Length)?;
    Ok((u32::from_le_bytes(*number), rest))
}

#[cfg(test)]
pub(crate) mod tests;
