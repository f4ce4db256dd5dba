//! What one transformation selects in a message: the elements it binds and the nodes of its return paths.

use std::ops::Range;

use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::tuning::{KEPT_PAIRS, SELECTED_LISTS};

/// An operator gave more than is allowed.
#[derive(Clone, Copy, Debug)]
pub enum LimitExceeded {
    /// Pairs, bound elements or nodes.
    Nodes,
    /// Lists of nodes or values.
    Lists,
}

/// What one transformation binds and takes: per block the bound elements, and for each of these and each
/// return path a stretch of `nodes`.
#[derive(Default)]
pub struct Selected {
    pub bound: Vec<ElementId>,
    pub nodes: Vec<NodeRef>,
    stretches: Vec<(u32, u32)>,
    blocks: Vec<SelectedBlock>,
    /// How many stretches there will be.
    expected: usize,
}

struct SelectedBlock {
    bound: Range<usize>,
    /// The first of its stretches.
    first: usize,
}

impl Selected {
    pub fn clear(&mut self) {
        self.bound.clear();
        self.nodes.clear();
        self.stretches.clear();
        self.stretches.shrink_to(KEPT_PAIRS);
        self.blocks.clear();
        self.expected = 0;
    }

    /// Adds a block with so many return paths. What all blocks bind counts.
    #[inline]
    pub fn bind(
        &mut self,
        bound: impl Iterator<Item = ElementId>,
        paths: usize,
        limit: usize,
    ) -> Result<(), LimitExceeded> {
        let (start, first) = (self.bound.len(), self.expected);
        self.bound.extend(bound);
        let bound = start..self.bound.len();
        self.expected += bound.len() * paths;
        self.blocks.push(SelectedBlock { bound, first });
        if self.bound.len() > limit {
            return Err(LimitExceeded::Nodes);
        }
        if self.expected > SELECTED_LISTS { Err(LimitExceeded::Lists) } else { Ok(()) }
    }

    /// Where the elements of a block are in `bound`; nowhere if a limit came before.
    #[inline]
    pub fn block(&self, block: usize) -> Range<usize> {
        self.blocks.get(block).map_or(0..0, |block| block.bound.clone())
    }

    /// Ends the stretch of a bound element. BindingSource elements may lie in one another and take the same nodes,
    /// so it is here that the nodes are counted.
    #[inline]
    pub fn end(&mut self, start: usize, limit: usize) -> Result<(), LimitExceeded> {
        self.stretches.push((start as u32, self.nodes.len() as u32));
        if self.nodes.len() > limit { Err(LimitExceeded::Nodes) } else { Ok(()) }
    }

    /// The nodes of a block's return path for one of its bound elements; none if a limit came before.
    #[inline]
    pub fn list(&self, block: usize, path: usize, binding: usize) -> &[NodeRef] {
        let stretch = self.blocks.get(block).and_then(|SelectedBlock { bound, first }| {
            self.stretches.get(first + path * bound.len() + binding)
        });
        stretch.map_or(&[], |&(start, end)| &self.nodes[start as usize..end as usize])
    }
}
