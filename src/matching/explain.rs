//! Why a query did or did not match a message: the twin of matching, for people.

use std::sync::Arc;

use crate::document::{Document, Limits, NodeRef, Reader, Span};
use crate::error::ReadError;
use crate::ids::NodeId;
use crate::index::Index;
use crate::index::columns::Columns;
use crate::index::generation::Generation;
use crate::index::trie::Labels;
use crate::index::twig::Twigs;
use crate::matching::by_name::ByName;
use crate::matching::filing::Filings;
use crate::matching::names::Names;
use crate::matching::verify::{Memo, Verifier};
use crate::matching::{CAPACITY, Matcher};
use crate::query::Namespaces;
use crate::query::ast::{Axis, Expr, Literal, Node, Operator, Path, Predicate, Query, Step, Test};
use crate::query::decompose::{Check, DOCUMENT, Decomposition, Line, Subject, decompose};
use crate::transform::report::OperatorReport;
use crate::transform::schema::Schema;

pub struct Explanation {
    pub canonical: String,
    pub matches: bool,
    /// The nodes it selects.
    pub nodes: Vec<Place>,
    /// The linear paths it is made of.
    pub lines: Vec<LineReport>,
    pub alternatives: Vec<AlternativeReport>,
    /// What a transformation runs, if it matches.
    pub operators: Vec<OperatorReport>,
    /// The short answer.
    pub reason: String,
}

/// A node, by number and by its bytes in the UTF-8 form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub node: NodeId,
    pub span: Span,
}

pub struct LineReport {
    pub text: String,
    pub holds: bool,
    /// How many nodes it binds.
    pub nodes: usize,
    pub failure: Option<Failure>,
}

/// Where a line that does not hold stops.
pub struct Failure {
    /// The part that fails.
    pub part: String,
    /// The first node that the part before it binds; none if even the first step binds nothing.
    pub at: Option<Place>,
}

/// One way for the query to match.
pub struct AlternativeReport {
    /// Numbers of its lines, and of those that must not hold.
    pub positive: Vec<u32>,
    pub negative: Vec<u32>,
    /// What it is filed under: a line's number, or nothing, which makes it always a candidate.
    /// Absent if the index does not have the query.
    pub filed: Option<Option<u32>>,
    pub candidate: bool,
    /// Whether all its lines hold as they should.
    pub survives: bool,
    /// Whether lines alone do not settle it: it has tests or branchings that need the document.
    pub verified: bool,
}

/// Explains a query on a message, and how a tenant's index files it.
pub fn explain(
    query: &Query,
    message: &[u8],
    limits: &Limits,
    generation: &Generation,
    tenant: &str,
    schema: Option<&Arc<Schema>>,
) -> Result<Explanation, ReadError> {
    let mut reader = Reader::new();
    let mut document = Document::default();
    reader.read(message, limits, &mut document)?;
    let parts = decompose(query);
    let line_queries: Vec<Query> = parts.lines.iter().map(|line| line_query(&parts, line)).collect();

    let mut probe = Probe::new(&document);
    let whole = probe.compile(query);
    let compiled: Vec<u32> = line_queries.iter().map(|line| probe.compile(line)).collect();
    let prefixes: Vec<Vec<(Query, u32)>> =
        line_queries.iter().map(|line| probe.compile_prefixes(line)).collect();
    let names = probe.names(&reader);
    let matches = probe.matches(&names, whole);
    let nodes = probe.places(&names, whole);
    let lines: Vec<LineReport> = line_queries
        .iter()
        .zip(&compiled)
        .zip(&prefixes)
        .map(|((line, &offset), prefixes)| probe.report(&names, line, offset, prefixes))
        .collect();
    let filings = Filings::find(query, &parts, generation, tenant);
    let alternatives: Vec<AlternativeReport> = parts
        .alternatives
        .iter()
        .enumerate()
        .map(|(at, alternative)| {
            let filed = filings.as_ref().map(|filings| filings.of(at));
            let holds = |&line: &u32| lines[line as usize].holds;
            AlternativeReport {
                positive: alternative.positive.clone(),
                negative: alternative.negative.clone(),
                filed,
                candidate: filed.flatten().is_none_or(|line| holds(&line)),
                survives: alternative.positive.iter().all(holds) && !alternative.negative.iter().any(holds),
                verified: !alternative.exact || !alternative.anchors.is_empty(),
            }
        })
        .collect();
    let reason = reason(matches, &lines, &alternatives);
    let operators = match &query.transformation {
        Some(_) if matches => operators(query, message, limits, generation, tenant, schema)?,
        _ => Vec::new(),
    };
    Ok(Explanation { canonical: query.canonical(), matches, nodes, lines, alternatives, operators, reason })
}

/// What a transformation runs: with the others of the index if it is there, else alone.
fn operators(
    query: &Query,
    message: &[u8],
    limits: &Limits,
    generation: &Generation,
    tenant: &str,
    schema: Option<&Arc<Schema>>,
) -> Result<Vec<OperatorReport>, ReadError> {
    let mut matcher = Matcher::new(CAPACITY);
    let id = query.id();
    let found = matcher.explain_transformation(generation, tenant, id, message, limits, schema)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let mut alone = Index::new();
    // A canonical text is accepted: it was written by us.
    let _ = alone.insert(0, tenant, &query.canonical(), &Namespaces::default());
    matcher.explain_transformation(&alone.commit(), tenant, id, message, limits, schema)
}

