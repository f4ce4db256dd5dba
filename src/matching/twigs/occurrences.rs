//! Where conditions and anchors were found, for those that somebody asks about.

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::automaton::dfa::Dfa;
use crate::segment::format::NONE;
use crate::tuning::{OCCURRENCE_BATCH, OCCURRENCES, OCCURRENCES_PER_NODE};
use crate::util::bitset::{Bits, Mask, ones};
use crate::util::epoch_set::EpochSet;

/// What a document is, and what was found in it.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub document: &'a Document,
    pub dfa: &'a Dfa,
}

/// The elements where each of some conditions or anchors was found, in document order.
pub struct Places {
    expected: Bits,
    /// Per condition or anchor, its first link. It means nothing for those that nobody expects.
    pub heads: Vec<u32>,
    /// An element and the next link.
    pub links: Vec<(ElementId, u32)>,
    /// Words in which something expected was found, yet to be linked; the first so many are.
    hits: Vec<Hit>,
    hit: usize,
    /// The accept sets of the elements so far, and per accept set the hits of the last such element.
    seen: EpochSet,
    hits_of: Vec<(u32, u32)>,
    most: usize,
}

/// Expected bits of a word that were found at an element.
#[derive(Clone, Copy, Default)]
struct Hit {
    bits: u64,
    word: u32,
    element: u32,
}

impl Places {
    pub fn new(count: usize) -> Places {
        Places {
            expected: Bits::new(count),
            heads: vec![NONE; count],
            links: Vec::new(),
            hits: Vec::new(),
            hit: 0,
            seen: EpochSet::default(),
            hits_of: Vec::new(),
            most: OCCURRENCES,
        }
    }

    /// Memory of its buffers, about.
    pub fn bytes(&self) -> usize {
        self.heads.len() * size_of::<u32>()
            + self.links.capacity() * size_of::<(ElementId, u32)>()
            + self.hits.capacity() * size_of::<Hit>()
    }

    pub fn reset(&mut self) {
        self.expected.clear();
        self.links.clear();
    }

    /// Announces that somebody will ask for the places of a condition or an anchor. Making its head
    /// ready here, long before it is used, also brings it near.
    #[inline]
    pub fn expect(&mut self, of: u32) {
        self.expected.set(of);
        self.heads[of as usize] = NONE;
    }

    /// Notes an element for all that are expected. Elements come in reverse. Whether a word holds
    /// any cannot be foretold, so nothing branches on it: hits are linked later.
    #[inline(always)]
    fn add(&mut self, element: ElementId, found: &[Mask]) {
        self.make_room(found.len());
        let (expected, mut hit) = (self.expected.all(), self.hit);
        let hits = &mut self.hits[..];
        for mask in found {
            let bits = mask.bits() & expected[mask.word as usize];
            hits[hit] = Hit { bits, word: mask.word, element: element.0 };
            hit += (bits != 0) as usize;
        }
        self.hit = hit;
    }

    /// Notes the elements of a document by what their accept sets hold; false when there are too many
    /// places. Elements with the same accept set have the same hits.
    pub fn fill_by_accept<'a>(&mut self, found: Found<'a>, of: impl Fn(ElementId) -> &'a [Mask]) -> bool {
        let Document { elements, attributes, texts, .. } = found.document;
        self.most = OCCURRENCES + OCCURRENCES_PER_NODE * (elements.len() + attributes.len() + texts.len());
        self.seen.clear();
        self.seen.resize(found.dfa.accepts());
        self.hits_of.resize(found.dfa.accepts(), (0, 0));
        for element in (0..found.document.elements.len()).rev().map(ElementId::from) {
            let accept = found.dfa.accept_of(element);
            let first = self.hit;
            if !self.seen.insert(accept) {
                let (start, end) = self.hits_of[accept as usize];
                self.make_room((end - start) as usize);
                self.hits.copy_within(start as usize..end as usize, first);
                self.hit += (end - start) as usize;
                self.hits[first..self.hit].iter_mut().for_each(|hit| hit.element = element.0);
            } else {
                self.add(element, of(element));
                self.hits_of[accept as usize] = (first as u32, self.hit as u32);
            }
            if self.hit > OCCURRENCE_BATCH {
                self.link();
                self.seen.clear();
                if self.links.len() > self.most {
                    return false;
                }
            }
        }
        self.link();
        true
    }

    /// Notes other places; false when there are too many.
    pub fn fill<'a>(&mut self, found: impl Iterator<Item = (ElementId, &'a [Mask])>) -> bool {
        for (element, found) in found {
            self.add(element, found);
            if self.hit > OCCURRENCE_BATCH {
                self.link();
                if self.links.len() > self.most {
                    return false;
                }
            }
        }
        self.link();
        true
    }

    #[inline]
    fn make_room(&mut self, hits: usize) {
        if self.hits.len() < self.hit + hits {
            self.hits.resize(self.hit + hits.max(OCCURRENCE_BATCH), Hit::default());
        }
    }

    /// Links the hits, so that places can be looked up.
    fn link(&mut self) {
        for hit in &self.hits[..self.hit] {
            for bit in ones(hit.bits) {
                let head = &mut self.heads[(hit.word * 64 + bit) as usize];
                self.links.push((ElementId(hit.element), *head));
                *head = self.links.len() as u32 - 1;
            }
        }
        self.hit = 0;
    }

    #[inline]
    pub fn of(&self, of: u32) -> impl Iterator<Item = ElementId> {
        let mut at = self.heads[of as usize];
        std::iter::from_fn(move || {
            let &(element, next) = self.links.get(at as usize)?;
            at = next;
            Some(element)
        })
    }
}
