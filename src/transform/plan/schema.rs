//! What a DTD's element graph says that plans can use: loops, and the only way from one element to another.
//!
//! It holds for messages that conform: whose root and whose parent–child edges are all in the graph.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::document::{Document, Vocabulary};
use crate::ids::{NameId, UriId};
use crate::query::ast::NameTest;

/// An element of the graph, by number.
pub type Declared = usize;

pub struct Schema {
    names: FxHashMap<Box<[u8]>, Declared>,
    texts: Vec<String>,
    /// Ascending, as are `parents` and `roots`.
    children: Vec<Vec<Declared>>,
    parents: Vec<Vec<Declared>>,
    /// Where messages may begin.
    roots: Vec<Declared>,
    /// Per element the part of the graph whose elements all reach each other, and whether there is a
    /// way from the element back to itself.
    component: Vec<usize>,
    looped: Vec<bool>,
}

impl Schema {
    /// From elements with the names of what they may contain, and those where messages may begin.
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
        let looped = (0..texts.len())
            .map(|at| sizes[component[at]] > 1 || children[at].binary_search(&at).is_ok())
            .collect();
        Schema { names, texts, children, parents, roots, component, looped }
    }

    /// The element that a name test stands for; `None` if it is not one name of the DTD.
    pub fn declared(&self, test: &NameTest) -> Option<Declared> {
        match test {
            NameTest::Name(name) if name.uri.is_empty() => self.names.get(name.local.as_bytes()).copied(),
            _ => None,
        }
    }

    pub fn name(&self, element: Declared) -> &str {
        &self.texts[element]
    }

    /// Whether what passes the test may contain what passes it. A test of no single name may.
    pub fn is_on_loop(&self, test: &NameTest) -> bool {
        self.declared(test).is_none_or(|element| self.looped[element])
    }

    /// Whether what passes the tests may contain each other.
    pub fn are_on_same_loop(&self, one: &NameTest, other: &NameTest) -> bool {
        match (self.declared(one), self.declared(other)) {
            (Some(one), Some(other)) => self.looped[one] && self.component[one] == self.component[other],
            _ => true,
        }
    }

    /// The elements on the only way down from one element, or from the document node, to another, which
    /// comes last; `None` if there are several ways, or none.
    pub fn only_way(&self, from: Option<Declared>, to: Declared) -> Option<Vec<Declared>> {
        let mut leads = vec![false; self.texts.len()];
        let mut open = vec![to];
        leads[to] = true;
        while let Some(element) = open.pop() {
            for &parent in &self.parents[element] {
                if !std::mem::replace(&mut leads[parent], true) {
                    open.push(parent);
                }
            }
        }
        let mut way = Vec::new();
        let mut next = from.map_or(&self.roots, |from| &self.children[from]);
        loop {
            let mut leading = next.iter().copied().filter(|&element| leads[element]);
            let (only, None) = (leading.next()?, leading.next()) else {
                return None;
            };
            if self.looped[only] {
                return None;
            }
            way.push(only);
            if only == to {
                return Some(way);
            }
            next = &self.children[only];
        }
    }

    fn has_edge(&self, parent: Option<Declared>, child: Declared) -> bool {
        parent.map_or(&self.roots, |parent| &self.children[parent]).binary_search(&child).is_ok()
    }
}

/// Numbers the strongly connected components: what is reached both ways.
fn components(children: &[Vec<Declared>], parents: &[Vec<Declared>]) -> Vec<usize> {
    // Elements by when they are left, walking down; then each component is what is reached upwards.
    let mut left = Vec::with_capacity(children.len());
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
                    left.push(*element);
                    open.pop();
                }
            }
        }
    }
    let mut component = vec![usize::MAX; children.len()];
    for (number, &start) in left.iter().rev().enumerate() {
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

/// Which tag paths conform to a schema, remembered as long as their ids mean the same.
#[derive(Default)]
pub struct Conformance {
    schema: Option<Arc<Schema>>,
    epoch: u64,
    known: Vec<Verdict>,
}

#[derive(Clone, Copy, PartialEq, Default)]
enum Verdict {
    #[default]
    Unknown,
    Conforms,
    Breaks,
}

impl Conformance {
    /// Whether a message's root and all its parent–child edges are in the graph. Each tag path is
    /// looked at once, so a message costs a look-up per element.
    pub fn holds(&mut self, schema: &Arc<Schema>, document: &Document, vocabulary: &Vocabulary) -> bool {
        let same = self.schema.as_ref().is_some_and(|known| Arc::ptr_eq(known, schema));
        if !same || self.epoch != vocabulary.epoch() {
            *self =
                Conformance { schema: Some(schema.clone()), epoch: vocabulary.epoch(), known: Vec::new() };
        }
        document.elements.iter().all(|element| {
            let path = element.tag_path.index();
            if self.known.len() <= path {
                self.known.resize(path + 1, Verdict::Unknown);
            }
            if self.known[path] == Verdict::Unknown {
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
                self.known[path] = if conforms { Verdict::Conforms } else { Verdict::Breaks };
            }
            self.known[path] == Verdict::Conforms
        })
    }
}
