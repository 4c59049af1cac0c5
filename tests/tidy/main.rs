//! The rules of the project: which package uses which, where `unsafe` is allowed, names, citations, commands of ignored
//! tests, and words of comments and messages.
//!
//! Reads manifests and sources as text. It is not a compiler, and does not judge what it cannot see.

mod citations;
mod ignored;
mod knows;
mod layers;
mod names;
mod sources;
mod words;
