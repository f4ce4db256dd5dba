//! The prefixes that constructed elements bind, in a stack: an inner declaration hides an outer one.

/// The declarations in scope, innermost last; the default namespace has the empty prefix.
#[derive(Default)]
pub struct Scope<'a> {
    bindings: Vec<(&'a str, String)>,
}

impl<'a> Scope<'a> {
    /// The URI of a prefix, if a constructed element binds it.
    pub fn uri(&self, prefix: &str) -> Option<&str> {
        let innermost = self.bindings.iter().rev().find(|(bound, _)| *bound == prefix);
        innermost.map(|(_, uri)| uri.as_str())
    }

    /// Whether the prefix is bound to this URI already.
    pub fn binds(&self, prefix: &str, uri: &str) -> bool {
        self.uri(prefix).map_or(prefix.is_empty() && uri.is_empty(), |bound| bound == uri)
    }

    pub fn bind(&mut self, prefix: &'a str, uri: String) {
        self.bindings.push((prefix, uri));
    }

    /// Call at a start tag; pass the mark to `leave` at its end tag.
    pub fn mark(&self) -> usize {
        self.bindings.len()
    }

    pub fn leave(&mut self, mark: usize) {
        self.bindings.truncate(mark);
    }

    /// The declarations since a mark.
    pub fn since(&self, mark: usize) -> &[(&'a str, String)] {
        &self.bindings[mark..]
    }
}
