//! More than yes or no: the nodes a query selects, or the ways to them.

use rustc_hash::FxHashMap;

use crate::matching::automaton::names::Names;
use crate::query::{Namespaces, parse};
use crate::segment::format::file::Segment;
use crate::segment::twig::Twigs;
use crate::tuning::COMPILED_TWIG_WORDS;

/// Twigs compiled on demand. A segment keeps only those that matching itself verifies by, because
/// most queries never need theirs; the text is enough to make one.
#[derive(Default)]
pub struct Compiled {
    twigs: Twigs,
    offsets: FxHashMap<u32, u32>,
}

impl Compiled {
    /// Makes sure that a query's twig is there.
    pub fn prepare(&mut self, segment: &Segment, names: &Names, query: u32) {
        if self.offsets.contains_key(&query) {
            return;
        }
        // A canonical text parses: it was written by us.
        let Ok(parsed) = parse(segment.text(query), &Namespaces::default()) else {
            return;
        };
        let offset = self.twigs.compile(&parsed.expr, &mut |test| names.label_of(test));
        self.offsets.insert(query, offset);
    }

    /// Forgets twigs if there are many.
    pub fn trim(&mut self) {
        if self.twigs.words().len() > COMPILED_TWIG_WORDS {
            *self = Compiled::default();
        }
    }

    pub fn offset(&self, query: u32) -> Option<u32> {
        self.offsets.get(&query).copied()
    }

    pub fn words(&self) -> &[u32] {
        self.twigs.words()
    }
}
