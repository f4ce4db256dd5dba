//! Whether local data serves the queries that name it.

use crate::data::{DataSet, DataSets};
use crate::engine::generation::Generation;
use crate::error::{Exceeded, QueryError};
use crate::ids::{GenerationQuery, LabelId};
use crate::limits::SCANNED_RECORDS_LIMIT;
use crate::matching::budget::WorkLimit;
use crate::query::ast::NameTest;
use crate::query::data_use::DataUse;
use crate::query::{Namespaces, Query, data_uses, parse};
use crate::segment::twig::local_data::{ACCESS_ANY, key_steps};
use crate::segment::twig::{Twigs, part};
use crate::transform::Outputs;

/// Refuses a query that names local data which is not there, or which it would have to read whole.
pub fn check(uses: &[DataUse], query: &Query, data: &DataSets) -> Result<(), QueryError> {
    if uses.is_empty() {
        return Ok(());
    }
    for one in uses {
        let Some(place) = data.find(one.name.as_bytes()) else { return Err(one.unknown()) };
        let records = data.at(place).len();
        if !one.is_collection && records != 1 {
            let reason = format!(
                "`doc('{0}')` is one document, and `{0}` has {records}; write `collection('{0}')`",
                one.name
            );
            return Err(one.refused("no-document", reason));
        }
    }
    let scans = |one: &&DataUse| one.is_collection && is_scanned(query, one, data);
    match uses.iter().find(scans) {
        None => Ok(()),
        Some(one) => Err(too_large(one, data)),
    }
}

/// Parses a query, and refuses it as `check` does.
pub fn parse_and_check(text: &str, namespaces: &Namespaces, data: &DataSets) -> Result<Query, QueryError> {
    let query = parse(text, namespaces)?;
    check(&data_uses(text, namespaces)?, &query, data)?;
    Ok(query)
}

/// Why a query could not be decided, if local data is the cause: it changed since the query was registered, or is not
/// attached.
pub fn cause_of_failure(query: GenerationQuery, generation: &Generation) -> Option<QueryError> {
    let text = generation.text_of(query)?;
    parse_and_check(text, &Namespaces::default(), generation.data()).err()
}

/// What seems to take too many steps may have failed for its local data.
pub fn name_causes(outputs: &mut Outputs, generation: &Generation) {
    for (query, outcome) in &mut outputs.outcomes {
        if let Err(error) = outcome
            && error.code == WorkLimit::CODE
            && let Some(cause) = cause_of_failure(*query, generation)
        {
            (error.code, error.reason, error.exceeded) = (cause.code, cause.reason, cause.exceeded);
        }
    }
}

/// Whether a query reads all records of a collection, and there are too many: no equality finds those that it meets.
fn is_scanned(query: &Query, one: &DataUse, data: &DataSets) -> bool {
    let Some(set) = data.find(one.name.as_bytes()).map(|place| data.at(place)) else { return false };
    if set.len() <= SCANNED_RECORDS_LIMIT {
        return false;
    }
    let (mut twigs, mut tests) = (Twigs::default(), Vec::new());
    let mut label = |test: &NameTest| {
        tests.push(test.clone());
        LabelId::from(tests.len() - 1)
    };
    match &query.transformation {
        None => drop(twigs.compile(&query.expr, &mut label)),
        Some(transformation) => transformation.for_each_value(&mut |value| {
            twigs.compile_value(value, &mut label);
        }),
    }
    let of_data = twigs.collections().iter().filter(|(name, _)| *name == one.name);
    let mut accesses = of_data.map(|(_, accesses)| accesses);
    accesses.any(|accesses| !accesses.iter().any(|&access| is_indexed(twigs.words(), access, &tests, set)))
}

/// Whether the index of a data set has all values that an access asks for.
fn is_indexed(words: &[u32], access: u32, tests: &[NameTest], set: &DataSet) -> bool {
    let word = words[access as usize];
    if word & 0xFF == ACCESS_ANY {
        return (1..=word >> 8).all(|place| is_indexed(words, part(words, access, place), tests, set));
    }
    let vocabulary = set.vocabulary();
    let steps = key_steps(words, access, |_, label| {
        let test = tests.get(label.index()).unwrap_or(&NameTest::Any);
        move |name| {
            let (uri, local) = vocabulary.name_parts(name);
            let uri = vocabulary.uri_text(uri);
            match test {
                NameTest::Any => true,
                NameTest::AnyIn(wanted) => uri == wanted.as_bytes(),
                NameTest::Local(wanted) => local == wanted.as_bytes(),
                NameTest::Name(wanted) => local == wanted.local.as_bytes() && uri == wanted.uri.as_bytes(),
            }
        }
    });
    set.paths(&steps).is_some()
}

fn too_large(one: &DataUse, data: &DataSets) -> QueryError {
    let records = data.find(one.name.as_bytes()).map_or(0, |place| data.at(place).len());
    let reason = format!(
        "the query reads all {records} records of `{0}`, more than the {SCANNED_RECORDS_LIMIT} allowed; compare a value of them by `=`: `collection('{0}')/row[key = $v/key]`",
        one.name
    );
    let exceeded = Exceeded { value: records as u64, limit: SCANNED_RECORDS_LIMIT as u64 };
    QueryError { exceeded: Some(exceeded), ..one.refused("scan-limit", reason) }
}
