//! What the operators of a network say of one message, each kept from when it is first asked for.

use rustc_hash::FxHashMap;

use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::transform::network::Network;
use crate::transform::values::{Numbers, Texts};

/// Pairs kept for one message, over all operators; past this they are computed again.
const MOST_KEPT: usize = 1 << 22;

/// An operator gave more than is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Over;

/// Results of one kind of operator, by its number.
pub struct Kept<T> {
    results: Vec<T>,
    /// Those with the present mark are of this message; one more stands for failure.
    marks: Vec<u32>,
    mark: u32,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { results: Vec::new(), marks: Vec::new(), mark: 2 }
    }
}

/// Whether an operator has been run for this message.
pub enum Begun<T> {
    Done(Result<(), Over>),
    /// Not yet: what to compute the result in, with what it held before.
    Empty(T),
}

impl<T: Default> Kept<T> {
    fn fit(&mut self, count: usize) {
        self.results.resize_with(count, T::default);
        self.marks.resize(count, 0);
    }

    fn reset(&mut self) {
        self.mark = self.mark.wrapping_add(2);
        if self.mark < 2 {
            self.marks.fill(0);
            self.mark = 2;
        }
    }

    pub fn begin(&mut self, id: u32) -> Begun<T> {
        match self.marks[id as usize].checked_sub(self.mark) {
            Some(0) => Begun::Done(Ok(())),
            Some(_) => Begun::Done(Err(Over)),
            None => Begun::Empty(std::mem::take(&mut self.results[id as usize])),
        }
    }

    pub fn end(&mut self, id: u32, result: T, outcome: Result<(), Over>) -> Result<(), Over> {
        self.results[id as usize] = result;
        self.marks[id as usize] = self.mark + outcome.is_err() as u32;
        outcome
    }

    #[inline]
    pub fn at(&self, id: u32) -> &T {
        &self.results[id as usize]
    }
}

impl Kept<Vec<ElementId>> {
    /// Adds an element to a stream.
    #[inline]
    pub fn push(&mut self, id: u32, element: ElementId) {
        let result = &mut self.results[id as usize];
        if self.marks[id as usize] != self.mark {
            self.marks[id as usize] = self.mark;
            result.clear();
        }
        result.push(element);
    }
}

/// Pairs of a bound element and an element found from there, grouped by the former, ascending.
pub type Pairs = Vec<(ElementId, ElementId)>;

/// What one transformation takes: per block, return path and bound element a stretch of `nodes`.
#[derive(Default)]
pub struct Taken {
    pub nodes: Vec<NodeRef>,
    pub stretches: Vec<(u32, u32)>,
}

impl Taken {
    /// Ends the stretch of a bound element. Bound elements may lie in one another and take the same nodes,
    /// so it is here that the nodes are counted.
    pub fn end(&mut self, start: usize, limit: usize) -> Result<(), Over> {
        self.stretches.push((start as u32, self.nodes.len() as u32));
        if self.nodes.len() > limit { Err(Over) } else { Ok(()) }
    }

    pub fn clear(&mut self) {
        self.nodes.clear();
        self.stretches.clear();
    }
}

/// Nodes that were searched for: by group and bound element, a stretch of `nodes`.
#[derive(Default)]
pub struct Searched {
    pub places: FxHashMap<(u32, ElementId), (u32, u32)>,
    pub nodes: Vec<NodeRef>,
}

#[derive(Default)]
pub struct Results {
    pub streams: Kept<Vec<ElementId>>,
    pub joins: Kept<Pairs>,
    pub selections: Kept<(Texts, Numbers)>,
    pub conditions: Kept<Vec<ElementId>>,
    pub bindings: Kept<Vec<ElementId>>,
    pub searched: Searched,
    pub taken: Taken,
    /// How much is kept.
    pub kept: usize,
}

impl Results {
    /// Goes over to the next message.
    pub fn reset(&mut self) {
        if self.is_full() {
            *self = Results::default();
        }
        self.streams.reset();
        self.forget();
    }

    /// Forgets all of this message but its streams.
    pub fn forget(&mut self) {
        self.joins.reset();
        self.selections.reset();
        self.conditions.reset();
        self.bindings.reset();
        self.searched.places.clear();
        self.searched.nodes.clear();
        self.kept = 0;
    }

    /// Whether so much is kept that it is better forgotten.
    pub fn is_full(&self) -> bool {
        self.kept > MOST_KEPT
    }

    /// Makes room for the operators of a network.
    pub fn fit(&mut self, network: &Network) {
        self.streams.fit(network.streams.count());
        self.joins.fit(network.joins.count());
        self.selections.fit(network.selections.count());
        self.conditions.fit(network.conditions.count());
        self.bindings.fit(network.bindings.count());
    }
}
