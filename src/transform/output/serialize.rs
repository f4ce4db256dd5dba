//! Copies elements of a message whose source bytes are not its content, node by node: the entities of an internal DTD
//! subset are expanded, attributes that it adds are written, and references that were skipped are left out.

use super::copy::{NamespaceContext, NodeCopier, write_attribute, write_declaration};
use super::escape;
use super::message_namespaces::{name_in_source, prefix};
use super::output_namespaces::{NamespaceStack, PrefixNumbering};
use crate::document::{Document, Other, OtherKind};
use crate::ids::{ElementId, NodeId};
use crate::query::namespaces::XML_URI;

/// Appends a copy of an element.
pub fn element(copier: &NodeCopier<'_>, top: ElementId, context: &NamespaceContext<'_>, out: &mut Vec<u8>) {
    let document = copier.document;
    let (first, end) = (document.element(top), document.element(top).end);
    let mut serializer = Serializer {
        copier,
        around: *context,
        declared: NamespaceStack::default(),
        open: Vec::new(),
        empty: false,
        out,
    };
    serializer.start_tag(top, &copier.missing_declarations(top, context));

    let mut elements = top.index() + 1..end.index();
    let mut texts = first.texts.start as usize..first.texts.end as usize;
    let mut others = document.others.partition_point(|other| other.node < first.node);
    loop {
        let element = elements.clone().next().map(|place| &document.elements[place]);
        let text = texts.clone().next().map(|place| &document.texts[place]);
        let inside = |parent: ElementId| parent.is_some() && (top..end).contains(&parent);
        let other = document.others.get(others).filter(|other| inside(other.parent));
        let number = |node: Option<NodeId>| node.unwrap_or(NodeId::NONE);
        let numbers = [element.map(|e| e.node), text.map(|t| t.node), other.map(|o| o.node)].map(number);
        let next = numbers.into_iter().min().unwrap_or(NodeId::NONE);
        match (element, text, other) {
            (Some(element), ..) if element.node == next => {
                serializer.close_until(element.parent);
                if let Some(place) = elements.next() {
                    serializer.start_tag(place.into(), &[]);
                }
            }
            (_, Some(text), _) if text.node == next => {
                serializer.close_until(text.parent);
                escape::text(text.content.of(&document.text), serializer.out);
                texts.next();
            }
            (.., Some(other)) => {
                serializer.close_until(other.parent);
                markup(document, other, serializer.out);
                others += 1;
            }
            _ => break,
        }
    }
    while !serializer.open.is_empty() {
        serializer.end_tag();
    }
}

struct Serializer<'a> {
    copier: &'a NodeCopier<'a>,
    /// The namespaces in scope around the copy.
    around: NamespaceContext<'a>,
    /// The namespaces that the open elements declare.
    declared: NamespaceStack,
    open: Vec<Open>,
    /// The start tag of the innermost open element is not closed yet, since it may turn out empty.
    empty: bool,
    out: &'a mut Vec<u8>,
}

struct Open {
    element: ElementId,
    /// With its prefix.
    name: Vec<u8>,
    /// Number of declarations around it.
    declared_before: usize,
}

impl Serializer<'_> {
    /// Writes the start tag of an element without its closing `>`. `missing`: what it declares beside its own.
    fn start_tag(&mut self, element: ElementId, missing: &[(&[u8], &[u8])]) {
        let copier = self.copier;
        let declared_before = self.declared.len();
        let own = copier.namespaces.own(element).iter();
        let own = own.map(|declaration| (declaration.prefix, declaration.uri.as_ref()));
        for (prefix, uri) in missing.iter().copied().chain(own) {
            self.declare(prefix, uri);
        }
        let (uri, local) = copier.name(copier.document.element(element).name);
        let prefix = self.element_prefix(element, uri);
        if prefix != b"xml" {
            self.declare(&prefix, uri);
        }
        let mut name = prefix;
        if !name.is_empty() {
            name.push(b':');
        }
        name.extend_from_slice(local);
        self.out.push(b'<');
        self.out.extend_from_slice(&name);
        let declared = self.declared.since(declared_before).iter();
        declared.for_each(|namespace| write_declaration(&namespace.prefix, &namespace.uri, self.out));
        let start = copier.document.element(element).attributes_start;
        let mut numbering = PrefixNumbering::default();
        for (attribute, place) in copier.document.attributes_of(element).iter().zip(start..) {
            let (uri, local) = copier.name(attribute.name);
            let context = NamespaceContext { inside: Some(&self.declared), ..self.around };
            let (prefix, is_new) = copier.attribute_prefix(element, place, uri, &context, &mut numbering);
            if is_new {
                write_declaration(&prefix, uri, self.out);
                self.declare(&prefix, uri);
            }
            write_attribute(&prefix, local, copier.document.value(attribute), self.out);
        }
        self.open.push(Open { element, name, declared_before });
        self.empty = true;
    }

    /// The prefix of an element: that of the source, or none if the element comes from an entity.
    fn element_prefix(&self, element: ElementId, uri: &[u8]) -> Vec<u8> {
        if uri == XML_URI.as_bytes() {
            return b"xml".to_vec();
        }
        let document = self.copier.document;
        match name_in_source(document, element) {
            _ if uri.is_empty() => Vec::new(),
            Some(name) => prefix(&document.source[name]).to_vec(),
            None => Vec::new(),
        }
    }

    /// Adds a declaration, unless it is in scope.
    fn declare(&mut self, prefix: &[u8], uri: &[u8]) {
        let context = NamespaceContext { inside: Some(&self.declared), ..self.around };
        if context.uri(prefix).unwrap_or_default() != uri {
            self.declared.push(prefix.to_vec(), uri.to_vec(), usize::MAX);
        }
    }

    /// Closes elements until `parent` is the innermost open one.
    fn close_until(&mut self, parent: ElementId) {
        while self.open.last().is_some_and(|open| open.element != parent) {
            self.end_tag();
        }
        if std::mem::take(&mut self.empty) {
            self.out.push(b'>');
        }
    }

    fn end_tag(&mut self) {
        let Some(Open { name, declared_before, .. }) = self.open.pop() else { return };
        self.declared.truncate(declared_before);
        if std::mem::take(&mut self.empty) {
            self.out.extend_from_slice(b"/>");
        } else {
            self.out.extend_from_slice(b"</");
            self.out.extend_from_slice(&name);
            self.out.push(b'>');
        }
    }
}

/// Writes a comment or a processing instruction.
pub(super) fn markup(document: &Document, other: &Other, out: &mut Vec<u8>) {
    let content = other.content.of(&document.values);
    match other.kind {
        OtherKind::Comment => {
            out.extend_from_slice(b"<!--");
            out.extend_from_slice(content);
            out.extend_from_slice(b"-->");
        }
        OtherKind::Instruction { target } => {
            out.extend_from_slice(b"<?");
            out.extend_from_slice(target.of(&document.values));
            if !content.is_empty() {
                out.push(b' ');
                out.extend_from_slice(content);
            }
            out.extend_from_slice(b"?>");
        }
    }
}
