//! Compiles a transformation's constructors into a flat program: constant bytes, and slots between them. `construct.rs`
//! runs it, once per output, in one pass.
//!
//! Example: `<list>{for $b in /shop/book return <cheap n="{count($b/note)}">{$b/title}</cheap>}</list>` becomes
//!
//! ```text
//! Write  <list>
//! Open                          the content of list may turn out empty
//! Block  for each binding the next 6 operations
//!   Write  <cheap n="
//!   Count  return path 0
//!   Write  ">
//!   Open
//!   Nodes  return path 1
//!   Close  </cheap>             or, if nothing followed Open, the tag becomes <cheap n="0"/>
//! Close  </list>
//! ```

use std::ops::Range;

use super::escape;
use crate::query::ast::{Node, Path};
use crate::query::namespaces::XML_URI;
use crate::query::transformation::{Block, Blocks, Element, Item, Outer, Part, PrefixedName};

/// An operation. Return paths are numbers within their block.
pub(super) enum Op {
    /// Writes a range of the program's bytes.
    Write(Range<usize>),
    /// Runs the next `length` operations for each binding of the block.
    Block {
        block: usize,
        length: usize,
    },
    /// Copies the nodes of a path; `scope` has the namespaces around them.
    Nodes {
        path: usize,
        scope: usize,
    },
    Count(usize),
    /// Writes the first node's value as text.
    First(usize),
    /// The same in an attribute value.
    FirstInAttribute(usize),
    /// Writes the values of all nodes in an attribute value, separated by spaces.
    AllInAttribute(usize),
    /// Copies attributes of the message into the start tag.
    Attributes(Box<AttributeTarget>),
    /// Ends the element with copied attributes, and the scope of the namespaces declared for them.
    EndAttributeScope,
    /// Marks the start of content that may turn out empty.
    Open,
    /// Writes this end tag, or makes the start tag an empty-element tag if nothing followed.
    Close(Range<usize>),
}

/// A constructed element into which attributes of the message are copied.
pub(super) struct AttributeTarget {
    pub paths: Vec<usize>,
    /// URI and local name of its constructed attributes.
    pub names: Vec<(String, String)>,
    pub scope: usize,
    /// Its depth among constructed elements.
    pub depth: usize,
}

/// The namespaces in scope inside a constructed element. The default namespace has the empty prefix.
pub(super) struct Scope {
    /// The scope around it.
    outer: Option<usize>,
    bindings: Vec<Binding>,
    pub has_default: bool,
}

impl Scope {
    /// The scope around all constructed elements.
    pub fn outermost() -> Scope {
        Scope { outer: None, bindings: Vec::new(), has_default: false }
    }

    /// The scope of an element with declarations, in the last of the scopes. `depth`: among constructed elements.
    pub fn inside(scopes: &[Scope], namespaces: &[(String, String)], depth: usize) -> Scope {
        let outer = scopes.len() - 1;
        let default = namespaces.iter().rfind(|(prefix, _)| prefix.is_empty());
        let has_default = default.map_or(scopes[outer].has_default, |(_, uri)| !uri.is_empty());
        let bind =
            |(prefix, uri): &(String, String)| Binding { prefix: prefix.clone(), uri: uri.clone(), depth };
        Scope { outer: Some(outer), bindings: namespaces.iter().map(bind).collect(), has_default }
    }
}

pub(super) struct Binding {
    pub prefix: String,
    pub uri: String,
    /// The depth of the constructed element that declares it.
    pub depth: usize,
}

/// The innermost binding of a prefix in a scope.
pub(super) fn find_binding<'a>(scopes: &'a [Scope], scope: usize, prefix: &[u8]) -> Option<&'a Binding> {
    let mut next = Some(&scopes[scope]);
    while let Some(scope) = next {
        let own = scope.bindings.iter().find(|binding| binding.prefix.as_bytes() == prefix);
        if own.is_some() {
            return own;
        }
        next = scope.outer.map(|outer| &scopes[outer]);
    }
    None
}

/// URI and local name of a constructed attribute.
pub(super) fn expanded_name(scopes: &[Scope], scope: usize, name: &PrefixedName) -> (String, String) {
    let uri = match name.prefix.as_str() {
        "" => "",
        "xml" => XML_URI,
        prefix => find_binding(scopes, scope, prefix.as_bytes()).map_or("", |binding| binding.uri.as_str()),
    };
    (uri.to_string(), name.local.clone())
}

/// The compiled constructors of a transformation.
pub struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) bytes: Vec<u8>,
    pub(super) scopes: Vec<Scope>,
    pub(super) blocks: usize,
}

impl Program {
    pub fn new(transformation: &Blocks) -> Program {
        let program = Program {
            ops: Vec::new(),
            bytes: Vec::new(),
            scopes: vec![Scope::outermost()],
            blocks: transformation.blocks.len(),
        };
        let mut compiler = Compiler { program, written: 0, scope: 0, depth: 0 };
        compiler.outer(&transformation.outer, &transformation.blocks);
        compiler.flush();
        compiler.program
    }

    /// Memory of the program, about.
    pub fn bytes(&self) -> usize {
        size_of::<Program>()
            + size_of_val(self.ops.as_slice())
            + self.bytes.len()
            + size_of_val(self.scopes.as_slice())
    }
}

struct Compiler {
    program: Program,
    /// The program's bytes before this are in a `Write` operation.
    written: usize,
    scope: usize,
    depth: usize,
}

