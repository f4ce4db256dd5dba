//! How many nodes an axis leads to: `count(preceding::*)`. After a while they are counted for all nodes at once.
//!
//! Prefix sums over the nodes in document order: with `before[i]`, the nodes before number i that pass the test, the
//! descendants of x are `before[end(x)] - before[x + 1]`, the nodes that follow it `before[all] - before[end(x)]`, and those
//! that precede it `before[x]` without its ancestors. Building takes a step for each node of the document, an answer one.

use rustc_hash::FxHashMap;

use super::NodeTable;
use super::steps::WalkStep;
use crate::document::NodeRef;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::Verifier;
use crate::query::value::WalkAxis;
use crate::tuning::AXIS_COUNTS;

/// By test: what was visited so far, and the sums, once they are worthwhile.
#[derive(Default)]
pub struct AxisCounts {
    tests: FxHashMap<(u32, u32), (usize, Option<Sums>)>,
}

impl AxisCounts {
    pub fn clear(&mut self) {
        self.tests.clear();
    }

    pub fn bytes(&self) -> usize {
        let sums = self.tests.values().filter_map(|(_, sums)| sums.as_ref());
        sums.map(|sums| sums.passes.len() * (size_of::<bool>() + 4 * size_of::<u32>())).sum()
    }
}

/// By number of a node.
struct Sums {
    passes: Vec<bool>,
    before: Vec<u32>,
    /// Ancestors, preceding siblings and children that pass.
    above: Vec<u32>,
    siblings: Vec<u32>,
    children: Vec<u32>,
}

impl Sums {
    fn new(table: &NodeTable, mut passes: impl FnMut(NodeRef) -> bool) -> Sums {
        let count = table.message_end() as usize;
        let mut sums = Sums {
            passes: (0..count).map(|at| passes(table.node(at as u32))).collect(),
            before: vec![0; count + 1],
            above: vec![0; count],
            siblings: vec![0; count],
            children: vec![0; count],
        };
        for at in 0..count {
            let own = u32::from(sums.passes[at]);
            sums.before[at + 1] = sums.before[at] + own;
            if at > 0 {
                let parent = table.parent_number(at as u32) as usize;
                sums.above[at] = sums.above[parent] + u32::from(sums.passes[parent]);
                sums.siblings[at] = sums.children[parent];
                sums.children[parent] += own;
            }
        }
        sums
    }

    fn count(&self, table: &NodeTable, axis: WalkAxis, number: u32) -> u32 {
        let (at, end) = (number as usize, table.end(number) as usize);
        let own = u32::from(self.passes[at]);
        match axis {
            WalkAxis::Descendant => self.before[end] - self.before[at + 1],
            WalkAxis::DescendantOrSelf => self.before[end] - self.before[at],
            WalkAxis::Ancestor => self.above[at],
            WalkAxis::AncestorOrSelf => self.above[at] + own,
            WalkAxis::Following => self.before[self.passes.len()] - self.before[end],
            WalkAxis::Preceding => self.before[at] - self.above[at],
            WalkAxis::PrecedingSibling => self.siblings[at],
            WalkAxis::FollowingSibling if number > 0 => {
                self.children[table.parent_number(number) as usize] - self.siblings[at] - own
            }
            WalkAxis::FollowingSibling => 0,
            WalkAxis::Child | WalkAxis::Attribute | WalkAxis::Itself | WalkAxis::Parent => {
                unreachable!("these are counted one by one")
            }
        }
    }
}

impl Verifier<'_> {
    /// How many nodes a step without predicates selects from a node.
    pub(super) fn axis_count(&mut self, step: u32, context: NodeRef) -> Result<u32, WorkLimit> {
        let step = self.walk_step(step);
        // What is tabulated is the message, without its envelope.
        if matches!(context, NodeRef::Attribute(..))
            || self.in_record()
            || self.document.is_of_envelope(context)
        {
            return Ok(self.axis_from(step, context, usize::MAX)?.len() as u32);
        }
        let mut counts = std::mem::take(&mut self.memo.axis_counts);
        let found = self.counted_axis(step, context, &mut counts);
        self.memo.axis_counts = counts;
        found
    }

    fn counted_axis(
        &mut self,
        step: WalkStep,
        context: NodeRef,
        counts: &mut AxisCounts,
    ) -> Result<u32, WorkLimit> {
        let document = self.document;
        let key = (step.test, step.detail);
        if counts.tests.len() >= AXIS_COUNTS && !counts.tests.contains_key(&key) {
            counts.clear();
        }
        let (visited, sums) = counts.tests.entry(key).or_default();
        if sums.is_none() && *visited < NodeTable::count_of(document) {
            let left = self.budget.left();
            let found = self.axis_from(step, context, usize::MAX);
            *visited += left - self.budget.left();
            return Ok(found?.len() as u32);
        }
        if sums.is_none() {
            self.budget.spend(NodeTable::count_of(document))?;
        }
        self.budget.spend(1)?;
        let table = self.take_table();
        let sums = sums.get_or_insert_with(|| Sums::new(&table, |node| self.passes(step, node)));
        let count = sums.count(&table, step.axis, document.node_id(context).0);
        self.keep_table(table);
        Ok(count)
    }
}
