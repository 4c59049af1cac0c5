//! The harness: boots the real gateway for tests.
