//! A node of the message or of a record.

use crate::document::NodeRef;

/// The document that a node belongs to: the message, or a record. Their order is that of the documents: first the
/// message, then the data sets by name, each with its records in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TreeId {
    /// 0 is the message; data sets are numbered from 1.
    set: u32,
    place: u32,
}

impl TreeId {
    pub const MESSAGE: TreeId = TreeId { set: 0, place: 0 };

    pub fn of_record(set: usize, place: u32) -> TreeId {
        TreeId { set: set as u32 + 1, place }
    }

    pub fn is_message(self) -> bool {
        self.set == 0
    }

    /// The place of the data set, and that of the record there; `None` for the message.
    #[inline]
    pub fn record(self) -> Option<(usize, u32)> {
        Some((self.set.checked_sub(1)? as usize, self.place))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    pub tree: TreeId,
    pub node: NodeRef,
}

impl Node {
    pub fn of_message(node: NodeRef) -> Node {
        Node { tree: TreeId::MESSAGE, node }
    }
}
