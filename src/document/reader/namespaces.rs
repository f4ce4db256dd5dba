//! The namespace that each prefix is bound to, at the position being read: a table by prefix and an undo
//! log. A lookup is one array access; the end of an element undoes its declarations.

use super::written_names::{PrefixId, WrittenNames};
use crate::document::Vocabulary;
use crate::ids::UriId;

pub(super) const XML: &[u8] = b"http://www.w3.org/XML/1998/namespace";
pub(super) const XMLNS: &[u8] = b"http://www.w3.org/2000/xmlns/";

/// The bindings in scope, and the log that undoes those of each open element.
pub(super) struct Namespaces {
    /// By prefix; `UriId::NONE` where a prefix is not bound.
    bound: Vec<UriId>,
    undo: Vec<(PrefixId, UriId)>,
}

impl Namespaces {
    pub fn new() -> Namespaces {
        Namespaces { bound: Vec::new(), undo: Vec::new() }
    }

    /// Starts a document: only `xml` and the empty prefix are bound.
    pub fn begin(&mut self, vocabulary: &mut Vocabulary) {
        self.leave(0);
        if self.bound.is_empty() {
            self.bound = vec![UriId(0), vocabulary.uri(XML), UriId::NONE];
        }
    }

    #[inline(always)]
    pub fn uri(&self, prefix: PrefixId) -> UriId {
        self.bound.get(prefix.0 as usize).copied().unwrap_or(UriId::NONE)
    }

    /// Call at a start tag; pass the mark to `leave` at its end tag.
    #[inline(always)]
    pub fn mark(&self) -> u32 {
        self.undo.len() as u32
    }

    /// Binds a prefix, or returns the code and reason of the refusal.
    pub fn declare(
        &mut self,
        prefix: PrefixId,
        uri: &[u8],
        names: &WrittenNames,
        vocabulary: &mut Vocabulary,
    ) -> Result<(), (&'static str, &'static str)> {
        match prefix {
            PrefixId::XML if uri == XML => return Ok(()),
            PrefixId::XML => {
                return Err(("reserved-prefix", "the prefix xml cannot be bound to another namespace"));
            }
            PrefixId::XMLNS => return Err(("reserved-prefix", "the prefix xmlns cannot be declared")),
            _ if uri == XML => {
                return Err(("reserved-namespace", "only the prefix xml may be bound to the XML namespace"));
            }
            _ if uri == XMLNS => {
                return Err(("reserved-namespace", "no prefix may be bound to the namespace of xmlns"));
            }
            PrefixId::NONE => {}
            _ if uri.is_empty() => {
                return Err(("empty-namespace", "a prefix cannot be bound to an empty namespace"));
            }
            _ => {}
        }
        if self.bound.len() < names.prefixes() {
            self.bound.resize(names.prefixes(), UriId::NONE);
        }
        let bound = &mut self.bound[prefix.0 as usize];
        self.undo.push((prefix, *bound));
        *bound = vocabulary.uri(uri);
        Ok(())
    }

    #[inline(always)]
    pub fn leave(&mut self, mark: u32) {
        while self.undo.len() > mark as usize {
            if let Some((prefix, before)) = self.undo.pop() {
                self.bound[prefix.0 as usize] = before;
            }
        }
    }
}
