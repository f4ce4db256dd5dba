//! ElementSets of elements, a bit for each element of the message.

use crate::ids::ElementId;
use crate::transform::run::results::Outcomes;
use crate::tuning::KEPT_PAIRS;

/// The elements of streams, a bit for each element of the message.
#[derive(Default)]
pub struct ElementSets {
    starts: Vec<usize>,
    marks: Outcomes,
    words: Vec<u64>,
    /// How many words a set has.
    width: usize,
}

impl ElementSets {
    pub fn fit(&mut self, count: usize) {
        self.starts.resize(count, 0);
        self.marks.of.resize(count, 0);
    }

    pub fn reset(&mut self, elements: usize) {
        self.marks.next();
        self.words.clear();
        self.words.shrink_to(KEPT_PAIRS);
        self.width = elements.div_ceil(64);
    }

    /// Gives back all memory.
    pub fn forget(&mut self) {
        self.marks.next();
        self.words = Vec::new();
    }

    /// How many words a set has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether a set is there for this message.
    #[inline]
    pub fn has(&self, id: u32) -> bool {
        self.marks.outcome(id).is_some()
    }

    /// A new set, empty.
    pub fn insert(&mut self, id: u32) -> &mut [u64] {
        let start = self.words.len();
        self.words.resize(start + self.width, 0);
        self.starts[id as usize] = start;
        self.marks.set(id, Ok(()));
        &mut self.words[start..]
    }

    /// A set; an empty one if it is not there.
    #[inline]
    pub fn at(&self, id: u32) -> ElementSet<'_> {
        let start = self.starts[id as usize];
        ElementSet(if self.has(id) { &self.words[start..start + self.width] } else { &[] })
    }
}

#[derive(Clone, Copy)]
pub struct ElementSet<'a>(&'a [u64]);

impl<'a> ElementSet<'a> {
    #[inline]
    pub fn has(self, element: ElementId) -> bool {
        self.0.get(element.index() / 64).is_some_and(|word| word >> (element.index() % 64) & 1 != 0)
    }

    /// All elements, in document order.
    pub fn iter(self) -> impl Iterator<Item = ElementId> + 'a {
        self.between(ElementId(0), ElementId::from(self.0.len() * 64))
    }

    /// Those from one up to another, which is not among them.
    #[inline]
    pub fn between(self, from: ElementId, to: ElementId) -> impl Iterator<Item = ElementId> + 'a {
        let mut at = from.index() / 64;
        let mut word = self.0.get(at).map_or(0, |word| word & u64::MAX << (from.index() % 64));
        std::iter::from_fn(move || {
            while word == 0 {
                at += 1;
                if at * 64 >= to.index() {
                    return None;
                }
                word = *self.0.get(at)?;
            }
            let element = ElementId::from(at * 64 + word.trailing_zeros() as usize);
            word &= word - 1;
            (element < to).then_some(element)
        })
    }
}
