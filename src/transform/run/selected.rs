//! The selection of one transformation in a message: the elements that its blocks bind, and for each of them the nodes
//! of each return path. It is the input of `output/`.

use std::ops::Range;

use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::matching::budget::WorkLimit;
use crate::transform::output::NodeLists;
use crate::tuning::{RESULT_CACHE_ENTRIES, SELECTED_LISTS};

/// Why an operator stopped.
#[derive(Clone, Copy, Debug)]
pub enum LimitExceeded {
    /// Too many pairs, bound elements or nodes.
    Nodes,
    /// Too many lists of nodes or values.
    Lists,
    /// Too many steps.
    Work,
}

impl From<WorkLimit> for LimitExceeded {
    fn from(_: WorkLimit) -> LimitExceeded {
        LimitExceeded::Work
    }
}

impl LimitExceeded {
    #[inline]
    pub fn if_true(self, failed: bool) -> Result<(), LimitExceeded> {
        if failed { Err(self) } else { Ok(()) }
    }
}

#[derive(Default)]
pub struct Selected {
    pub bound: Vec<ElementId>,
    pub nodes: Vec<NodeRef>,
    /// The lists of nodes, by block, return path and bound element: ranges of `nodes`.
    lists: Vec<(u32, u32)>,
    blocks: Vec<SelectedBlock>,
    /// How many lists the blocks will have.
    expected_lists: usize,
}

struct SelectedBlock {
    /// The range of its elements in `bound`.
    bound: Range<usize>,
    first_list: usize,
}

impl Selected {
    pub fn clear(&mut self) {
        self.bound.clear();
        self.nodes.clear();
        self.lists.clear();
        self.lists.shrink_to(RESULT_CACHE_ENTRIES);
        self.blocks.clear();
        self.expected_lists = 0;
    }

    /// Adds a block with `paths` return paths. `limit`: bound elements of all blocks.
    #[inline]
    pub fn add_block(
        &mut self,
        bound: impl Iterator<Item = ElementId>,
        return_paths: usize,
        limit: usize,
    ) -> Result<(), LimitExceeded> {
        let (start, first_list) = (self.bound.len(), self.expected_lists);
        self.bound.extend(bound);
        let bound = start..self.bound.len();
        self.expected_lists += bound.len() * return_paths;
        self.blocks.push(SelectedBlock { bound, first_list });
        LimitExceeded::Nodes.if_true(self.bound.len() > limit)?;
        LimitExceeded::Lists.if_true(self.expected_lists > SELECTED_LISTS)
    }

    /// Memory of its buffers.
    pub fn bytes(&self) -> usize {
        self.bound.capacity() * size_of::<ElementId>()
            + self.nodes.capacity() * size_of::<NodeRef>()
            + self.lists.capacity() * size_of::<(u32, u32)>()
    }

    /// The range of a block's elements in `bound`; empty if a limit was exceeded before it.
    #[inline]
    pub fn block(&self, block: usize) -> Range<usize> {
        self.blocks.get(block).map_or(0..0, |block| block.bound.clone())
    }

    /// Ends a list that began at `start` of `nodes`. Nested bound elements may select the same nodes, so it is here
    /// that nodes are limited.
    #[inline]
    pub fn end_list(&mut self, start: usize, limit: usize) -> Result<(), LimitExceeded> {
        self.lists.push((start as u32, self.nodes.len() as u32));
        LimitExceeded::Nodes.if_true(self.nodes.len() > limit)
    }
}

impl NodeLists for Selected {
    fn bindings(&self, block: usize) -> &[ElementId] {
        &self.bound[self.block(block)]
    }

    /// Empty if a limit was exceeded before it.
    #[inline]
    fn list(&self, block: usize, path: usize, binding: usize) -> &[NodeRef] {
        let list = self.blocks.get(block).and_then(|SelectedBlock { bound, first_list }| {
            self.lists.get(first_list + path * bound.len() + binding)
        });
        list.map_or(&[], |&(start, end)| &self.nodes[start as usize..end as usize])
    }
}
