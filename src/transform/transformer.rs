//! What a matcher keeps of a segment's transformations, and how it makes a message's outputs with them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::document::{Document, Limits, NodeRef, Vocabulary};
use crate::error::Exceeded;
use crate::ids::ElementId;
use crate::index::segment::Segment;
use crate::matching::by_name::ByName;
use crate::matching::dfa::Dfa;
use crate::matching::names::Names;
use crate::matching::places::Places;
use crate::matching::verify::{Memo, Verifier};
use crate::query::{Namespaces, parse};
use crate::transform::network::{BlockPlan, Ground, Network, Plan};
use crate::transform::report::{OperatorReport, report};
use crate::transform::results::{Over, Results};
use crate::transform::run::Run;
use crate::transform::schema::Schema;
use crate::transform::streams::Streams;
use crate::transform::{ConstructError, Copyist, Lists, construct};

/// Operators that are kept; past this, plans are made anew when they are needed.
const MOST_OPERATORS: usize = 1 << 20;
/// Schemas whose plans are kept beside those for all messages.
const MOST_SCHEMAS: usize = 4;

/// The outputs of one message, equal ones once.
#[derive(Default)]
pub struct Outputs {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Per matching transformation its query and the number of its output. Filters are not among them:
    /// they leave the message as it is.
    pub outcomes: Vec<(u32, Result<u32, ConstructError>)>,
}

impl Outputs {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.outcomes.clear();
    }

    /// The outputs, by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.ends.iter().enumerate().map(|(number, &end)| {
            let start = if number == 0 { 0 } else { self.ends[number - 1] };
            &self.bytes[start..end]
        })
    }
}

/// The networks of a segment: for all messages, and for those that conform to a schema.
#[derive(Default)]
pub struct Transformer {
    sides: Vec<Side>,
}

#[derive(Default)]
struct Side {
    network: Network,
    /// By query; none for a filter.
    plans: FxHashMap<u32, Option<Plan>>,
    results: Results,
    streams: Streams,
    /// Where conditions of the index were found, once there is a plan that asks.
    places: Option<Places>,
    placed: bool,
    /// Outputs by construction and bound elements.
    same: FxHashMap<Box<[u32]>, u32>,
}

/// A message with what matching found in it.
pub struct Matched<'a> {
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

impl Matched<'_> {
    fn run<'r>(
        &'r mut self,
        network: &'r Network,
        results: &'r mut Results,
        places: Option<&'r Places>,
        limits: &Limits,
    ) -> Run<'r> {
        let Matched { document, names, .. } = *self;
        let verifier = Verifier::new(network.twigs.words(), document, names, self.by_name, self.memo);
        let (filled, limit) = (self.dfa.is_some(), limits.bindings);
        Run { network, results, document, names, verifier, filled, places, limit }
    }
}

impl Transformer {
    /// Appends what each transformation among the segment's `queries` makes of a message. `base` is added
    /// to their numbers. The schema is given if the message conforms to it.
    pub fn transform(
        &mut self,
        mut message: Matched<'_>,
        schema: Option<&Arc<Schema>>,
        queries: impl Iterator<Item = u32> + Clone,
        base: u32,
        limits: &Limits,
        outputs: &mut Outputs,
    ) {
        let side = self.side(schema);
        let ground = Ground { view: message.segment.view(), names: message.names, root: message.root };
        let mut any = false;
        for query in queries.clone() {
            any |= side.prepare(message.segment, ground, query).is_some();
        }
        if !any {
            return;
        }
        side.begin(&mut message, queries.clone());
        let copyist = Copyist::new(message.document, message.vocabulary);
        for query in queries {
            let Side { network, plans, results, places, placed, same, .. } = side;
            let Some(plan) = &plans[&query] else { continue };
            if results.is_full() {
                results.forget();
            }
            let places = places.as_ref().filter(|_| *placed);
            let run = message.run(network, results, places, limits);
            let outcome = output(plan, run, &copyist, same, limits, outputs);
            outputs.outcomes.push((query + base, outcome));
        }
        message.memo.clear();
    }

    /// Which operators a query of the segment runs on a message, planned with all others of its tenant.
    pub fn explain(
        mut message: Matched<'_>,
        schema: Option<&Arc<Schema>>,
        query: u32,
        limits: &Limits,
    ) -> Vec<OperatorReport> {
        let view = message.segment.view();
        let ground = Ground { view, names: message.names, root: message.root };
        let mut side = Side { network: Network::new(schema.cloned()), ..Side::default() };
        for other in 0..view.queries() as u32 {
            if view.query_tenant.get(other as usize).is_none_or(|&tenant| tenant == message.root) {
                side.prepare(message.segment, ground, other);
            }
        }
        side.begin(&mut message, std::iter::once(query));
        let Side { network, plans, results, places, placed, .. } = &mut side;
        let Some(Some(plan)) = plans.get(&query) else { return Vec::new() };
        let places = places.as_ref().filter(|_| *placed);
        let mut run = message.run(network, results, places, limits);
        // What passes a limit is not there to be reported, and all else is.
        let _ = plan.blocks.iter().try_for_each(|block| run.bind(block).and_then(|()| run.select(block)));
        report(network, view, plan, results)
    }

