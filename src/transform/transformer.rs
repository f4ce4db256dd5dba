//! Runs a segment's matching transformations on a message: plan, evaluate, write.
//!
//! The plans and their network are cached per segment and, since a plan may rely on a DTD, per schema. A
//! transformation is planned when it first matches.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::data::TreeId;
use crate::error::Exceeded;
use crate::ids::{ConditionId, GenerationQuery, SegmentQuery, TenantId};
use crate::limits::Limits;
use crate::matching::automaton::dfa::Trace;
use crate::matching::budget::{Budget, WorkLimit};
use crate::matching::twigs::by_name::ElementsByName;
use crate::matching::twigs::occurrences::Occurrences;
use crate::matching::twigs::verify::{Memo, Trees};
use crate::query::transformation::Transformation;
use crate::query::{Namespaces, parse};
use crate::segment::format::file::Segment;
use crate::transform::explain::{OperatorReport, report, report_clauses};
use crate::transform::output::{
    ConstructError, Constructor, Deduplicator, NodeCopier, NodeLists, TreeWriter,
};
use crate::transform::plan::{Network, OperatorId, Plan, Schema, SegmentContext};
use crate::transform::run::tuples::{TupleError, TupleEvaluator};
use crate::transform::run::{
    ElementsByAcceptSet, Evaluator, LimitExceeded, Results, Selected, TwigEvaluator,
};
use crate::tuning::{SCHEMAS, SELECTED_LISTS};

/// The outputs of one message. Equal outputs are one.
#[derive(Default)]
pub struct Outputs {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Each matching transformation, by its query number, with the number of its output, and each query that failed.
    /// Filters that match are not listed: their output is the message itself.
    pub outcomes: Vec<(GenerationQuery, Result<u32, Box<ConstructError>>)>,
}

impl Outputs {
    /// Adds queries that exceeded the work limit in matching: filters and transformations alike.
    pub fn add_failed(&mut self, queries: &[GenerationQuery], limit: usize) {
        self.outcomes.extend(queries.iter().map(|&query| (query, Err(over_work_limit(limit)))));
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.outcomes.clear();
    }

    /// All outputs, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each output ends.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }
}

/// The plan caches of a segment: one for all messages, and one for each schema that messages conform to.
#[derive(Default)]
pub struct Transformer {
    caches: Vec<PlanCache>,
}

/// Plans, their network, and the buffers to run them with.
#[derive(Default)]
struct PlanCache {
    network: Network,
    plans: Vec<Plan>,
    plan_bytes: usize,
    /// The place in `plans` by query; `None` for a filter.
    plan_of_query: FxHashMap<SegmentQuery, Option<u32>>,
    /// The transformations that match the current message, and the places of their plans.
    matching: Vec<(SegmentQuery, u32)>,
    results: Results,
    selected: Selected,
    by_accept_set: ElementsByAcceptSet,
    /// Where conditions of the index hold, if a plan needs it.
    occurrences: Option<Occurrences<ConditionId>>,
    /// Whether `occurrences` are those of the current message.
    has_occurrences: bool,
    outputs: Deduplicator,
    constructor: Constructor,
}

/// A message with what matching found in it.
pub struct MatchedMessage<'a> {
    pub segment: &'a Segment,
    pub tenant: TenantId,
    pub trees: Trees<'a>,
    /// `None` if the message was matched without the DFA.
    pub trace: Option<Trace<'a>>,
    pub by_name: &'a mut ElementsByName,
    pub memo: &'a mut Memo,
}

