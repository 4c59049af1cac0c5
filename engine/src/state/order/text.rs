//! A text that is stored inline if it is short: nearly all ids of orders have at most 36 characters, and need no
//! allocation.

/// Longest inline text; a row has 40 bytes for it. An allocated text takes 16 of them, and one of 36 characters 48
/// elsewhere.
const SHORT_BYTES_MAX: usize = 38;

/// An immutable text.
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

    /// Validates all of it: a comparison uses the bytes instead.
    pub fn as_str(&self) -> &str {
        match self {
            Text::Short { .. } => std::str::from_utf8(self.as_bytes()).expect("made from a text and copied whole"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_are_unchanged() {
        for length in [0, 1, 36, SHORT_BYTES_MAX - 1, SHORT_BYTES_MAX, SHORT_BYTES_MAX + 1, 300] {
            for letter in ["x", "é", "漢"] {
                let text = letter.repeat(length.div_ceil(letter.len()));
                let stored = Text::new(&text);
                assert_eq!(stored.as_str(), text);
                assert_eq!(matches!(stored, Text::Short { .. }), text.len() <= SHORT_BYTES_MAX, "{text}");
                assert_eq!(stored.as_bytes(), text.as_bytes());
            }
        }
        assert_eq!(std::mem::size_of::<Option<Text>>(), 40);
    }
}