    /// The network for all messages, or for those that conform to a schema.
    fn side(&mut self, schema: Option<&Arc<Schema>>) -> &mut Side {
        let same = |side: &Side| match (&side.network.schema, schema) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let at = match self.sides.iter().position(same) {
            Some(at) => at,
            None => {
                if self.sides.len() > MOST_SCHEMAS {
                    self.sides.remove(0);
                }
                self.sides.push(Side { network: Network::new(schema.cloned()), ..Side::default() });
                self.sides.len() - 1
            }
        };
        let side = &mut self.sides[at];
        if side.network.size() > MOST_OPERATORS {
            *side = Side { network: Network::new(schema.cloned()), ..Side::default() };
        }
        side
    }
}

impl Side {
    /// The plan of a query, made when it is first needed; none for a filter.
    fn prepare(&mut self, segment: &Segment, ground: Ground<'_>, query: u32) -> Option<&Plan> {
        let network = &mut self.network;
        let plan = self.plans.entry(query).or_insert_with(|| {
            // A canonical text parses: it was written by us.
            let parsed = parse(segment.text(query), &Namespaces::default()).ok()?;
            let transformation = parsed.transformation?;
            Some(network.plan(ground, &transformation))
        });
        plan.as_ref()
    }

    /// Goes over to a message that some of the queries match.
    fn begin(&mut self, message: &mut Matched<'_>, queries: impl Iterator<Item = u32>) {
        message.memo.clear();
        self.same.clear();
        self.results.reset();
        self.results.fit(&self.network);
        if let Some(dfa) = message.dfa {
            self.streams.fill(&self.network, dfa, message.document, &mut self.results);
        }
        self.placed = false;
        let mut found =
            queries.filter_map(|query| self.plans.get(&query)?.as_ref()).flat_map(|plan| &plan.found);
        if let (Some(dfa), Some(&first)) = (message.dfa, found.next()) {
            let conditions = message.segment.view().conditions();
            let places = self.places.get_or_insert_with(|| Places::new(conditions));
            places.reset();
            places.expect(first);
            found.for_each(|&condition| places.expect(condition));
            self.placed = places.fill(dfa.values_found());
        }
    }
}

/// Makes the output of a transformation, unless an equal one is there.
fn output(
    plan: &Plan,
    mut run: Run<'_>,
    copyist: &Copyist<'_>,
    same: &mut FxHashMap<Box<[u32]>, u32>,
    limits: &Limits,
    outputs: &mut Outputs,
) -> Result<u32, ConstructError> {
    let over =
        |Over| exceeded("bindings-limit", "the transformation binds or takes more nodes", limits.bindings);
    plan.blocks.iter().try_for_each(|block| run.bind(block)).map_err(over)?;
    let mut key = vec![plan.construction];
    for block in &plan.blocks {
        let bound = run.results.bindings.at(block.bindings);
        key.push(bound.len() as u32);
        key.extend(bound.iter().map(|element| element.0));
    }
    if let Some(&number) = same.get(key.as_slice()) {
        return Ok(number);
    }
    run.results.taken.clear();
    plan.blocks.iter().try_for_each(|block| run.select(block)).map_err(over)?;
    let start = outputs.bytes.len();
    if start >= limits.outputs {
        return Err(exceeded("outputs-limit", "transformations make more of this message", limits.outputs));
    }
    let lists = Joined::new(plan, run.results);
    let program = &run.network.programs[plan.construction as usize];
    construct(program, copyist, &lists, limits.output, &mut outputs.bytes)?;
    let number = outputs.ends.len() as u32;
    outputs.ends.push(outputs.bytes.len());
    same.insert(key.into(), number);
    Ok(number)
}

fn exceeded(code: &'static str, what: &str, limit: usize) -> ConstructError {
    let limit = limit as u64;
    ConstructError {
        code,
        reason: format!("{what} than the {limit} allowed"),
        exceeded: Some(Exceeded { value: limit + 1, limit }),
    }
}

/// What a plan's blocks bind and take.
struct Joined<'a> {
    results: &'a Results,
    /// Per block its bindings, and where its stretches begin.
    blocks: Vec<(&'a [ElementId], usize)>,
}

impl<'a> Joined<'a> {
    fn new(plan: &Plan, results: &'a Results) -> Joined<'a> {
        let mut first = 0;
        let block = |block: &BlockPlan| {
            let bound = results.bindings.at(block.bindings).as_slice();
            let start = first;
            first += bound.len() * block.groups.len();
            (bound, start)
        };
        Joined { results, blocks: plan.blocks.iter().map(block).collect() }
    }
}

impl Lists for Joined<'_> {
    fn bindings(&self, block: usize) -> &[ElementId] {
        self.blocks[block].0
    }

    fn list(&self, block: usize, path: usize, binding: usize) -> &[NodeRef] {
        let (bound, first) = self.blocks[block];
        let taken = &self.results.taken;
        let (start, end) = taken.stretches[first + path * bound.len() + binding];
        &taken.nodes[start as usize..end as usize]
    }
}
