//! The element graph of a DTD, as plans use it: which elements are on a cycle, and where a single path leads from
//! one element to another.
//!
//! It holds for messages that conform: the root and every parent–child edge of the message are in the graph.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::document::{Document, Vocabulary};
use crate::ids::{NameId, UriId};
use crate::query::ast::NameTest;

/// The number of an element of the graph.
pub type Declared = usize;

pub struct Schema {
    names: FxHashMap<Box<[u8]>, Declared>,
    texts: Vec<String>,
    /// Each list is sorted, as are `parents` and `roots`.
    children: Vec<Vec<Declared>>,
    parents: Vec<Vec<Declared>>,
    /// The elements that may be the root of a message.
    roots: Vec<Declared>,
    /// The strongly connected component of each element, and whether the element is on a cycle.
    component: Vec<usize>,
    on_cycle: Vec<bool>,
}

impl Schema {
    /// `elements`: each with the names of its possible children. `roots`: the possible roots of a message.
    pub fn new(elements: Vec<(String, Vec<String>)>, roots: &[String]) -> Schema {
        let names: FxHashMap<Box<[u8]>, Declared> =
            elements.iter().enumerate().map(|(at, (name, _))| (name.as_bytes().into(), at)).collect();
        let numbers = |of: &[String]| {
            let declared = of.iter().filter_map(|name| names.get(name.as_bytes()).copied());
            let mut numbers: Vec<Declared> = declared.collect();
            numbers.sort_unstable();
            numbers
        };
        let roots = numbers(roots);
        let children: Vec<Vec<Declared>> = elements.iter().map(|(_, below)| numbers(below)).collect();
        let mut parents = vec![Vec::new(); elements.len()];
        for (parent, below) in children.iter().enumerate() {
            below.iter().for_each(|&child| parents[child].push(parent));
        }
        let texts: Vec<String> = elements.into_iter().map(|(name, _)| name).collect();
        let component = components(&children, &parents);
        let mut sizes = vec![0; texts.len()];
        component.iter().for_each(|&at| sizes[at] += 1);
        let on_cycle = (0..texts.len())
            .map(|at| sizes[component[at]] > 1 || children[at].binary_search(&at).is_ok())
            .collect();
        Schema { names, texts, children, parents, roots, component, on_cycle }
    }

    /// The element that a name test selects; `None` unless it is a single name of the DTD.
    pub fn declared(&self, test: &NameTest) -> Option<Declared> {
        match test {
            NameTest::Name(name) if name.uri.is_empty() => self.names.get(name.local.as_bytes()).copied(),
            _ => None,
        }
    }

    pub fn name(&self, element: Declared) -> &str {
        &self.texts[element]
    }

    /// Whether an element that passes the test may contain another one. True for a test of no single name.
    pub fn is_on_cycle(&self, test: &NameTest) -> bool {
        self.declared(test).is_none_or(|element| self.on_cycle[element])
    }

    /// Whether elements that pass the two tests may contain each other.
    pub fn are_on_same_cycle(&self, one: &NameTest, other: &NameTest) -> bool {
        match (self.declared(one), self.declared(other)) {
            (Some(one), Some(other)) => self.on_cycle[one] && self.component[one] == self.component[other],
            _ => true,
        }
    }

    /// The elements on the only path down from `from`, or from the document node, to `to`, which comes last;
    /// `None` if there is no path or more than one.
    pub fn only_path(&self, from: Option<Declared>, to: Declared) -> Option<Vec<Declared>> {
        let mut reaches_target = vec![false; self.texts.len()];
        let mut open = vec![to];
        reaches_target[to] = true;
        while let Some(element) = open.pop() {
            for &parent in &self.parents[element] {
                if !std::mem::replace(&mut reaches_target[parent], true) {
                    open.push(parent);
                }
            }
        }
        let mut path = Vec::new();
        let mut next = from.map_or(&self.roots, |from| &self.children[from]);
        loop {
            let mut leading = next.iter().copied().filter(|&element| reaches_target[element]);
            let (only, None) = (leading.next()?, leading.next()) else {
                return None;
            };
            if self.on_cycle[only] {
                return None;
            }
            path.push(only);
            if only == to {
                return Some(path);
            }
            next = &self.children[only];
        }
    }

    fn has_edge(&self, parent: Option<Declared>, child: Declared) -> bool {
        parent.map_or(&self.roots, |parent| &self.children[parent]).binary_search(&child).is_ok()
    }
}

/// Numbers the strongly connected components, by Kosaraju's algorithm.
fn components(children: &[Vec<Declared>], parents: &[Vec<Declared>]) -> Vec<usize> {
    // In post-order of a depth-first search; then, in reverse, each component is what a search upwards reaches.
    let mut post_order = Vec::with_capacity(children.len());
    let mut seen = vec![false; children.len()];
    for start in 0..children.len() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut open = vec![(start, 0)];
        while let Some((element, next)) = open.last_mut() {
            match children[*element].get(*next) {
                Some(&child) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[child], true) {
                        open.push((child, 0));
                    }
                }
                None => {
                    post_order.push(*element);
                    open.pop();
                }
            }
        }
    }
    let mut component = vec![usize::MAX; children.len()];
    for (number, &start) in post_order.iter().rev().enumerate() {
        if component[start] != usize::MAX {
            continue;
        }
        let mut open = vec![start];
        component[start] = number;
        while let Some(element) = open.pop() {
            for &parent in &parents[element] {
                if component[parent] == usize::MAX {
                    component[parent] = number;
                    open.push(parent);
                }
            }
        }
    }
    component
}

/// Caches which tag paths conform to a schema, until the vocabulary's epoch changes and their ids with it.
#[derive(Default)]
pub struct Conformance {
    schema: Option<Arc<Schema>>,
    epoch: u64,
    verdicts: Vec<Verdict>,
}

#[derive(Clone, Copy, PartialEq, Default)]
enum Verdict {
    #[default]
    Unknown,
    Conforms,
    Breaks,
}

impl Conformance {
    /// Whether a message's root and all its parent–child edges are in the graph. Each tag path is checked once, so
    /// a message costs one look-up per element.
    pub fn conforms(&mut self, schema: &Arc<Schema>, document: &Document, vocabulary: &Vocabulary) -> bool {
        let same = self.schema.as_ref().is_some_and(|known| Arc::ptr_eq(known, schema));
        if !same || self.epoch != vocabulary.epoch() {
            *self =
                Conformance { schema: Some(schema.clone()), epoch: vocabulary.epoch(), verdicts: Vec::new() };
        }
        document.elements[..document.message_end()].iter().all(|element| {
            let path = element.tag_path.index();
            if self.verdicts.len() <= path {
                self.verdicts.resize(path + 1, Verdict::Unknown);
            }
            if self.verdicts[path] == Verdict::Unknown {
                let declared = |name: NameId| {
                    let (uri, local) = vocabulary.name_parts(name);
                    if uri == UriId(0) { schema.names.get(local).copied() } else { None }
                };
                let parent = (element.parent.is_some()).then(|| document.element(element.parent).name);
                let child = declared(element.name);
                let conforms = match (parent, parent.and_then(declared), child) {
                    (None, _, Some(child)) => schema.has_edge(None, child),
                    (Some(_), Some(parent), Some(child)) => schema.has_edge(Some(parent), child),
                    _ => false,
                };
                self.verdicts[path] = if conforms { Verdict::Conforms } else { Verdict::Breaks };
            }
            self.verdicts[path] == Verdict::Conforms
        })
    }
}
