//! Values that are shown nowhere.

use std::fmt;

/// A value that is shown nowhere and wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(zeroize::Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Secret {
        Secret(zeroize::Zeroizing::new(text))
    }

    /// A new one of 64 random hex digits.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn random() -> Result<Secret, getrandom::Error> {
        let mut random = zeroize::Zeroizing::new([0u8; 32]);
        getrandom::fill(&mut random[..])?;
        Ok(Secret::new(random.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The secret itself; for the code that signs and verifies with it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
