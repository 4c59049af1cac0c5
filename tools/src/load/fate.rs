//! The outcome of each order of a run, as its client knows it; one letter per order, and run lengths in a file.

/// What the client knows about one of its orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fate {
    /// The connection ended before the answer, or the answer left the outcome open.
    Unknown = b'u',
    /// Acknowledged: the server has it, in any state.
    Placed = b'p',
    /// Acknowledged, and so was its cancel.
    Cancelled = b'c',
    /// Refused: the server does not have it.
    Refused = b'r',
    /// Refused because it could not be filled: the server has it, cancelled.
    Killed = b'k',
}

impl Fate {
    pub const ALL: [Fate; 5] = [Fate::Unknown, Fate::Placed, Fate::Cancelled, Fate::Refused, Fate::Killed];
}

/// The outcomes of one connection's orders, by their numbers from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates(Vec<Fate>);

impl Fates {
    /// One more order is in flight; returns its number.
    pub fn begin(&mut self) -> u32 {
        self.0.push(Fate::Unknown);
        (self.0.len() - 1) as u32
    }

    pub fn set(&mut self, number: u32, fate: Fate) {
        self.0[number as usize] = fate;
    }

    /// The number that the next order gets.
    pub fn next(&self) -> u32 {
        self.0.len() as u32
    }

    pub fn iter(&self) -> impl Iterator<Item = Fate> {
        self.0.iter().copied()
    }

    /// `p12u1c3`: twelve placed, one unknown, three cancelled.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for run in self.0.chunk_by(|a, b| a == b) {
            text.push(run[0] as u8 as char);
            text.push_str(&run.len().to_string());
        }
        text
    }

    /// The inverse of [`Fates::write`]; `None` for any other text, and for more than `count_max` orders.
    pub fn read(text: &str, count_max: u32) -> Option<Fates> {
        let mut fates = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((letter, behind)) = rest.split_first() {
            let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let count: u32 = std::str::from_utf8(&behind[..digits]).ok()?.parse().ok()?;
            let fate = Fate::ALL.into_iter().find(|fate| *fate as u8 == *letter)?;
            let len = fates.len() + count as usize;
            if len > count_max as usize {
                return None;
            }
            fates.resize(len, fate);
            rest = &behind[digits..];
        }
        Some(Fates(fates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_read_as_they_were_written() {
        let texts = ["", "p1", "p12u1c3", "r1p1r1p1", "k2r1", "u4000000"];
        for text in texts {
            let fates = Fates::read(text, 4_000_000).expect(text);
            assert_eq!(fates.write(), text);
        }
        let wrong = ["x1", "p", "1", "p1-", "p1c", "p99999999999", "é1", "p4294967295", "p4000001", "p4000000u1"];
        for text in wrong {
            assert_eq!(Fates::read(text, 4_000_000), None, "{text}");
        }
        println!("fates: {} cases", texts.len() + wrong.len());
    }

    #[test]
    fn an_order_is_unknown_until_it_is_answered() {
        let mut fates = Fates::default();
        assert_eq!([fates.begin(), fates.begin(), fates.next()], [0, 1, 2]);
        fates.set(1, Fate::Placed);
        assert_eq!(fates.write(), "u1p1");
        println!("beginnings: 1 case");
    }
}
