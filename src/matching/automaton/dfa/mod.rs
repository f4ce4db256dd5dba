//! The automaton as a lazy DFA: the trie is determinized while messages are read, into a bounded cache.
//!
//! A state is a pair of sets of trie nodes: those that an element binds (its *accept set*, which decides what is
//! found there), and those bound by the element or its ancestors that have children by `//` (its *loops*). The
//! states of an element's children follow from its state and their names. With the paths `/a/b` and `//c`:
//!
//! ```text
//! <a>          accept {/a}, loops {root}
//!   <b/>       accept {/a/b}, loops {root}
//!   <c>        accept {//c}, loops {root}
//!     <b/>     accept {}, loops {root}
//! ```
//!
//! A stream has few tag paths, so nearly every element costs one lookup by its tag path. If the cache has no
//! room for what a message needs, the search fails and `nfa` finds the same without a cache.
//!
//! Three types, as in regex-automata: the `Dfa` is immutable, its `Cache` is bounded and kept between messages,
//! and its `Scratch` holds what was found in one message.
//!
//! - `cache`: states, accept sets, and the answers of probes
//! - `scratch`: the buffers of a search
//! - `determinize`: computes states
//! - `probes`: the tests of an accept set on one attribute or text, and their answers
//! - `values`: tests the values below an element by probes

mod cache;
mod determinize;
mod probes;
mod scratch;
mod values;

pub use cache::{Cache, CacheFull};
pub use scratch::Scratch;

use crate::document::Document;
use crate::ids::{AnchorId, ElementId, TrieNodeId};
use crate::matching::automaton::names::Names;
use crate::matching::candidates::blocks::{Blocks, RowBlock};
use crate::matching::findings::{Findings, Ranks};
use crate::segment::format::NONE;
use crate::segment::format::columns::View;
use crate::util::bitset::Mask;

/// The automaton of a segment from the root of a tenant, with the labels of the names in messages.
#[derive(Clone, Copy)]
pub struct Dfa<'a> {
    pub view: &'a View<'a>,
    pub root: TrieNodeId,
    pub names: &'a Names,
}

impl Dfa<'_> {
    /// Finds the conditions and anchors of a document. `Err(CacheFull)` leaves partial findings.
    pub fn find(
        &self,
        document: &Document,
        ranks: &mut Ranks,
        findings: &mut Findings,
        cache: &mut Cache,
        scratch: &mut Scratch,
    ) -> Result<(), CacheFull> {
        scratch.reset(cache);
        ranks.enter_segment();
        Search { dfa: self, document, ranks, findings, cache, scratch }.run()
    }
}

/// One call of `find`.
struct Search<'s> {
    dfa: &'s Dfa<'s>,
    document: &'s Document,
    ranks: &'s mut Ranks,
    findings: &'s mut Findings,
    cache: &'s mut Cache,
    scratch: &'s mut Scratch,
}

impl Search<'_> {
    fn run(&mut self) -> Result<(), CacheFull> {
        let start = self.start();
        if start != self.cache.last_start {
            self.cache.last_start = start;
            self.cache.by_tag_path.clear();
        }
        for (index, element) in self.document.elements.iter().enumerate() {
            let reached = match self.cache.by_tag_path.get(element.tag_path.index()) {
                Some(&reached) if reached.state != NONE => reached,
                _ => self.reach(element)?,
            };
            self.scratch.reached.push(reached);
            self.visit(reached.accept);
            if reached.is_probed {
                self.test_values(reached.accept, ElementId::from(index))?;
            }
        }
        self.resolve_pending()
    }

    /// Adds what an element's accept set says by itself. A second element with the same set only changes which
    /// anchors are unique, a third changes nothing.
    #[inline]
    fn visit(&mut self, id: u32) {
        let Search { cache, scratch, findings, .. } = self;
        let visit = scratch.visits.flag(id);
        let accept = &cache.accepts[id as usize];
        if visit.is_none() {
            scratch.visits.insert(id);
            let (tag, range) = cache.masks.head(accept.conditions);
            findings.conditions.or(cache.masks.range(range));
            if tag != 0 {
                let block = cache.block_of_tag[tag as usize];
                cache.blocks.prefetch(block);
                scratch.wanted.push(block);
            }
            if !accept.anchors.is_empty() {
                findings.bound.count(&mut findings.bound_twice, cache.masks.get(accept.anchors));
            }
        } else if visit == Some(false) {
            scratch.visits.insert_flagged(id);
            findings.bound_twice.or(cache.masks.get(accept.anchors));
        }
    }
}

/// The findings of a successful search at the elements of its document.
#[derive(Clone, Copy)]
pub struct Trace<'a> {
    cache: &'a Cache,
    scratch: &'a Scratch,
}