impl Transformer {
    /// Appends the output of each transformation among the matching `queries` of the segment, whose first query is
    /// `first_query` in the generation. `schema` is given if the message conforms to it.
    pub fn transform(
        &mut self,
        mut message: MatchedMessage<'_>,
        schema: Option<&Arc<Schema>>,
        queries: impl Iterator<Item = SegmentQuery>,
        first_query: GenerationQuery,
        limits: &Limits,
        outputs: &mut Outputs,
    ) {
        let cache = self.cache(schema);
        cache.plan(&message, queries);
        if cache.matching.is_empty() {
            return;
        }
        cache.start_message(&mut message);
        let (document, vocabulary, _) = message.trees.at(TreeId::MESSAGE);
        let copier = NodeCopier::new(document, vocabulary);
        let (mut evaluator, writer) = cache.evaluator(&mut message, limits);
        let OutputWriter { plans, matching, outputs: known, constructor } = writer;
        known.reset(matching.len());
        for &(query, plan) in matching {
            let plan = &plans[plan as usize];
            let outcome = output(plan, &mut evaluator, &copier, known, constructor, limits, outputs);
            outputs.outcomes.push((query.in_generation(first_query), outcome));
        }
        message.memo.clear();
    }

    /// Reports which operators a query of the segment runs on a message, planned together with all transformations
    /// of its tenant.
    pub fn explain(
        mut message: MatchedMessage<'_>,
        schema: Option<&Arc<Schema>>,
        query: SegmentQuery,
        limits: &Limits,
    ) -> Vec<OperatorReport> {
        let view = message.segment.view();
        let mut cache = PlanCache { network: Network::new(schema.cloned()), ..PlanCache::default() };
        let of_tenant = |other: &SegmentQuery| view.tenant_of(*other) == message.tenant;
        cache.plan(&message, view.all_queries().filter(of_tenant));
        cache.plan(&message, std::iter::once(query));
        cache.start_message(&mut message);
        let (document, vocabulary, _) = message.trees.at(TreeId::MESSAGE);
        let (segment, copier) = (message.segment, NodeCopier::new(document, vocabulary));
        let (mut evaluator, OutputWriter { plans, matching, .. }) = cache.evaluator(&mut message, limits);
        let Some(&(_, plan)) = matching.first() else { return Vec::new() };
        let plan = &plans[plan as usize];
        if let Some(tuples) = &plan.tuples {
            let parsed = parse(segment.text(query).expect("an intact text"), &Namespaces::default()).ok();
            let Some(Transformation::Tuples(content)) =
                parsed.and_then(|query| query.transformation).map(|it| *it)
            else {
                return Vec::new();
            };
            let mut out = Vec::new();
            let writer = TreeWriter::new(&copier, limits.output, &mut out);
            let mut evaluator = TupleEvaluator::new(evaluator.twigs.verifier(), writer, limits.bindings);
            return report_clauses(&content, tuples, &mut evaluator);
        }
        // One by one: all streams together may not fit the result cache.
        let mut stream_sizes: FxHashMap<u32, usize> = FxHashMap::default();
        for operator in &plan.operators {
            if let OperatorId::Stream(id) = *operator {
                evaluator.free_if_full();
                evaluator.stream(id);
                stream_sizes.insert(id, evaluator.results.streams.at(id).iter().count());
            }
        }
        evaluator.selected.clear();
        let mut blocks = plan.blocks.iter().enumerate();
        // An operator that exceeds a limit ends the evaluation; what ran before it is reported.
        let _ = blocks.try_for_each(|(at, block)| {
            evaluator.bind(block).and_then(|()| evaluator.select_return_nodes(at, block))
        });
        report(view, plan, &evaluator, &stream_sizes)
    }

    /// The plan cache for all messages, or for those that conform to a schema.
    fn cache(&mut self, schema: Option<&Arc<Schema>>) -> &mut PlanCache {
        let is_for = |cache: &PlanCache| match (&cache.network.schema, schema) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let at = match self.caches.iter().position(is_for) {
            Some(at) => at,
            None => {
                if self.caches.len() > SCHEMAS {
                    self.caches.remove(0);
                }
                self.caches
                    .push(PlanCache { network: Network::new(schema.cloned()), ..PlanCache::default() });
                self.caches.len() - 1
            }
        };
        &mut self.caches[at]
    }

    /// Memory of plans and buffers.
    pub fn bytes(&self) -> usize {
        self.caches.iter().map(PlanCache::bytes).sum()
    }