impl Compiler {
    fn outer(&mut self, part: &Outer, blocks: &[Block]) {
        match part {
            Outer::Text(text) => escape::text(text.as_bytes(), &mut self.program.bytes),
            Outer::Element(element) => {
                let may_be_empty = element.content.iter().all(|part| matches!(part, Outer::Block(_)));
                self.element(element, Vec::new(), may_be_empty, |compiler| {
                    element.content.iter().for_each(|part| compiler.outer(part, blocks));
                });
            }
            Outer::Block(block) => {
                self.flush();
                let place = self.program.ops.len();
                self.program.ops.push(Op::Block { block: *block, length: 0 });
                let Block { returns, template, .. } = &blocks[*block];
                template.iter().for_each(|item| self.item(item, returns));
                self.flush();
                let length = self.program.ops.len() - place - 1;
                self.program.ops[place] = Op::Block { block: *block, length };
            }
        }
    }

    fn item(&mut self, item: &Item, returns: &[Path]) {
        match item {
            Item::Text(text) => escape::text(text.as_bytes(), &mut self.program.bytes),
            Item::Element(element) => {
                let attribute = |item: &Item| match item {
                    Item::Nodes(path) if selects_attributes(&returns[*path]) => Some(*path),
                    _ => None,
                };
                let attributes: Vec<usize> = element.content.iter().map_while(attribute).collect();
                let content = &element.content[attributes.len()..];
                let may_be_empty = content.iter().all(|item| matches!(item, Item::Nodes(_) | Item::First(_)));
                let has_content = !content.is_empty();
                self.element(element, attributes, may_be_empty && has_content, |compiler| {
                    content.iter().for_each(|item| compiler.item(item, returns));
                });
            }
            Item::Nodes(path) => self.slot(Op::Nodes { path: *path, scope: self.scope }),
            Item::Count(path) => self.slot(Op::Count(*path)),
            Item::First(path) => self.slot(Op::First(*path)),
        }
    }

    /// An element with attributes copied from the message (return paths) and the content that `content` writes.
    fn element<T>(
        &mut self,
        element: &Element<T>,
        attributes: Vec<usize>,
        may_be_empty: bool,
        content: impl FnOnce(&mut Compiler),
    ) {
        let outer = self.scope;
        self.depth += 1;
        self.start_tag(element);
        let copies_attributes = !attributes.is_empty();
        let is_empty = element.content.len() == attributes.len();
        if copies_attributes {
            let names = element
                .attributes
                .iter()
                .map(|attribute| expanded_name(&self.program.scopes, self.scope, &attribute.name))
                .collect();
            let (scope, depth) = (self.scope, self.depth);
            self.slot(Op::Attributes(Box::new(AttributeTarget { paths: attributes, names, scope, depth })));
        }
        if is_empty {
            self.bytes("/>");
        } else {
            self.bytes(">");
            if may_be_empty {
                self.slot(Op::Open);
            }
            content(self);
            let end_tag = |compiler: &mut Compiler| {
                compiler.bytes("</");
                compiler.name(&element.name);
                compiler.bytes(">");
            };
            if may_be_empty {
                self.flush();
                let start = self.program.bytes.len();
                end_tag(self);
                self.written = self.program.bytes.len();
                self.program.ops.push(Op::Close(start..self.written));
            } else {
                end_tag(self);
            }
        }
        if copies_attributes {
            self.slot(Op::EndAttributeScope);
        }
        self.depth -= 1;
        self.scope = outer;
    }

    /// The start tag without its closing `>`.
    fn start_tag<T>(&mut self, element: &Element<T>) {
        self.bytes("<");
        self.name(&element.name);
        if !element.namespaces.is_empty() {
            let mut bindings = Vec::with_capacity(element.namespaces.len());
            let mut has_default = self.program.scopes[self.scope].has_default;
            for (prefix, uri) in &element.namespaces {
                if prefix.is_empty() {
                    has_default = !uri.is_empty();
                }
                bindings.push(Binding { prefix: prefix.clone(), uri: uri.clone(), depth: self.depth });
                self.bytes(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
                self.bytes(prefix);
                self.bytes("=\"");
                escape::value(uri.as_bytes(), &mut self.program.bytes);
                self.bytes("\"");
            }
            let outer = Some(self.scope);
            self.scope = self.program.scopes.len();
            self.program.scopes.push(Scope { outer, bindings, has_default });
        }
        for attribute in &element.attributes {
            self.bytes(" ");
            self.name(&attribute.name);
            self.bytes("=\"");
            for part in &attribute.value {
                match part {
                    Part::Text(text) => escape::value(text.as_bytes(), &mut self.program.bytes),
                    Part::Values(path) => self.slot(Op::AllInAttribute(*path)),
                    Part::Count(path) => self.slot(Op::Count(*path)),
                    Part::First(path) => self.slot(Op::FirstInAttribute(*path)),
                }
            }
            self.bytes("\"");
        }
    }

    fn name(&mut self, name: &PrefixedName) {
        if !name.prefix.is_empty() {
            self.bytes(&name.prefix);
            self.bytes(":");
        }
        self.bytes(&name.local);
    }

    fn bytes(&mut self, bytes: &str) {
        self.program.bytes.extend_from_slice(bytes.as_bytes());
    }

    fn slot(&mut self, op: Op) {
        self.flush();
        self.program.ops.push(op);
    }

    /// Adds a `Write` operation for the bytes that are not in one yet.
    fn flush(&mut self) {
        let end = self.program.bytes.len();
        if end > self.written {
            self.program.ops.push(Op::Write(self.written..end));
            self.written = end;
        }
    }
}

fn selects_attributes(path: &Path) -> bool {
    path.steps.last().is_some_and(|step| matches!(step.node, Node::Attribute(_)))
}
