//! What the operators of a network say of one message, each kept from when it is first asked for.

use rustc_hash::FxHashMap;

use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::transform::plan::Network;
use crate::transform::run::element_sets::ElementSets;
use crate::transform::run::selected::LimitExceeded;
use crate::transform::run::value_index::{NumberIndex, TextIndex};
use crate::tuning::KEPT_PAIRS;

/// Results of one kind of operator, by its number.
pub struct ResultCache<T> {
    results: Vec<T>,
    marks: Outcomes,
}

impl<T> Default for ResultCache<T> {
    fn default() -> ResultCache<T> {
        ResultCache { results: Vec::new(), marks: Outcomes::default() }
    }
}

impl<T: Default> ResultCache<T> {
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
    pub fn outcome(&self, id: u32) -> Option<Result<(), LimitExceeded>> {
        self.marks.outcome(id)
    }

    /// What to compute a result in, with what it held before.
    pub fn begin(&mut self, id: u32) -> T {
        std::mem::take(&mut self.results[id as usize])
    }

    pub fn end(
        &mut self,
        id: u32,
        result: T,
        outcome: Result<(), LimitExceeded>,
    ) -> Result<(), LimitExceeded> {
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
pub struct ElementLists {
    stretches: Vec<(usize, u32)>,
    marks: Outcomes,
    elements: Vec<ElementId>,
}

impl ElementLists {
    fn fit(&mut self, count: usize) {
        self.stretches.resize(count, (0, 0));
        self.marks.of.resize(count, 0);
    }

    fn reset(&mut self) {
        self.marks.next();
        self.elements.clear();
        self.elements.shrink_to(KEPT_PAIRS);
    }

    /// Gives back all memory.
    fn forget(&mut self) {
        self.marks.next();
        self.elements = Vec::new();
    }

    /// What came of an operator, if it was run for this message.
    #[inline]
    pub fn outcome(&self, id: u32) -> Option<Result<(), LimitExceeded>> {
        self.marks.outcome(id)
    }

    /// The buffer, for an operator to append to.
    #[inline]
    pub fn begin(&mut self) -> ElementListBuilder {
        let elements = std::mem::take(&mut self.elements);
        ElementListBuilder { start: elements.len(), elements }
    }

    /// Takes the buffer back; how much the operator gave.
    #[inline]
    pub fn end(&mut self, id: u32, given: ElementListBuilder, outcome: Result<(), LimitExceeded>) -> usize {
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
pub struct ElementListBuilder {
    elements: Vec<ElementId>,
    start: usize,
}

impl ElementListBuilder {
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

impl Extend<ElementId> for ElementListBuilder {
    fn extend<T: IntoIterator<Item = ElementId>>(&mut self, elements: T) {
        self.elements.extend(elements);
    }
}

/// Which operators were run for this message.
pub struct Outcomes {
    /// Those with the present mark were; one or two more stand for failure.
    pub of: Vec<u32>,
    present: u32,
}

impl Default for Outcomes {
    fn default() -> Outcomes {
        Outcomes { of: Vec::new(), present: 4 }
    }
}

impl Outcomes {
    /// Goes over to the next message.
    pub fn next(&mut self) {
        self.present = self.present.wrapping_add(4);
        if self.present < 4 {
            self.of.fill(0);
            self.present = 4;
        }
    }

    #[inline]
    pub fn set(&mut self, id: u32, outcome: Result<(), LimitExceeded>) {
        let failure = match outcome {
            Ok(()) => 0,
            Err(LimitExceeded::Nodes) => 1,
            Err(LimitExceeded::Lists) => 2,
        };
        self.of[id as usize] = self.present + failure;
    }

    #[inline]
    pub fn outcome(&self, id: u32) -> Option<Result<(), LimitExceeded>> {
        match self.of[id as usize].checked_sub(self.present) {
            Some(0) => Some(Ok(())),
            Some(1) => Some(Err(LimitExceeded::Nodes)),
            Some(_) => Some(Err(LimitExceeded::Lists)),
            None => None,
        }
    }
}

/// Pairs of a bound element and an element found from there, grouped by the former, ascending.
pub type Pairs = Vec<(ElementId, ElementId)>;

/// Nodes that were searched for: by group and bound element, a stretch of `nodes`.
#[derive(Default)]
pub struct TwigResults {
    pub places: FxHashMap<(u32, ElementId), (u32, u32)>,
    pub nodes: Vec<NodeRef>,
}

#[derive(Default)]
pub struct Results {
    pub streams: ElementSets,
    pub joins: ResultCache<Pairs>,
    pub selections: ResultCache<(TextIndex, NumberIndex)>,
    pub conditions: ElementLists,
    pub bindings: ElementLists,
    pub searched: TwigResults,
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
        self.searched = TwigResults::default();
        self.kept = 0;
    }

    /// Whether so much is kept that it is better forgotten.
    pub fn is_full(&self) -> bool {
        self.kept > KEPT_PAIRS
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
