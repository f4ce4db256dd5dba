//! Whether local data serves the queries that name it.

use rustc_hash::FxHashMap;

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
            return Err(no_document(one, records as u64));
        }
    }
    let scans = |one: &&DataUse| one.is_collection && is_scanned(query, one, data);
    match uses.iter().find(scans) {
        None => Ok(()),
        Some(one) => {
            let records = data.find(one.name.as_bytes()).map_or(0, |place| data.at(place).len());
            Err(too_large(one, records as u64))
        }
    }
}

/// Refuses a query whose local data cannot serve it, as far as the numbers of records tell: by the name of each data
/// set that it may name.
pub fn check_sizes(
    text: &str,
    namespaces: &Namespaces,
    sizes: &FxHashMap<String, u64>,
) -> Result<(), QueryError> {
    let (uses, query) = (data_uses(text, namespaces)?, parse(text, namespaces)?);
    for one in &uses {
        let Some(&records) = sizes.get(&one.name) else { return Err(one.unknown()) };
        if !one.is_collection && records != 1 {
            return Err(no_document(one, records));
        }
        let is_large = one.is_collection && records > SCANNED_RECORDS_LIMIT as u64;
        if is_large && has_scan(&query, &one.name, |_, _, _| true) {
            return Err(too_large(one, records));
        }
    }
    Ok(())
}

fn no_document(one: &DataUse, records: u64) -> QueryError {
    let name = &one.name;
    let reason =
        format!("`doc('{name}')` is one document, and `{name}` has {records}; write `collection('{name}')`");
    one.refused("no-document", reason)
}

/// Parses a query, and refuses it as `check` does.
pub fn parse_and_check(text: &str, namespaces: &Namespaces, data: &DataSets) -> Result<Query, QueryError> {
    let query = parse(text, namespaces)?;
    check(&data_uses(text, namespaces)?, &query, data)?;
    Ok(query)
}

/// Why a query could not be decided, if local data is the cause: it changed since the query was registered, or is not
/// attached.
pub fn cause_of_failure(query: GenerationQuery, generation: &Generation, tenant: &str) -> Option<QueryError> {
    let text = generation.text_of(query)?;
    parse_and_check(text, &Namespaces::default(), generation.data(tenant)).err()
}

/// What seems to take too many steps may have failed for its local data.
pub fn name_causes(outputs: &mut Outputs, generation: &Generation, tenant: &str) {
    for (query, outcome) in &mut outputs.outcomes {
        if let Err(error) = outcome
            && error.code == WorkLimit::CODE
            && let Some(cause) = cause_of_failure(*query, generation, tenant)
        {
            (error.code, error.reason, error.exceeded) = (cause.code, cause.reason, cause.exceeded);
        }
    }
}

/// Whether a query reads all records of a collection, and there are too many: no equality finds those that it meets.
fn is_scanned(query: &Query, one: &DataUse, data: &DataSets) -> bool {
    let Some(set) = data.find(one.name.as_bytes()).map(|place| data.at(place)) else { return false };
    set.len() > SCANNED_RECORDS_LIMIT
        && has_scan(query, &one.name, |words, access, tests| is_indexed(words, access, tests, set))
}

/// Whether a query reads all records of a collection: no equality that an index `serves` finds those that it meets.
fn has_scan(query: &Query, name: &str, serves: impl Fn(&[u32], u32, &[NameTest]) -> bool) -> bool {
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
    let of_data = twigs.collections().iter().filter(|(known, _)| *known == name);
    let mut accesses = of_data.map(|(_, accesses)| accesses);
    accesses.any(|accesses| !accesses.iter().any(|&access| serves(twigs.words(), access, &tests)))
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

fn too_large(one: &DataUse, records: u64) -> QueryError {
    let reason = format!(
        "the query reads all {records} records of `{0}`, more than the {SCANNED_RECORDS_LIMIT} allowed; compare a value of them by `=`: `collection('{0}')/row[key = $v/key]`",
        one.name
    );
    let exceeded = Exceeded { value: records, limit: SCANNED_RECORDS_LIMIT as u64 };
    QueryError { exceeded: Some(exceeded), ..one.refused("scan-limit", reason) }
}
