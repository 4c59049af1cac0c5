//! The library part of the tools: the load client, and the modules that the benches use too.

pub mod frame;
pub mod load;
pub mod machine;
pub mod settings;
pub mod signals;

/// Why a verb failed, as it is printed.
pub type Failure = Box<dyn std::error::Error>;
