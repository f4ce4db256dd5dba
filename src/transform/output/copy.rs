//! Copies nodes of a message into an output.
//!
//! A copied element keeps the namespaces in scope in the message, and inherits those of the constructed elements
//! around it. Most messages declare none: then the element's source bytes are its copy.

use memchr::memmem;

use super::message_namespaces::{MessageNamespaces, attributes, declared_prefix, name_in_source, prefix};
use super::output_namespaces::{NamespaceStack, PrefixNumbering};
use super::program::{Scope, find_binding};
use super::{escape, serialize};
use crate::document::{Document, Vocabulary};
use crate::ids::{ElementId, NameId};
use crate::query::namespaces::XML_URI;

/// Copies nodes of one message, for all its outputs.
pub struct NodeCopier<'a> {
    pub(super) document: &'a Document,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) namespaces: MessageNamespaces<'a>,
    /// The source bytes of an element are not its copy: they lack the entities and default attributes of an internal
    /// subset, or contain references to entities that were not read.
    differs_from_source: bool,
}

/// The namespaces in scope where a node is copied to.
#[derive(Clone, Copy)]
pub(super) struct NamespaceContext<'a> {
    pub scopes: &'a [Scope],
    pub scope: usize,
    /// Declarations added to constructed elements.
    pub added: &'a NamespaceStack,
    /// Declarations of copied elements, further inside.
    pub inside: Option<&'a NamespaceStack>,
}

impl<'a> NamespaceContext<'a> {
    /// The URI that a prefix is bound to.
    pub fn uri(&self, prefix: &[u8]) -> Option<&'a [u8]> {
        if let Some(inside) = self.inside.and_then(|inside| inside.get(prefix)) {
            return Some(&inside.uri);
        }
        match (find_binding(self.scopes, self.scope, prefix), self.added.get(prefix)) {
            (Some(constructed), Some(added)) if added.depth < constructed.depth => {
                Some(constructed.uri.as_bytes())
            }
            (_, Some(added)) => Some(&added.uri),
            (Some(constructed), None) => Some(constructed.uri.as_bytes()),
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
        let has_internal_subset =
            memmem::find(prolog, b"<!DOCTYPE").is_some_and(|at| prolog[at..].contains(&b'['));
        let differs_from_source = has_internal_subset || document.skipped_entities > 0;
        NodeCopier { document, vocabulary, namespaces: MessageNamespaces::of(document), differs_from_source }
    }

    /// URI and local part of a name.
    pub(super) fn name(&self, name: NameId) -> (&'a [u8], &'a [u8]) {
        let (uri, local) = self.vocabulary.name_parts(name);
        (self.vocabulary.uri_text(uri), local)
    }

    /// Whether the source bytes of every element are its copy.
    #[inline]
    pub(super) fn copies_source(&self, context: &NamespaceContext<'_>) -> bool {
        !self.differs_from_source && self.namespaces.is_empty() && !context.has_default()
    }

