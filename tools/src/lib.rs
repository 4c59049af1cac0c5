//! What the load kit and the benches have in common: both are clients on the machine that they measure.

pub mod frame;
pub mod machine;