    /// Frees memory until at most `limit` bytes are held: first the buffers, then the plans, those of the oldest
    /// schema first.
    pub fn trim(&mut self, limit: usize) {
        if self.bytes() <= limit {
            return;
        }
        self.caches.iter_mut().for_each(PlanCache::free_buffers);
        while self.bytes() > limit {
            self.caches.remove(0);
        }
    }
}

impl PlanCache {
    /// Finds the plans of the transformations among the matching queries; plans those that are new.
    fn plan(&mut self, message: &MatchedMessage<'_>, queries: impl Iterator<Item = SegmentQuery>) {
        let PlanCache { network, plans, plan_bytes, plan_of_query, matching, .. } = self;
        let context = SegmentContext {
            view: message.segment.view(),
            names: message.trees.at(TreeId::MESSAGE).2,
            root: message.tenant.root(),
        };
        matching.clear();
        for query in queries {
            let plan = *plan_of_query.entry(query).or_insert_with(|| {
                // The segment holds canonical texts, which parse. A damaged one is a panic, which the caller takes for
                // damage: as a filter, it would deliver the message instead of the output.
                let text = message.segment.text(query).expect("an intact text");
                let parsed = parse(text, &Namespaces::default()).expect("a canonical text");
                let transformation = parsed.transformation?;
                let plan = network.plan(context, &transformation);
                *plan_bytes += plan.bytes();
                plans.push(plan);
                Some(plans.len() as u32 - 1)
            });
            matching.extend(plan.map(|plan| (query, plan)));
        }
    }

    /// Prepares the buffers for a message, whose matching transformations are planned.
    fn start_message(&mut self, message: &mut MatchedMessage<'_>) {
        message.memo.clear();
        let document = message.trees.document(TreeId::MESSAGE);
        self.results.reset(document.elements.len());
        self.results.fit(&self.network);
        self.has_occurrences = false;
        let Some(trace) = message.trace else { return };
        self.by_accept_set.group(&self.network, trace, document);
        let plans = self.matching.iter().map(|&(_, plan)| &self.plans[plan as usize]);
        let mut index_conditions = plans.flat_map(|plan| &plan.index_conditions).copied().peekable();
        if index_conditions.peek().is_some() {
            let conditions = message.segment.view().conditions();
            let occurrences = self.occurrences.get_or_insert_with(|| Occurrences::new(conditions));
            occurrences.reset();
            index_conditions.for_each(|condition| occurrences.request(condition));
            self.has_occurrences = occurrences.fill(trace.value_conditions());
        }
    }

    /// Memory of plans and buffers.
    fn bytes(&self) -> usize {
        self.network.bytes()
            + self.plan_bytes
            + self.plan_of_query.capacity() * size_of::<(SegmentQuery, Option<u32>)>()
            + self.matching.capacity() * size_of::<(SegmentQuery, u32)>()
            + self.results.bytes()
            + self.selected.bytes()
            + self.by_accept_set.bytes()
            + self.occurrences.as_ref().map_or(0, Occurrences::bytes)
            + self.outputs.bytes()
    }

    /// Frees the memory of everything but the plans.
    fn free_buffers(&mut self) {
        self.matching = Vec::new();
        self.results = Results::default();
        self.selected = Selected::default();
        self.by_accept_set = ElementsByAcceptSet::default();
        self.occurrences = None;
        self.outputs = Deduplicator::default();
        self.constructor = Constructor::default();
    }

    /// The evaluator of the network on a message, and what outputs are written with.
    fn evaluator<'r>(
        &'r mut self,
        message: &'r mut MatchedMessage<'_>,
        limits: &Limits,
    ) -> (Evaluator<'r>, OutputWriter<'r>) {
        let (document, _, names) = message.trees.at(TreeId::MESSAGE);
        let evaluator = Evaluator {
            network: &self.network,
            results: &mut self.results,
            selected: &mut self.selected,
            document,
            names,
            twigs: TwigEvaluator {
                words: self.network.twigs.words(),
                document,
                trees: message.trees,
                by_name: message.by_name,
                memo: message.memo,
                budget: Budget::new(limits.work),
            },
            by_accept_set: message.trace.map(|_| &self.by_accept_set),
            occurrences: self.occurrences.as_ref().filter(|_| self.has_occurrences),
            limit: limits.bindings,
        };
        let writer = OutputWriter {
            plans: &self.plans,
            matching: &self.matching,
            outputs: &mut self.outputs,
            constructor: &mut self.constructor,
        };
        (evaluator, writer)
    }
}

