//! The order of the house, checked: who knows whom, where `unsafe` may stand, how things are called, what comments cite.
//!
//! Reads manifests and sources as texts. It is no compiler: what it cannot see it does not judge.

mod citations;
mod knows;
mod layers;
mod names;
mod sources;
