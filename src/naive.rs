//! The slow evaluator: XPath's definition over the AST, node set by node set. The kernel's own
//! oracle, for tests only; every faster way must give its answers.
//!
//! Slow, but not exponential: what a condition says of a node is remembered.

mod calls;
mod tuples;
mod values;

use rustc_hash::FxHashMap;

use values::{Evaluated, Focus};

use crate::document::{Document, NodeRef, Vocabulary};
use crate::ids::{ElementId, NameId};
use crate::query::ast::{
    Axis, Expr, Literal, Name, NameTest, Node, Operator, Path, Predicate, Query, Start, Step, Test, Variable,
};
use crate::query::envelope::{is_root, is_root_name};
use crate::query::number::number;
use crate::query::transformation::{Block, Transformation};
use crate::transform::output::{ConstructError, Constructor, NodeCopier, NodeLists, Program, TreeWriter};

/// Whether a query is true of a document.
pub fn matches(query: &Query, document: &Document, vocabulary: &Vocabulary) -> bool {
    Evaluation::new(document, vocabulary).holds(&query.expr, NodeRef::Document)
}

/// The nodes a canonical query selects, in document order: those of its paths outside `not()`
/// that pass the path's test, in branches that are true.
pub fn select(query: &Query, document: &Document, vocabulary: &Vocabulary) -> Vec<NodeRef> {
    let mut evaluation = Evaluation::new(document, vocabulary);
    let mut nodes = Vec::new();
    evaluation.select(&query.expr, &mut nodes);
    evaluation.in_order(nodes)
}

/// What a transformation makes of a document; None of one that does not concern it, and for a filter.
pub fn transform(
    query: &Query,
    document: &Document,
    vocabulary: &Vocabulary,
    limit: usize,
) -> Result<Option<Vec<u8>>, Box<ConstructError>> {
    let Some(transformation) = &query.transformation else { return Ok(None) };
    let mut evaluation = Evaluation::new(document, vocabulary);
    let (copier, mut output) = (NodeCopier::new(document, vocabulary), Vec::new());
    let blocks = match &**transformation {
        Transformation::Blocks(blocks) => blocks,
        Transformation::Tuples(_) if !evaluation.holds(&query.expr, NodeRef::Document) => return Ok(None),
        Transformation::Tuples(content) => {
            evaluation.write(content, &mut TreeWriter::new(&copier, limit, &mut output))?;
            return Ok(Some(output));
        }
    };
    let program = Program::new(blocks);
    let blocks = blocks.blocks.iter().map(|block| evaluation.taken(block)).collect();
    let taken = Taken { blocks };
    let made = Constructor::default().construct(&program, &copier, &taken, limit, &mut output)?;
    Ok(made.then_some(output))
}

/// What a transformation takes from a document.
struct Taken {
    blocks: Vec<TakenBlock>,
}

struct TakenBlock {
    bindings: Vec<ElementId>,
    /// By return path and binding.
    lists: Vec<Vec<Vec<NodeRef>>>,
}

impl NodeLists for Taken {
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
    /// By the address of the condition, which stays where it is while the query is borrowed.
    known: FxHashMap<(*const Expr, NodeRef), bool>,
    /// What variables are bound to, innermost last.
    bound: Vec<(Variable, Evaluated)>,
}