fn reason(matches: bool, lines: &[LineReport], alternatives: &[AlternativeReport]) -> String {
    if matches {
        return "it matches".to_string();
    }
    if alternatives.is_empty() {
        return "it can never match".to_string();
    }
    if alternatives.iter().any(|alternative| alternative.survives) {
        return "each of its paths is there, but not together as it asks".to_string();
    }
    let holds = |line: u32| lines[line as usize].holds;
    for alternative in alternatives {
        if let Some(&line) = alternative.positive.iter().find(|&&line| !holds(line)) {
            return format!("{} is not there", lines[line as usize].text);
        }
        if let Some(&line) = alternative.negative.iter().find(|&&line| holds(line)) {
            return format!("{} is there and must not be", lines[line as usize].text);
        }
    }
    "it does not match".to_string()
}

/// A line as a query of its own.
fn line_query(parts: &Decomposition<'_>, line: &Line<'_>) -> Query {
    let mut steps = Vec::new();
    let mut at = line.node;
    while at != DOCUMENT {
        let step = &parts.nodes[at as usize];
        steps.push(Step { axis: step.axis, node: Node::Element(step.test.clone()), predicates: Vec::new() });
        at = step.parent;
    }
    steps.reverse();
    let leaf = |node: Node| Step { axis: Axis::Child, node, predicates: Vec::new() };
    match line.subject {
        Subject::Attribute(test) => steps.push(leaf(Node::Attribute(test.clone()))),
        Subject::Text => steps.push(leaf(Node::Text)),
        Subject::Element | Subject::Value | Subject::Position => {}
    }
    let test = match line.check {
        Check::Exists => Test::Exists,
        Check::Equal(literal) => Test::Compare(Operator::Equal, literal.clone()),
        Check::Unequal(literal) => Test::Compare(Operator::NotEqual, literal.clone()),
        Check::Range(operator, number) => Test::Compare(operator, Literal::Number(number)),
        Check::Position(position) => {
            if let Some(step) = steps.last_mut() {
                step.predicates.push(Predicate::Position(Some(position)));
            }
            Test::Exists
        }
    };
    Query::filter(Expr::Path(Path { absolute: true, steps }, test))
}

/// Evaluates queries of its own on one document.
struct Probe<'a> {
    document: &'a Document,
    labels: Labels,
    twigs: Twigs,
    by_name: ByName,
}

impl<'a> Probe<'a> {
    fn new(document: &'a Document) -> Probe<'a> {
        Probe { document, labels: Labels::default(), twigs: Twigs::default(), by_name: ByName::default() }
    }

    fn compile(&mut self, query: &Query) -> u32 {
        self.twigs.compile(&query.expr, &mut |test| self.labels.label(test))
    }

    /// The beginnings of a line without its test, longest first.
    fn compile_prefixes(&mut self, line: &Query) -> Vec<(Query, u32)> {
        let Expr::Path(path, _) = &line.expr else {
            return Vec::new();
        };
        (1..=path.steps.len())
            .rev()
            .map(|length| {
                let mut steps = path.steps[..length].to_vec();
                if length == path.steps.len() {
                    steps.iter_mut().for_each(|step| step.predicates.clear());
                }
                let query = Query::filter(Expr::Path(Path { absolute: true, steps }, Test::Exists));
                let offset = self.compile(&query);
                (query, offset)
            })
            .collect()
    }

    fn names(&mut self, reader: &Reader) -> Names {
        let mut columns = Columns::default();
        std::mem::take(&mut self.labels).freeze(&mut columns);
        let mut names = Names::new(columns.view());
        names.update(reader.vocabulary());
        names
    }

    fn matches(&mut self, names: &Names, offset: u32) -> bool {
        let mut memo = Memo::default();
        Verifier::new(self.twigs.words(), self.document, names, &mut self.by_name, &mut memo).matches(offset)
    }

    fn places(&mut self, names: &Names, offset: u32) -> Vec<Place> {
        let mut memo = Memo::default();
        let mut verifier =
            Verifier::new(self.twigs.words(), self.document, names, &mut self.by_name, &mut memo);
        verifier.nodes(offset).into_iter().map(|node| place(self.document, node)).collect()
    }

    fn report(&mut self, names: &Names, line: &Query, offset: u32, prefixes: &[(Query, u32)]) -> LineReport {
        let nodes = self.places(names, offset).len();
        let holds = nodes > 0;
        let failure = (!holds).then(|| self.failure(names, line, prefixes));
        LineReport { text: line.canonical(), holds, nodes, failure }
    }

    /// The longest beginning that binds something, and what comes after it.
    fn failure(&mut self, names: &Names, line: &Query, prefixes: &[(Query, u32)]) -> Failure {
        let whole = line.canonical();
        for (prefix, offset) in prefixes {
            if let Some(&at) = self.places(names, *offset).first() {
                let before = prefix.canonical();
                let part = whole.strip_prefix(before.as_str()).unwrap_or(&whole);
                return Failure { part: part.trim_start().to_string(), at: Some(at) };
            }
        }
        Failure { part: whole, at: None }
    }
}

/// Where a node is; an attribute is where its element is.
pub fn place(document: &Document, node: NodeRef) -> Place {
    let span = match node {
        NodeRef::Document => Span { start: 0, end: document.source.len() as u32 },
        NodeRef::Element(element) | NodeRef::Attribute(element, _) => document.element(element).span,
        NodeRef::Text(text) => document.texts[text as usize].span,
    };
    Place { node: document.node_id(node), span }
}
