//! For unit tests: a segment of a few queries, and one message read by its automaton.

use crate::data::Records;
use crate::document::{Document, Reader};
use crate::ids::{GenerationQuery, TenantId};
use crate::limits::Limits;
use crate::matching::automaton::dfa::{Cache, Dfa, Scratch, Trace};
use crate::matching::automaton::names::Names;
use crate::matching::budget::Budget;
use crate::matching::candidates::{CandidateScratch, Collector, ReportedQueries};
use crate::matching::findings::{Findings, Ranks};
use crate::matching::twigs::by_name::ElementsByName;
use crate::matching::twigs::decide::TwigDecider;
use crate::matching::twigs::occurrences::TracedDocument;
use crate::matching::twigs::settle::Settler;
use crate::matching::twigs::verify::{Memo, Trees, Verifier};
use crate::matching::work::Work;
use crate::query::{Namespaces, parse_storable};
use crate::segment::build::Builder;
use crate::segment::build::frequency::Measured;
use crate::segment::format::file::Segment;
use crate::tuning::Tuning;

/// A segment with the queries of one tenant, whose root is trie node 0.
pub fn segment(queries: &[&str]) -> Segment {
    let mut builder = Builder::new(vec![String::new()], queries.len());
    for (target, text) in queries.iter().enumerate() {
        let query = parse_storable(text, &Namespaces::new()).expect("a query");
        builder.add(target as u64, "", &query.query, query.id, &query.canonical);
    }
    builder.freeze(|_| Measured::default()).expect("a segment")
}

/// Reads messages for a segment, with all buffers that this needs.
pub struct Messages {
    pub reader: Reader,
    pub document: Document,
    pub names: Names,
    pub ranks: Ranks,
    pub findings: Findings,
}

impl Messages {
    pub fn new(segment: &Segment) -> Messages {
        Messages {
            reader: Reader::new(),
            document: Document::default(),
            names: Names::new(segment.view()),
            ranks: Ranks::default(),
            findings: Findings::new(segment.view()),
        }
    }

    /// Reads a message; its findings are still empty.
    pub fn read(&mut self, message: &str) {
        self.reader.read(message.as_bytes(), &Limits::default(), &mut self.document).expect("well-formed");
        self.names.update(self.reader.vocabulary());
        self.ranks.reset();
        self.findings.clear();
    }
}

/// The targets of the queries that match a message, and the work.
pub fn matched(segment: &Segment, message: &str, tuning: Tuning) -> (Vec<u64>, Work) {
    let view = segment.view();
    let mut messages = Messages::new(segment);
    messages.read(message);
    let Messages { reader, document, names, ranks, findings } = &mut messages;
    let (mut cache, mut scratch) = (Cache::new(1 << 20), Scratch::new(&view));
    let dfa = Dfa { view: &view, root: TenantId(0).root(), names };
    dfa.find(document, ranks, findings, &mut cache, &mut scratch).expect("room");
    findings.set_always();
    let trace = Trace::new(&cache, &scratch);
    let (mut by_name, mut memo) = (ElementsByName::default(), Memo::new(tuning.scan_elements));
    let (mut settler, mut budget) = (Settler::new(view, tuning.scan_occurrences), Budget::unlimited());
    let vocabulary = reader.vocabulary();
    let (mut matches, mut failed, mut work) = (Vec::new(), Vec::new(), Work::default());
    let records = Records::default();
    let mut collector = Collector {
        view,
        findings,
        removed: &[],
        reported: &mut ReportedQueries::new(view),
        scratch: &mut CandidateScratch::default(),
        verify_singly: tuning.verify_singly,
        decider: TwigDecider {
            view,
            traced: Some(TracedDocument { document, trace }),
            settler: &mut settler,
            verifier: Verifier::new(
                view.twig,
                Trees::new(document, vocabulary, names, &records),
                &mut by_name,
                &mut memo,
                &mut budget,
            ),
        },
        first_query: GenerationQuery(0),
        matches: &mut matches,
        failed: &mut failed,
        work: &mut work,
    };
    let (blocks, wanted) = trace.blocks();
    collector.collect(TenantId(0), blocks, wanted);
    work.steps = budget.steps();
    let targets = matches.iter().flat_map(|query| view.targets_of(query.in_segment(GenerationQuery(0))));
    let mut targets: Vec<u64> = targets.map(|&place| view.target[place as usize]).collect();
    targets.sort_unstable();
    (targets, work)
}
