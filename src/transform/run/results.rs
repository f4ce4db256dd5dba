//! What the operators of a network say of one message, each kept from when it is first asked for.

use rustc_hash::FxHashMap;

use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::transform::plan::Network;
use crate::transform::run::element_sets::Sets;
use crate::transform::run::selected::Over;
use crate::transform::run::value_index::{Numbers, Texts};

/// Pairs kept for one message, over all operators; past this they are computed again.
pub const MOST_KEPT: usize = 1 << 22;

/// Results of one kind of operator, by its number.
pub struct Kept<T> {
    results: Vec<T>,
    marks: Marks,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { results: Vec::new(), marks: Marks::default() }
    }
}

impl<T: Default> Kept<T> {
    fn fit(&mut self, count: usize) {
        self.results.resize_with(count, T::default);
        self.marks.of.resize(count, 0);
    }

    /// Gives back all memory.
    fn forget(&mut self) {
        self.marks.next();
        self.results.fill_with(T::default);
    }

    /// What came of an operator, if it was run for this message.
    pub fn outcome(&self, id: u32) -> Option<Result<(), Over>> {
        self.marks.outcome(id)
    }

    /// What to compute a result in, with what it held before.
    pub fn begin(&mut self, id: u32) -> T {
        std::mem::take(&mut self.results[id as usize])
    }

    pub fn end(&mut self, id: u32, result: T, outcome: Result<(), Over>) -> Result<(), Over> {
        self.results[id as usize] = result;
        self.marks.set(id, outcome);
        outcome
    }

    #[inline]
    pub fn at(&self, id: u32) -> &T {
        &self.results[id as usize]
    }
}

/// Elements that operators of one kind gave, by their numbers: stretches of one buffer.
#[derive(Default)]
pub struct Gathered {
    stretches: Vec<(usize, u32)>,
    marks: Marks,
    elements: Vec<ElementId>,
}

impl Gathered {
    fn fit(&mut self, count: usize) {
        self.stretches.resize(count, (0, 0));
        self.marks.of.resize(count, 0);
    }

    fn reset(&mut self) {
        self.marks.next();
        self.elements.clear();
        self.elements.shrink_to(MOST_KEPT);
    }

    /// Gives back all memory.
    fn forget(&mut self) {
        self.marks.next();
        self.elements = Vec::new();
    }

    /// What came of an operator, if it was run for this message.
    #[inline]
    pub fn outcome(&self, id: u32) -> Option<Result<(), Over>> {
        self.marks.outcome(id)
    }

    /// The buffer, for an operator to append to.
    #[inline]
    pub fn begin(&mut self) -> Growing {
        let elements = std::mem::take(&mut self.elements);
        Growing { start: elements.len(), elements }
    }

    /// Takes the buffer back; how much the operator gave.
    #[inline]
    pub fn end(&mut self, id: u32, given: Growing, outcome: Result<(), Over>) -> usize {
        let count = given.count();
        self.stretches[id as usize] = (given.start, count as u32);
        self.elements = given.elements;
        self.marks.set(id, outcome);
        count
    }

    /// Says that an operator gives what another has given.
    pub fn repeat(&mut self, id: u32, other: u32) {
        self.stretches[id as usize] = self.stretches[other as usize];
        self.marks.set(id, Ok(()));
    }

    /// What an operator gave for this message; nothing if it was not run.
    #[inline]
    pub fn at(&self, id: u32) -> &[ElementId] {
        if self.marks.outcome(id).is_none() {
            return &[];
        }
        let (start, count) = self.stretches[id as usize];
        &self.elements[start..start + count as usize]
    }
}

/// What an operator gives, after what others gave before it.
pub struct Growing {
    elements: Vec<ElementId>,
    start: usize,
}

impl Growing {
    #[inline]
    pub fn push(&mut self, element: ElementId) {
        self.elements.push(element);
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.elements.len() - self.start
    }

    pub fn retain(&mut self, mut keep: impl FnMut(ElementId) -> bool) {
        let mut kept = self.start;
        for at in self.start..self.elements.len() {
            let element = self.elements[at];
            self.elements[kept] = element;
            kept += keep(element) as usize;
        }
        self.elements.truncate(kept);
    }

    /// Brings the elements into order, each once.
    #[inline]
    pub fn sort(&mut self) {
        let given = &mut self.elements[self.start..];
        if given.is_sorted_by(|one, other| one < other) {
            return;
        }
        given.sort_unstable();
        let mut last = ElementId::NONE;
        self.retain(|element| std::mem::replace(&mut last, element) != element);
    }
}

impl Extend<ElementId> for Growing {
    fn extend<T: IntoIterator<Item = ElementId>>(&mut self, elements: T) {
        self.elements.extend(elements);
    }
}

/// Which operators were run for this message.
pub struct Marks {
    /// Those with the present mark were; one or two more stand for failure.
    pub of: Vec<u32>,
    present: u32,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { of: Vec::new(), present: 4 }
    }
}

impl Marks {
    /// Goes over to the next message.
    pub fn next(&mut self) {
        self.present = self.present.wrapping_add(4);
        if self.present < 4 {
            self.of.fill(0);
            self.present = 4;
        }
    }

    #[inline]
    pub fn set(&mut self, id: u32, outcome: Result<(), Over>) {
        let failure = match outcome {
            Ok(()) => 0,
            Err(Over::Nodes) => 1,
            Err(Over::Lists) => 2,
        };
        self.of[id as usize] = self.present + failure;
    }

    #[inline]
    pub fn outcome(&self, id: u32) -> Option<Result<(), Over>> {
        match self.of[id as usize].checked_sub(self.present) {
            Some(0) => Some(Ok(())),
            Some(1) => Some(Err(Over::Nodes)),
            Some(_) => Some(Err(Over::Lists)),
            None => None,
        }
    }
}

/// Pairs of a bound element and an element found from there, grouped by the former, ascending.
pub type Pairs = Vec<(ElementId, ElementId)>;

/// Nodes that were searched for: by group and bound element, a stretch of `nodes`.
#[derive(Default)]
pub struct Searched {
    pub places: FxHashMap<(u32, ElementId), (u32, u32)>,
    pub nodes: Vec<NodeRef>,
}

#[derive(Default)]
pub struct Results {
    pub streams: Sets,
    pub joins: Kept<Pairs>,
    pub selections: Kept<(Texts, Numbers)>,
    pub conditions: Gathered,
    pub bindings: Gathered,
    pub searched: Searched,
    /// How much is kept.
    pub kept: usize,
}

impl Results {
    /// Goes over to the next message, which has so many elements.
    pub fn reset(&mut self, elements: usize) {
        if self.is_full() {
            *self = Results::default();
        }
        self.streams.reset(elements);
        self.joins.marks.next();
        self.selections.marks.next();
        self.conditions.reset();
        self.bindings.reset();
        self.searched.places.clear();
        self.searched.nodes.clear();
        self.kept = 0;
    }

    /// Forgets all of this message, and gives back the memory.
    #[cold]
    pub fn forget(&mut self) {
        self.streams.forget();
        self.joins.forget();
        self.selections.forget();
        self.conditions.forget();
        self.bindings.forget();
        self.searched = Searched::default();
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
