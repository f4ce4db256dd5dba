//! The results of operators for one message. Each is computed when an operator above it first needs it, then cached
//! until the next message.

use rustc_hash::FxHashMap;

use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::transform::plan::{Network, OwnedBytes};
use crate::transform::run::element_sets::ElementSets;
use crate::transform::run::value_index::{NumberIndex, TextIndex};
use crate::tuning::RESULT_CACHE_ENTRIES;
use crate::util::epoch_set::EpochSet;

/// The results of one kind of operator, each with a separate buffer that is reused for the next message.
pub struct ResultCache<T> {
    results: Vec<T>,
    /// The operators that ran for this message, flagged if they failed.
    ran: EpochSet,
    /// Memory that the results own.
    owned_bytes: usize,
}

impl<T> Default for ResultCache<T> {
    fn default() -> ResultCache<T> {
        ResultCache { results: Vec::new(), ran: EpochSet::default(), owned_bytes: 0 }
    }
}

impl<T: Default + OwnedBytes> ResultCache<T> {
    fn fit(&mut self, count: usize) {
        self.results.resize_with(count, T::default);
        self.ran.resize(count);
    }

    /// Drops all results of this message and frees their memory.
    fn free(&mut self) {
        self.ran.clear();
        self.results.fill_with(T::default);
        self.owned_bytes = 0;
    }

    /// Whether an operator failed, if it ran for this message.
    pub fn failed(&self, id: u32) -> Option<bool> {
        self.ran.flag(id)
    }

    /// Takes out the buffer of a result, with its old content.
    pub fn begin(&mut self, id: u32) -> T {
        let result = std::mem::take(&mut self.results[id as usize]);
        self.owned_bytes -= result.owned_bytes();
        result
    }

    pub fn end(&mut self, id: u32, result: T, failed: bool) {
        self.owned_bytes += result.owned_bytes();
        self.results[id as usize] = result;
        mark(&mut self.ran, id, failed);
    }

    #[inline]
    pub fn at(&self, id: u32) -> &T {
        &self.results[id as usize]
    }

    fn bytes(&self) -> usize {
        self.results.capacity() * size_of::<T>() + self.owned_bytes + self.ran.bytes()
    }
}

/// The results of one kind of operator that gives elements: ranges of one buffer.
#[derive(Default)]
pub struct ElementLists {
    /// Start and length.
    ranges: Vec<(usize, u32)>,
    /// The operators that ran for this message, flagged if they failed.
    ran: EpochSet,
    elements: Vec<ElementId>,
}

impl ElementLists {
    fn fit(&mut self, count: usize) {
        self.ranges.resize(count, (0, 0));
        self.ran.resize(count);
    }

    fn reset(&mut self) {
        self.ran.clear();
        self.elements.clear();
        self.elements.shrink_to(RESULT_CACHE_ENTRIES);
    }

    /// Drops all lists of this message and frees their memory.
    fn free(&mut self) {
        self.ran.clear();
        self.elements = Vec::new();
    }

    /// Whether an operator failed, if it ran for this message.
    #[inline]
    pub fn failed(&self, id: u32) -> Option<bool> {
        self.ran.flag(id)
    }

    /// Takes out the buffer, for an operator to append to.
    #[inline]
    pub fn begin(&mut self) -> ElementListBuilder {
        let elements = std::mem::take(&mut self.elements);
        ElementListBuilder { start: elements.len(), elements }
    }

    /// Puts the buffer back; returns how many elements the operator gave.
    #[inline]
    pub fn end(&mut self, id: u32, list: ElementListBuilder, failed: bool) -> usize {
        let count = list.count();
        self.ranges[id as usize] = (list.start, count as u32);
        self.elements = list.elements;
        mark(&mut self.ran, id, failed);
        count
    }

    /// Makes the list of one operator that of another, too.
    pub fn share(&mut self, id: u32, other: u32) {
        self.ranges[id as usize] = self.ranges[other as usize];
        self.ran.insert(id);
    }

    fn bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<(usize, u32)>()
            + self.elements.capacity() * size_of::<ElementId>()
            + self.ran.bytes()
    }

    /// The elements that an operator gave for this message; none if it did not run.
    #[inline]
    pub fn at(&self, id: u32) -> &[ElementId] {
        if !self.ran.contains(id) {
            return &[];
        }
        let (start, count) = self.ranges[id as usize];
        &self.elements[start..start + count as usize]
    }
}

/// The list that an operator gives, appended to the lists before it.
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

    /// Sorts the elements and drops duplicates.
    #[inline]
    pub fn sort_and_deduplicate(&mut self) {
        let list = &mut self.elements[self.start..];
        if list.is_sorted_by(|one, other| one < other) {
            return;
        }
        list.sort_unstable();
        let mut last = ElementId::NONE;
        self.retain(|element| std::mem::replace(&mut last, element) != element);
    }
}

impl Extend<ElementId> for ElementListBuilder {
    fn extend<T: IntoIterator<Item = ElementId>>(&mut self, elements: T) {
        self.elements.extend(elements);
    }
}

#[inline]
fn mark(ran: &mut EpochSet, id: u32, failed: bool) {
    if failed {
        ran.insert_flagged(id);
    } else {
        ran.insert(id);
    }
}

/// Pairs of a bound element and an end, sorted by both.
pub type Pairs = Vec<(ElementId, ElementId)>;

impl OwnedBytes for Pairs {
    fn owned_bytes(&self) -> usize {
        self.capacity() * size_of::<(ElementId, ElementId)>()
    }
}

impl OwnedBytes for (TextIndex, NumberIndex) {
    fn owned_bytes(&self) -> usize {
        self.0.bytes() + self.1.bytes()
    }
}

/// The nodes that twigs selected: for a group and bound element a range of `nodes`.
#[derive(Default)]
pub struct TwigResults {
    pub ranges: FxHashMap<(u32, ElementId), (u32, u32)>,
    pub nodes: Vec<NodeRef>,
}

/// The results of all operators for one message.
#[derive(Default)]
pub struct Results {
    pub streams: ElementSets,
    pub joins: ResultCache<Pairs>,
    pub selections: ResultCache<(TextIndex, NumberIndex)>,
    pub conditions: ElementLists,
    pub bindings: ElementLists,
    pub twigs: TwigResults,
    /// Entries cached for this message, see `RESULT_CACHE_ENTRIES`.
    pub entries: usize,
}

impl Results {
    /// Starts the next message, which has this many elements.
    pub fn reset(&mut self, elements: usize) {
        if self.is_full() {
            *self = Results::default();
        }
        self.streams.reset(elements);
        self.joins.ran.clear();
        self.selections.ran.clear();
        self.conditions.reset();
        self.bindings.reset();
        self.twigs.ranges.clear();
        self.twigs.nodes.clear();
        self.entries = 0;
    }

    /// Drops all results of this message and frees their memory.
    #[cold]
    pub fn free(&mut self) {
        self.streams.free();
        self.joins.free();
        self.selections.free();
        self.conditions.free();
        self.bindings.free();
        self.twigs = TwigResults::default();
        self.entries = 0;
    }

    /// Memory of all buffers.
    pub fn bytes(&self) -> usize {
        let twig_ranges = self.twigs.ranges.capacity() * size_of::<((u32, ElementId), (u32, u32))>();
        self.streams.bytes()
            + self.joins.bytes()
            + self.selections.bytes()
            + self.conditions.bytes()
            + self.bindings.bytes()
            + twig_ranges
            + self.twigs.nodes.capacity() * size_of::<NodeRef>()
    }

    pub fn is_full(&self) -> bool {
        self.entries > RESULT_CACHE_ENTRIES
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
