//! The provider of the football routes: a folder of JSON files, read again when they change (gateway/docs/football.md §3).
//!
//! | Module | Holds |
//! |---|---|
//! | [`kinds`] | the kinds of facts, each a file, and their records from JSON |
//! | `reader` | fields of JSON with their bounds; each defect with its place |
//! | [`folder`] | the port of `edge::api::football` on a folder, and what reads its files again |
//! | [`check`] | the check of a folder before a server reads it |
//!
//! May depend on `engine`, `wire`, `host` and `edge`. It reads nothing but these files: an id of a request is looked up in
//! memory and never becomes a part of a path.

pub mod check;
pub mod folder;
pub mod kinds;
mod reader;

pub use reader::Defect;
