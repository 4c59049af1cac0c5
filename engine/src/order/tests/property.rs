//! Random days.
