//! Runs the output program of a transformation (`program.rs` has an example) on the selected nodes.

use std::fmt;
use std::io::Write;

use rustc_hash::FxHashSet;

use super::copy::{NamespaceContext, NodeCopier};
use super::escape;
use super::output_namespaces::{NamespaceStack, PrefixNumbering};
use super::program::{AttributeTarget, Op, Program};
use crate::document::NodeRef;
use crate::error::Exceeded;
use crate::ids::{ElementId, NameId};

/// The selection of a transformation in a message: for each block the bound elements, for each of these and each return
/// path a list of nodes. All are distinct and in document order.
pub trait NodeLists {
    fn bindings(&self, block: usize) -> &[ElementId];
    /// `binding`: a place in `bindings`.
    fn list(&self, block: usize, path: usize, binding: usize) -> &[NodeRef];
}

/// Why the output of one transformation and message cannot be written. Other outputs are not affected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstructError {
    pub code: &'static str,
    pub reason: String,
    pub exceeded: Option<Exceeded>,
}

impl fmt::Display for ConstructError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for ConstructError {}

/// Constructs outputs; keeps its buffers between them.
#[derive(Default)]
pub struct Constructor {
    /// Where the content starts of open elements that may turn out empty.
    open: Vec<usize>,
    /// The declarations that constructed elements need for attributes copied from the message.
    added: NamespaceStack,
    /// Their number at the start of each open element that gets copied attributes.
    added_before: Vec<usize>,
}

impl Constructor {
    /// Appends the output of a transformation, at most `limit` bytes. Returns false if nothing is bound, and so nothing
    /// written. After an error, `out` is unchanged.
    pub fn construct(
        &mut self,
        program: &Program,
        copier: &NodeCopier<'_>,
        lists: &impl NodeLists,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, Box<ConstructError>> {
        if (0..program.blocks).all(|block| lists.bindings(block).is_empty()) {
            return Ok(false);
        }
        self.open.clear();
        self.added.truncate(0);
        self.added_before.clear();
        let start = out.len();
        let mut construction = Construction { program, copier, lists, start, limit, out, scratch: self };
        match construction.run(&program.ops, 0, 0) {
            Ok(()) => Ok(true),
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }
}

struct Construction<'a, L> {
    program: &'a Program,
    copier: &'a NodeCopier<'a>,
    lists: &'a L,
    start: usize,
    limit: usize,
    out: &'a mut Vec<u8>,
    scratch: &'a mut Constructor,
}

impl<'a, L: NodeLists> Construction<'a, L> {
    /// Runs operations, for one binding if they are inside a block.
    fn run(&mut self, ops: &[Op], block: usize, binding: usize) -> Result<(), Box<ConstructError>> {
        let mut at = 0;
        while let Some(op) = ops.get(at) {
            at += 1;
            let Op::Block { block, length } = *op else {
                self.step(op, block, binding)?;
                continue;
            };
            for binding in 0..self.lists.bindings(block).len() {
                self.run(&ops[at..at + length], block, binding)?;
            }
            at += length;
        }
        Ok(())
    }

    #[inline(always)]
    fn step(&mut self, op: &Op, block: usize, binding: usize) -> Result<(), Box<ConstructError>> {
        let list = |path: usize| self.lists.list(block, path, binding);
        match op {
            Op::Write(range) => self.out.extend_from_slice(&self.program.bytes[range.clone()]),
            Op::Nodes { path, scope } => return self.nodes(list(*path), *scope),
            Op::Count(path) => {
                // Writing to a vector cannot fail.
                let _ = write!(self.out, "{}", list(*path).len());
            }
            Op::First(path) => escape::text(self.first(list(*path)), self.out),
            Op::FirstInAttribute(path) => escape::value(self.first(list(*path)), self.out),
            Op::AllInAttribute(path) => return self.values(list(*path)),
            Op::Attributes(target) => return self.attributes(target, block, binding),
            Op::EndAttributeScope => {
                let count = self.scratch.added_before.pop().unwrap_or_default();
                self.scratch.added.truncate(count);
            }
            Op::Open => self.scratch.open.push(self.out.len()),
            Op::Close(end_tag) => {
                if self.scratch.open.pop() == Some(self.out.len()) {
                    self.out.pop();
                    self.out.extend_from_slice(b"/>");
                } else {
                    self.out.extend_from_slice(&self.program.bytes[end_tag.clone()]);
                }
            }
            Op::Block { .. } => {}
        }
        self.check()
    }

