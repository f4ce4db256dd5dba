//! Twigs that are compiled on demand, for the nodes and bindings that a query selects.

use rustc_hash::FxHashMap;

use crate::ids::SegmentQuery;
use crate::matching::automaton::names::Names;
use crate::query::{Namespaces, parse};
use crate::segment::format::file::Segment;
use crate::segment::twig::Twigs;
use crate::tuning::COMPILED_TWIG_WORDS;

/// Compiled twigs by query. A segment stores the twigs of queries that may need verification only; those of the others
/// are compiled from the query's text.
#[derive(Default)]
pub struct CompiledTwigs {
    twigs: Twigs,
    offsets: FxHashMap<SegmentQuery, u32>,
}

impl CompiledTwigs {
    /// Compiles a query's twig unless it is there.
    pub fn prepare(&mut self, segment: &Segment, names: &Names, query: SegmentQuery) {
        if self.offsets.contains_key(&query) {
            return;
        }
        // A canonical text parses: it was written by us. A damaged one is a panic, which the caller takes for damage.
        let text = segment.text(query).expect("an intact text");
        let parsed = parse(text, &Namespaces::default()).expect("a canonical text");
        let offset = self.twigs.compile(&parsed.expr, &mut |test| names.label_of(test));
        self.offsets.insert(query, offset);
    }

    /// Drops all twigs if there are too many.
    pub fn trim(&mut self) {
        if self.twigs.words().len() > COMPILED_TWIG_WORDS {
            *self = CompiledTwigs::default();
        }
    }

    pub fn offset(&self, query: SegmentQuery) -> Option<u32> {
        self.offsets.get(&query).copied()
    }

    /// Memory in bytes, approximately: each word is stored twice, once as the key by which equal parts are found.
    pub fn bytes(&self) -> usize {
        self.twigs.words().len() * 2 * size_of::<u32>()
            + self.offsets.capacity() * size_of::<(SegmentQuery, u32)>()
    }

    pub fn words(&self) -> &[u32] {
        self.twigs.words()
    }
}
