//! Plans run one after the other; they share the path matching engine only.

use std::time::{Duration, Instant};

use tamis::document::Document;
use tamis::ids::ElementId;

use crate::clock::{Clock, NoClock, Operator, Profile};
use crate::operators::{Lists, Operators, Pairs, equals};
use crate::plan::{Counts, Degree, Optimisation, Plan, Planner, Query, TracedDocument};
use crate::search::Search;
use crate::tuples::{Engine, Tuples};
use crate::{Documents, Given, Setting};

pub struct Unshared {
    engine: Engine,
    plans: Vec<Plan>,
    counts: Counts,
    streams: Vec<Tuples>,
    work: Work,
}

#[derive(Default)]
struct Work {
    bound: Vec<ElementId>,
    selected: Vec<ElementId>,
    pairs: Pairs,
    lists: Lists,
    operators: Operators,
    search: Search,
}

impl Unshared {
    pub fn new(
        queries: &[Query],
        degree: Degree,
        optimisation: Optimisation,
        documents: &Documents,
    ) -> Unshared {
        let vocabulary = documents.reader.vocabulary();
        let (lines, counts) = Default::default();
        let mut planner = Planner { degree, optimisation, vocabulary, lines, counts };
        let plans = queries.iter().map(|query| planner.plan(query)).collect();
        let lines: Vec<_> =
            (0..planner.lines.count()).map(|id| planner.lines.at(id as u32).clone()).collect();
        let (engine, counts) = (Engine::new(&lines, vocabulary), planner.counts);
        Unshared { engine, plans, counts, streams: Vec::new(), work: Work::default() }
    }

    fn run(&mut self, document: &Document, given: &mut Given, clock: &mut impl Clock) {
        let Unshared { engine, plans, streams, work, .. } = self;
        clock.time(Operator::Engine, || engine.fill(document, streams));
        for plan in plans.iter() {
            work.run(document, plan, streams, clock);
            given.matches += !work.bound.is_empty() as usize;
            given.bindings += work.bound.len();
            given.nodes += work.lists.nodes.len();
        }
    }
}

impl Work {
    fn run(&mut self, document: &Document, plan: &Plan, streams: &[Tuples], clock: &mut impl Clock) {
        let Work { bound, selected, pairs, lists, operators, search } = self;
        let stream_of = |stream: u32| &streams[stream as usize];
        bound.clear();
        lists.clear();
        let last = |tuple: &[ElementId]| tuple[tuple.len() - 1];
        bound.extend(stream_of(plan.binding).iter().map(last));
        if plan.eliminate {
            clock.time(Operator::DupElim, || bound.dedup());
        }
        for condition in &plan.conditions {
            let test = (&condition.subject, &*condition.constant);
            match &condition.path {
                TracedDocument::Streamed(stream) => {
                    clock.time(Operator::Selection, || {
                        Operators::select(document, stream_of(*stream), test, plan.field, selected);
                    });
                    clock.time(Operator::Semijoin, || operators.semijoin(bound, selected, plan.ordered));
                }
                TracedDocument::Searched(steps) => clock.time(Operator::WhereFilter, || {
                    bound.retain(|&element| {
                        let mut there = false;
                        search.below(document, steps, element, |end| {
                            there = equals(document, end, test.0, test.1);
                            there
                        });
                        there
                    });
                }),
            }
        }
        // Data flows up: duplicates are eliminated before it is known whether anything is joined with them.
        for one in &plan.returns {
            match &one.path {
                TracedDocument::Streamed(stream) if one.eliminate => {
                    let stream = stream_of(*stream);
                    clock.time(Operator::DupElim, || {
                        operators.distinct(stream, plan.field, plan.ordered, pairs);
                    });
                    if !bound.is_empty() {
                        clock.time(Operator::OuterJoin, || {
                            operators.outer_join(bound, pairs.iter().copied(), plan.ordered, lists);
                        });
                    }
                }
                TracedDocument::Streamed(stream) if !bound.is_empty() => {
                    let pairs = stream_of(*stream).iter().map(|tuple| (tuple[plan.field], last(tuple)));
                    clock.time(Operator::OuterJoin, || {
                        operators.outer_join(bound, pairs, plan.ordered, lists);
                    });
                }
                TracedDocument::Streamed(_) => {}
                TracedDocument::Searched(steps) => clock.time(Operator::ReturnSelect, || {
                    for &element in bound.iter() {
                        search.below(document, steps, element, |end| {
                            lists.nodes.push(end);
                            false
                        });
                        lists.end();
                    }
                }),
            }
        }
    }
}

impl Setting for Unshared {
    fn pass(&mut self, documents: &Documents) -> (Vec<Duration>, Given) {
        let mut given = Given::default();
        let mut time = |document: &Document| {
            let start = Instant::now();
            self.run(document, &mut given, &mut NoClock);
            start.elapsed()
        };
        (documents.read.iter().map(&mut time).collect(), given)
    }

    fn profile(&mut self, documents: &Documents) -> Profile {
        let mut profile = Profile::default();
        documents.read.iter().for_each(|document| self.run(document, &mut Given::default(), &mut profile));
        profile
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