impl<'a> Trace<'a> {
    /// Of the last search with this cache and this scratch space.
    pub fn new(cache: &'a Cache, scratch: &'a Scratch) -> Trace<'a> {
        Trace { cache, scratch }
    }

    /// The blocks of rows to read.
    pub fn blocks(self) -> (&'a Blocks, &'a [RowBlock]) {
        (&self.cache.blocks, &self.scratch.wanted)
    }

    /// The anchors that an element binds.
    pub fn anchors_of(self, element: ElementId) -> &'a [Mask] {
        self.cache.masks.get(self.cache.accepts[self.accept_of(element) as usize].anchors)
    }

    /// Whether an element binds an anchor.
    pub fn binds_anchor(self, element: ElementId, anchor: AnchorId) -> bool {
        let masks = self.anchors_of(element);
        let word = masks.binary_search_by_key(&(anchor.0 / 64), |mask| mask.word);
        word.is_ok_and(|at| masks[at].bits() >> (anchor.0 % 64) & 1 != 0)
    }

    /// The conditions that hold at an element, except those about values.
    pub fn conditions_of(self, element: ElementId) -> &'a [Mask] {
        self.cache.masks.get(self.cache.accepts[self.accept_of(element) as usize].conditions)
    }

    /// The number of an element's accept set.
    pub fn accept_of(self, element: ElementId) -> u32 {
        self.scratch.reached[element.index()].accept
    }

    /// How many accept sets there are, also of other documents.
    pub fn accepts(self) -> usize {
        self.cache.accepts()
    }

    /// The trie nodes of an accept set.
    pub fn nodes_of(self, accept: u32) -> &'a [TrieNodeId] {
        self.cache.accepts[accept as usize].nodes.of(&self.cache.nodes)
    }

    /// The number of the cache's clears: numbers of accept sets are valid as long as it stays.
    pub fn clears(self) -> u64 {
        self.cache.clears()
    }

    /// The conditions about values, by element, the last element first.
    pub fn value_conditions(self) -> impl Iterator<Item = (ElementId, &'a [Mask])> {
        let conditions = self.scratch.value_conditions.iter().rev();
        conditions.map(move |&(element, range)| (element, self.cache.masks.range(range)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::automaton::nfa::Nfa;
    use crate::matching::fixture::{Messages, segment};

    /// Runs the DFA on a message: the conditions that hold, or `CacheFull`.
    fn find(
        view: &View<'_>,
        messages: &mut Messages,
        message: &str,
        (cache, scratch): (&mut Cache, &mut Scratch),
    ) -> Result<Vec<u32>, CacheFull> {
        messages.read(message);
        let Messages { document, names, ranks, findings, .. } = messages;
        Dfa { view, root: TrieNodeId(0), names }.find(document, ranks, findings, cache, scratch)?;
        Ok(findings.conditions.iter().collect())
    }

    #[test]
    fn a_second_message_with_the_same_tag_paths_adds_no_state() {
        let segment = segment(&["/a/b", "//c"]);
        let view = segment.view();
        let (mut cache, mut scratch) = (Cache::new(1 << 20), Scratch::new(&view));
        let mut messages = Messages::new(&segment);
        let message = "<a><b/><c><b/></c></a>";
        let conditions = find(&view, &mut messages, message, (&mut cache, &mut scratch)).expect("room");
        assert_eq!(conditions.len(), 2);
        // Of the document node and of each element; the inner `b` binds nothing.
        assert_eq!(cache.states(), 5);
        let trace = Trace::new(&cache, &scratch);
        let nodes = |element: usize| trace.nodes_of(trace.accept_of(ElementId::from(element))).len();
        assert_eq!([0, 1, 2, 3].map(nodes), [1, 1, 1, 0]);

        let bytes = cache.bytes();
        assert_eq!(
            find(&view, &mut messages, message, (&mut cache, &mut scratch)).expect("room"),
            conditions
        );
        assert_eq!((cache.states(), cache.bytes()), (5, bytes));
    }

    #[test]
    fn equal_tag_paths_share_a_state_and_values_of_a_class_share_an_answer() {
        let segment = segment(&["//a[@p > 10]", "//a[@p < 20]", "//a[@p = 5]"]);
        let view = segment.view();
        let (mut cache, mut scratch) = (Cache::new(1 << 20), Scratch::new(&view));
        let mut messages = Messages::new(&segment);
        let mut conditions = |message: &str| {
            let found = find(&view, &mut messages, message, (&mut cache, &mut scratch)).expect("room");
            (found.len(), cache.answers.len())
        };
        assert_eq!(conditions("<r><a p='12'/></r>"), (2, 1));
        assert_eq!(conditions("<r><a p='13'/><a p='14.5'/></r>"), (2, 1));
        assert_eq!(conditions("<r><a p='20'/></r>"), (1, 2));
        assert_eq!(conditions("<r><a p='5'/></r>"), (2, 3));
        assert_eq!(conditions("<r><a p='x'/></r>"), (0, 3));
    }

    #[test]
    fn a_full_cache_fails_the_search_and_the_nfa_finds_the_same() {
        let segment = segment(&["/a/b", "//c", "//c[@p = 'x']", "/a/*/d = 3"]);
        let view = segment.view();
        let message = "<a><b/><c p='x'><b/></c><e><d>3</d></e></a>";
        let (mut cache, mut scratch) = (Cache::new(1 << 20), Scratch::new(&view));
        let mut messages = Messages::new(&segment);
        let found = find(&view, &mut messages, message, (&mut cache, &mut scratch)).expect("room");

        cache.clear();
        cache.set_capacity(0);
        assert!(find(&view, &mut messages, message, (&mut cache, &mut scratch)).is_err());
        assert_eq!(cache.clears(), 1);
        messages.read(message);
        let Messages { document, names, ranks, findings, .. } = &mut messages;
        Nfa::default().find(view, TrieNodeId(0), document, names, ranks, findings);
        assert_eq!(findings.conditions.iter().collect::<Vec<_>>(), found);
    }
}
