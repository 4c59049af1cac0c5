//! Facts as bytes: the payload of a journal record is the facts of one command, in order.
//!
//! The layout is bincode's fixed-width little-endian one, fixed by the golden bytes in the tests: a variant's number as
//! u32, then its fields; a text or list has its length as u64 before it; an option has one byte. wincode encodes and
//! decodes it; a test proves that its bytes equal those of bincode. The record's header has the number of the format.

pub use crate::bytes::CodecError;
use crate::bytes::{Encodable, Layout, gather, named, read};
use crate::gathered::Gathered;
use crate::market::mutation::MarketMutation;
use wincode::SchemaRead;

/// The newest format of a payload. Its additions: how an order fills, and the facts about fees that markets state, chosen
/// sets, places in queues, rehearsals and cuts of order facts.
pub const VERSION: u16 = 5;

/// The first format.
pub const VERSION_FIRST: u16 = 1;

/// Format of a payload with the fact that a directory was restored, which is alone in its record. Otherwise equal to
/// [`VERSION_FIRST`]; builds without that fact refuse the record by this number.
pub const VERSION_RESTORED: u16 = 2;

/// Format of a payload with the fact that the clock was set back, which is alone in its record; builds without that
/// fact refuse the record by this number.
pub const VERSION_SET_BACK: u16 = 3;

/// The format before the newest. Its additions to the first: the hash of a signed order, the recording's time of a fill,
/// and the facts about back-tests, billing, alerts, cuts of the history and prefixes of ids.
pub const VERSION_FOURTH: u16 = 4;

/// A type of facts: about users or about markets. `mutation/earlier.rs` has their layouts in earlier formats.
pub trait Fact: Encodable {
    /// Appends it in the layout of an earlier format, without later fields.
    fn write_earlier(&self, version: u16, out: &mut Vec<u8>);
    /// Reads one in the layout of an earlier format from the front, and converts it to the newest.
    ///
    /// # Errors
    /// [`CodecError`].
    fn read_earlier(version: u16, input: &mut &[u8]) -> Result<Self, CodecError>;
}

/// Appends the facts of one command, in the newest format or one before it.
pub fn encode<F: Fact>(version: u16, facts: &[F], out: &mut Vec<u8>) {
    if version != VERSION {
        return facts.iter().for_each(|fact| fact.write_earlier(version, out));
    }
    let mut gathered = Gathered::onto(out);
    facts.iter().for_each(|fact| gather(fact, &mut gathered));
    gathered.end();
}

/// The facts of a payload, converted to the newest format.
///
/// # Errors
/// [`CodecError::Version`] for a format that this build does not have; the iterator returns other errors.
pub fn decode<F: Fact>(version: u16, payload: &[u8]) -> Result<Facts<'_, F>, CodecError> {
    known(version)?;
    Ok(Facts { version, rest: payload, fact: std::marker::PhantomData })
}

/// Passes each fact of a payload to `take`, and returns their count. Does the same as a loop over [`decode`], but does
/// not move the facts.
///
/// # Errors
/// [`CodecError`]; `take` has received the facts before the invalid one.
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

/// An iterator over the facts; ends at the end of the payload or after the first error.
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

/// Whether a record about markets has the fact that the clock was set back, which is alone in it.
pub(crate) fn sets_back(payload: &[u8]) -> bool {
    const CLOCK_SET_BACK: u32 = 8;
    const { assert!(matches!(MarketMutation::KINDS[CLOCK_SET_BACK as usize].name.as_bytes(), b"ClockSetBack")) }
    number_of(&payload).is_ok_and(|(number, _)| number == CLOCK_SET_BACK)
}

/// The number of the fact at the front, and the bytes after the number.
#[inline]
pub(super) fn number_of<'a>(input: &&'a [u8]) -> Result<(u32, &'a [u8]), CodecError> {
    let (number, rest) = input.split_first_chunk().ok_or(CodecError::Length)?;
    Ok((u32::from_le_bytes(*number), rest))
}

#[cfg(test)]
pub(crate) mod tests;
