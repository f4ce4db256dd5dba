//! Namespace declarations that an output needs because of nodes that it copies from the message.

use rustc_hash::FxHashMap;

/// The added declarations in scope, innermost last.
#[derive(Default)]
pub(super) struct NamespaceStack {
    all: Vec<StackedNamespace>,
    /// The innermost one of each prefix: a message may need one for each attribute.
    innermost: FxHashMap<Vec<u8>, usize>,
}

pub(super) struct StackedNamespace {
    pub prefix: Vec<u8>,
    pub uri: Vec<u8>,
    /// The depth of the constructed element that declares it.
    pub depth: usize,
    /// The declaration of the same prefix that it hides.
    hidden: Option<usize>,
}

impl NamespaceStack {
    pub fn push(&mut self, prefix: Vec<u8>, uri: Vec<u8>, depth: usize) {
        let hidden = self.innermost.insert(prefix.clone(), self.all.len());
        self.all.push(StackedNamespace { prefix, uri, depth, hidden });
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Drops all but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        while self.all.len() > count
            && let Some(namespace) = self.all.pop()
        {
            match namespace.hidden {
                Some(hidden) => self.innermost.insert(namespace.prefix, hidden),
                None => self.innermost.remove(&namespace.prefix),
            };
        }
    }

    /// All after the first `count`.
    pub fn since(&self, count: usize) -> &[StackedNamespace] {
        &self.all[count..]
    }

    /// The innermost declaration of a prefix.
    #[inline]
    pub fn get(&self, prefix: &[u8]) -> Option<&StackedNamespace> {
        if self.all.is_empty() {
            return None;
        }
        self.innermost.get(prefix).map(|&at| &self.all[at])
    }
}

/// Numbers prefixes, for attributes of one start tag whose own prefix has another URI in the output: `p_1`, `p_2`.
#[derive(Default)]
pub(super) struct PrefixNumbering {
    of_prefix: FxHashMap<Vec<u8>, UsedNumbers>,
}

/// The numbers of one prefix.
#[derive(Default)]
struct UsedNumbers {
    /// All numbers up to this one are bound to a URI.
    last: usize,
    /// The first number that is bound to a URI.
    first_of_uri: FxHashMap<Vec<u8>, usize>,
}

impl PrefixNumbering {
    /// The first numbered prefix that is bound to `uri` or not bound, and whether it must be declared. `uri_of`: the URI
    /// that a prefix is bound to.
    pub fn get<'u>(
        &mut self,
        prefix: &[u8],
        uri: &[u8],
        uri_of: impl Fn(&[u8]) -> Option<&'u [u8]>,
    ) -> (Vec<u8>, bool) {
        let numbered = |number: usize| [prefix, format!("_{number}").as_bytes()].concat();
        let UsedNumbers { last, first_of_uri } = self.of_prefix.entry(prefix.to_vec()).or_default();
        if let Some(&number) = first_of_uri.get(uri) {
            return (numbered(number), false);
        }
        loop {
            *last += 1;
            let candidate = numbered(*last);
            let bound = uri_of(&candidate);
            first_of_uri.entry(bound.unwrap_or(uri).to_vec()).or_insert(*last);
            match bound {
                None => return (candidate, true),
                Some(bound) if bound == uri => return (candidate, false),
                Some(_) => {}
            }
        }
    }
}
