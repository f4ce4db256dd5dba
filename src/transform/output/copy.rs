//! Nodes of a message, copied into an output.
//!
//! A copied element keeps the namespaces that are in scope in the message, and inherits those of the
//! constructed elements around it. Mostly there are none, and its bytes stand as they are.

use memchr::memmem;

use super::message_namespaces::{MessageNamespaces, attributes, declared, name_in_source, prefix};
use super::output_namespaces::{NamespaceStack, PrefixNumbering};
use super::program::{Scope, bound};
use super::{escape, serialize};
use crate::document::{Document, Vocabulary};
use crate::ids::{ElementId, NameId};
use crate::query::namespaces::XML_URI;

/// Copies nodes of one message; made once for all its outputs.
pub struct NodeCopier<'a> {
    pub(super) document: &'a Document,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) declarations: MessageNamespaces<'a>,
    /// The message has an internal DTD subset: its bytes stand for more than they say.
    subset: bool,
}

/// What prefixes stand for where a node is put.
#[derive(Clone, Copy)]
pub(super) struct NamespaceContext<'a> {
    pub scopes: &'a [Scope],
    pub scope: usize,
    pub extras: &'a NamespaceStack,
    /// What is declared further in, by elements of the message.
    pub inside: Option<&'a NamespaceStack>,
}

impl<'a> NamespaceContext<'a> {
    pub fn uri(&self, prefix: &[u8]) -> Option<&'a [u8]> {
        if let Some(extra) = self.inside.and_then(|inside| inside.get(prefix)) {
            return Some(&extra.uri);
        }
        let fixed = bound(self.scopes, self.scope, prefix);
        let extra = self.extras.get(prefix);
        match (fixed, extra) {
            (Some(fixed), Some(extra)) if extra.depth < fixed.depth => Some(fixed.uri.as_bytes()),
            (_, Some(extra)) => Some(&extra.uri),
            (Some(fixed), None) => Some(fixed.uri.as_bytes()),
            (None, None) => None,
        }
    }

    #[inline(always)]
    fn has_default(&self) -> bool {
        self.scopes[self.scope].has_default
    }
}

