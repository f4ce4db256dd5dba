//! The operators of a plan (seed 001 §6.4), on path-tuple streams. What they work in is used again.

use rustc_hash::{FxHashMap, FxHashSet};

use tamis::document::Document;
use tamis::ids::ElementId;

use crate::plan::Subject;
use crate::tuples::Tuples;

/// The result of a query: for each bound element and each return path a list of nodes.
#[derive(Default)]
pub struct Lists {
    pub nodes: Vec<ElementId>,
    pub ends: Vec<u32>,
}

impl Lists {
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.ends.clear();
    }

    pub fn end(&mut self) {
        self.ends.push(self.nodes.len() as u32);
    }
}

/// Pairs of a bound element and a node that a return path leads to.
pub type Pairs = Vec<(ElementId, ElementId)>;

#[derive(Default)]
pub struct Operators {
    set: FxHashSet<ElementId>,
    pair_set: FxHashSet<(ElementId, ElementId)>,
    /// By bound element the first and the last of its pairs, and by pair the next of the same.
    table: FxHashMap<ElementId, (u32, u32)>,
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// Whether a value of an element is the constant.
pub fn equals(document: &Document, element: ElementId, subject: &Subject, constant: &[u8]) -> bool {
    match subject {
        Subject::Value => document.string_value(element) == constant,
        Subject::Text => document.texts_of(element).any(|text| text.content.of(&document.text) == constant),
        Subject::Attribute(name) => {
            let mut attributes = document.attributes_of(element).iter();
            attributes.any(|attribute| attribute.name == *name && document.value(attribute) == constant)
        }
    }
}

impl Operators {
    /// Selection: the bound elements of those tuples whose last element has the constant.
    pub fn select(
        document: &Document,
        stream: &Tuples,
        (subject, constant): (&Subject, &[u8]),
        field: usize,
        selected: &mut Vec<ElementId>,
    ) {
        selected.clear();
        for tuple in stream.iter() {
            if equals(document, tuple[tuple.len() - 1], subject, constant) {
                selected.push(tuple[field]);
            }
        }
    }

    /// Keeps the bound elements that are selected.
    pub fn semijoin(&mut self, bound: &mut Vec<ElementId>, selected: &[ElementId], ordered: bool) {
        if ordered {
            let mut selected = selected.iter().peekable();
            bound.retain(|element| {
                while selected.next_if(|next| *next < element).is_some() {}
                selected.peek() == Some(&element)
            });
        } else {
            self.set.clear();
            self.set.extend(selected);
            bound.retain(|element| self.set.contains(element));
        }
    }

    /// The pairs of a return path's tuples, each once: side by side if they come ordered, else by hashing.
    pub fn distinct(&mut self, stream: &Tuples, field: usize, ordered: bool, pairs: &mut Pairs) {
        pairs.clear();
        self.pair_set.clear();
        for tuple in stream.iter() {
            let pair = (tuple[field], tuple[tuple.len() - 1]);
            let new = if ordered { pairs.last() != Some(&pair) } else { self.pair_set.insert(pair) };
            if new {
                pairs.push(pair);
            }
        }
    }

    /// The list of a return path for each bound element, empty where it has none.
    pub fn outer_join(
        &mut self,
        bound: &[ElementId],
        pairs: impl Iterator<Item = (ElementId, ElementId)>,
        ordered: bool,
        lists: &mut Lists,
    ) {
        if ordered {
            let mut pairs = pairs.peekable();
            for &element in bound {
                while pairs.next_if(|pair| pair.0 < element).is_some() {}
                while let Some(pair) = pairs.next_if(|pair| pair.0 == element) {
                    lists.nodes.push(pair.1);
                }
                lists.end();
            }
            return;
        }
        self.table.clear();
        self.next.clear();
        let mut ends = Vec::with_capacity(pairs.size_hint().0);
        for (element, end) in pairs {
            let at = ends.len() as u32;
            ends.push(end);
            self.next.push(NONE);
            let (_, last) = self.table.entry(element).or_insert((at, at));
            if *last != at {
                self.next[*last as usize] = at;
                *last = at;
            }
        }
        for element in bound {
            let mut at = self.table.get(element).map_or(NONE, |&(first, _)| first);
            while at != NONE {
                lists.nodes.push(ends[at as usize]);
                at = self.next[at as usize];
            }
            lists.end();
        }
    }
}
