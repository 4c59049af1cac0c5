//! A text that lies in its row when it is short: the id of an order is one of 36 characters or fewer nearly always, and
//! costs no allocation of its own.

use crate::mutation::bytes::Bytes;
use crate::mutation::codec::CodecError;

/// Longest text that lies in the row, which has 40 bytes for it. Of an allocated text it has 16, and one of 36 characters
/// takes 48 elsewhere.
const SHORT_BYTES_MAX: usize = 38;

/// A text that does not change.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    Short { len: u8, bytes: [u8; SHORT_BYTES_MAX] },
    Long(Box<str>),
}

impl Text {
    pub fn new(text: &str) -> Text {
        let mut bytes = [0; SHORT_BYTES_MAX];
        match bytes.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text.as_bytes());
                Text::Short { len: text.len() as u8, bytes }
            }
            None => Text::Long(text.into()),
        }
    }

    /// Looks through all of it: whoever only compares takes the bytes.
    pub fn as_str(&self) -> &str {
        match self {
            Text::Short { .. } => std::str::from_utf8(self.as_bytes()).expect("made of a text and copied whole"),
            Text::Long(text) => text,
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Text::Short { len, bytes } => &bytes[..usize::from(*len)],
            Text::Long(text) => text.as_bytes(),
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

/// As any text: its length, then its bytes.
impl Bytes for Text {
    fn put(&self, out: &mut Vec<u8>) {
        let text = self.as_bytes();
        (text.len() as u64).put(out);
        out.extend_from_slice(text);
    }
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let len = usize::try_from(u64::take(input)?).map_err(|_| CodecError::Length)?;
        let (text, rest) = input.split_at_checked(len).ok_or(CodecError::Length)?;
        *input = rest;
        std::str::from_utf8(text).map(Text::new).map_err(|_| CodecError::Text)
    }
}

impl Bytes for Box<Text> {
    fn put(&self, out: &mut Vec<u8>) {
        Text::put(self, out);
    }
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        Text::take(input).map(Box::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_stay_what_they_are() {
        for length in [0, 1, 36, SHORT_BYTES_MAX - 1, SHORT_BYTES_MAX, SHORT_BYTES_MAX + 1, 300] {
            for letter in ["x", "é", "漢"] {
                let text = letter.repeat(length.div_ceil(letter.len()));
                let kept = Text::new(&text);
                assert_eq!(kept.as_str(), text);
                assert_eq!(matches!(kept, Text::Short { .. }), text.len() <= SHORT_BYTES_MAX, "{text}");
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                kept.put(&mut ours);
                Box::<str>::from(text.as_str()).put(&mut theirs);
                assert_eq!(ours, theirs, "the layout of any text");
                assert_eq!(Text::take(&mut ours.as_slice()), Ok(kept));
            }
        }
        for (letter, error) in [(&[b'x'][..], CodecError::Length), (&[0xff, b'x'], CodecError::Text)] {
            let bytes = [&2_u64.to_le_bytes()[..], letter].concat();
            assert_eq!(Text::take(&mut bytes.as_slice()), Err(error));
        }
        assert_eq!(std::mem::size_of::<Option<Text>>(), 40);
    }
}
