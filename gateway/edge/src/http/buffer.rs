//! Buffers that are used again: what an answer is written into, and what a connection gathers to send. They belong to the
//! thread that serves the connection. They come back empty and are not wiped, as memory that is freed is not.

use std::cell::RefCell;

/// Buffers that wait for somebody with something to write; there may be thousands of connections without. More than
/// connections whose answers leave together. None is larger than this.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 128 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer, with room if one is spare.
pub fn take() -> Vec<u8> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Lays a buffer aside for whoever needs one next.
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
    fn buffers_come_back_empty_and_only_so_many() {
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
