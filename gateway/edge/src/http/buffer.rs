//! Buffers that a thread uses again: for bodies of responses, and for bytes gathered by a connection. They are returned
//! empty and, like freed memory, are not wiped.

use std::cell::RefCell;

/// Spare buffers: more than the connections of a write batch. Idle connections, of which there may be thousands, hold
/// none.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 128 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer, with room if one is spare.
pub fn take() -> Vec<u8> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Returns a buffer for its next use. A large one is freed.
pub fn give_back(mut buffer: Vec<u8>) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < SPARE_MAX && (1..=SPARE_BYTES_MAX).contains(&buffer.capacity()) {
            buffer.clear();
            spare.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_buffers_is_used_again() {
        for count in 0..2 * SPARE_MAX {
            give_back(vec![count as u8; 64]);
        }
        give_back(Vec::new());
        give_back(Vec::with_capacity(SPARE_BYTES_MAX + 1));
        for number in 0..SPARE_MAX + 2 {
            let buffer = take();
            assert_eq!((buffer.len(), buffer.capacity() >= 64), (0, number < SPARE_MAX), "buffer {number}");
        }
    }
}