impl<'a> Evaluation<'a> {
    fn new(document: &'a Document, vocabulary: &'a Vocabulary) -> Evaluation<'a> {
        Evaluation { document, vocabulary, known: FxHashMap::default(), bound: Vec::new() }
    }

    fn holds(&mut self, expr: &Expr, context: NodeRef) -> bool {
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

    fn select(&mut self, expr: &Expr, selected: &mut Vec<NodeRef>) {
        if !self.holds(expr, NodeRef::Document) {
            return;
        }
        match expr {
            Expr::Or(operands) | Expr::And(operands) => {
                operands.iter().for_each(|operand| self.select(operand, selected));
            }
            Expr::Not(_) => {}
            Expr::Computed(computed) => {
                if let Evaluated::Nodes(nodes) = self.value(&computed.value, Focus::single(NodeRef::Document))
                {
                    selected.extend(nodes);
                }
            }
            Expr::Path(path, test) => {
                let nodes = self.nodes(path, NodeRef::Document);
                match test {
                    Test::Contains(_) | Test::StartsWith(_) => selected.extend(nodes.first()),
                    _ => selected.extend(nodes.iter().filter(|&&node| self.passes(test, node))),
                }
            }
        }
    }

    fn taken(&mut self, block: &Block) -> TakenBlock {
        let bound = self.nodes(&block.binding, NodeRef::Document);
        let list = |path| bound.iter().map(|&element| self.nodes(path, element)).collect();
        let lists = block.returns.iter().map(list).collect();
        let element = |node| if let NodeRef::Element(id) = node { Some(id) } else { None };
        TakenBlock { bindings: bound.iter().copied().filter_map(element).collect(), lists }
    }

    /// The nodes of a path, in document order.
    fn nodes(&mut self, path: &Path, context: NodeRef) -> Vec<NodeRef> {
        let mut nodes = match path.start {
            Start::Context => vec![context],
            Start::Document => vec![NodeRef::Document],
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
    fn descendants_or_selves(&self, nodes: &[NodeRef]) -> Vec<NodeRef> {
        let mut all = Vec::new();
        // In document order, a node either follows what was covered or lies inside it.
        let mut covered = 0;
        for &node in nodes {
            let elements = match node {
                NodeRef::Document => {
                    all.push(node);
                    0..self.document.message_end()
                }
                NodeRef::Element(id) => id.index()..self.document.element(id).end.index(),
                NodeRef::Attribute(..) | NodeRef::Text(_) | NodeRef::Other(_) => continue,
            };
            all.extend(elements.clone().filter(|&at| at >= covered).map(|at| NodeRef::Element(at.into())));
            covered = covered.max(elements.end);
        }
        all
    }

    /// What one step selects from one parent; positions count here.
    fn step(&mut self, step: &Step, parent: NodeRef) -> Vec<NodeRef> {
        let mut nodes = match &step.node {
            Node::Element(test) => self.children(test, parent),
            Node::Attribute(test) => self.attributes(test, parent),
            Node::Text => self.texts(parent),
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

    fn children(&self, test: &NameTest, parent: NodeRef) -> Vec<NodeRef> {
        let elements = match parent {
            NodeRef::Document => 0..self.document.elements.len(),
            NodeRef::Element(id) => id.index() + 1..self.document.element(id).end.index(),
            NodeRef::Attribute(..) | NodeRef::Text(_) | NodeRef::Other(_) => 0..0,
        };
        let mut children = Vec::new();
        let mut at = elements.start;
        while at < elements.end {
            let id = ElementId::from(at);
            let element = self.document.element(id);
            if self.has_name(test, element.name) {
                children.push(NodeRef::Element(id));
            }
            at = element.end.index();
        }
        children
    }

    fn attributes(&self, test: &NameTest, parent: NodeRef) -> Vec<NodeRef> {
        let NodeRef::Element(id) = parent else {
            return Vec::new();
        };
        let start = self.document.element(id).attributes_start;
        let attributes = self.document.attributes_of(id).iter().zip(start..);
        attributes
            .filter(|(attribute, _)| self.has_name(test, attribute.name))
            .map(|(_, place)| NodeRef::Attribute(id, place))
            .collect()
    }

    fn texts(&self, parent: NodeRef) -> Vec<NodeRef> {
        let NodeRef::Element(id) = parent else {
            return Vec::new();
        };
        let range = self.document.element(id).texts;
        (range.start..range.end)
            .filter(|&place| self.document.texts[place as usize].parent == id)
            .map(NodeRef::Text)
            .collect()
    }

    fn has_name(&self, test: &NameTest, name: NameId) -> bool {
        let (uri, local) = self.vocabulary.name_parts(name);
        let uri = self.vocabulary.uri_text(uri);
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
    fn first_value(&self, nodes: &[NodeRef]) -> &'a [u8] {
        nodes.first().map_or(b"", |&node| self.document.value_of(node))
    }

    /// Whether one node passes a test.
    fn passes(&self, test: &Test, node: NodeRef) -> bool {
        let value = self.document.value_of(node);
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
            Test::Contains(text) => memchr::memmem::find(value, text.as_bytes()).is_some(),
            Test::StartsWith(text) => value.starts_with(text.as_bytes()),
        }
    }

    fn in_order(&self, mut nodes: Vec<NodeRef>) -> Vec<NodeRef> {
        nodes.sort_unstable_by_key(|&node| self.document.order(node));
        nodes.dedup();
        nodes
    }
}
