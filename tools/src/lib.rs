//! What can be used without the command line: the load kit, and what it has in common with the benches, which are
//! clients on the machine that they measure, too.

pub mod frame;
pub mod load;
pub mod machine;
pub mod settings;
pub mod signals;

/// Why a verb failed, as it is shown.
pub type Failure = Box<dyn std::error::Error>;
