//! Decides candidates that branch where several elements stand.

pub mod ancestors;
pub mod by_name;
pub mod compiled;
pub mod occurrences;
pub mod settle;
pub mod verify;
