//! State as bytes, for a later run that continues where this one was: fixed width, little-endian, a length before a text
//! or list. Reading checks every length before it allocates.

use wincode::config::Configuration;
use wincode::{SchemaRead, SchemaWrite};

/// Most bytes of a list in memory.
const BYTES_MAX: usize = 256 << 20;

pub(crate) type Layout = Configuration<true, BYTES_MAX>;

/// The bytes of a value; `None`: it is too large.
pub(crate) fn write<T: SchemaWrite<Layout, Src = T>>(value: &T) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    wincode::config::serialize_into(&mut bytes, value, Layout::new()).ok()?;
    Some(bytes)
}

/// The value of such bytes; `None`: they are not exactly one.
pub(crate) fn read<T: for<'de> SchemaRead<'de, Layout, Dst = T>>(mut bytes: &[u8]) -> Option<T> {
    let value = <T as SchemaRead<'_, Layout>>::get(&mut bytes).ok()?;
    bytes.is_empty().then_some(value)
}
