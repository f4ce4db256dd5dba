//! Decomposes a query into linear paths, which an index can look up, and alternatives of them: a prefilter.
//! Disjunctive normal form of the necessary conditions, weakened where it would grow too large.
//!
//! ```text
//! /a/b[@x = 1][c or not(d)]//e
//!   lines         0: /a/b/@x = 1    1: /a/b/c    2: /a/b//e    3: /a/b/d
//!   alternatives  {0, 1, 2} anchored at b;   {0, 2, not 3} anchored at b
//! ```
//!
//! A *linear path* (short: line) starts at the document node, follows element steps without predicates and
//! ends with at most one test. An *alternative* is a conjunction of lines and negated lines. If the query
//! matches, one of its alternatives holds. The converse holds only sometimes: if an alternative is not `inexact`
//! and each of its *anchors* (branch points: elements where lines part) binds at most one element of the
//! message, then the query matches. Otherwise the query must be verified.
//!
//! In the example, `<a><b x="1"/><b><c/><e/></b></a>` satisfies lines 0, 1 and 2, but the anchor `b` binds
//! two elements: verification finds that no single `b` has all three, and the query does not match.

use crate::query::ast::{
    Axis, Expr, Literal, NameTest, Node, Operator, Path, Predicate, Query, Start, Step, Test,
};
use crate::query::inexact::Inexact;
use crate::query::own_name::own_names;

/// A conjunction of disjunctions with more alternatives than this is weakened, not multiplied out.
const PRODUCT_LIMIT: usize = 32;
/// A disjunction with more alternatives than this is not decomposed: it is always a candidate.
const ALTERNATIVES_LIMIT: usize = 1024;

/// In a query with more element steps than this, or for more names, `*[self::a or self::b]` is not split by name.
const NAMED_LIMIT: usize = 64;

/// An element step of the query's twig, as an index into `Decomposition::nodes`.
pub type TwigNode = u32;
/// The document node.
pub const DOCUMENT: TwigNode = u32::MAX;

/// A step of a line: the element test at a twig node, reached from `parent` by `axis`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TwigStep<'q> {
    pub parent: TwigNode,
    pub axis: Axis,
    pub test: &'q NameTest,
}

/// What the test of a linear path applies to, at the element where the path ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Subject<'q> {
    /// The element itself.
    Element,
    Attribute(&'q NameTest),
    /// Each text node that is its child.
    Text,
    /// Its string-value.
    Value,
    /// Its position among the siblings that pass the name test of its step.
    Position(&'q NameTest),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Check<'q> {
    Exists,
    Equal(&'q Literal),
    Unequal(&'q Literal),
    /// Equality of the value without white space at its ends, and with one space for each other run of it.
    Normalized(&'q str),
    /// A numeric comparison other than equality.
    Range(Operator, f64),
    Position(u32),
}

/// A linear path with its test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinearPath<'q> {
    pub node: TwigNode,
    /// From `node` to what is tested, if that is an attribute or a text node. `Descendant` in `decompose_for_joins` only.
    pub axis: Axis,
    pub subject: Subject<'q>,
    pub check: Check<'q>,
}

impl<'q> LinearPath<'q> {
    fn at(node: TwigNode, subject: Subject<'q>, check: Check<'q>) -> LinearPath<'q> {
        LinearPath { node, axis: Axis::Child, subject, check }
    }
}

/// A conjunction that is necessary for the query together with the other alternatives.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Alternative {
    /// Lines that must hold, as indexes into `Decomposition::lines`.
    pub positive: Vec<u32>,
    /// Lines that must not hold.
    pub negative: Vec<u32>,
    /// Twig nodes where lines branch, without those that can bind only one element.
    pub anchors: Vec<TwigNode>,
    /// A position that must be counted at one of the anchors.
    pub counted: Option<Counted>,
    /// Why the lines, holding for the same elements at the anchors, do not imply the query.
    pub inexact: Option<Inexact>,
}

/// A position after other predicates: in `b[c][2]`, the second `b` that has a `c`.
#[derive(Clone, PartialEq, Debug)]
pub struct Counted {
    pub anchor: TwigNode,
    pub position: u32,
    /// The lines of the predicates before it.
    pub lines: Vec<u32>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decomposition<'q> {
    pub nodes: Vec<TwigStep<'q>>,
    pub lines: Vec<LinearPath<'q>>,
    pub alternatives: Vec<Alternative>,
    is_for_joins: bool,
}

/// Decomposes a query for an index.
pub fn decompose(query: &Query) -> Decomposition<'_> {
    decomposed(query, false)
}

/// Decomposes a query for joins: `b//@x` is one line, where an index has two alternatives, `b/@x` and `b//*/@x`.
pub fn decompose_for_joins(query: &Query) -> Decomposition<'_> {
    decomposed(query, true)
}

