//! Explains why a query matches a message or not: the counterpart of matching, for people.
//!
//! | file | |
//! |---|---|
//! | `mod.rs` | `explain`: the report, with the short answer |
//! | `lines` | what the linear paths of a query bind in a message |
//! | `evaluated` | the values that a query computes |
//! | `access_paths` | what a query of an index is filed under |
//! | `other_namespaces` | names that the message has in other namespaces |

mod access_paths;
mod evaluated;
mod lines;
mod other_namespaces;

use std::sync::Arc;

use crate::data::{DataSets, Records};
use crate::document::{Document, Message, NodeRef, Reader, Span};
use crate::engine::explain::access_paths::Filings;
use crate::engine::explain::evaluated::{EvaluatedPart, computed_parts, evaluate};
use crate::engine::explain::lines::{Binding, End, Lines};
use crate::engine::explain::other_namespaces::{elsewhere, with_names_of_message};
use crate::engine::generation::Generation;
use crate::engine::index::Index;
use crate::engine::matcher::Matcher;
use crate::error::{Position, ReadError};
use crate::ids::NodeId;
use crate::limits::Limits;
use crate::matching::automaton::names::Names;
use crate::matching::budget::{Budget, WorkLimit};
use crate::matching::twigs::by_name::ElementsByName;
use crate::matching::twigs::verify::{Memo, Trees, Verifier};
use crate::query::Namespaces;
use crate::query::ast::{
    Axis, Expr, Literal, NameTest, Node, Operator, Path, Predicate, Query, Start, Step, Test,
};
use crate::query::decompose::{Check, DOCUMENT, Decomposition, LinearPath, Subject, decompose};
use crate::query::inexact::Inexact;
use crate::query::value::Value;
use crate::segment::format::columns::Columns;
use crate::segment::format::labels::Labels;
use crate::segment::twig::Twigs;
use crate::transform::{OperatorReport, Schema};
use crate::tuning::{CACHE_BYTES, Tuning};

pub struct Explanation {
    pub canonical: String,
    pub matches: bool,
    /// The nodes it selects.
    pub nodes: Vec<Place>,
    /// The linear paths it is made of.
    pub lines: Vec<LineReport>,
    pub alternatives: Vec<AlternativeReport>,
    /// The values that it computes on the message.
    pub evaluated: Vec<EvaluatedPart>,
    /// The operators that a transformation runs, if it matches.
    pub operators: Vec<OperatorReport>,
    /// The short answer.
    pub reason: String,
    /// The query that matches, if only namespaces keep this one from matching.
    pub instead: Option<String>,
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
    /// The line that it is filed under; none, if it is always a candidate.
    /// Absent if the index does not have the query.
    pub filed: Option<Option<u32>>,
    pub candidate: bool,
    /// Whether all its lines hold, and those that must not hold do not.
    pub survives: bool,
    /// Whether its lines alone do not decide it: it has tests or branch points that need the document.
    pub verified: bool,
    /// Why its lines do not say all, if they do not.
    pub inexact: Option<Inexact>,
}

