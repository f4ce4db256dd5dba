//! An explanation → tuples for `tamis.Explanation`.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::engine::explain::{Explanation, LineReport, Place};
use crate::query::inexact::Inexact;

/// Node number, start and end in bytes.
type PlaceTuple = (u32, u32, u32);
type EvaluatedTuple = (String, String, Option<PlaceTuple>);
type LineTuple = (String, bool, usize, Option<(String, Option<PlaceTuple>)>);

pub fn to_tuple(py: Python<'_>, explanation: Explanation) -> PyResult<Bound<'_, PyTuple>> {
    let nodes: Vec<PlaceTuple> = explanation.nodes.iter().map(place).collect();
    let lines: Vec<LineTuple> = explanation.lines.into_iter().map(line).collect();
    let alternatives: Vec<_> = explanation
        .alternatives
        .into_iter()
        .map(|one| {
            let (indexed, filed) = (one.filed.is_some(), one.filed.flatten());
            let reason = one.inexact.map(Inexact::reason);
            (one.positive, one.negative, indexed, filed, one.candidate, one.survives, one.verified, reason)
        })
        .collect();
    let evaluated: Vec<EvaluatedTuple> = explanation
        .evaluated
        .into_iter()
        .map(|one| (one.text, one.value, one.at.as_ref().map(place)))
        .collect();
    let operators: Vec<_> = explanation
        .operators
        .into_iter()
        .map(|one| (one.kind, one.text, one.shared, one.results, one.note))
        .collect();
    let (canonical, matches, reason) = (explanation.canonical, explanation.matches, explanation.reason);
    let found = (nodes, lines, alternatives, evaluated, operators);
    (canonical, matches, reason, found, explanation.instead).into_pyobject(py)
}

fn line(report: LineReport) -> LineTuple {
    let failure = report.failure.map(|failure| (failure.part, failure.at.as_ref().map(place)));
    (report.text, report.holds, report.nodes, failure)
}

fn place(place: &Place) -> PlaceTuple {
    (place.node.0, place.span.start, place.span.end)
}
