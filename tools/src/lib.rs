//! What is usable without the command line: the load client, and the parts that it shares with the benches.

pub mod frame;
pub mod load;
pub mod machine;
pub mod settings;
pub mod signals;

/// Why a verb failed, as it is printed.
pub type Failure = Box<dyn std::error::Error>;
