//! `papertape asyncapi`: the AsyncAPI document of the streams. `gateway/asyncapi.json` is its output.

use crate::Failure;
use clap::Args;
use edge::description::of_the_streams;

/// Print the AsyncAPI document of the streams.
#[derive(Args)]
pub struct AsyncApi {}

impl AsyncApi {
    pub fn run(self) -> Result<(), Failure> {
        crate::openapi::print(&of_the_streams())
    }
}
