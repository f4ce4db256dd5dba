//! A transformation as a flat program: runs of bytes that are always the same, and slots between them.

use std::ops::Range;

use super::escape;
use crate::query::ast::{Node, Path};
use crate::query::namespaces::XML_URI;
use crate::query::transformation::{Block, Element, Item, Outer, Part, PrefixedName, Transformation};

/// What is done to write a result, one after the other. Return paths are named by their place in their block.
pub(super) enum Op {
    /// These of the program's bytes.
    Write(Range<usize>),
    /// So many of the next operations, for each binding of the block.
    Block {
        block: usize,
        length: usize,
    },
    /// The nodes of a path; `scope` is what prefixes stand for around them.
    Nodes {
        path: usize,
        scope: usize,
    },
    Count(usize),
    /// The first node's value as text.
    First(usize),
    /// The same in an attribute value.
    FirstValue(usize),
    /// All nodes' values in an attribute value.
    Values(usize),
    /// Attributes of the message for the element whose start tag is being written.
    Attributes(Box<AttributeTarget>),
    /// Here ends the element that they went to.
    Leave,
    /// A start tag has just been closed, and it may turn out that nothing follows.
    Open,
    /// This end tag, or none if nothing has followed.
    Close(Range<usize>),
}

/// A constructed element that gets attributes of the message.
pub(super) struct AttributeTarget {
    pub paths: Vec<usize>,
    /// URI and local name of the attributes that it has anyway.
    pub names: Vec<(String, String)>,
    pub scope: usize,
    /// How many constructed elements it is inside of.
    pub depth: usize,
}

/// What prefixes stand for inside a constructed element; the empty prefix is the default namespace.
pub(super) struct Scope {
    /// The one around it.
    outer: Option<usize>,
    bindings: Vec<Binding>,
    pub has_default: bool,
}

pub(super) struct Binding {
    pub prefix: String,
    pub uri: String,
    /// How many constructed elements the one that declares it is inside of.
    pub depth: usize,
}

/// What a prefix stands for in a scope.
pub(super) fn bound<'a>(scopes: &'a [Scope], scope: usize, prefix: &[u8]) -> Option<&'a Binding> {
    let mut around = Some(&scopes[scope]);
    while let Some(scope) = around {
        let own = scope.bindings.iter().find(|binding| binding.prefix.as_bytes() == prefix);
        if own.is_some() {
            return own;
        }
        around = scope.outer.map(|outer| &scopes[outer]);
    }
    None
}

/// A transformation, made ready to be carried out many times.
pub struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) bytes: Vec<u8>,
    pub(super) scopes: Vec<Scope>,
    pub(super) blocks: usize,
}

impl Program {
    pub fn new(transformation: &Transformation) -> Program {
        let program = Program {
            ops: Vec::new(),
            bytes: Vec::new(),
            scopes: vec![Scope { outer: None, bindings: Vec::new(), has_default: false }],
            blocks: transformation.blocks.len(),
        };
        let mut compiler = Compiler { program, written: 0, scope: 0, depth: 0 };
        compiler.outer(&transformation.outer, &transformation.blocks);
        compiler.flush();
        compiler.program
    }
}

struct Compiler {
    program: Program,
    /// Up to here the bytes are in the operations.
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

    /// An element with the attributes it takes from the message and with what `content` writes.
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
        let receives = !attributes.is_empty();
        let is_empty = element.content.len() == attributes.len();
        if receives {
            let names = element.attributes.iter().map(|attribute| self.expanded(&attribute.name)).collect();
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
        if receives {
            self.slot(Op::Leave);
        }
        self.depth -= 1;
        self.scope = outer;
    }

    /// The start tag without its end.
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
                    Part::Values(path) => self.slot(Op::Values(*path)),
                    Part::Count(path) => self.slot(Op::Count(*path)),
                    Part::First(path) => self.slot(Op::FirstValue(*path)),
                }
            }
            self.bytes("\"");
        }
    }

    /// URI and local name of an attribute in scope.
    fn expanded(&self, name: &PrefixedName) -> (String, String) {
        let uri = match name.prefix.as_str() {
            "" => "",
            "xml" => XML_URI,
            prefix => bound(&self.program.scopes, self.scope, prefix.as_bytes())
                .map_or("", |binding| binding.uri.as_str()),
        };
        (uri.to_string(), name.local.clone())
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

    /// Makes an operation of the bytes that are in none yet.
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
