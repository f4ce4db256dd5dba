//! The experiments of seed 001 §6.7: three degrees of path sharing with a plan per query, optimised by the
//! query and by the DTD, beside the network of operators that the product shares among queries.
//!
//! `path_sharing DTD DOCUMENTS QUERIES ROUNDS SETTING…`, where a setting is `F`, `FW` or `FWR` with `-none`,
//! `-query` or `-dtd`, or `shared`. Prints JSON; `__main__.py` beside this file makes the workloads.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | an unshared plan for each transformation, and the number of its operators of each kind |
//! | `tuples.rs` | path-tuple streams, by the kernel's automaton |
//! | `search.rs` | the tree search that needs no streams |
//! | `operators.rs` | selection, duplicate elimination, semijoin, outer-join-select |
//! | `unshared.rs` | plans, run one after the other |
//! | `shared.rs` | the product's network on the same documents |
//! | `clock.rs` | the time of each operator |

mod clock;
mod operators;
mod plan;
mod search;
mod shared;
mod tuples;
mod unshared;

use std::sync::Arc;
use std::time::Duration;

use tamis::document::dtd::read_external;
use tamis::document::{Document, Reader};
use tamis::limits::Limits;
use tamis::transform::Schema;

use crate::clock::{OPERATORS, Profile};
use crate::plan::{Counts, Degree, Optimisation, Query};
use crate::shared::Shared;
use crate::unshared::Unshared;

/// Documents of one vocabulary, and as they came in.
pub struct Documents {
    pub reader: Reader,
    pub read: Vec<Document>,
    pub messages: Vec<Vec<u8>>,
}

/// The results of all queries together: the same for every setting.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Given {
    /// Pairs of a document and a query that binds something in it.
    pub matches: usize,
    pub bindings: usize,
    /// Nodes in lists.
    pub nodes: usize,
}

/// A setting, ready to be run over all documents.
trait Setting {
    /// The time that each document takes.
    fn pass(&mut self, documents: &Documents) -> (Vec<Duration>, Given);
    /// The time of each operator.
    fn profile(&mut self, documents: &Documents) -> Profile;
    fn counts(&self) -> Counts;
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dtd, folder, queries, rounds, settings @ ..] = arguments.as_slice() else {
        panic!("path_sharing DTD DOCUMENTS QUERIES ROUNDS SETTING…");
    };
    let schema = Arc::new(schema(dtd));
    let documents = documents(folder);
    let text = std::fs::read_to_string(queries).expect("a file of queries");
    let texts: Vec<&str> = text.lines().collect();
    let parsed: Vec<Query> = texts.iter().map(|text| Query::parse(text)).collect();
    let mut runs: Vec<(&String, Box<dyn Setting>)> = settings
        .iter()
        .map(|name| {
            let setting: Box<dyn Setting> = match name.split_once('-') {
                None => Box::new(Shared::new(&texts, schema.clone(), &documents)),
                Some((degree, optimisation)) => Box::new(Unshared::new(
                    &parsed,
                    Degree::named(degree),
                    Optimisation::named(optimisation, &schema),
                    &documents,
                )),
            };
            (name, setting)
        })
        .collect();

    // Once to warm up, then in turns. Of each document the least counts: what else the machine does in
    // between is left out.
    let rounds: usize = rounds.parse().expect("a number of rounds");
    let mut given = None;
    let mut best = vec![vec![Duration::MAX; documents.read.len()]; runs.len()];
    for round in 0..=rounds {
        for ((name, setting), best) in runs.iter_mut().zip(&mut best) {
            let (times, found) = setting.pass(&documents);
            assert_eq!(*given.get_or_insert(found), found, "{name} gives something else");
            if round > 0 {
                best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
            }
        }
    }
    let given = given.unwrap_or_default();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / documents.read.len() as f64;
    let elements: usize = documents.read.iter().map(|document| document.elements.len()).sum();
    let lines: Vec<String> = runs
        .iter_mut()
        .zip(&best)
        .map(|((name, setting), times)| {
            let mut profile = setting.profile(&documents);
            (1..rounds).for_each(|_| profile = profile.least(&setting.profile(&documents)));
            let operators: Vec<String> = OPERATORS
                .iter()
                .map(|operator| format!("\"{}\": {:.2}", operator.name(), each(profile.of(*operator))))
                .collect();
            let Counts { plans, semijoins, outer_joins, eliminations } = setting.counts();
            format!(
                "\"{name}\": {{\"us\": {:.2}, \"plans\": {plans}, \"operators_us\": {{{}}}, \"semijoins\": {{\"hash\": {}, \"merge\": {}}}, \
                 \"outer_joins\": {{\"hash\": {}, \"merge\": {}}}, \"eliminations\": {eliminations}}}",
                each(times.iter().sum()),
                operators.join(", "),
                semijoins.hash,
                semijoins.merge,
                outer_joins.hash,
                outer_joins.merge,
            )
        })
        .collect();
    println!(
        "{{\"documents\": {}, \"elements\": {elements}, \"queries\": {}, \"matches\": {}, \"bindings\": {}, \
         \"nodes\": {}, \"settings\": {{{}}}}}",
        documents.read.len(),
        texts.len(),
        given.matches,
        given.bindings,
        given.nodes,
        lines.join(", ")
    );
}

fn documents(folder: &str) -> Documents {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder of documents")
        .map(|entry| entry.expect("a document").path())
        .collect();
    paths.sort();
    let messages: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).expect("a document")).collect();
    let mut reader = Reader::new();
    let read = messages
        .iter()
        .map(|message| {
            let mut document = Document::default();
            reader.read(message, &Limits::default(), &mut document).expect("well-formed");
            document
        })
        .collect();
    Documents { reader, read, messages }
}

fn schema(path: &str) -> Schema {
    let text = std::fs::read(path).expect("a DTD");
    let dtd = read_external(&text, &Limits::default(), &|_| None).expect("a DTD");
    let children = |name: &str| {
        dtd.children_of(name.as_bytes()).into_iter().map(|(child, _)| child.to_string()).collect()
    };
    let elements = dtd.elements.iter().map(|(name, _)| (name.to_string(), children(name))).collect();
    Schema::new(elements, &dtd.roots().into_iter().map(str::to_string).collect::<Vec<_>>())
}
