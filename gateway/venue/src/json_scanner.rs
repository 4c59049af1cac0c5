//! A scanner for the JSON messages that venues send most: objects with few known fields, strings without escapes,
//! unsigned integers. It borrows what it reads and looks at each byte about twice.
//!
//! It is an optimization of the [`loose`](super::loose) parser: input that it does not accept (`None`) is parsed there
//! by serde_json, and it accepts nothing that serde_json refuses or reads differently. So it stops at an unexpected
//! field, a repeated field, an escape or a control character. Messages that come less than a thousand times a minute do
//! not need it.

/// A cursor in a JSON text.
#[derive(Clone, Debug)]
pub struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonScanner<'a> {
    /// `None` for a text with a backslash or a control character: with the former a quote may not end a string, and the
    /// latter is refused by serde_json inside strings.
    pub fn new(text: &'a str) -> Option<JsonScanner<'a>> {
        // The loop has no early exit, so that the compiler vectorizes it.
        let odd = text.bytes().fold(false, |odd, byte| odd | (byte < b' ') | (byte == b'\\'));
        (!odd).then_some(JsonScanner { text, at: 0 })
    }

    /// The next byte that is not a blank.
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

    /// Checks that only blanks are left.
    pub fn end(mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Reads exactly this text, blanks included. Always inlined: with a known length it is compared without a call.
    #[inline(always)]
    pub fn literal(&mut self, text: &str) -> Option<()> {
        self.text.as_bytes()[self.at..].starts_with(text.as_bytes()).then(|| self.at += text.len())
    }

    /// Reads a string; returns it without its quotes.
    #[inline]
    pub fn text(&mut self) -> Option<&'a str> {
        self.eat(b'"')?;
        self.up_to_quote()
    }

    /// Reads the rest of a string after its first quote.
    #[inline]
    pub fn up_to_quote(&mut self) -> Option<&'a str> {
        let end = quote(self.text.as_bytes(), self.at)?;
        let text = self.text.get(self.at..end)?;
        self.at = end + 1;
        Some(text)
    }

    /// Reads an unsigned integer of at most 19 digits.
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

    /// Reads a non-empty object: `field` reads the value of each name.
    #[inline]
    pub fn object(&mut self, mut field: impl FnMut(&mut JsonScanner<'a>, &'a str) -> Option<()>) -> Option<()> {
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

    /// Reads an array: `element` reads each element.
    #[inline]
    pub fn array(&mut self, mut element: impl FnMut(&mut JsonScanner<'a>) -> Option<()>) -> Option<()> {
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

/// The position of the next quote.
#[inline]
fn quote(bytes: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    let mut at = from;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        // A quote becomes a zero byte; the lowest high bit that remains marks the first of them.
        let word = u64::from_le_bytes(*word) ^ QUOTES;
        let found = word.wrapping_sub(ONES) & !word & HIGHS;
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    Some(at + bytes.get(at..)?.iter().position(|byte| *byte == b'"')?)
}

/// Sets a field that must not be set yet; a repeated field ends the scan.
#[inline]
pub fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use wire::testing::Random;

    /// A message with every element that the scanner reads.
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
        let mut scanner = JsonScanner::new(text)?;
        scanner.object(|scanner, name| match name {
            "a" => once(&mut message.a, scanner.text()?),
            "n" => once(&mut message.n, scanner.whole()?),
            "pairs" => {
                let mut pairs = Vec::new();
                scanner.array(|scanner| {
                    let mut pair = (None, None);
                    scanner.array(|scanner| match pair {
                        (None, _) => once(&mut pair.0, scanner.text()?),
                        _ => once(&mut pair.1, scanner.whole()?),
                    })?;
                    pairs.push((pair.0?, pair.1?));
                    Some(())
                })?;
                once(&mut message.pairs, pairs)
            }
            "inner" => {
                let mut inner = Inner::default();
                scanner.object(|scanner, name| match name {
                    "b" => once(&mut inner.b, scanner.text()?),
                    _ => None,
                })?;
                once(&mut message.inner, inner)
            }
            _ => None,
        })?;
        scanner.end()?;
        Some(message)
    }

    #[test]
    fn accepted_input_is_read_as_serde_reads_it() {
        let long = format!(r#"{{"a":"{}","n":1}}"#, "x".repeat(77));
        let cases = [
            (r#"{"a":"x","n":12,"pairs":[["y",0],["",9223372036854775807]],"inner":{"b":"é"}}"#, true),
            (r#" { "a" : "x" , "pairs" : [ ] , "inner" : { "b" : " " } } "#, true),
            (&long, true),
            (r#"{"a":"1234567"}"#, true),
            (r#"{"a":"12345678"}"#, true),
            (r#"{"n":9999999999999999999}"#, true),
            // Not accepted; serde_json may accept them.
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
        for (text, accepted) in cases {
            assert_eq!(read(text).is_some(), accepted, "{text}");
            check(text);
        }
        println!("scanned messages: {} cases", cases.len());
    }

    /// Asserts that accepted input equals serde's result; returns whether it was accepted.
    fn check(text: &str) -> bool {
        let read = read(text);
        if let Some(read) = &read {
            assert_eq!(serde_json::from_str::<Message<'_>>(text).as_ref().ok(), Some(read), "{text}");
        }
        read.is_some()
    }

    #[test]
    fn random_texts_are_read_as_serde_reads_them_or_refused() {
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
        let mut accepted = 0;
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
            accepted += usize::from(check(&text));
        }
        assert!(accepted > ROUNDS / 20, "{accepted} of {ROUNDS} were accepted");
        println!("random texts: {ROUNDS} cases, {accepted} of them accepted");
    }
}
