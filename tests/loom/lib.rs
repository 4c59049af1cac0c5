//! The engine's ring and sequence, compiled with loom's primitives. The ladder keeps nothing but relaxed atomics inside of a
//! sequence, so the sequence is what there is to prove of it.

pub mod atomic;
#[path = "../../engine/src/ring.rs"]
pub mod ring;
#[path = "../../engine/src/book/sequence.rs"]
pub mod sequence;