impl<'a> NodeCopier<'a> {
    pub fn new(document: &'a Document, vocabulary: &'a Vocabulary) -> NodeCopier<'a> {
        let root = document.elements.first().map_or(0, |root| root.span.start as usize);
        let prolog = &document.source[..root];
        let subset = memmem::find(prolog, b"<!DOCTYPE").is_some_and(|at| prolog[at..].contains(&b'['));
        NodeCopier { document, vocabulary, declarations: MessageNamespaces::of(document), subset }
    }

    /// URI and local part of a name.
    pub(super) fn name(&self, name: NameId) -> (&'a [u8], &'a [u8]) {
        let (uri, local) = self.vocabulary.name_parts(name);
        (self.vocabulary.uri_text(uri), local)
    }

    /// Whether the bytes of any element are its copy.
    #[inline]
    pub(super) fn copies_as_it_stands(&self, context: &NamespaceContext<'_>) -> bool {
        !self.subset && self.declarations.is_empty() && !context.has_default()
    }

    /// The bytes of an element.
    #[inline]
    pub(super) fn source_of(&self, element: ElementId) -> &'a [u8] {
        self.document.element(element).span.of(&self.document.source)
    }

    /// Copies an element that is more than its bytes.
    pub(super) fn element(&self, element: ElementId, context: &NamespaceContext<'_>, out: &mut Vec<u8>) {
        if self.subset {
            serialize::element(self, element, context, out);
        } else {
            self.with_namespaces(element, context, out);
        }
    }

    /// The element's bytes, with what must be declared anew put into its start tag.
    fn with_namespaces(&self, element: ElementId, context: &NamespaceContext<'_>, out: &mut Vec<u8>) {
        let source = &self.document.source;
        let span = self.document.element(element).span;
        let Some(name) = name_in_source(self.document, element) else { return };
        out.extend_from_slice(&source[span.start as usize..name.end]);
        for (prefix, uri) in self.lacking(element, context) {
            declare(prefix, uri, out);
        }
        let mut at = name.end;
        for bare in self.bare(element, context) {
            let Some(name) = name_in_source(self.document, bare) else { continue };
            out.extend_from_slice(&source[at..name.end]);
            declare(b"", b"", out);
            at = name.end;
        }
        out.extend_from_slice(&source[at..span.end as usize]);
    }

    /// What is in scope at an element of the message, declared above it, and not in scope in the output.
    pub(super) fn lacking(&self, element: ElementId, context: &NamespaceContext<'_>) -> Vec<(&[u8], &[u8])> {
        let inherited = self.declarations.inherited(element).into_iter();
        inherited
            .map(|declaration| (declaration.prefix, declaration.uri.as_ref()))
            .filter(|&(prefix, uri)| !uri.is_empty() && context.uri(prefix) != Some(uri))
            .collect()
    }

    /// The elements of a sub-tree, topmost ones only, that need `xmlns=""`: the message has no default
    /// namespace there, and the output has one.
    fn bare(&self, element: ElementId, context: &NamespaceContext<'_>) -> Vec<ElementId> {
        let mut bare = Vec::new();
        if !context.has_default() || self.has_default(element) {
            return bare;
        }
        let end = self.document.element(element).end;
        let mut at = element;
        while at < end {
            let sets_default =
                self.declarations.own(at).iter().any(|declaration| declaration.prefix.is_empty());
            let has_prefix = name_in_source(self.document, at)
                .is_some_and(|name| !prefix(&self.document.source[name]).is_empty());
            if !sets_default && !has_prefix {
                bare.push(at);
            }
            // Below an element that sets the default, or is given `xmlns=""`, all is well.
            at =
                if sets_default || !has_prefix { self.document.element(at).end } else { ElementId(at.0 + 1) };
        }
        bare
    }

    /// Whether the message has a default namespace around an element.
    fn has_default(&self, element: ElementId) -> bool {
        let inherited = self.declarations.inherited(element);
        inherited.iter().any(|declaration| declaration.prefix.is_empty() && !declaration.uri.is_empty())
    }

    /// Writes ` name="value"` into a start tag, and what must be declared for it: this is given back.
    pub(super) fn attribute(
        &self,
        element: ElementId,
        place: u32,
        context: &NamespaceContext<'_>,
        numbered: &mut PrefixNumbering,
        out: &mut Vec<u8>,
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        let attribute = &self.document.attributes[place as usize];
        let (uri, local) = self.name(attribute.name);
        let (prefix, is_new) = self.attribute_prefix(element, place, uri, context, numbered);
        if is_new {
            declare(&prefix, uri, out);
        }
        write_attribute(&prefix, local, self.document.value(attribute), out);
        is_new.then(|| (prefix, uri.to_vec()))
    }

    /// The prefix for an attribute, and whether it must be declared: as it is written in the message, unless
    /// that stands for something else in the output.
    pub(super) fn attribute_prefix(
        &self,
        element: ElementId,
        place: u32,
        uri: &[u8],
        context: &NamespaceContext<'_>,
        numbered: &mut PrefixNumbering,
    ) -> (Vec<u8>, bool) {
        if uri.is_empty() {
            return (Vec::new(), false);
        }
        if uri == XML_URI.as_bytes() {
            return (b"xml".to_vec(), false);
        }
        let written = self.written_prefix(element, place).unwrap_or(b"ns");
        match context.uri(written) {
            None => return (written.to_vec(), true),
            Some(bound) if bound == uri => return (written.to_vec(), false),
            _ => {}
        }
        numbered.get(written, uri, |prefix| context.uri(prefix))
    }

    /// The prefix of an attribute as it is written; None if a DTD added it.
    fn written_prefix(&self, element: ElementId, place: u32) -> Option<&[u8]> {
        let before = (place - self.document.element(element).attributes_start) as usize;
        let mut written = attributes(self.document, element).filter(|(name, _)| declared(name).is_none());
        let (name, _) = written.nth(before)?;
        Some(prefix(name)).filter(|prefix| !prefix.is_empty())
    }
}

pub(super) fn declare(prefix: &[u8], uri: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(if prefix.is_empty() { b" xmlns" } else { b" xmlns:" });
    out.extend_from_slice(prefix);
    out.extend_from_slice(b"=\"");
    escape::value(uri, out);
    out.push(b'"');
}

pub(super) fn write_attribute(prefix: &[u8], local: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    if !prefix.is_empty() {
        out.extend_from_slice(prefix);
        out.push(b':');
    }
    out.extend_from_slice(local);
    out.extend_from_slice(b"=\"");
    escape::value(value, out);
    out.push(b'"');
}