/// Explains a query on a message, and how a tenant's index files it.
pub fn explain(
    query: &Query,
    message: &Message<'_>,
    limits: &Limits,
    generation: &Generation,
    tenant: &str,
    schema: Option<&Arc<Schema>>,
) -> Result<Explanation, ReadError> {
    let mut reader = Reader::new();
    let mut document = Document::default();
    reader.read(message.bytes, limits, &mut document)?;
    message.envelope.iter().for_each(|envelope| reader.add_envelope(envelope, &mut document));
    let parts = decompose(query);

    let over_limit = |WorkLimit| {
        let (reason, exceeded) = WorkLimit::describe(limits.work);
        let (position, exceeded) = (Position::of(message.bytes, 0), Some(exceeded));
        ReadError { code: WorkLimit::CODE, reason, position, exceeded }
    };
    let mut probe = Probe::new(&document, generation.data(tenant), limits.work);
    let whole = probe.compile(&query.expr);
    let mut computed = Vec::new();
    computed_parts(&query.expr, &mut computed);
    let computed: Vec<_> =
        computed.iter().map(|part| part.compile(&mut |value| probe.compile_value(value))).collect();
    let ends: Vec<End> = parts.lines.iter().map(|line| probe.end(line)).collect();
    // Those that predicates leave (`*[local-name() = 'a' or local-name() = 'b']`) are in no twig.
    parts.nodes.iter().for_each(|step| probe.label(step.test));
    let names = probe.names(&reader, generation.data(tenant));
    let matches = probe.verifier(&reader, &names).matches(whole).map_err(over_limit)?;
    let nodes = probe.verifier(&reader, &names).nodes(whole).map_err(over_limit)?;
    let nodes = nodes.into_iter().filter_map(|node| place(&document, node)).collect();
    let mut evaluated = Vec::new();
    for part in &computed {
        let mut verifier = probe.verifier(&reader, &names);
        evaluate(part, &document, &mut verifier, &mut evaluated).map_err(over_limit)?;
    }
    let verifier = probe.verifier(&reader, &names);
    let lines = Lines { parts: &parts, ends: &ends, document: &document, names: &names, verifier };
    let bound = lines.bind().map_err(over_limit)?;
    let lines: Vec<LineReport> = parts
        .lines
        .iter()
        .zip(&bound)
        .map(|(line, binding)| report(&document, &line_query(&parts, line), binding))
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
                verified: alternative.inexact.is_some() || !alternative.anchors.is_empty(),
                inexact: alternative.inexact,
            }
        })
        .collect();
    let mut reason = reason(matches, &lines, &alternatives);
    let elsewhere = if matches { Vec::new() } else { elsewhere(query, &document, reader.vocabulary()) };
    let mut instead = None;
    if !elsewhere.is_empty() {
        let renamed = with_names_of_message(query, &elsewhere);
        let mut probe = Probe::new(&document, generation.data(tenant), limits.work);
        let whole = probe.compile(&renamed.expr);
        let names = probe.names(&reader, generation.data(tenant));
        if probe.verifier(&reader, &names).matches(whole).unwrap_or(false) {
            let text = renamed.canonical();
            reason = other_namespaces::reason(&elsewhere, &text);
            instead = Some(text);
        }
    }
    let operators = match &query.transformation {
        Some(_) if matches => operators(query, message, limits, generation, tenant, schema)?,
        _ => Vec::new(),
    };
    Ok(Explanation {
        canonical: query.canonical(),
        matches,
        nodes,
        lines,
        alternatives,
        evaluated,
        operators,
        reason,
        instead,
    })
}

/// The operators that a transformation runs: planned with the others of the index if it is there, else alone.
fn operators(
    query: &Query,
    message: &Message<'_>,
    limits: &Limits,
    generation: &Generation,
    tenant: &str,
    schema: Option<&Arc<Schema>>,
) -> Result<Vec<OperatorReport>, ReadError> {
    let mut matcher = Matcher::new(Tuning::new(CACHE_BYTES));
    let id = query.id();
    let found = matcher.explain_transformation(generation, tenant, id, message, limits, schema)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let mut alone = Index::with_data(generation.tenant_data().clone());
    // A canonical text always parses, and one query fits a segment.
    let _ = alone.insert(0, tenant, &query.canonical(), &Namespaces::default());
    match alone.commit() {
        Ok(generation) => matcher.explain_transformation(&generation, tenant, id, message, limits, schema),
        Err(_) => Ok(Vec::new()),
    }
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

/// How a line does on a message.
fn report(document: &Document, line: &Query, binding: &Binding) -> LineReport {
    let text = line.canonical();
    let holds = binding.nodes > 0;
    let failure = (!holds).then(|| match binding.stops {
        Some((steps, node)) => {
            let before = beginning(line, steps).canonical();
            let part = text.strip_prefix(before.as_str()).unwrap_or(&text);
            Failure { part: part.trim_start().to_string(), at: place(document, node) }
        }
        None => Failure { part: text.clone(), at: None },
    });
    LineReport { text, holds, nodes: binding.nodes, failure }
}

/// A line as a query.
fn line_query(parts: &Decomposition<'_>, line: &LinearPath<'_>) -> Query {
    let mut steps = Vec::new();
    let mut at = line.node;
    while at != DOCUMENT {
        let step = &parts.nodes[at as usize];
        steps.push(Step { axis: step.axis, node: Node::Element(step.test.clone()), predicates: Vec::new() });
        at = step.parent;
    }
    steps.reverse();
    if let (Some(place), Some(step)) = (place_asked(line), steps.last_mut()) {
        step.predicates.push(Predicate::Position(Some(place)));
    }
    steps.extend(leaf(line));
    Query::filter(Expr::Path(Path { start: Start::Document, steps }, test(line)))
}

/// The first steps of a line, so many, without its test.
fn beginning(line: &Query, steps: usize) -> Query {
    let mut steps = match &line.expr {
        Expr::Path(path, _) => path.steps[..steps].to_vec(),
        _ => Vec::new(),
    };
    if let Some(last) = steps.last_mut() {
        last.predicates.clear();
    }
    Query::filter(Expr::Path(Path { start: Start::Document, steps }, Test::Exists))
}

/// The place among its siblings that a line asks an element for. There is one at a place or after it if there is
/// one at it.
fn place_asked(line: &LinearPath<'_>) -> Option<u32> {
    match (line.subject, line.check) {
        (_, Check::Position(place)) => Some(place),
        (Subject::Position(_), Check::Range(_, place)) => Some(place as u32),
        _ => None,
    }
}

/// The step to what a line looks at below its element.
fn leaf(line: &LinearPath<'_>) -> Option<Step> {
    let node = match line.subject {
        Subject::Attribute(test) => Node::Attribute(test.clone()),
        Subject::Text => Node::Text,
        Subject::Element | Subject::Value | Subject::Position(_) => return None,
    };
    Some(Step { axis: Axis::Child, node, predicates: Vec::new() })
}

fn test(line: &LinearPath<'_>) -> Test {
    match line.check {
        _ if matches!(line.subject, Subject::Position(_)) => Test::Exists,
        Check::Exists | Check::Position(_) => Test::Exists,
        Check::Equal(literal) => Test::Compare(Operator::Equal, literal.clone()),
        Check::Unequal(literal) => Test::Compare(Operator::NotEqual, literal.clone()),
        Check::Normalized(text) => Test::Normalized(text.to_string()),
        Check::Range(operator, number) => Test::Compare(operator, Literal::Number(number)),
    }
}

/// Compiles twigs and evaluates them on one document.
struct Probe<'a> {
    document: &'a Document,
    labels: Labels,
    twigs: Twigs,
    by_name: ElementsByName,
    memo: Memo,
    budget: Budget,
    records: Records,
}

