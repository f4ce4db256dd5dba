//! What a matcher keeps of a segment's transformations, and how it makes a message's outputs with them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::document::{Document, NodeRef, Vocabulary};
use crate::error::Exceeded;
use crate::ids::ElementId;
use crate::limits::Limits;
use crate::matching::automaton::dfa::Dfa;
use crate::matching::automaton::names::Names;
use crate::matching::twigs::by_name::ByName;
use crate::matching::twigs::occurrences::Places;
use crate::matching::twigs::verify::Memo;
use crate::query::{Namespaces, parse};
use crate::segment::format::file::Segment;
use crate::transform::explain::{OperatorReport, report};
use crate::transform::output::{ConstructError, Constructor, Deduplicator, NodeCopier, NodeLists};
use crate::transform::plan::{Network, OperatorId, Plan, Schema, SegmentContext};
use crate::transform::run::{
    ElementsByAcceptSet, Evaluator, LimitExceeded, Results, Selected, TwigEvaluator,
};
use crate::tuning::{OPERATORS, SCHEMAS, SELECTED_LISTS};

/// The outputs of one message, equal ones once.
#[derive(Default)]
pub struct Outputs {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Per matching transformation its query and the number of its output. Filters are not among them:
    /// they leave the message as it is.
    pub outcomes: Vec<(u32, Result<u32, Box<ConstructError>>)>,
}

impl Outputs {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.outcomes.clear();
    }

    /// All outputs, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each of them ends.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }
}

/// The networks of a segment: for all messages, and for those that conform to a schema.
#[derive(Default)]
pub struct Transformer {
    sides: Vec<PlanCache>,
}

#[derive(Default)]
struct PlanCache {
    network: Network,
    plans: Vec<Plan>,
    /// By query, the place of its plan; none for a filter.
    planned: FxHashMap<u32, Option<u32>>,
    /// The transformations that a message concerns, and the places of their plans.
    concerned: Vec<(u32, u32)>,
    results: Results,
    taken: Selected,
    streams: ElementsByAcceptSet,
    /// Where conditions of the index were found, once there is a plan that asks.
    places: Option<Places>,
    placed: bool,
    same: Deduplicator,
    constructor: Constructor,
}

/// A message with what matching found in it.
pub struct MatchedMessage<'a> {
    pub segment: &'a Segment,
    pub root: u32,
    pub document: &'a Document,
    pub vocabulary: &'a Vocabulary,
    pub names: &'a Names,
    /// None if the message was matched without the DFA.
    pub dfa: Option<&'a Dfa>,
    pub by_name: &'a mut ByName,
    pub memo: &'a mut Memo,
}

impl Transformer {
    /// Appends what each transformation among the segment's `queries` makes of a message. `base` is added
    /// to their numbers. The schema is given if the message conforms to it.
    pub fn transform(
        &mut self,
        mut message: MatchedMessage<'_>,
        schema: Option<&Arc<Schema>>,
        queries: impl Iterator<Item = u32>,
        base: u32,
        limits: &Limits,
        outputs: &mut Outputs,
    ) {
        let side = self.side(schema);
        side.concern(&message, queries);
        if side.concerned.is_empty() {
            return;
        }
        side.begin(&mut message);
        let copier = NodeCopier::new(message.document, message.vocabulary);
        let (mut run, making) = side.run(&mut message, limits);
        let Making { plans, concerned, same, constructor } = making;
        same.reset(concerned.len());
        for &(query, plan) in concerned {
            let plan = &plans[plan as usize];
            let outcome = output(plan, &mut run, &copier, same, constructor, limits, outputs);
            outputs.outcomes.push((query + base, outcome));
        }
        message.memo.clear();
    }

    /// Which operators a query of the segment runs on a message, planned with all others of its tenant.
    pub fn explain(
        mut message: MatchedMessage<'_>,
        schema: Option<&Arc<Schema>>,
        query: u32,
        limits: &Limits,
    ) -> Vec<OperatorReport> {
        let view = message.segment.view();
        let mut side = PlanCache { network: Network::new(schema.cloned()), ..PlanCache::default() };
        let own =
            |other: &u32| view.query_tenant.get(*other as usize).is_none_or(|&tenant| tenant == message.root);
        side.concern(&message, (0..view.queries() as u32).filter(own));
        side.concern(&message, std::iter::once(query));
        side.begin(&mut message);
        let (mut run, Making { plans, concerned, .. }) = side.run(&mut message, limits);
        let Some(&(_, plan)) = concerned.first() else { return Vec::new() };
        let plan = &plans[plan as usize];
        // Counted one by one: all of them may be too many to be kept.
        let mut streams: FxHashMap<u32, usize> = FxHashMap::default();
        for operator in &plan.operators {
            if let OperatorId::Stream(id) = *operator {
                run.forget_if_full();
                run.stream(id);
                streams.insert(id, run.results.streams.at(id).iter().count());
            }
        }
        // What passes a limit is not there to be reported, nor what was too much to be kept, and all else is.
        run.taken.clear();
        let mut blocks = plan.blocks.iter().enumerate();
        let _ = blocks.try_for_each(|(at, block)| run.bind(block).and_then(|()| run.select(at, block)));
        report(view, plan, &run, &streams)
    }

