//! The product on the same documents: which transformations match, and then their shared network, up to the
//! lists of nodes. Nothing is constructed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis::data::Records;
use tamis::document::{Document, Reader};
use tamis::engine::generation::Generation;
use tamis::engine::index::{Index, Subscription};
use tamis::engine::matcher::Matcher;
use tamis::ids::{ConditionId, TrieNodeId};
use tamis::limits::Limits;
use tamis::matching::automaton::dfa::{Cache, Dfa, Scratch, Trace};
use tamis::matching::automaton::names::Names;
use tamis::matching::budget::Budget;
use tamis::matching::findings::{Findings, Ranks};
use tamis::matching::twigs::by_name::ElementsByName;
use tamis::matching::twigs::occurrences::Occurrences;
use tamis::matching::twigs::verify::{Memo, Trees};
use tamis::query::{Namespaces, parse};
use tamis::transform::Schema;
use tamis::transform::plan::{Network, Plan, SegmentContext};
use tamis::transform::run::{ElementsByAcceptSet, Evaluator, Results, Selected, TwigEvaluator};
use tamis::tuning::{CACHE_BYTES, Tuning};

use crate::clock::{Clock, NoClock, Operator, Profile};
use crate::plan::Counts;
use crate::{Documents, Given, Setting};

pub struct Shared {
    generation: Arc<Generation>,
    matcher: Matcher,
    reader: Reader,
    document: Document,
    root: TrieNodeId,
    names: Names,
    cache: Cache,
    scratch: Scratch,
    findings: Findings,
    ranks: Ranks,
    by_name: ElementsByName,
    memo: Memo,
    network: Network,
    plans: Vec<Plan>,
    results: Results,
    selected: Selected,
    by_accept_set: ElementsByAcceptSet,
    occurrences: Occurrences<ConditionId>,
}

impl Shared {
    pub fn new(texts: &[&str], schema: Arc<Schema>, documents: &Documents) -> Shared {
        let mut index = Index::new();
        let rows = texts.iter().enumerate().map(|(at, text)| Subscription::new(at as u64, text));
        let refused = index.load(rows).expect("they fit a segment");
        assert!(refused.is_empty(), "transformations are accepted");
        let generation = index.commit().expect("they fit a segment");
        let [part] = generation.parts() else { panic!("one segment") };
        let (root, segment) = (part.tenant("").expect("the tenant").root(), part.segment.clone());
        let view = segment.view();
        let mut names = Names::new(view);
        names.update(documents.reader.vocabulary());
        let mut network = Network::new(Some(schema));
        let plans = view
            .all_queries()
            .map(|query| {
                let parsed = parse(segment.text(query).expect("an intact text"), &Namespaces::default())
                    .expect("a canonical text");
                let transformation = parsed.transformation.expect("a transformation");
                network.plan(SegmentContext { view, names: &names, root }, &transformation)
            })
            .collect();
        let (cache, scratch) = (Cache::new(CACHE_BYTES), Scratch::new(&view));
        let findings = Findings::new(view);
        Shared {
            generation: generation.clone(),
            matcher: Matcher::new(Tuning::new(CACHE_BYTES)),
            reader: Reader::new(),
            document: Document::default(),
            root,
            names,
            cache,
            scratch,
            findings,
            ranks: Ranks::default(),
            by_name: ElementsByName::default(),
            memo: Memo::new(usize::MAX),
            network,
            plans,
            results: Results::default(),
            selected: Selected::default(),
            by_accept_set: ElementsByAcceptSet::default(),
            occurrences: Occurrences::new(view.conditions()),
        }
    }

    /// The transformations that match a message, and the time that matching takes without reading.
    fn matches(&mut self, message: &[u8]) -> (Duration, Vec<u32>) {
        let limits = Limits::default();
        let start = Instant::now();
        self.reader.read(message, &limits, &mut self.document).expect("well-formed");
        let reading = start.elapsed();
        let mut found = Vec::new();
        let start = Instant::now();
        self.matcher.match_batch(&self.generation, "", std::iter::once(message), &limits, |matches| {
            // The plans are numbered as the queries of the one segment.
            found.extend(matches.expect("well-formed").queries.iter().map(|query| query.0));
        });
        (start.elapsed().saturating_sub(reading), found)
    }

