//! Values that are never printed.

use std::fmt;

/// A value that is never printed, and wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(zeroize::Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Secret {
        Secret(zeroize::Zeroizing::new(text))
    }

    /// A secret of 64 random hex digits.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn random() -> Result<Secret, getrandom::Error> {
        let mut random = zeroize::Zeroizing::new([0u8; 32]);
        getrandom::fill(&mut random[..])?;
        Ok(Secret::new(random.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The secret itself, for the code that signs and verifies with it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
