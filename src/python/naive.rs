//! The slow evaluator, for tests to compare with.

use pyo3::prelude::*;

use super::error::{raise_query, raise_read};
use super::messages::Messages;
use crate::document::{Document, Limits, Reader};
use crate::query::{self, Namespaces};

pub fn match_batch(
    py: Python<'_>,
    queries: &[String],
    messages: &Messages,
    namespaces: &Namespaces,
    limits: &Limits,
) -> PyResult<Vec<Vec<usize>>> {
    let parsed = queries.iter().map(|text| query::parse(text, namespaces));
    let queries = parsed.collect::<Result<Vec<_>, _>>().map_err(|error| raise_query(py, &error))?;
    let answers = py.detach(|| {
        let (mut reader, mut document) = (Reader::new(), Document::default());
        messages
            .iter()
            .map(|message| {
                reader.read(message?, limits, &mut document)?;
                let holds = |query| crate::naive::matches(query, &document, reader.vocabulary());
                Ok((0..queries.len()).filter(|&place| holds(&queries[place])).collect())
            })
            .collect::<Result<Vec<Vec<usize>>, _>>()
    });
    answers.map_err(|error| raise_read(py, &error))
}
