//! Namespaces that an output declares because of what the message contains.

use rustc_hash::FxHashMap;

/// MessageNamespaces that are in force, innermost last.
#[derive(Default)]
pub(super) struct NamespaceStack {
    all: Vec<StackedNamespace>,
    /// By prefix the innermost one: there may be as many as the message has attributes.
    innermost: FxHashMap<Vec<u8>, usize>,
}

pub(super) struct StackedNamespace {
    pub prefix: Vec<u8>,
    pub uri: Vec<u8>,
    /// How many constructed elements the one that makes it is inside of.
    pub depth: usize,
    /// The one of the same prefix around it.
    outer: Option<usize>,
}

impl NamespaceStack {
    pub fn push(&mut self, prefix: Vec<u8>, uri: Vec<u8>, depth: usize) {
        let outer = self.innermost.insert(prefix.clone(), self.all.len());
        self.all.push(StackedNamespace { prefix, uri, depth, outer });
    }

    /// How many are in force.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Goes back to when so many were in force.
    pub fn truncate(&mut self, count: usize) {
        while self.all.len() > count
            && let Some(extra) = self.all.pop()
        {
            match extra.outer {
                Some(outer) => self.innermost.insert(extra.prefix, outer),
                None => self.innermost.remove(&extra.prefix),
            };
        }
    }

    /// Those that came after so many.
    pub fn since(&self, count: usize) -> &[StackedNamespace] {
        &self.all[count..]
    }

    /// What a prefix was last declared to be.
    #[inline]
    pub fn get(&self, prefix: &[u8]) -> Option<&StackedNamespace> {
        if self.all.is_empty() {
            return None;
        }
        self.innermost.get(prefix).map(|&at| &self.all[at])
    }
}

/// Prefixes with numbers, for attributes whose own prefix stands for something else in the output: `p_1`, `p_2`.
/// It speaks for one start tag, in which declarations are only added.
#[derive(Default)]
pub(super) struct PrefixNumbering {
    of: FxHashMap<Vec<u8>, Numbers>,
}

/// The numbers of one prefix.
#[derive(Default)]
struct Numbers {
    /// All up to this one stand for something.
    last: usize,
    /// By URI the first that stands for it.
    first: FxHashMap<Vec<u8>, usize>,
}

impl PrefixNumbering {
    /// The first of a prefix's numbers that stands for a URI or for nothing, and whether it is the latter. `bound`:
    /// what a prefix stands for.
    pub fn get<'u>(
        &mut self,
        prefix: &[u8],
        uri: &[u8],
        bound: impl Fn(&[u8]) -> Option<&'u [u8]>,
    ) -> (Vec<u8>, bool) {
        let numbered = |number: usize| [prefix, format!("_{number}").as_bytes()].concat();
        let Numbers { last, first } = self.of.entry(prefix.to_vec()).or_default();
        if let Some(&number) = first.get(uri) {
            return (numbered(number), false);
        }
        loop {
            *last += 1;
            let candidate = numbered(*last);
            let standing = bound(&candidate);
            first.entry(standing.unwrap_or(uri).to_vec()).or_insert(*last);
            match standing {
                None => return (candidate, true),
                Some(standing) if standing == uri => return (candidate, false),
                Some(_) => {}
            }
        }
    }
}
