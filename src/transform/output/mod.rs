//! The nodes that a transformation selected → bytes of an output.
//!
//! | file | what |
//! |---|---|
//! | `program.rs` | a transformation as a flat program of bytes and slots |
//! | `construct.rs` | runs a program on the nodes of a message |
//! | `tree_writer.rs` | writes an output node by node, for what is evaluated tuple by tuple |
//! | `copy.rs` | copies nodes, with the namespaces in scope |
//! | `serialize.rs` | the same for messages with an internal DTD subset, node by node |
//! | `message_namespaces.rs` | namespace declarations of the message |
//! | `output_namespaces.rs` | namespace declarations added to the output |
//! | `escape.rs` | escapes text and attribute values |
//! | `deduplicate.rs` | finds an equal output of the same message |

mod construct;
mod copy;
mod deduplicate;
mod escape;
mod message_namespaces;
mod output_namespaces;
mod program;
mod serialize;
mod tree_writer;

pub use construct::{ConstructError, Constructor, NodeLists};
pub use copy::NodeCopier;
pub(super) use deduplicate::Deduplicator;
pub use program::Program;
pub use tree_writer::TreeWriter;
