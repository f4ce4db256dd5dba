//! Elements of a message with an internal DTD subset, written node by node: entities are expanded, and
//! attributes that the DTD adds are there.

use super::copy::{NamespaceContext, NodeCopier, declare, write_attribute};
use super::escape;
use super::message_namespaces::{name_in_source, prefix};
use super::output_namespaces::{NamespaceStack, PrefixNumbering};
use crate::document::OtherKind;
use crate::ids::{ElementId, NodeId};
use crate::query::namespaces::XML_URI;

/// Appends a copy of an element.
pub fn element(copier: &NodeCopier<'_>, top: ElementId, context: &NamespaceContext<'_>, out: &mut Vec<u8>) {
    let document = copier.document;
    let (first, end) = (document.element(top), document.element(top).end);
    let mut serializer = Serializer {
        copier,
        around: *context,
        extras: NamespaceStack::default(),
        open: Vec::new(),
        empty: false,
        out,
    };
    let lacking = copier.lacking(top, context);
    serializer.start_tag(top, &lacking);

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
                serializer.go_to(element.parent);
                if let Some(place) = elements.next() {
                    serializer.start_tag(place.into(), &[]);
                }
            }
            (_, Some(text), _) if text.node == next => {
                serializer.go_to(text.parent);
                escape::text(text.content.of(&document.text), serializer.out);
                texts.next();
            }
            (.., Some(other)) => {
                serializer.go_to(other.parent);
                serializer.markup(other.kind, other.content.of(&document.values));
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
    /// What prefixes stand for around the copy.
    around: NamespaceContext<'a>,
    /// What is declared in it.
    extras: NamespaceStack,
    open: Vec<Open>,
    /// The innermost open element has no content yet, and its start tag no end.
    empty: bool,
    out: &'a mut Vec<u8>,
}

struct Open {
    element: ElementId,
    /// As it is written.
    name: Vec<u8>,
    /// How many declarations there were around it.
    mark: usize,
}

impl Serializer<'_> {
    /// The start tag of an element without its end. `lacking`: what it must declare beside its own.
    fn start_tag(&mut self, element: ElementId, lacking: &[(&[u8], &[u8])]) {
        let copier = self.copier;
        let mark = self.extras.len();
        let own = copier.declarations.own(element).iter();
        let own = own.map(|declaration| (declaration.prefix, declaration.uri.as_ref()));
        for (prefix, uri) in lacking.iter().copied().chain(own) {
            self.bind(prefix, uri);
        }
        let (uri, local) = copier.name(copier.document.element(element).name);
        let prefix = self.element_prefix(element, uri);
        if prefix != b"xml" {
            self.bind(&prefix, uri);
        }
        let mut name = prefix;
        if !name.is_empty() {
            name.push(b':');
        }
        name.extend_from_slice(local);
        self.out.push(b'<');
        self.out.extend_from_slice(&name);
        let declared = self.extras.since(mark).iter();
        declared.for_each(|extra| declare(&extra.prefix, &extra.uri, self.out));
        let start = copier.document.element(element).attributes_start;
        let mut numbered = PrefixNumbering::default();
        for (attribute, place) in copier.document.attributes_of(element).iter().zip(start..) {
            let (uri, local) = copier.name(attribute.name);
            let context = NamespaceContext { inside: Some(&self.extras), ..self.around };
            let (prefix, is_new) = copier.attribute_prefix(element, place, uri, &context, &mut numbered);
            if is_new {
                declare(&prefix, uri, self.out);
                self.bind(&prefix, uri);
            }
            write_attribute(&prefix, local, copier.document.value(attribute), self.out);
        }
        self.open.push(Open { element, name, mark });
        self.empty = true;
    }

    /// The prefix of an element: as it is written, or one that will do if it stands in an entity.
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

    /// Puts a declaration in force, unless it is.
    fn bind(&mut self, prefix: &[u8], uri: &[u8]) {
        let context = NamespaceContext { inside: Some(&self.extras), ..self.around };
        if context.uri(prefix).unwrap_or_default() != uri {
            self.extras.push(prefix.to_vec(), uri.to_vec(), usize::MAX);
        }
    }

    /// Ends elements until what follows is a child of `parent`.
    fn go_to(&mut self, parent: ElementId) {
        while self.open.last().is_some_and(|open| open.element != parent) {
            self.end_tag();
        }
        if std::mem::take(&mut self.empty) {
            self.out.push(b'>');
        }
    }

    fn end_tag(&mut self) {
        let Some(Open { name, mark, .. }) = self.open.pop() else { return };
        self.extras.truncate(mark);
        if std::mem::take(&mut self.empty) {
            self.out.extend_from_slice(b"/>");
        } else {
            self.out.extend_from_slice(b"</");
            self.out.extend_from_slice(&name);
            self.out.push(b'>');
        }
    }

    fn markup(&mut self, kind: OtherKind, content: &[u8]) {
        match kind {
            OtherKind::Comment => {
                self.out.extend_from_slice(b"<!--");
                self.out.extend_from_slice(content);
                self.out.extend_from_slice(b"-->");
            }
            OtherKind::Instruction { target } => {
                self.out.extend_from_slice(b"<?");
                self.out.extend_from_slice(target.of(&self.copier.document.values));
                if !content.is_empty() {
                    self.out.push(b' ');
                    self.out.extend_from_slice(content);
                }
                self.out.extend_from_slice(b"?>");
            }
        }
    }
}
