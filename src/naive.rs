//! The slow evaluator: XPath's definition over the AST, node set by node set. The kernel's own
//! oracle, for tests only; every faster way must give its answers.
//!
//! Slow, but not exponential: the outcome of a condition on a node is memoized.

mod calls;
mod tuples;
mod values;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use values::{Evaluated, Focus};

use crate::data::{Node, Records, TreeId};
use crate::document::{Document, NodeRef, Vocabulary};
use crate::ids::{ElementId, NameId, NodeId};
use crate::query::ast::{
    Axis, Expr, Literal, Name, NameTest, Node as Selects, Operator, Path, Predicate, Query, Start, Step,
    Test, Variable,
};
use crate::query::envelope::{is_root, is_root_name};
use crate::query::number::number;
use crate::query::transformation::{Block, Transformation};
use crate::transform::output::{ConstructError, Constructor, NodeCopier, NodeLists, Program, TreeWriter};

/// Whether a query is true of a document.
pub fn matches(query: &Query, document: &Document, vocabulary: &Vocabulary) -> bool {
    matches_with_data(query, document, vocabulary, &Records::default())
}

/// Whether a query is true of a document and local data, which has all that the query names.
pub fn matches_with_data(
    query: &Query,
    document: &Document,
    vocabulary: &Vocabulary,
    data: &Records,
) -> bool {
    Evaluation::new(document, vocabulary, data).holds(&query.expr, MESSAGE)
}

/// The document node of the message.
const MESSAGE: Node = Node { tree: TreeId::MESSAGE, node: NodeRef::Document };

/// The nodes a canonical query selects, in document order: those of its paths outside `not()`
/// that pass the path's test, in branches that are true.
pub fn select(query: &Query, document: &Document, vocabulary: &Vocabulary) -> Vec<NodeRef> {
    let data = Records::default();
    let mut evaluation = Evaluation::new(document, vocabulary, &data);
    let mut nodes = Vec::new();
    evaluation.select(&query.expr, &mut nodes);
    evaluation.in_order(nodes).into_iter().map(|node| node.node).collect()
}

/// The output of a transformation on a document; None for a filter, or if the transformation does not match.
pub fn transform(
    query: &Query,
    document: &Document,
    vocabulary: &Vocabulary,
    limit: usize,
) -> Result<Option<Vec<u8>>, Box<ConstructError>> {
    transform_with_data(query, document, vocabulary, &Records::default(), limit)
}

/// What it makes of a document and local data.
pub fn transform_with_data(
    query: &Query,
    document: &Document,
    vocabulary: &Vocabulary,
    data: &Records,
    limit: usize,
) -> Result<Option<Vec<u8>>, Box<ConstructError>> {
    let Some(transformation) = &query.transformation else { return Ok(None) };
    let mut evaluation = Evaluation::new(document, vocabulary, data);
    let (copier, mut output) = (NodeCopier::new(document, vocabulary), Vec::new());
    let blocks = match &**transformation {
        Transformation::Blocks(blocks) => blocks,
        Transformation::Tuples(_) if !evaluation.holds(&query.expr, MESSAGE) => return Ok(None),
        Transformation::Tuples(content) => {
            evaluation.write(content, &mut TreeWriter::new(&copier, limit, &mut output))?;
            return Ok(Some(output));
        }
    };
    let program = Program::new(blocks);
    let blocks = blocks.blocks.iter().map(|block| evaluation.select_block(block)).collect();
    let selected = SelectedNodes { blocks };
    let is_bound = Constructor::default().construct(&program, &copier, &selected, limit, &mut output)?;
    Ok(is_bound.then_some(output))
}

/// The nodes that a transformation selects in a document.
struct SelectedNodes {
    blocks: Vec<SelectedBlock>,
}

struct SelectedBlock {
    bindings: Vec<ElementId>,
    /// By return path and binding.
    lists: Vec<Vec<Vec<NodeRef>>>,
}

impl NodeLists for SelectedNodes {
    fn bindings(&self, block: usize) -> &[ElementId] {
        &self.blocks[block].bindings
    }

    fn list(&self, block: usize, path: usize, binding: usize) -> &[NodeRef] {
        &self.blocks[block].lists[path][binding]
    }
}

struct Evaluation<'a> {
    document: &'a Document,
    vocabulary: &'a Vocabulary,
    data: &'a Records,
    /// By the address of the condition, which stays where it is while the query is borrowed.
    known: FxHashMap<(*const Expr, Node), bool>,
    /// The values of the variables, innermost last.
    bound: Vec<(Variable, Evaluated)>,
    /// The nodes of each document, in order.
    listed: FxHashMap<TreeId, Rc<[Node]>>,
}