    fn nodes(&mut self, nodes: &[NodeRef], scope: usize) -> Result<(), Box<ConstructError>> {
        let context = NamespaceContext {
            scopes: &self.program.scopes,
            scope,
            added: &self.scratch.added,
            inside: None,
        };
        let copies_source = self.copier.copies_source(&context);
        for &node in nodes {
            match node {
                NodeRef::Element(element) if copies_source => {
                    self.out.extend_from_slice(self.copier.source_of(element));
                }
                NodeRef::Element(element) => self.copier.element(element, &context, self.out),
                node => escape::text(self.copier.document.value_of(node), self.out),
            }
            self.check()?;
        }
        Ok(())
    }

    fn values(&mut self, nodes: &[NodeRef]) -> Result<(), Box<ConstructError>> {
        for (place, &node) in nodes.iter().enumerate() {
            if place > 0 {
                self.out.push(b' ');
            }
            escape::value(self.copier.document.value_of(node), self.out);
            self.check()?;
        }
        Ok(())
    }

    fn first(&self, nodes: &[NodeRef]) -> &'a [u8] {
        nodes.first().map_or(b"", |&node| self.copier.document.value_of(node))
    }

    fn attributes(
        &mut self,
        target: &AttributeTarget,
        block: usize,
        binding: usize,
    ) -> Result<(), Box<ConstructError>> {
        self.scratch.added_before.push(self.scratch.added.len());
        let mut names: FxHashSet<NameId> = FxHashSet::default();
        let mut numbering = PrefixNumbering::default();
        for &path in &target.paths {
            for &node in self.lists.list(block, path, binding) {
                let NodeRef::Attribute(element, place) = node else { continue };
                let name = self.copier.document.attributes[place as usize].name;
                let (uri, local) = self.copier.name(name);
                let is_same = |(its_uri, its_local): &(String, String)| {
                    its_uri.as_bytes() == uri && its_local.as_bytes() == local
                };
                if !names.insert(name) || target.names.iter().any(is_same) {
                    return Err(duplicate(local));
                }
                let (scopes, scope) = (&self.program.scopes, target.scope);
                let context = NamespaceContext { scopes, scope, added: &self.scratch.added, inside: None };
                let added = self.copier.attribute(element, place, &context, &mut numbering, self.out);
                if let Some((prefix, uri)) = added {
                    self.scratch.added.push(prefix, uri, target.depth);
                }
                self.check()?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn check(&self) -> Result<(), Box<ConstructError>> {
        let length = self.out.len() - self.start;
        if length > self.limit { Err(too_long(length, self.limit)) } else { Ok(()) }
    }
}

#[cold]
pub(super) fn too_long(length: usize, limit: usize) -> Box<ConstructError> {
    Box::new(ConstructError {
        code: "output-limit",
        reason: format!("the output is too long: {length} bytes, at most {limit}"),
        exceeded: Some(Exceeded { value: length as u64, limit: limit as u64 }),
    })
}

#[cold]
pub(super) fn duplicate(local: &[u8]) -> Box<ConstructError> {
    let name = String::from_utf8_lossy(local);
    Box::new(ConstructError {
        code: "duplicate-attribute",
        reason: format!("a constructed element gets a second attribute `{name}` from the message"),
        exceeded: None,
    })
}
