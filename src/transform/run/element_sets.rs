//! Sets of elements, a bit for each element of the message. Each stream has one.

use crate::ids::ElementId;
use crate::tuning::RESULT_CACHE_ENTRIES;
use crate::util::epoch_set::EpochSet;

/// The sets of all streams that were computed for this message.
#[derive(Default)]
pub struct ElementSets {
    /// Where the set of a stream starts in `words`.
    starts: Vec<usize>,
    computed: EpochSet,
    words: Vec<u64>,
    /// Words of a set.
    width: usize,
}

impl ElementSets {
    pub fn fit(&mut self, count: usize) {
        self.starts.resize(count, 0);
        self.computed.resize(count);
    }

    /// Starts the next message, which has this many elements.
    pub fn reset(&mut self, elements: usize) {
        self.computed.clear();
        self.words.clear();
        self.words.shrink_to(RESULT_CACHE_ENTRIES);
        self.width = elements.div_ceil(64);
    }

    /// Drops all sets of this message and frees their memory.
    pub fn free(&mut self) {
        self.computed.clear();
        self.words = Vec::new();
    }

    /// Memory of its buffers.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
            + self.starts.capacity() * size_of::<usize>()
            + self.computed.bytes()
    }

    /// Words of a set.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether the set was computed for this message.
    #[inline]
    pub fn has(&self, id: u32) -> bool {
        self.computed.contains(id)
    }

    /// Adds an empty set.
    pub fn insert(&mut self, id: u32) -> &mut [u64] {
        let start = self.words.len();
        self.words.resize(start + self.width, 0);
        self.starts[id as usize] = start;
        self.computed.insert(id);
        &mut self.words[start..]
    }

    /// A set; empty if it was not computed.
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

    /// The elements in `from..to`, in document order.
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