impl<'a> Evaluation<'a> {
    fn new(document: &'a Document, vocabulary: &'a Vocabulary, data: &'a Records) -> Evaluation<'a> {
        let (known, listed) = (FxHashMap::default(), FxHashMap::default());
        Evaluation { document, vocabulary, data, known, bound: Vec::new(), listed }
    }

    fn holds(&mut self, expr: &Expr, context: Node) -> bool {
        // What depends on the position is evaluated there, by `Evaluation::condition`.
        let key = (std::ptr::from_ref(expr), context);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let holds = match expr {
            Expr::Or(operands) => operands.iter().any(|operand| self.holds(operand, context)),
            Expr::And(operands) => operands.iter().all(|operand| self.holds(operand, context)),
            Expr::Not(operand) => !self.holds(operand, context),
            Expr::Computed(computed) => self.value(&computed.value, Focus::single(context)).boolean(),
            Expr::Path(path, test) => {
                let nodes = self.nodes(path, context);
                match test {
                    Test::Contains(text) => {
                        let value = self.first_value(&nodes);
                        memchr::memmem::find(value, text.as_bytes()).is_some()
                    }
                    Test::StartsWith(text) => self.first_value(&nodes).starts_with(text.as_bytes()),
                    _ => nodes.iter().any(|&node| self.passes(test, node)),
                }
            }
        };
        self.known.insert(key, holds);
        holds
    }

    fn select(&mut self, expr: &Expr, selected: &mut Vec<Node>) {
        if !self.holds(expr, MESSAGE) {
            return;
        }
        match expr {
            Expr::Or(operands) | Expr::And(operands) => {
                operands.iter().for_each(|operand| self.select(operand, selected));
            }
            Expr::Not(_) => {}
            Expr::Computed(computed) => {
                if let Evaluated::Nodes(nodes) = self.value(&computed.value, Focus::single(MESSAGE)) {
                    selected.extend(nodes);
                }
            }
            Expr::Path(path, test) => {
                let nodes = self.nodes(path, MESSAGE);
                match test {
                    Test::Contains(_) | Test::StartsWith(_) => selected.extend(nodes.first()),
                    _ => selected.extend(nodes.iter().filter(|&&node| self.passes(test, node))),
                }
            }
        }
    }

    fn select_block(&mut self, block: &Block) -> SelectedBlock {
        let bound = self.nodes(&block.binding, MESSAGE);
        let of_message = |nodes: Vec<Node>| nodes.into_iter().map(|node| node.node).collect();
        let list = |path| bound.iter().map(|&element| of_message(self.nodes(path, element))).collect();
        let lists = block.returns.iter().map(list).collect();
        let element = |node: Node| if let NodeRef::Element(id) = node.node { Some(id) } else { None };
        SelectedBlock { bindings: bound.iter().copied().filter_map(element).collect(), lists }
    }

    /// The nodes of a path, in document order.
    fn nodes(&mut self, path: &Path, context: Node) -> Vec<Node> {
        let mut nodes = match path.start {
            Start::Context => vec![context],
            Start::Document => vec![Node { node: NodeRef::Document, ..context }],
            Start::Message => vec![MESSAGE],
            Start::Variable(variable) => self.variable(variable).into_nodes(),
        };
        for step in &path.steps {
            if step.axis == Axis::Descendant {
                nodes = self.descendants_or_selves(&nodes);
            }
            let mut next = Vec::new();
            for &parent in &nodes {
                next.extend(self.step(step, parent));
            }
            nodes = self.in_order(next);
        }
        nodes
    }

    /// `descendant-or-self::node()`, without text nodes: nothing is below them.
    fn descendants_or_selves(&self, nodes: &[Node]) -> Vec<Node> {
        let mut all = Vec::new();
        // In document order, a node either follows what was covered or lies inside it.
        let mut covered = (TreeId::MESSAGE, 0);
        for &node in nodes {
            let document = self.document(node.tree);
            let elements = match node.node {
                NodeRef::Document => {
                    all.push(node);
                    0..document.message_end()
                }
                NodeRef::Element(id) => id.index()..document.element(id).end.index(),
                NodeRef::Attribute(..) | NodeRef::Text(_) | NodeRef::Other(_) => continue,
            };
            let first = if covered.0 == node.tree { covered.1 } else { 0 };
            let element = |at: usize| Node { node: NodeRef::Element(at.into()), ..node };
            all.extend(elements.clone().filter(|&at| at >= first).map(element));
            covered = (node.tree, first.max(elements.end));
        }
        all
    }

    /// The message or a record.
    fn document(&self, tree: TreeId) -> &'a Document {
        self.data.get(tree).unwrap_or(self.document)
    }

