//! Books, users and orders of papertape: a pure calculation.
