//! Which prefix stands for which namespace inside constructed elements.

/// The declarations in force, innermost last; the default namespace has the empty prefix.
#[derive(Default)]
pub struct Scope<'a> {
    bindings: Vec<(&'a str, String)>,
}

impl<'a> Scope<'a> {
    /// What a prefix stands for, if a constructed element binds it.
    pub fn uri(&self, prefix: &str) -> Option<&str> {
        let innermost = self.bindings.iter().rev().find(|(bound, _)| *bound == prefix);
        innermost.map(|(_, uri)| uri.as_str())
    }

    /// Whether a declaration would change nothing.
    pub fn binds(&self, prefix: &str, uri: &str) -> bool {
        self.uri(prefix).map_or(prefix.is_empty() && uri.is_empty(), |bound| bound == uri)
    }

    pub fn bind(&mut self, prefix: &'a str, uri: String) {
        self.bindings.push((prefix, uri));
    }

    /// To be given to `leave` when the element that is now entered ends.
    pub fn mark(&self) -> usize {
        self.bindings.len()
    }

    pub fn leave(&mut self, mark: usize) {
        self.bindings.truncate(mark);
    }

    /// What has been declared since a mark.
    pub fn since(&self, mark: usize) -> &[(&'a str, String)] {
        &self.bindings[mark..]
    }
}