    fn vocabulary(&self, tree: TreeId) -> &'a Vocabulary {
        tree.record().map_or(self.vocabulary, |(set, _)| self.data.vocabulary(set))
    }

    /// The nodes that one step selects from one parent; positions count here.
    fn step(&mut self, step: &Step, parent: Node) -> Vec<Node> {
        let mut nodes = match &step.node {
            Selects::Element(test) => self.children(test, parent),
            Selects::Attribute(test) => self.attributes(test, parent),
            Selects::Text => self.texts(parent),
        };
        for predicate in &step.predicates {
            match predicate {
                Predicate::Position(position) => {
                    let place = position.map(|position| position as usize - 1);
                    nodes = place.and_then(|place| nodes.get(place).copied()).into_iter().collect();
                }
                Predicate::Condition(condition) => nodes.retain(|&node| self.holds(condition, node)),
            }
        }
        nodes
    }

    fn children(&self, test: &NameTest, parent: Node) -> Vec<Node> {
        let document = self.document(parent.tree);
        let elements = match parent.node {
            NodeRef::Document => 0..document.elements.len(),
            NodeRef::Element(id) => id.index() + 1..document.element(id).end.index(),
            NodeRef::Attribute(..) | NodeRef::Text(_) | NodeRef::Other(_) => 0..0,
        };
        let mut children = Vec::new();
        let mut at = elements.start;
        while at < elements.end {
            let id = ElementId::from(at);
            let element = document.element(id);
            if self.has_name(test, element.name, parent.tree) {
                children.push(Node { node: NodeRef::Element(id), ..parent });
            }
            at = element.end.index();
        }
        children
    }

    fn attributes(&self, test: &NameTest, parent: Node) -> Vec<Node> {
        let NodeRef::Element(id) = parent.node else {
            return Vec::new();
        };
        let document = self.document(parent.tree);
        let start = document.element(id).attributes_start;
        let attributes = document.attributes_of(id).iter().zip(start..);
        attributes
            .filter(|(attribute, _)| self.has_name(test, attribute.name, parent.tree))
            .map(|(_, place)| Node { node: NodeRef::Attribute(id, place), ..parent })
            .collect()
    }

    fn texts(&self, parent: Node) -> Vec<Node> {
        let NodeRef::Element(id) = parent.node else {
            return Vec::new();
        };
        let document = self.document(parent.tree);
        let range = document.element(id).texts;
        (range.start..range.end)
            .filter(|&place| document.texts[place as usize].parent == id)
            .map(|place| Node { node: NodeRef::Text(place), ..parent })
            .collect()
    }

    fn has_name(&self, test: &NameTest, name: NameId, tree: TreeId) -> bool {
        let vocabulary = self.vocabulary(tree);
        let (uri, local) = vocabulary.name_parts(name);
        let uri = vocabulary.uri_text(uri);
        if is_root_name(local) {
            return is_root(test);
        }
        match test {
            NameTest::Any => true,
            NameTest::AnyIn(wanted) => uri == wanted.as_bytes(),
            NameTest::Local(wanted) => local == wanted.as_bytes(),
            NameTest::Name(Name { uri: wanted, local: wanted_local }) => {
                local == wanted_local.as_bytes() && uri == wanted.as_bytes()
            }
        }
    }

    /// The string-value of the first node; of no node, the empty string.
    fn first_value(&self, nodes: &[Node]) -> &'a [u8] {
        nodes.first().map_or(b"", |&node| self.value_of(node))
    }

    /// Whether one node passes a test.
    fn passes(&self, test: &Test, node: Node) -> bool {
        let value = self.value_of(node);
        match test {
            Test::Exists => true,
            Test::Compare(Operator::Equal, Literal::Text(text)) => value == text.as_bytes(),
            Test::Compare(Operator::NotEqual, Literal::Text(text)) => value != text.as_bytes(),
            Test::Compare(operator, literal) => {
                let right = match literal {
                    Literal::Text(text) => number(text.as_bytes()),
                    Literal::Number(value) => *value,
                };
                let left = number(value);
                match operator {
                    Operator::Equal => left == right,
                    Operator::NotEqual => left != right,
                    Operator::Less => left < right,
                    Operator::LessOrEqual => left <= right,
                    Operator::Greater => left > right,
                    Operator::GreaterOrEqual => left >= right,
                }
            }
            Test::Normalized(text) => {
                let words = value.split(|byte| b" \t\r\n".contains(byte)).filter(|word| !word.is_empty());
                words.collect::<Vec<_>>().join(&b' ') == text.as_bytes()
            }
            Test::Contains(text) => memchr::memmem::find(value, text.as_bytes()).is_some(),
            Test::StartsWith(text) => value.starts_with(text.as_bytes()),
        }
    }

    fn value_of(&self, Node { tree, node }: Node) -> &'a [u8] {
        self.document(tree).value_of(node)
    }

    fn order(&self, Node { tree, node }: Node) -> (TreeId, (NodeId, u32)) {
        (tree, self.document(tree).order(node))
    }

    fn in_order(&self, mut nodes: Vec<Node>) -> Vec<Node> {
        nodes.sort_unstable_by_key(|&node| self.order(node));
        nodes.dedup();
        nodes
    }
}
