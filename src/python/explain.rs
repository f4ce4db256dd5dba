//! Explanations, as plain tuples for `tamis.explanation`.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::engine::explain::{Explanation, LineReport, Place};

/// Node number, and the bytes it stands at.
type GivenPlace = (u32, u32, u32);
type GivenLine = (String, bool, usize, Option<(String, Option<GivenPlace>)>);

pub fn plain(py: Python<'_>, explanation: Explanation) -> PyResult<Bound<'_, PyTuple>> {
    let nodes: Vec<GivenPlace> = explanation.nodes.iter().map(place).collect();
    let lines: Vec<GivenLine> = explanation.lines.into_iter().map(line).collect();
    let alternatives: Vec<_> = explanation
        .alternatives
        .into_iter()
        .map(|one| {
            let (indexed, filed) = (one.filed.is_some(), one.filed.flatten());
            (one.positive, one.negative, indexed, filed, one.candidate, one.survives, one.verified)
        })
        .collect();
    let operators: Vec<_> = explanation
        .operators
        .into_iter()
        .map(|one| (one.kind, one.text, one.shared, one.results, one.note))
        .collect();
    let (canonical, matches, reason) = (explanation.canonical, explanation.matches, explanation.reason);
    (canonical, matches, reason, nodes, lines, alternatives, operators).into_pyobject(py)
}

fn line(report: LineReport) -> GivenLine {
    let failure = report.failure.map(|failure| (failure.part, failure.at.as_ref().map(place)));
    (report.text, report.holds, report.nodes, failure)
}

fn place(place: &Place) -> GivenPlace {
    (place.node.0, place.span.start, place.span.end)
}
