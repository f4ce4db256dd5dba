//! The elements where conditions hold and that anchors bind, in document order: linked lists, recorded only for the
//! conditions and anchors that were requested.
//!
//! Whether a word of bits has a requested one is unpredictable, so recording takes two passes: the first writes words
//! with hits without branching, the second links their bits.

use std::marker::PhantomData;

use crate::document::Document;
use crate::ids::{ElementId, Id};
use crate::matching::automaton::dfa::Trace;
use crate::segment::format::NONE;
use crate::tuning::{OCCURRENCE_BATCH, OCCURRENCES, OCCURRENCES_PER_NODE};
use crate::util::bitset::{Bits, Mask, ones};
use crate::util::epoch_set::EpochSet;

/// A document, and what the automaton found at its elements.
#[derive(Clone, Copy)]
pub struct TracedDocument<'a> {
    pub document: &'a Document,
    pub trace: Trace<'a>,
}

/// The elements of each requested condition or anchor, in document order.
pub struct Occurrences<I> {
    requested: Bits,
    /// Per condition or anchor, its first link; undefined if it was not requested.
    pub heads: Vec<u32>,
    /// An element and the next link.
    pub links: Vec<(ElementId, u32)>,
    /// Words with requested bits that are yet to be linked: the first `hit`.
    hits: Vec<Hit>,
    hit: usize,
    /// The accept sets of the elements so far, and per accept set the hits of the last such element.
    seen: EpochSet,
    hits_of: Vec<(u32, u32)>,
    limit: usize,
    of: PhantomData<I>,
}

/// Requested bits of a word that hold at an element.
#[derive(Clone, Copy, Default)]
struct Hit {
    bits: u64,
    word: u32,
    element: u32,
}

impl<I: Id> Occurrences<I> {
    pub fn new(count: usize) -> Occurrences<I> {
        Occurrences {
            requested: Bits::new(count),
            heads: vec![NONE; count],
            links: Vec::new(),
            hits: Vec::new(),
            hit: 0,
            seen: EpochSet::default(),
            hits_of: Vec::new(),
            limit: OCCURRENCES,
            of: PhantomData,
        }
    }

    /// Memory of its buffers, about.
    pub fn bytes(&self) -> usize {
        self.heads.len() * size_of::<u32>()
            + self.links.capacity() * size_of::<(ElementId, u32)>()
            + self.hits.capacity() * size_of::<Hit>()
    }

    pub fn reset(&mut self) {
        self.requested.clear();
        self.links.clear();
    }

    /// Requests the occurrences of a condition or an anchor. Writing its head long before it is used also prefetches it.
    #[inline]
    pub fn request(&mut self, of: I) {
        self.requested.set(of.index() as u32);
        self.heads[of.index()] = NONE;
    }

    /// Adds an element to those of its bits that are requested. Elements come in reverse order.
    #[inline(always)]
    fn add(&mut self, element: ElementId, found: &[Mask]) {
        self.make_room(found.len());
        let (requested, mut hit) = (self.requested.all(), self.hit);
        let hits = &mut self.hits[..];
        for mask in found {
            let bits = mask.bits() & requested[mask.word as usize];
            hits[hit] = Hit { bits, word: mask.word, element: element.0 };
            hit += (bits != 0) as usize;
        }
        self.hit = hit;
    }

    /// Adds the elements of a document by the bits of their accept sets; false if there are too many occurrences.
    /// Elements with the same accept set have the same hits.
    pub fn fill_by_accept<'a>(
        &mut self,
        found: TracedDocument<'a>,
        of: impl Fn(ElementId) -> &'a [Mask],
    ) -> bool {
        let Document { elements, attributes, texts, .. } = found.document;
        self.limit = OCCURRENCES + OCCURRENCES_PER_NODE * (elements.len() + attributes.len() + texts.len());
        self.seen.clear();
        self.seen.resize(found.trace.accepts());
        self.hits_of.resize(found.trace.accepts(), (0, 0));
        for element in (0..found.document.elements.len()).rev().map(ElementId::from) {
            let accept = found.trace.accept_of(element);
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
                if self.links.len() > self.limit {
                    return false;
                }
            }
        }
        self.link();
        true
    }

    /// Adds further occurrences; false if there are too many.
    pub fn fill<'a>(&mut self, found: impl Iterator<Item = (ElementId, &'a [Mask])>) -> bool {
        for (element, found) in found {
            self.add(element, found);
            if self.hit > OCCURRENCE_BATCH {
                self.link();
                if self.links.len() > self.limit {
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

    /// Links the hits, so that occurrences can be read.
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
    pub fn of(&self, of: I) -> impl Iterator<Item = ElementId> {
        let mut at = self.heads[of.index()];
        std::iter::from_fn(move || {
            let &(element, next) = self.links.get(at as usize)?;
            at = next;
            Some(element)
        })
    }
}