fn decomposed(query: &Query, is_for_joins: bool) -> Decomposition<'_> {
    let mut parts = Decomposition { is_for_joins, ..Decomposition::default() };
    let partials = parts.expr(&query.expr, DOCUMENT);
    parts.alternatives = partials.into_iter().map(|partial| partial.alternative).collect();
    parts
}

/// An alternative under construction, relative to a context node.
#[derive(Clone, Default)]
struct Partial {
    alternative: Alternative,
    /// The number of branches of this alternative below the context node.
    branches: u32,
    /// Whether one of them is a positive line, which implies that the context node exists.
    rooted: bool,
}

impl Partial {
    /// True for every message, which is less than the query says.
    fn unknown(inexact: Inexact) -> Partial {
        let alternative = Alternative { inexact: Some(inexact), ..Alternative::default() };
        Partial { alternative, ..Partial::default() }
    }

    fn weaken(&mut self, inexact: Inexact) {
        self.alternative.inexact.get_or_insert(inexact);
    }

    fn line(line: u32) -> Partial {
        let mut partial = Partial::default();
        partial.alternative.positive.push(line);
        partial.branches = 1;
        partial.rooted = true;
        partial
    }
}

impl<'q> Decomposition<'q> {
    /// The alternatives of a boolean at a context node.
    fn expr(&mut self, expr: &'q Expr, context: TwigNode) -> Vec<Partial> {
        match expr {
            Expr::Path(path, test) => self.path(path, test, context),
            Expr::And(operands) => {
                let mut all = vec![Partial::default()];
                for operand in operands {
                    let next = self.expr(operand, context);
                    all = self.conjoin(all, next, context);
                }
                all
            }
            Expr::Or(operands) => {
                let mut any = Vec::new();
                for operand in operands {
                    any.extend(self.expr(operand, context));
                    if any.len() > ALTERNATIVES_LIMIT {
                        return vec![Partial::unknown(Inexact::Alternatives)];
                    }
                }
                any
            }
            Expr::Not(operand) => {
                let inner = self.expr(operand, context);
                self.negate(inner, context)
            }
            Expr::Computed(computed) => {
                let mut partials = self.expr(&computed.necessary, context);
                partials.iter_mut().for_each(|partial| partial.weaken(Inexact::Computed));
                partials
            }
        }
    }

    /// The conjunction of two disjunctions at a context node.
    fn conjoin(&mut self, left: Vec<Partial>, right: Vec<Partial>, context: TwigNode) -> Vec<Partial> {
        if left.len().max(1) * right.len().max(1) > PRODUCT_LIMIT.max(left.len()).max(right.len()) {
            // Weaken: keep the side with fewer alternatives, leave the other to verification.
            let mut kept = if left.len() <= right.len() { left } else { right };
            kept.iter_mut().for_each(|partial| partial.weaken(Inexact::Alternatives));
            return kept;
        }
        let mut product = Vec::with_capacity(left.len() * right.len());
        for one in &left {
            for other in &right {
                let mut partial = one.clone();
                partial.alternative.positive.extend(&other.alternative.positive);
                partial.alternative.negative.extend(&other.alternative.negative);
                for &anchor in &other.alternative.anchors {
                    push_new(&mut partial.alternative.anchors, anchor);
                }
                partial.alternative.inexact = partial.alternative.inexact.or(other.alternative.inexact);
                match (&partial.alternative.counted, &other.alternative.counted) {
                    (Some(_), Some(_)) => partial.weaken(Inexact::Position),
                    (None, Some(counted)) => partial.alternative.counted = Some(counted.clone()),
                    _ => {}
                }
                partial.branches += other.branches;
                partial.rooted |= other.rooted;
                if partial.branches > 1 {
                    self.anchor(&mut partial, context);
                }
                product.push(partial);
            }
        }
        product
    }

    /// `not(A or B or …)` at a context node, by De Morgan's laws if the alternatives are conjunctions of plain
    /// lines. Otherwise no condition is necessary. Neither is one if the context node can bind several
    /// elements: `//b[not(@x)]` can hold for one `b` while another one has an `x`.
    fn negate(&mut self, inner: Vec<Partial>, context: TwigNode) -> Vec<Partial> {
        let plain = |partial: &Partial| {
            let Alternative { inexact, counted, anchors, .. } = &partial.alternative;
            inexact.is_none() && counted.is_none() && anchors.iter().all(|&anchor| anchor == context)
        };
        if !self.is_unique(context) || !inner.iter().all(plain) {
            return vec![Partial::unknown(Inexact::Negation)];
        }
        let mut all = vec![Partial::default()];
        for Partial { alternative, .. } in inner {
            let mut any = Vec::new();
            for line in alternative.positive {
                let mut partial = Partial::default();
                partial.alternative.negative.push(line);
                partial.branches = 1;
                self.anchor(&mut partial, context);
                any.push(partial);
            }
            for line in alternative.negative {
                any.push(Partial::line(line));
            }
            all = self.conjoin(all, any, context);
        }
        all
    }