    /// The source bytes of an element.
    #[inline]
    pub(super) fn source_of(&self, element: ElementId) -> &'a [u8] {
        self.document.element(element).span.of(&self.document.source)
    }

    /// Copies an element whose source bytes are not enough.
    pub(super) fn element(&self, element: ElementId, context: &NamespaceContext<'_>, out: &mut Vec<u8>) {
        if self.differs_from_source {
            serialize::element(self, element, context, out);
        } else {
            self.copy_with_declarations(element, context, out);
        }
    }

    /// Copies the source bytes of an element, and inserts the declarations that the output lacks.
    fn copy_with_declarations(&self, element: ElementId, context: &NamespaceContext<'_>, out: &mut Vec<u8>) {
        let source = &self.document.source;
        let span = self.document.element(element).span;
        let Some(name) = name_in_source(self.document, element) else { return };
        out.extend_from_slice(&source[span.start as usize..name.end]);
        for (prefix, uri) in self.missing_declarations(element, context) {
            write_declaration(prefix, uri, out);
        }
        let mut at = name.end;
        for unprefixed in self.elements_without_namespace(element, context) {
            let Some(name) = name_in_source(self.document, unprefixed) else { continue };
            out.extend_from_slice(&source[at..name.end]);
            write_declaration(b"", b"", out);
            at = name.end;
        }
        out.extend_from_slice(&source[at..span.end as usize]);
    }

    /// The namespaces that an element inherits in the message, and that are not in scope in the output.
    pub(super) fn missing_declarations(
        &self,
        element: ElementId,
        context: &NamespaceContext<'_>,
    ) -> Vec<(&[u8], &[u8])> {
        let inherited = self.namespaces.inherited(element).into_iter();
        inherited
            .map(|declaration| (declaration.prefix, declaration.uri.as_ref()))
            .filter(|&(prefix, uri)| !uri.is_empty() && context.uri(prefix) != Some(uri))
            .collect()
    }

    /// The topmost elements of a sub-tree that need `xmlns=""`: they have no prefix, the message has no default
    /// namespace there, and the output has one.
    fn elements_without_namespace(
        &self,
        element: ElementId,
        context: &NamespaceContext<'_>,
    ) -> Vec<ElementId> {
        let mut found = Vec::new();
        if !context.has_default() || self.has_default(element) {
            return found;
        }
        let end = self.document.element(element).end;
        let mut at = element;
        while at < end {
            let sets_default =
                self.namespaces.own(at).iter().any(|declaration| declaration.prefix.is_empty());
            let has_prefix = name_in_source(self.document, at)
                .is_some_and(|name| !prefix(&self.document.source[name]).is_empty());
            if !sets_default && !has_prefix {
                found.push(at);
            }
            // The descendants of an element with a default namespace, or with `xmlns=""`, need nothing.
            at =
                if sets_default || !has_prefix { self.document.element(at).end } else { ElementId(at.0 + 1) };
        }
        found
    }

    /// Whether an element inherits a default namespace in the message.
    fn has_default(&self, element: ElementId) -> bool {
        let inherited = self.namespaces.inherited(element);
        inherited.iter().any(|declaration| declaration.prefix.is_empty() && !declaration.uri.is_empty())
    }

    /// Writes ` name="value"` into a start tag, after the declaration that it needs, if any, which is returned.
    pub(super) fn attribute(
        &self,
        element: ElementId,
        place: u32,
        context: &NamespaceContext<'_>,
        numbering: &mut PrefixNumbering,
        out: &mut Vec<u8>,
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        let attribute = &self.document.attributes[place as usize];
        let (uri, local) = self.name(attribute.name);
        let (prefix, is_new) = self.attribute_prefix(element, place, uri, context, numbering);
        if is_new {
            write_declaration(&prefix, uri, out);
        }
        write_attribute(&prefix, local, self.document.value(attribute), out);
        is_new.then(|| (prefix, uri.to_vec()))
    }

    /// The prefix for an attribute, and whether it must be declared. It is the prefix that the message uses, unless that
    /// has another URI in the output.
    pub(super) fn attribute_prefix(
        &self,
        element: ElementId,
        place: u32,
        uri: &[u8],
        context: &NamespaceContext<'_>,
        numbering: &mut PrefixNumbering,
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
        numbering.get(written, uri, |prefix| context.uri(prefix))
    }

    /// The prefix of an attribute in the message; `None` if a DTD added the attribute.
    fn written_prefix(&self, element: ElementId, place: u32) -> Option<&[u8]> {
        let before = (place - self.document.element(element).attributes_start) as usize;
        let mut written =
            attributes(self.document, element).filter(|(name, _)| declared_prefix(name).is_none());
        let (name, _) = written.nth(before)?;
        Some(prefix(name)).filter(|prefix| !prefix.is_empty())
    }
}

pub(super) fn write_declaration(prefix: &[u8], uri: &[u8], out: &mut Vec<u8>) {
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
