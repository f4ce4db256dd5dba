//! Writes an output node by node, for content that is only known once it is evaluated. A start tag stays open until
//! something else than an attribute follows.

use super::construct::{ConstructError, duplicate, too_long};
use super::copy::{NamespaceContext, NodeCopier, write_declaration};
use super::output_namespaces::{NamespaceStack, PrefixNumbering};
use super::program::{Scope, expanded_name};
use super::{escape, serialize};
use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::query::transformation::PrefixedName;

/// Writes one output.
pub struct TreeWriter<'w> {
    copier: &'w NodeCopier<'w>,
    out: &'w mut Vec<u8>,
    start: usize,
    limit: usize,
    /// The namespaces of the constructed elements that are open; the first is the scope around all.
    scopes: Vec<Scope>,
    open: Vec<OpenElement>,
    /// The declarations that constructed elements need for attributes copied from the message.
    added: NamespaceStack,
    is_tag_open: bool,
    /// Whether an attribute value is written.
    in_value: bool,
    /// Whether a string or number was written last: the next one is separated from it by a space.
    after_atomic: bool,
}

struct OpenElement {
    name: String,
    has_scope: bool,
    added_before: usize,
    /// URI and local name of its attributes so far.
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    numbering: PrefixNumbering,
}

type Written = Result<(), Box<ConstructError>>;