    /// Matching has left the automaton's states where the product finds them; here they are found again.
    fn find_states(&mut self, document: &Document) {
        let view = self.generation.parts()[0].segment.view();
        let Shared { root, names, cache, scratch, findings, ranks, .. } = self;
        ranks.reset();
        let found = Dfa { view: &view, root: *root, names }.find(document, ranks, findings, cache, scratch);
        assert!(found.is_ok(), "the cache is large enough");
        findings.clear();
    }

    /// Binds and takes nodes, by the network.
    fn run(&mut self, document: &Document, queries: &[u32], given: &mut Given, clock: &mut impl Clock) {
        clock.time(Operator::Engine, || {
            self.by_name.reset();
            self.results.reset(document.elements.len());
            self.results.fit(&self.network);
            let trace = Trace::new(&self.cache, &self.scratch);
            self.by_accept_set.group(&self.network, trace, document);
            self.occurrences.reset();
            for &query in queries {
                self.plans[query as usize]
                    .index_conditions
                    .iter()
                    .for_each(|&condition| self.occurrences.request(condition));
            }
            assert!(self.occurrences.fill(trace.value_conditions()), "few occurrences");
        });
        let Shared {
            network,
            reader,
            names,
            results,
            selected,
            by_accept_set,
            by_name,
            memo,
            occurrences,
            ..
        } = self;
        let (by_accept_set, occurrences) = (Some(&*by_accept_set), Some(&*occurrences));
        let (words, records) = (network.twigs.words(), Records::default());
        let trees = Trees::new(document, reader.vocabulary(), names, &records);
        let budget = Budget::unlimited();
        let twigs = TwigEvaluator { words, document, trees, by_name, memo, budget };
        let limit = Limits::default().bindings;
        let mut evaluator = Evaluator {
            network,
            results,
            selected,
            document,
            names,
            twigs,
            by_accept_set,
            occurrences,
            limit,
        };
        for &query in queries {
            evaluator.selected.clear();
            for (at, block) in self.plans[query as usize].blocks.iter().enumerate() {
                // Joins and selections are made by what binds.
                clock.time(Operator::Semijoin, || evaluator.bind(block)).expect("within the limit");
                clock
                    .time(Operator::OuterJoin, || evaluator.select_return_nodes(at, block))
                    .expect("within the limit");
                given.matches += 1;
                given.bindings += evaluator.selected.block(at).len();
            }
            given.nodes += evaluator.selected.nodes.len();
        }
    }
}

impl Setting for Shared {
    fn pass(&mut self, documents: &Documents) -> (Vec<Duration>, Given) {
        let mut given = Given::default();
        let mut time = |(document, message): (&Document, &Vec<u8>)| {
            let (matching, queries) = self.matches(message);
            self.find_states(document);
            let start = Instant::now();
            self.run(document, &queries, &mut given, &mut NoClock);
            matching + start.elapsed()
        };
        (documents.read.iter().zip(&documents.messages).map(&mut time).collect(), given)
    }

    fn profile(&mut self, documents: &Documents) -> Profile {
        let mut profile = Profile::default();
        for (document, message) in documents.read.iter().zip(&documents.messages) {
            let (matching, queries) = self.matches(message);
            profile.add(Operator::Engine, matching);
            self.find_states(document);
            self.run(document, &queries, &mut Given::default(), &mut profile);
        }
        profile
    }

    fn counts(&self) -> Counts {
        let blocks = self.plans.iter().flat_map(|plan| &plan.blocks);
        let different: HashSet<_> = blocks.map(|block| (block.bindings, &block.groups)).collect();
        Counts { plans: different.len(), ..Counts::default() }
    }
}
