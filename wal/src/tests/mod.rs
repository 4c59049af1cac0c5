//! Tests of the log as a whole, over the file system in memory and over real files.

mod files;
mod model;