impl<'w> TreeWriter<'w> {
    /// Appends to `out` at most `limit` bytes.
    pub fn new(copier: &'w NodeCopier<'w>, limit: usize, out: &'w mut Vec<u8>) -> TreeWriter<'w> {
        TreeWriter {
            copier,
            start: out.len(),
            out,
            limit,
            scopes: vec![Scope::outermost()],
            open: Vec::new(),
            added: NamespaceStack::default(),
            is_tag_open: false,
            in_value: false,
            after_atomic: false,
        }
    }

    pub fn start_element(&mut self, name: &PrefixedName, namespaces: &[(String, String)]) -> Written {
        self.close_tag();
        self.after_atomic = false;
        let colon = if name.prefix.is_empty() { "" } else { ":" };
        let written = format!("{}{colon}{}", name.prefix, name.local);
        self.out.push(b'<');
        self.out.extend_from_slice(written.as_bytes());
        for (prefix, uri) in namespaces {
            write_declaration(prefix.as_bytes(), uri.as_bytes(), self.out);
        }
        if !namespaces.is_empty() {
            let scope = Scope::inside(&self.scopes, namespaces, self.open.len() + 1);
            self.scopes.push(scope);
        }
        self.open.push(OpenElement {
            name: written,
            has_scope: !namespaces.is_empty(),
            added_before: self.added.len(),
            attributes: Vec::new(),
            numbering: PrefixNumbering::default(),
        });
        self.is_tag_open = true;
        self.check()
    }

    /// Begins an attribute of the element whose tag is open; its value follows.
    pub fn start_attribute(&mut self, name: &PrefixedName) {
        let (uri, local) = expanded_name(&self.scopes, self.scopes.len() - 1, name);
        if let Some(open) = self.open.last_mut() {
            open.attributes.push((uri.into_bytes(), local.into_bytes()));
        }
        let colon = if name.prefix.is_empty() { "" } else { ":" };
        self.out.extend_from_slice(format!(" {}{colon}{}=\"", name.prefix, name.local).as_bytes());
        self.in_value = true;
        self.after_atomic = false;
    }

    pub fn end_attribute(&mut self) {
        self.out.push(b'"');
        self.in_value = false;
    }

    pub fn end_element(&mut self) -> Written {
        let Some(open) = self.open.pop() else { return Ok(()) };
        if std::mem::take(&mut self.is_tag_open) {
            self.out.extend_from_slice(b"/>");
        } else {
            self.out.extend_from_slice(b"</");
            self.out.extend_from_slice(open.name.as_bytes());
            self.out.push(b'>');
        }
        if open.has_scope {
            self.scopes.pop();
        }
        self.added.truncate(open.added_before);
        self.after_atomic = false;
        self.check()
    }

    /// Writes text between tags and braces.
    pub fn text(&mut self, text: &[u8]) -> Written {
        self.after_atomic = false;
        self.characters(text)
    }

    /// A string, a number or a boolean.
    pub fn atomic(&mut self, text: &[u8]) -> Written {
        if self.after_atomic {
            self.characters(b" ")?;
        }
        self.after_atomic = true;
        self.characters(text)
    }

    /// Begins or ends an expression in braces.
    pub fn boundary(&mut self) {
        self.after_atomic = false;
    }

    /// A copy of a node; in an attribute value, its string-value.
    pub fn node(&mut self, node: NodeRef) -> Written {
        self.copy(self.copier, node)
    }

    /// The same of another document than the message.
    pub fn copy(&mut self, copier: &NodeCopier<'_>, node: NodeRef) -> Written {
        let document = copier.document;
        if self.in_value {
            return self.atomic(document.value_of(node));
        }
        self.after_atomic = false;
        match node {
            NodeRef::Attribute(element, place) => return self.attribute(copier, element, place),
            NodeRef::Text(_) => return self.characters(document.value_of(node)),
            NodeRef::Document => {
                let root = (!document.elements.is_empty()).then_some(NodeRef::Element(0.into()));
                let others = (0..document.others.len() as u32)
                    .filter(|&place| document.others[place as usize].parent.is_none())
                    .map(NodeRef::Other);
                let mut children: Vec<NodeRef> = root.into_iter().chain(others).collect();
                children.sort_unstable_by_key(|&child| document.order(child));
                return children.into_iter().try_for_each(|child| self.copy(copier, child));
            }
            NodeRef::Other(place) => {
                self.close_tag();
                serialize::markup(document, &document.others[place as usize], self.out);
            }
            NodeRef::Element(element) => {
                self.close_tag();
                let context = context(&self.scopes, &self.added);
                if copier.copies_source(&context) {
                    self.out.extend_from_slice(copier.source_of(element));
                } else {
                    copier.element(element, &context, self.out);
                }
            }
        }
        self.check()
    }

    fn attribute(&mut self, copier: &NodeCopier<'_>, element: ElementId, place: u32) -> Written {
        let (uri, local) = copier.name(copier.document.attributes[place as usize].name);
        let depth = self.open.len();
        let open = match self.open.last_mut() {
            Some(open) if self.is_tag_open => open,
            _ => return Err(misplaced(local)),
        };
        if open.attributes.iter().any(|(its_uri, its_local)| its_uri == uri && its_local == local) {
            return Err(duplicate(local));
        }
        open.attributes.push((uri.to_vec(), local.to_vec()));
        let context = context(&self.scopes, &self.added);
        let added = copier.attribute(element, place, &context, &mut open.numbering, self.out);
        if let Some((prefix, uri)) = added {
            self.added.push(prefix, uri, depth);
        }
        self.check()
    }

    fn characters(&mut self, text: &[u8]) -> Written {
        if self.in_value {
            escape::value(text, self.out);
        } else if !text.is_empty() {
            self.close_tag();
            escape::text(text, self.out);
        }
        self.check()
    }

    fn close_tag(&mut self) {
        if std::mem::take(&mut self.is_tag_open) {
            self.out.push(b'>');
        }
    }

    fn check(&self) -> Written {
        let length = self.out.len() - self.start;
        if length > self.limit { Err(too_long(length, self.limit)) } else { Ok(()) }
    }
}

/// The namespaces where a node is copied to.
fn context<'s>(scopes: &'s [Scope], added: &'s NamespaceStack) -> NamespaceContext<'s> {
    NamespaceContext { scopes, scope: scopes.len() - 1, added, inside: None }
}

#[cold]
fn misplaced(local: &[u8]) -> Box<ConstructError> {
    let name = String::from_utf8_lossy(local);
    let reason = format!(
        "the attribute `{name}` of the message comes after other content, or without an element around it"
    );
    Box::new(ConstructError { code: "attribute-place", reason, exceeded: None })
}