/// The parts of a plan cache that outputs are written with.
struct OutputWriter<'a> {
    plans: &'a [Plan],
    matching: &'a [(SegmentQuery, u32)],
    outputs: &'a mut Deduplicator,
    constructor: &'a mut Constructor,
}

/// Evaluates a transformation and writes its output, unless an equal one was written for this message. Returns the
/// number of the output.
fn output(
    plan: &Plan,
    evaluator: &mut Evaluator<'_>,
    copier: &NodeCopier<'_>,
    known: &mut Deduplicator,
    constructor: &mut Constructor,
    limits: &Limits,
    outputs: &mut Outputs,
) -> Result<u32, Box<ConstructError>> {
    let over_limit = |over| match over {
        LimitExceeded::Nodes => {
            exceeded("bindings-limit", "the transformation binds or selects more nodes", limits.bindings)
        }
        LimitExceeded::Lists => {
            exceeded("bindings-limit", "the transformation selects more lists of nodes", SELECTED_LISTS)
        }
        LimitExceeded::Work => over_work_limit(limits.work),
    };
    evaluator.twigs.budget.restart();
    if let Some(tuples) = &plan.tuples {
        check_outputs(outputs, limits)?;
        let start = outputs.bytes.len();
        let writer = TreeWriter::new(copier, limits.output, &mut outputs.bytes);
        let written = TupleEvaluator::new(evaluator.twigs.verifier(), writer, limits.bindings).write(tuples);
        if let Err(error) = written {
            outputs.bytes.truncate(start);
            return Err(match error {
                TupleError::Limit(over) => over_limit(over),
                TupleError::Construct(error) => error,
            });
        }
        outputs.ends.push(outputs.bytes.len());
        return Ok(outputs.ends.len() as u32 - 1);
    }
    evaluator.selected.clear();
    known.begin_key(plan.construction);
    for (at, block) in plan.blocks.iter().enumerate() {
        evaluator.bind(block).map_err(over_limit)?;
        known.extend_key(evaluator.selected.bindings(at));
    }
    if let Some(number) = known.find() {
        return Ok(number);
    }
    let mut blocks = plan.blocks.iter().enumerate();
    blocks.try_for_each(|(at, block)| evaluator.select_return_nodes(at, block)).map_err(over_limit)?;
    check_outputs(outputs, limits)?;
    let program = &evaluator.network.programs[plan.construction as usize];
    constructor.construct(program, copier, &*evaluator.selected, limits.output, &mut outputs.bytes)?;
    let number = outputs.ends.len() as u32;
    outputs.ends.push(outputs.bytes.len());
    known.insert(number);
    Ok(number)
}

fn check_outputs(outputs: &Outputs, limits: &Limits) -> Result<(), Box<ConstructError>> {
    if outputs.bytes.len() >= limits.outputs {
        return Err(exceeded("outputs-limit", "the outputs of this message have more bytes", limits.outputs));
    }
    Ok(())
}

/// The failure of a query, a filter too, that exceeded the work limit.
#[cold]
fn over_work_limit(limit: usize) -> Box<ConstructError> {
    let (reason, exceeded) = WorkLimit::describe(limit);
    Box::new(ConstructError { code: WorkLimit::CODE, reason, exceeded: Some(exceeded) })
}

#[cold]
fn exceeded(code: &'static str, what: &str, limit: usize) -> Box<ConstructError> {
    let limit = limit as u64;
    Box::new(ConstructError {
        code,
        reason: format!("{what} than the {limit} allowed"),
        exceeded: Some(Exceeded { value: limit + 1, limit }),
    })
}