    /// The network for all messages, or for those that conform to a schema.
    fn side(&mut self, schema: Option<&Arc<Schema>>) -> &mut PlanCache {
        let same = |side: &PlanCache| match (&side.network.schema, schema) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let at = match self.sides.iter().position(same) {
            Some(at) => at,
            None => {
                if self.sides.len() > SCHEMAS {
                    self.sides.remove(0);
                }
                self.sides.push(PlanCache { network: Network::new(schema.cloned()), ..PlanCache::default() });
                self.sides.len() - 1
            }
        };
        let side = &mut self.sides[at];
        if side.network.size() > OPERATORS {
            *side = PlanCache { network: Network::new(schema.cloned()), ..PlanCache::default() };
        }
        side
    }
}

impl PlanCache {
    /// Notes which transformations a message concerns, and plans those that are new.
    fn concern(&mut self, message: &MatchedMessage<'_>, queries: impl Iterator<Item = u32>) {
        let PlanCache { network, plans, planned, concerned, .. } = self;
        let ground =
            SegmentContext { view: message.segment.view(), names: message.names, root: message.root };
        concerned.clear();
        for query in queries {
            let plan = *planned.entry(query).or_insert_with(|| {
                // A canonical text parses: it was written by us.
                let parsed = parse(message.segment.text(query), &Namespaces::default()).ok()?;
                let transformation = parsed.transformation?;
                plans.push(network.plan(ground, &transformation));
                Some(plans.len() as u32 - 1)
            });
            concerned.extend(plan.map(|plan| (query, plan)));
        }
    }

    /// Goes over to a message that concerns some of the transformations.
    fn begin(&mut self, message: &mut MatchedMessage<'_>) {
        message.memo.clear();
        self.results.reset(message.document.elements.len());
        self.results.fit(&self.network);
        self.placed = false;
        let Some(dfa) = message.dfa else { return };
        self.streams.fill(&self.network, dfa, message.document);
        let plans = self.concerned.iter().map(|&(_, plan)| &self.plans[plan as usize]);
        let mut found = plans.flat_map(|plan| &plan.found);
        if let Some(&first) = found.next() {
            let conditions = message.segment.view().conditions();
            let places = self.places.get_or_insert_with(|| Places::new(conditions));
            places.reset();
            places.expect(first);
            found.for_each(|&condition| places.expect(condition));
            self.placed = places.fill(dfa.values_found());
        }
    }

    /// The network on a message, and what outputs are made with.
    fn run<'r>(
        &'r mut self,
        message: &'r mut MatchedMessage<'_>,
        limits: &Limits,
    ) -> (Evaluator<'r>, Making<'r>) {
        let PlanCache { network, plans, concerned, results, taken, streams, places, placed, .. } = self;
        let MatchedMessage { document, names, .. } = *message;
        let run = Evaluator {
            network,
            results,
            taken,
            document,
            names,
            walks: TwigEvaluator {
                words: network.twigs.words(),
                document,
                names,
                by_name: message.by_name,
                memo: message.memo,
            },
            streams: message.dfa.map(|_| &*streams),
            places: places.as_ref().filter(|_| *placed),
            limit: limits.bindings,
        };
        (run, Making { plans, concerned, same: &mut self.same, constructor: &mut self.constructor })
    }
}

/// What the outputs of a message are made with.
struct Making<'a> {
    plans: &'a [Plan],
    concerned: &'a [(u32, u32)],
    same: &'a mut Deduplicator,
    constructor: &'a mut Constructor,
}

/// Makes the output of a transformation, unless an equal one is there.
fn output(
    plan: &Plan,
    run: &mut Evaluator<'_>,
    copier: &NodeCopier<'_>,
    same: &mut Deduplicator,
    constructor: &mut Constructor,
    limits: &Limits,
    outputs: &mut Outputs,
) -> Result<u32, Box<ConstructError>> {
    let over = |over| match over {
        LimitExceeded::Nodes => {
            exceeded("bindings-limit", "the transformation binds or takes more nodes", limits.bindings)
        }
        LimitExceeded::Lists => {
            exceeded("bindings-limit", "the transformation takes more lists of nodes", SELECTED_LISTS)
        }
    };
    run.taken.clear();
    same.ask(plan.construction);
    for (at, block) in plan.blocks.iter().enumerate() {
        run.bind(block).map_err(over)?;
        same.ask_of(&run.taken.bound[run.taken.block(at)]);
    }
    if let Some(number) = same.find() {
        return Ok(number);
    }
    let mut blocks = plan.blocks.iter().enumerate();
    blocks.try_for_each(|(at, block)| run.select(at, block)).map_err(over)?;
    if outputs.bytes.len() >= limits.outputs {
        return Err(exceeded("outputs-limit", "transformations make more of this message", limits.outputs));
    }
    let program = &run.network.programs[plan.construction as usize];
    constructor.construct(program, copier, &*run.taken, limits.output, &mut outputs.bytes)?;
    let number = outputs.ends.len() as u32;
    outputs.ends.push(outputs.bytes.len());
    same.insert(number);
    Ok(number)
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

impl NodeLists for Selected {
    fn bindings(&self, block: usize) -> &[ElementId] {
        &self.bound[self.block(block)]
    }

    fn list(&self, block: usize, path: usize, binding: usize) -> &[NodeRef] {
        Selected::list(self, block, path, binding)
    }
}
