//! Hexadecimal digits of keys, names and signatures.

/// Bytes of an idempotency key, before they become digits.
pub const KEY_BYTES: usize = 16;

/// Two digits a byte, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 32 random digits; `None` if the system has none.
pub fn random() -> Option<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}
