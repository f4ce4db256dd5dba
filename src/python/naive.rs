//! The naive evaluator (`crate::naive`): the oracle that tests compare with.

use std::sync::Arc;

use pyo3::prelude::*;

use super::error::{raise_query, raise_read};
use super::local_data::{Data, data_sets};
use super::messages::Messages;
use crate::data::Records;
use crate::document::{Document, Message, Reader};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::query::{self, Namespaces, Query};

pub fn match_batch(
    py: Python<'_>,
    queries: &[String],
    messages: &Messages,
    namespaces: &Namespaces,
    limits: &Limits,
    data: &[(String, Py<Data>)],
) -> PyResult<Vec<Vec<usize>>> {
    let (queries, data) = (parse_all(py, queries, namespaces)?, data_sets(data));
    let data = Arc::new(data);
    let answers = py.detach(|| {
        let records = Records::of(&data);
        let (mut reader, mut document) = (Reader::new(), Document::default());
        messages
            .iter()
            .map(|message| {
                read(&mut reader, &message?, limits, &mut document)?;
                let holds =
                    |query| crate::naive::matches_with_data(query, &document, reader.vocabulary(), &records);
                Ok((0..queries.len()).filter(|&place| holds(&queries[place])).collect())
            })
            .collect::<Result<Vec<Vec<usize>>, _>>()
    });
    answers.map_err(|error| raise_read(py, &error))
}

/// An output or the code of the error; neither if the query does not match.
pub type Transformed = (Option<Vec<u8>>, Option<&'static str>);

pub fn transform_batch(
    py: Python<'_>,
    queries: &[String],
    messages: &Messages,
    namespaces: &Namespaces,
    limits: &Limits,
    data: &[(String, Py<Data>)],
    output_limit: usize,
) -> PyResult<Vec<Vec<Transformed>>> {
    let (queries, data) = (parse_all(py, queries, namespaces)?, data_sets(data));
    let data = Arc::new(data);
    let outputs = py.detach(|| {
        let records = Records::of(&data);
        let (mut reader, mut document) = (Reader::new(), Document::default());
        messages
            .iter()
            .map(|message| {
                read(&mut reader, &message?, limits, &mut document)?;
                let transform = |query| match crate::naive::transform_with_data(
                    query,
                    &document,
                    reader.vocabulary(),
                    &records,
                    output_limit,
                ) {
                    Ok(output) => (output, None),
                    Err(error) => (None, Some(error.code)),
                };
                Ok(queries.iter().map(transform).collect())
            })
            .collect::<Result<Vec<Vec<Transformed>>, _>>()
    });
    outputs.map_err(|error| raise_read(py, &error))
}

fn read(
    reader: &mut Reader,
    message: &Message<'_>,
    limits: &Limits,
    document: &mut Document,
) -> Result<(), ReadError> {
    reader.read(message.bytes, limits, document)?;
    message.envelope.iter().for_each(|envelope| reader.add_envelope(envelope, document));
    Ok(())
}

fn parse_all(py: Python<'_>, queries: &[String], namespaces: &Namespaces) -> PyResult<Vec<Query>> {
    let parsed = queries.iter().map(|text| query::parse(text, namespaces));
    parsed.collect::<Result<Vec<_>, _>>().map_err(|error| raise_query(py, &error))
}