    /// The alternatives of "some node of the path passes the test".
    fn path(&mut self, path: &'q Path, test: &'q Test, context: TwigNode) -> Vec<Partial> {
        let start = match path.start {
            Start::Document | Start::Message => DOCUMENT,
            Start::Context => context,
            // What is necessary of variables is said by paths of their nodes: `necessary/`.
            Start::Variable(_) => return vec![Partial::unknown(Inexact::Computed)],
        };
        let mut partials = self.steps(&path.steps, test, start);
        if start != context {
            // An absolute path has no branch below the context node.
            for partial in &mut partials {
                partial.branches = 0;
                partial.rooted = false;
            }
        }
        partials
    }

    fn steps(&mut self, steps: &'q [Step], test: &'q Test, context: TwigNode) -> Vec<Partial> {
        let Some((step, rest)) = steps.split_first() else {
            return self.path_end(context, Subject::Value, test, true);
        };
        let plain = step.predicates.is_empty();
        match &step.node {
            Node::Element(NameTest::Any) if !plain && self.nodes.len() < NAMED_LIMIT => {
                match own_names(&step.predicates) {
                    Some(names) if names.len() < NAMED_LIMIT => names
                        .into_iter()
                        .flat_map(|name| self.element(name, step, rest, test, context))
                        .collect(),
                    _ => self.element(&NameTest::Any, step, rest, test, context),
                }
            }
            Node::Element(name) => self.element(name, step, rest, test, context),
            Node::Attribute(name) => self.leaves(step.axis, Subject::Attribute(name), test, context, plain),
            Node::Text => self.leaves(step.axis, Subject::Text, test, context, plain),
        }
    }

    /// The alternatives of an element step, as far as its element has this name.
    fn element(
        &mut self,
        name: &'q NameTest,
        step: &'q Step,
        rest: &'q [Step],
        test: &'q Test,
        context: TwigNode,
    ) -> Vec<Partial> {
        let node = self.node(context, step.axis, name);
        let below = if rest.is_empty() && matches!(test, Test::Exists) {
            vec![Partial::default()]
        } else {
            self.steps(rest, test, node)
        };
        if step.predicates.is_empty() {
            return self.lift(below, node);
        }
        let predicates = self.predicates(step, node);
        let partials = self.conjoin(predicates, below, node);
        self.lift(partials, node)
    }

    /// The lines of a last step that selects attributes or text nodes: those of the context node, and
    /// after `//` also those of the elements below it.
    fn leaves(
        &mut self,
        axis: Axis,
        subject: Subject<'q>,
        test: &'q Test,
        context: TwigNode,
        exact: bool,
    ) -> Vec<Partial> {
        let mut any = Vec::new();
        if context != DOCUMENT {
            any.extend(self.path_end(context, subject, test, exact));
            if self.is_for_joins {
                let lines = any.iter().flat_map(|partial| &partial.alternative.positive);
                lines.for_each(|&line| self.lines[line as usize].axis = axis);
                return any;
            }
        }
        if axis == Axis::Descendant {
            let node = self.node(context, Axis::Descendant, &NameTest::Any);
            let below = self.path_end(node, subject, test, exact);
            any.extend(self.lift(below, node));
        }
        any
    }

    /// The line that ends at `node` with a test of its `subject`.
    fn path_end(
        &mut self,
        node: TwigNode,
        subject: Subject<'q>,
        test: &'q Test,
        exact: bool,
    ) -> Vec<Partial> {
        if subject == Subject::Value && matches!(test, Test::Exists) {
            return vec![Partial::default()];
        }
        if node == DOCUMENT {
            // No line ends at the document node.
            return vec![Partial::unknown(Inexact::DocumentNode)];
        }
        let check = match test {
            Test::Exists => Some(Check::Exists),
            Test::Compare(Operator::Equal, literal) => Some(Check::Equal(literal)),
            Test::Compare(Operator::NotEqual, literal) => Some(Check::Unequal(literal)),
            Test::Normalized(text) => Some(Check::Normalized(text)),
            Test::Contains(_) | Test::StartsWith(_) => None,
            Test::Compare(operator, literal) => Some(Check::Range(*operator, literal.number())),
        };
        let (subject, check, inexact) = match (check, exact) {
            (Some(check), true) => (subject, check, None),
            // Necessary is only that the node exists. Every element has a string-value.
            _ if subject == Subject::Value => (Subject::Element, Check::Exists, Some(Inexact::FirstNode)),
            (None, _) => (subject, Check::Exists, Some(Inexact::FirstNode)),
            _ => (subject, Check::Exists, Some(Inexact::LeafPredicate)),
        };
        let line = self.line(LinearPath::at(node, subject, check));
        let mut partial = Partial::line(line);
        partial.alternative.inexact = inexact;
        vec![partial]
    }

