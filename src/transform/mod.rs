//! Matches → output: each transformation that a message concerns, in the form it asks for.
//!
//! | file | what |
//! |---|---|
//! | `program.rs` | a transformation as a flat program of bytes and slots, made once |
//! | `construct.rs` | groups of nodes → output, by that program |
//! | `copy.rs`, `reproduce.rs`, `declarations.rs` | nodes of a message, copied with their namespaces |
//! | `escape.rs` | characters as they are written in XML |

pub mod construct;
mod copy;
mod declarations;
mod escape;
mod program;
mod reproduce;

pub use construct::{ConstructError, Lists, construct};
pub use copy::Copyist;
pub use program::Program;
