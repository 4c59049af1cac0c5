//! `papertape openapi`: the OpenAPI document of the HTTP interface. `gateway/openapi.json` is its output.

use crate::Failure;
use clap::Args;
use std::io::Write;

/// Print the OpenAPI document of a server with the default configuration.
#[derive(Args)]
pub struct OpenApi {}

impl OpenApi {
    pub fn run(self) -> Result<(), Failure> {
        print(&edge::description::of_the_default())
    }
}

/// Prints a document.
pub fn print(document: &[u8]) -> Result<(), Failure> {
    match std::io::stdout().write_all(document) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
