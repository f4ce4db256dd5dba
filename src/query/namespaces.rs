//! The prefixes a query's names may use.

use crate::error::{Position, QueryError};
use crate::util::xml_chars::{is_name_char, is_name_start};

/// The URI that the prefix `xml` is always bound to.
pub const XML_URI: &str = "http://www.w3.org/XML/1998/namespace";

/// Prefix → namespace URI. `xml` is always bound. The empty prefix is the default namespace of elements, not of
/// attributes: that of names without a prefix.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Namespaces {
    /// Sorted by prefix.
    bindings: Vec<(String, String)>,
}

impl Namespaces {
    pub const fn new() -> Namespaces {
        Namespaces { bindings: Vec::new() }
    }

    /// Binds a prefix, replacing an earlier binding.
    pub fn bind(&mut self, prefix: &str, uri: &str) -> Result<(), QueryError> {
        check(prefix, uri).map_err(|reason| QueryError {
            code: "namespace",
            reason,
            position: Position::default(),
            exceeded: None,
        })?;
        match self.bindings.binary_search_by(|(bound, _)| bound.as_str().cmp(prefix)) {
            Ok(at) => self.bindings[at].1 = uri.to_string(),
            Err(at) => self.bindings.insert(at, (prefix.to_string(), uri.to_string())),
        }
        Ok(())
    }

    pub fn uri(&self, prefix: &str) -> Option<&str> {
        if prefix == "xml" {
            return Some(XML_URI);
        }
        let at = self.bindings.binary_search_by(|(bound, _)| bound.as_str().cmp(prefix)).ok()?;
        Some(&self.bindings[at].1)
    }
}

fn check(prefix: &str, uri: &str) -> Result<(), String> {
    let mut characters = prefix.chars();
    let is_name = characters.next().is_some_and(|c| c != ':' && is_name_start(c))
        && characters.all(|c| c != ':' && is_name_char(c));
    if !is_name && !prefix.is_empty() {
        return Err(format!("{prefix:?} is not a namespace prefix"));
    }
    if prefix == "xmlns" || (prefix == "xml") != (uri == XML_URI) {
        return Err(format!("the prefix `{prefix}` cannot be bound to {uri:?}"));
    }
    if uri.is_empty() && !prefix.is_empty() {
        return Err(format!("the prefix `{prefix}` is bound to an empty URI"));
    }
    // Braces delimit the URI in the canonical text.
    if uri.contains(['{', '}']) {
        return Err(format!("the URI {uri:?} of the prefix `{prefix}` contains a brace"));
    }
    Ok(())
}
