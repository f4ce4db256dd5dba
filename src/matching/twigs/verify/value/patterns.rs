//! The regular expressions of queries, compiled when they are first needed and kept across messages.

use std::sync::Arc;

use regex::bytes::Regex;
use rustc_hash::FxHashMap;

use crate::query::pattern::Pattern;
use crate::tuning::KEPT_PATTERNS_SIZE;

/// A pattern that is ready to search.
pub struct Compiled {
    pub regex: Regex,
    pub groups: usize,
    /// What to count for each byte that is searched, in `PATTERN_STEP_SIZE`s.
    pub size: usize,
}

/// A bounded cache: emptied when it is full.
#[derive(Default)]
pub struct Patterns {
    /// By flags, `/` and the pattern.
    known: FxHashMap<Box<[u8]>, Option<Arc<Compiled>>>,
    size: usize,
    key: Vec<u8>,
}

impl Patterns {
    /// The compiled pattern; `None` if it cannot be compiled, which no pattern of an accepted query is.
    pub fn compiled(&mut self, pattern: &[u8], flags: &[u8]) -> Option<Arc<Compiled>> {
        self.key.clear();
        self.key.extend_from_slice(flags);
        self.key.push(b'/');
        self.key.extend_from_slice(pattern);
        if let Some(known) = self.known.get(self.key.as_slice()) {
            return known.clone();
        }
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let compiled = Pattern::parse(text(pattern), text(flags)).ok().and_then(|pattern| {
            let (groups, size) = (pattern.groups, pattern.size);
            Some(Arc::new(Compiled { regex: pattern.compile()?, groups, size }))
        });
        self.size += pattern.len() + compiled.as_ref().map_or(0, |compiled| compiled.size);
        if self.size > KEPT_PATTERNS_SIZE {
            self.known.clear();
            self.size = pattern.len() + compiled.as_ref().map_or(0, |compiled| compiled.size);
        }
        self.known.insert(self.key.as_slice().into(), compiled.clone());
        compiled
    }
}