    /// The alternatives of a step's predicates, at the step's twig node.
    fn predicates(&mut self, step: &'q Step, node: TwigNode) -> Vec<Partial> {
        let mut all = vec![Partial::default()];
        for (index, predicate) in step.predicates.iter().enumerate() {
            let next = match predicate {
                Predicate::Condition(expr) => self.expr(expr, node),
                Predicate::Position(None) => Vec::new(),
                Predicate::Position(Some(position)) if index > 0 => {
                    all = self.counted(all, node, *position);
                    continue;
                }
                Predicate::Position(Some(_)) if !self.has_place(node) => {
                    vec![Partial::unknown(Inexact::Position)]
                }
                // A position as first predicate counts siblings of the same name: a property of the element.
                Predicate::Position(Some(position)) => {
                    let check = Check::Position(*position);
                    vec![Partial::line(self.position(node, check))]
                }
            };
            all = self.conjoin(all, next, node);
        }
        all
    }

    /// The line that tests the position of an element among the siblings that pass the same name test.
    fn position(&mut self, node: TwigNode, check: Check<'q>) -> u32 {
        let subject = Subject::Position(self.nodes[node as usize].test);
        self.line(LinearPath::at(node, subject, check))
    }

    /// Whether the position of an element of a step can be tested. Tables for joins have it among the siblings of
    /// the same expanded name and among all, and not among those of `*:name` or `p:*`.
    fn has_place(&self, node: TwigNode) -> bool {
        !self.is_for_joins || matches!(self.nodes[node as usize].test, NameTest::Any | NameTest::Name(_))
    }

    /// A position after other predicates: it counts the nodes that pass them.
    fn counted(&mut self, left: Vec<Partial>, node: TwigNode, position: u32) -> Vec<Partial> {
        let countable = self.has_place(node)
            && left.iter().all(|Partial { alternative, .. }| {
                let plain =
                    alternative.negative.is_empty() && alternative.anchors.iter().all(|&at| at == node);
                alternative.inexact.is_none() && alternative.counted.is_none() && plain
            });
        if left.len() != 1 || !countable {
            return self.conjoin(left, vec![Partial::unknown(Inexact::Position)], node);
        }
        if self.is_unique(node) {
            return if position == 1 { left } else { Vec::new() };
        }
        let lines = left[0].alternative.positive.clone();
        // The n-th sibling that passes the predicates is at position n or later among all siblings.
        let place = match position {
            1 => Partial::default(),
            _ => {
                let check = Check::Range(Operator::GreaterOrEqual, position as f64);
                Partial::line(self.position(node, check))
            }
        };
        let mut all = self.conjoin(left, vec![place], node);
        for partial in &mut all {
            push_new(&mut partial.alternative.anchors, node);
            partial.alternative.counted = Some(Counted { anchor: node, position, lines: lines.clone() });
        }
        all
    }

    /// Turns alternatives relative to `node` into alternatives relative to its parent.
    fn lift(&mut self, partials: Vec<Partial>, node: TwigNode) -> Vec<Partial> {
        let mut lifted = partials;
        for partial in &mut lifted {
            if !partial.rooted {
                let exists = LinearPath::at(node, Subject::Element, Check::Exists);
                let line = self.line(exists);
                partial.alternative.positive.push(line);
            }
            partial.branches = 1;
            partial.rooted = true;
        }
        lifted
    }

    fn node(&mut self, parent: TwigNode, axis: Axis, test: &'q NameTest) -> TwigNode {
        self.nodes.push(TwigStep { parent, axis, test });
        self.nodes.len() as TwigNode - 1
    }

    fn line(&mut self, line: LinearPath<'q>) -> u32 {
        self.lines.push(line);
        self.lines.len() as u32 - 1
    }

    /// Records that lines branch at `node`, unless it can bind only one element.
    fn anchor(&self, partial: &mut Partial, node: TwigNode) {
        if !self.is_unique(node) {
            push_new(&mut partial.alternative.anchors, node);
        }
    }

    /// Whether a twig node can bind only one element of any message.
    fn is_unique(&self, node: TwigNode) -> bool {
        node == DOCUMENT || {
            let step = &self.nodes[node as usize];
            step.parent == DOCUMENT && step.axis == Axis::Child
        }
    }
}

fn push_new(list: &mut Vec<TwigNode>, node: TwigNode) {
    if !list.contains(&node) {
        list.push(node);
    }
}
