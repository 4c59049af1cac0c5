//! Published digests of files.

use ahash::AHashMap;
use archive::row::Condition;

/// SHA-256 of files, by name: the lines of `SHA256SUMS.txt`, or what the user gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// `None`: the name occurs with two digests.
    digests: AHashMap<String, Option<[u8; 32]>>,
}

impl Sums {
    /// Reads lines as `sha256sum` writes them: 64 hexadecimal digits, a space, a space or `*`, a path. Only the last
    /// part of a path counts. Other lines, and paths with `..` in them, are passed over.
    pub fn parse(text: &[u8]) -> Sums {
        let mut sums = Sums::default();
        for (digest, name) in text.split(|byte| *byte == b'\n').filter_map(line) {
            sums.digests
                .entry(name)
                .and_modify(|known| *known = known.filter(|known| *known == digest))
                .or_insert(Some(digest));
        }
        sums
    }

    /// The digest of one file.
    pub fn one(name: String, digest: [u8; 32]) -> Sums {
        Sums { digests: [(name, Some(digest))].into_iter().collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// The digest of a file; `None`: none is known.
    ///
    /// # Errors
    /// Two are known.
    pub fn of(&self, name: &str) -> Result<Option<[u8; 32]>, String> {
        match self.digests.get(name) {
            Some(None) => Err(format!("two digests of {name} are published")),
            Some(digest) => Ok(*digest),
            None => Ok(None),
        }
    }
}

/// A digest of 64 hexadecimal digits.
pub fn parse_digest(text: &str) -> Option<[u8; 32]> {
    Condition::parse(&format!("0x{}", text.to_ascii_lowercase())).map(|digest| digest.0)
}

fn line(line: &[u8]) -> Option<([u8; 32], String)> {
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
    let (digest, path) = line.split_at_checked(64)?;
    let path = path.strip_prefix("  ").or_else(|| path.strip_prefix(" *"))?;
    let is_elsewhere = path.split('/').any(|part| part == "..");
    let name = path.rsplit('/').next().filter(|_| !is_elsewhere).filter(|name| !name.is_empty())?;
    Some((parse_digest(digest)?, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_digests() {
        let [ones, twos] = ["1", "2"].map(|digit| digit.repeat(64));
        let upper = "AB".repeat(32);
        let one = Ok(Some([0x11; 32]));
        // text, digest of `a.parquet`
        type Found = Result<Option<[u8; 32]>, String>;
        let cases: Vec<(Vec<u8>, Found)> = vec![
            (format!("{ones}  a.parquet\n").into(), one.clone()),
            (format!("{ones} *a.parquet").into(), one.clone()),
            (format!("{twos}  b.parquet\r\n{ones}  ./2026/08/a.parquet\r\n").into(), one.clone()),
            (format!("{upper}  a.parquet").into(), Ok(Some([0xab; 32]))),
            (format!("{ones}  a.parquet\n{ones}  x/a.parquet").into(), one.clone()),
            (format!("{ones}  a.parquet\n{twos}  a.parquet\n{ones}  a.parquet").into(), Err("two digests".into())),
            // Not such lines, or of another folder.
            (format!("{ones}  ../../a.parquet").into(), Ok(None)),
            (format!("{ones}  x/../a.parquet").into(), Ok(None)),
            (format!("{ones}  ..").into(), Ok(None)),
            (format!("{ones} a.parquet").into(), Ok(None)),
            (format!("{ones}\ta.parquet").into(), Ok(None)),
            (format!("{}  a.parquet", &ones[1..]).into(), Ok(None)),
            (format!("{}g  a.parquet", &ones[1..]).into(), Ok(None)),
            (format!("SHA256 (a.parquet) = {ones}").into(), Ok(None)),
            (format!("\\{ones}  a.parquet").into(), Ok(None)),
            (format!("{ones}  a.parquet/").into(), Ok(None)),
            (format!("{ones}  a.parquet ").into(), Ok(None)),
            (format!("{}é  a.parquet", &ones[1..]).into(), Ok(None)),
            ([ones.as_bytes(), b"  \xffa.parquet\n"].concat(), Ok(None)),
            (b"<html><body>404</body></html>".to_vec(), Ok(None)),
            (Vec::new(), Ok(None)),
            (vec![b'\n'; 100_000], Ok(None)),
            // A strange line does not hide the next one.
            ([&[0, 0xff, b'\n'][..], ones.as_bytes(), b"  a.parquet"].concat(), one),
        ];
        for (text, expected) in &cases {
            let found = Sums::parse(text).of("a.parquet");
            let is_same = match (&found, expected) {
                (Err(found), Err(part)) => found.contains(part.as_str()),
                (found, expected) => found == expected,
            };
            assert!(is_same, "{:?}: {found:?}", String::from_utf8_lossy(text));
        }
        println!("lines of digests: {} cases", cases.len());
    }
}
