//! What a walk over the document looks for, and what it has visited.

use super::memo::Memo;
use super::tried::TriedRanges;
use crate::document::NodeRef;

/// What a walk looks for.
pub enum Sink<'s> {
    /// Any node that passes the test.
    Test(u32),
    /// The first node in document order.
    First { visits: Visits, first: Option<NodeRef> },
    /// All nodes that pass the test, each once.
    Nodes { test: u32, visits: Visits, nodes: &'s mut Vec<NodeRef> },
    /// To all ways there, one node per step.
    Tuples {
        end: End,
        failed: TriedRanges,
        way: Vec<NodeRef>,
        tuples: &'s mut Vec<Vec<NodeRef>>,
        limit: usize,
    },
}

/// What a walk has visited that visits each node once.
#[derive(Default)]
pub struct Visits {
    /// What this walk tried, whatever the outcome.
    pub tried: TriedRanges,
    /// How often a node was reached, or may be in a part that was skipped.
    pub reached: usize,
}

/// What the last step of a binding is bound to.
#[derive(Clone, Copy)]
pub enum End {
    /// Each node that passes the test.
    Test(u32),
    Node(NodeRef),
}

impl Sink<'_> {
    /// What fails: for all walks of the message, or only for the bindings of one node.
    pub fn failed<'t>(&'t mut self, memo: &'t mut Memo) -> &'t mut TriedRanges {
        if let Sink::Tuples { failed, .. } = self { failed } else { &mut memo.failed }
    }

    pub fn visits(&mut self) -> Option<&mut Visits> {
        match self {
            Sink::First { visits, .. } | Sink::Nodes { visits, .. } => Some(visits),
            Sink::Test(_) | Sink::Tuples { .. } => None,
        }
    }

    /// A count that grows whenever a part of the walk may have reached a node.
    #[inline]
    pub fn reached(&self) -> usize {
        match self {
            Sink::Test(_) => 0,
            Sink::First { visits, .. } | Sink::Nodes { visits, .. } => visits.reached,
            Sink::Tuples { tuples, .. } => tuples.len(),
        }
    }
}