impl<'a> Probe<'a> {
    fn new(document: &'a Document, data: &Arc<DataSets>, work: usize) -> Probe<'a> {
        let (labels, twigs) = (Labels::default(), Twigs::default());
        let (by_name, memo) = (ElementsByName::default(), Memo::new(usize::MAX));
        let (budget, records) = (Budget::new(work), Records::of(data));
        Probe { document, labels, twigs, by_name, memo, budget, records }
    }

    fn compile(&mut self, expr: &Expr) -> u32 {
        self.twigs.compile(expr, &mut |test| self.labels.label(test))
    }

    fn compile_value(&mut self, value: &Value) -> u32 {
        self.twigs.compile_value(value, &mut |test| self.labels.label(test))
    }

    /// Gives a name test a label, so that it can be looked up.
    fn label(&mut self, test: &NameTest) {
        self.labels.label(test);
    }

    /// The end of a line.
    fn end(&mut self, line: &LinearPath<'_>) -> End {
        let path = Path { start: Start::Context, steps: leaf(line).into_iter().collect() };
        let subject = self.compile(&Expr::Path(path.clone(), Test::Exists));
        End { subject, tested: self.compile(&Expr::Path(path, test(line))) }
    }

    fn names(&mut self, reader: &Reader, data: &Arc<DataSets>) -> Names {
        let mut columns = Columns::default();
        std::mem::take(&mut self.labels).write(&mut columns);
        let mut names = Names::new(columns.view());
        names.update(reader.vocabulary());
        names.attach(columns.view(), data);
        names
    }

    fn verifier<'p>(&'p mut self, reader: &'p Reader, names: &'p Names) -> Verifier<'p> {
        let (words, vocabulary, by_name) = (self.twigs.words(), reader.vocabulary(), &mut self.by_name);
        let trees = Trees::new(self.document, vocabulary, names, &self.records);
        Verifier::new(words, trees, by_name, &mut self.memo, &mut self.budget)
    }
}

/// Where a node is; an attribute is where its element is. A node of the envelope is nowhere in the message.
pub fn place(document: &Document, node: NodeRef) -> Option<Place> {
    if document.is_of_envelope(node) {
        return None;
    }
    let span = match node {
        NodeRef::Document => Span { start: 0, end: document.source.len() as u32 },
        NodeRef::Element(element) | NodeRef::Attribute(element, _) => document.element(element).span,
        NodeRef::Text(text) => document.texts[text as usize].span,
        NodeRef::Other(other) => document.others[other as usize].span,
    };
    Some(Place { node: document.node_id(node), span })
}
