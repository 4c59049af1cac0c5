//! A reader for the JSON that venues send all day: objects of a known few fields, texts without escapes, whole numbers
//! without sign. It borrows what it reads and looks at each byte about twice.
//!
//! It is a short cut, not a second opinion: whatever it does not take (`None`) is read by serde_json in the loose way
//! of [`loose`](super::loose), and it takes nothing that would be refused or understood otherwise there. So a field
//! that is not expected, one that comes twice, an escape or a control character end it. What it is not for: anything
//! that comes less than a thousand times a minute.

/// A text that is being read.
#[derive(Clone, Debug)]
pub struct Plain<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Plain<'a> {
    /// `None` for a text with a backslash or a control character: a quote may then not be the end of a text, and what
    /// serde_json refuses inside of one could be overlooked.
    pub fn new(text: &'a str) -> Option<Plain<'a>> {
        // Without a way out of the loop the compiler takes many bytes at a time.
        let odd = text.bytes().fold(false, |odd, byte| odd | (byte < b' ') | (byte == b'\\'));
        (!odd).then_some(Plain { text, at: 0 })
    }

    /// The next byte that is no blank.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while *bytes.get(self.at)? == b' ' {
            self.at += 1;
        }
        Some(bytes[self.at])
    }

    #[inline]
    fn eat(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    /// Nothing but blanks is left.
    pub fn end(mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Exactly this, blanks and all. Inlined wherever it stands: of a known length it is compared without a call.
    #[inline(always)]
    pub fn literal(&mut self, text: &str) -> Option<()> {
        self.text.as_bytes()[self.at..].starts_with(text.as_bytes()).then(|| self.at += text.len())
    }

    /// A text, without its quotes.
    #[inline]
    pub fn text(&mut self) -> Option<&'a str> {
        self.eat(b'"')?;
        self.up_to_quote()
    }

    /// The rest of a text whose first quote was read, without the last one.
    #[inline]
    pub fn up_to_quote(&mut self) -> Option<&'a str> {
        let end = quote(self.text.as_bytes(), self.at)?;
        let text = self.text.get(self.at..end)?;
        self.at = end + 1;
        Some(text)
    }

    /// A whole number of at most 19 digits.
    #[inline]
    pub fn whole(&mut self) -> Option<u64> {
        const DIGITS_MAX: usize = 19;
        let first = self.peek()?;
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take(DIGITS_MAX + 1).take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || digits > DIGITS_MAX || (first == b'0' && digits > 1) {
            return None;
        }
        if matches!(rest.get(digits), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.at += digits;
        Some(rest[..digits].iter().fold(0, |number, byte| number * 10 + u64::from(byte - b'0')))
    }

    /// An object, field by field: `field` reads the value of the name it is given.
    #[inline]
    pub fn object(&mut self, mut field: impl FnMut(&mut Plain<'a>, &'a str) -> Option<()>) -> Option<()> {
        self.eat(b'{')?;
        loop {
            let name = self.text()?;
            self.eat(b':')?;
            field(self, name)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// An array, element by element; it may be empty.
    #[inline]
    pub fn array(&mut self, mut element: impl FnMut(&mut Plain<'a>) -> Option<()>) -> Option<()> {
        self.eat(b'[')?;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            element(self)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }
}

/// Where the next quote is.
#[inline]
fn quote(bytes: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    let mut at = from;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        // A quote is a zero here; the lowest byte whose high bit this leaves is the first of them.
        let word = u64::from_le_bytes(*word) ^ QUOTES;
        let found = word.wrapping_sub(ONES) & !word & HIGHS;
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    Some(at + bytes.get(at..)?.iter().position(|byte| *byte == b'"')?)
}

/// What each name was told of once; a second time ends the reading, as it does elsewhere.
#[inline]
pub fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use wire::testing::Random;

    /// A message of every part the reader has.
    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Message<'a> {
        a: Option<&'a str>,
        n: Option<u64>,
        #[serde(borrow)]
        pairs: Option<Vec<(&'a str, u64)>>,
        #[serde(borrow)]
        inner: Option<Inner<'a>>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner<'a> {
        b: Option<&'a str>,
    }

    fn read(text: &str) -> Option<Message<'_>> {
        let mut message = Message::default();
        let mut plain = Plain::new(text)?;
        plain.object(|plain, name| match name {
            "a" => once(&mut message.a, plain.text()?),
            "n" => once(&mut message.n, plain.whole()?),
            "pairs" => {
                let mut pairs = Vec::new();
                plain.array(|plain| {
                    let mut pair = (None, None);
                    plain.array(|plain| match pair {
                        (None, _) => once(&mut pair.0, plain.text()?),
                        _ => once(&mut pair.1, plain.whole()?),
                    })?;
                    pairs.push((pair.0?, pair.1?));
                    Some(())
                })?;
                once(&mut message.pairs, pairs)
            }
            "inner" => {
                let mut inner = Inner::default();
                plain.object(|plain, name| match name {
                    "b" => once(&mut inner.b, plain.text()?),
                    _ => None,
                })?;
                once(&mut message.inner, inner)
            }
            _ => None,
        })?;
        plain.end()?;
        Some(message)
    }

    #[test]
    fn what_it_takes_it_reads_as_serde_does() {
        let long = format!(r#"{{"a":"{}","n":1}}"#, "x".repeat(77));
        let cases = [
            (r#"{"a":"x","n":12,"pairs":[["y",0],["",9223372036854775807]],"inner":{"b":"é"}}"#, true),
            (r#" { "a" : "x" , "pairs" : [ ] , "inner" : { "b" : " " } } "#, true),
            (&long, true),
            (r#"{"a":"1234567"}"#, true),
            (r#"{"a":"12345678"}"#, true),
            (r#"{"n":9999999999999999999}"#, true),
            // Left to others, whether they take it or not.
            (r#"{}"#, false),
            (r#"{"a":null}"#, false),
            (r#"{"a":"\u0041"}"#, false),
            (r#"{"a":"x"}x"#, false),
            (r#"{"a":"x","a":"y"}"#, false),
            (r#"{"a":"x","z":1}"#, false),
            (r#"{"a":"x",}"#, false),
            (r#"{"a":"x""n":1}"#, false),
            (r#"{"a" "x"}"#, false),
            (r#"{"n":01}"#, false),
            (r#"{"n":-1}"#, false),
            (r#"{"n":1.0}"#, false),
            (r#"{"n":1e2}"#, false),
            (r#"{"n":99999999999999999999}"#, false),
            (r#"{"n":}"#, false),
            (r#"{"pairs":[["y",0],]}"#, false),
            (r#"{"pairs":[["y",0]["y",0]]}"#, false),
            (r#"{"pairs":[["y",0,1]]}"#, false),
            (r#"{"pairs":[["y"]]}"#, false),
            (r#"{"a":"x"#, false),
            (r#"{"a":"x""#, false),
            ("{\"a\":\"x\ty\"}", false),
            ("{\n\"a\":\"x\"}", false),
            ("", false),
            (r#"[{"a":"x"}]"#, false),
        ];
        for (text, taken) in cases {
            assert_eq!(read(text).is_some(), taken, "{text}");
            check(text);
        }
        println!("plain messages: {} cases", cases.len());
    }

    /// It reads what serde reads, or nothing.
    fn check(text: &str) -> bool {
        let read = read(text);
        if let Some(read) = &read {
            assert_eq!(serde_json::from_str::<Message<'_>>(text).as_ref().ok(), Some(read), "{text}");
        }
        read.is_some()
    }

    #[test]
    fn texts_put_together_by_chance_are_read_alike_or_not_at_all() {
        const ROUNDS: usize = 200_000;
        const PIECES: [&str; 24] = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\":",
            "\"n\":",
            "\"pairs\":",
            "\"inner\":",
            "\"b\":",
            "\"x\"",
            "\"\"",
            "12",
            "0",
            "7",
            " ",
            "[\"y\",1]",
            "{\"b\":\"z\"}",
            "\\",
            "\n",
            "-",
            ".5",
            "é",
        ];
        let mut random = Random(23);
        let mut taken = 0;
        for _ in 0..ROUNDS {
            let parts = 1 + random.next() % 4;
            let mut text = String::from("{");
            for part in 0..parts {
                text.push_str(if part == 0 { "" } else { "," });
                text.push_str(
                    ["\"a\":\"x\"", "\"n\":7", "\"pairs\":[[\"y\",1]]", "\"inner\":{\"b\":\"z\"}"]
                        [(random.next() % 4) as usize],
                );
            }
            text.push('}');
            for _ in 0..random.next() % 3 {
                let at = (random.next() % text.len() as u64) as usize;
                if text.is_char_boundary(at) {
                    let piece = PIECES[(random.next() % PIECES.len() as u64) as usize];
                    let end =
                        (at..text.len()).find(|end| *end > at && text.is_char_boundary(*end)).unwrap_or(text.len());
                    if random.next().is_multiple_of(2) {
                        text.insert_str(at, piece)
                    } else {
                        text.replace_range(at..end, piece)
                    }
                }
            }
            taken += usize::from(check(&text));
        }
        assert!(taken > ROUNDS / 20, "{taken} of {ROUNDS} were taken");
        println!("texts by chance: {ROUNDS} cases, {taken} of them taken");
    }
}
