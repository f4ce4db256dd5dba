//! Reports the operators that a transformation runs on a message, with the number of results of each.

use rustc_hash::FxHashMap;

use crate::ids::LabelId;
use crate::query::ast::{Axis, Name, NameTest, Operator};
use crate::query::clause_text;
use crate::query::element_path::ElementStep;
use crate::query::envelope::is_root;
use crate::query::flwor::Content;
use crate::query::linear_path::Reach;
use crate::query::value::Clause;
use crate::segment::format::columns::View;
use crate::transform::output::NodeLists;
use crate::transform::plan::{
    Bindings, Condition, Constant, Group, Network, OperatorId, Plan, Subject, TuplePlan,
};
use crate::transform::run::tuples::TupleEvaluator;
use crate::transform::run::{Evaluator, Results, Selected};

pub struct OperatorReport {
    /// stream, join, selection, condition, bindings or group; of what is evaluated tuple by tuple for, let or where.
    pub kind: &'static str,
    pub text: String,
    /// How many transformations of the index share it.
    pub shared: u32,
    /// How many results it gave for this message.
    pub results: usize,
    /// How it ran, and which claims made it cheaper.
    pub note: String,
}

/// `stream_sizes`: the number of elements of each stream.
pub fn report(
    view: View<'_>,
    plan: &Plan,
    evaluator: &Evaluator<'_>,
    stream_sizes: &FxHashMap<u32, usize>,
) -> Vec<OperatorReport> {
    let (network, results, selected) = (evaluator.network, &*evaluator.results, &*evaluator.selected);
    let describer = OperatorDescriber { network, view, plan, selected, stream_sizes };
    plan.operators
        .iter()
        .map(|&operator| {
            let (kind, text, results, note) = describer.operator(operator, results);
            OperatorReport { kind, text, shared: network.use_count(operator), results, note }
        })
        .collect()
}

/// How many tuples each clause of a transformation lets pass, evaluated with the clauses before it.
pub fn report_clauses(
    content: &Content,
    plan: &TuplePlan,
    evaluator: &mut TupleEvaluator<'_, '_>,
) -> Vec<OperatorReport> {
    let mut reports = Vec::new();
    for (flwor, compiled) in content.outermost().into_iter().zip(plan.outermost()) {
        for (at, clause) in flwor.clauses.iter().enumerate() {
            // One that exceeds a limit ends the evaluation.
            let Ok(results) = evaluator.count(&compiled.clauses[..=at]) else { return reports };
            let kind = match clause {
                Clause::For(..) => "for",
                Clause::Let(..) => "let",
                Clause::Where(_) => "where",
            };
            let note = "evaluated tuple by tuple".to_string();
            reports.push(OperatorReport { kind, text: clause_text(clause), shared: 1, results, note });
        }
    }
    reports
}

struct OperatorDescriber<'a> {
    network: &'a Network,
    view: View<'a>,
    plan: &'a Plan,
    selected: &'a Selected,
    stream_sizes: &'a FxHashMap<u32, usize>,
}

impl OperatorDescriber<'_> {
    fn operator(&self, operator: OperatorId, results: &Results) -> (&'static str, String, usize, String) {
        match operator {
            OperatorId::Stream(id) => {
                let note = "matched by the shared automaton".to_string();
                ("stream", self.stream(id), self.stream_sizes.get(&id).copied().unwrap_or(0), note)
            }
            OperatorId::Join(id) => {
                let plan = &self.network.join_plans[id as usize];
                let distinct = plan.distinct.map(|claim| format!("no duplicates ({claim})"));
                let distinct = distinct.unwrap_or_else(|| "duplicates eliminated".to_string());
                let note = match plan.ordered {
                    _ if plan.steps == 0 => "each with itself".to_string(),
                    Some(claim) => format!("merged ({claim}), {distinct}"),
                    None => format!("sorted, {distinct}"),
                };
                ("join", self.join(id), results.joins.at(id).len(), note)
            }
            OperatorId::Selection(id) => {
                let selection = self.network.selections.at(id);
                let kind = if selection.numeric { "number" } else { "text" };
                let text =
                    format!("{} compared as {kind}", self.path(selection.join, Some(selection.subject)));
                let (texts, numbers) = results.selections.at(id);
                ("selection", text, texts.len() + numbers.len(), "values indexed once".to_string())
            }
            OperatorId::Condition(id) => {
                let (text, note) = self.condition(id);
                ("condition", text, results.conditions.at(id).len(), note.to_string())
            }
            OperatorId::Bindings(id) => {
                let block = self.plan.blocks.iter().position(|block| block.bindings == id);
                let (text, note) = match self.network.bindings.at(id) {
                    Bindings::Joined { stream, conditions } => {
                        let note = match block.and_then(|block| self.plan.blocks[block].distinct) {
                            Some(claim) => format!("no duplicates ({claim})"),
                            None => "duplicates eliminated".to_string(),
                        };
                        (format!("{} with {} conditions", self.stream(*stream), conditions.len()), note)
                    }
                    Bindings::Twig { .. } => ("the binding path".to_string(), "searched for".to_string()),
                };
                ("bindings", text, block.map_or(0, |block| self.selected.block(block).len()), note)
            }
            OperatorId::Group(id) => match *self.network.groups.at(id) {
                Group::Joined { join, leaf } => {
                    let plan = &self.network.join_plans[join as usize];
                    let note = match plan.distinct {
                        _ if plan.bound_depth.is_some() || plan.reach != Reach::Unclear => {
                            "merged by depth".to_string()
                        }
                        Some(claim) => format!("merged, no duplicates ({claim})"),
                        None => "merged, duplicates eliminated".to_string(),
                    };
                    ("group", self.path(join, leaf), self.selected_by(id), note)
                }
                Group::Twig { .. } => {
                    let nodes = self.selected_by(id);
                    ("group", "a return path".to_string(), nodes, "searched for".to_string())
                }
            },
        }
    }

    fn condition(&self, id: u32) -> (String, &'static str) {
        match self.network.conditions.at(id) {
            Condition::Exists { join, leaf } => (self.path(*join, *leaf), "semijoin"),
            Condition::Compare { selection, operator, constant } => {
                let selection = self.network.selections.at(*selection);
                let path = self.path(selection.join, Some(selection.subject));
                let constant = match constant {
                    Constant::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
                    Constant::Number(bits) => f64::from_bits(*bits).to_string(),
                };
                (format!("{path} {} {constant}", Operator::symbol(*operator)), "semijoin")
            }
            Condition::Indexed { fallback, .. } => {
                (self.condition(*fallback).0, "found by matching, semijoin")
            }
            Condition::Twig { stream, .. } => (self.stream(*stream), "searched for"),
        }
    }

    /// How many nodes a group selected.
    fn selected_by(&self, group: u32) -> usize {
        let mut nodes = 0;
        for (at, block) in self.plan.blocks.iter().enumerate() {
            for path in (0..block.groups.len()).filter(|&path| block.groups[path] == group) {
                let bound = 0..self.selected.block(at).len();
                nodes += bound.map(|binding| self.selected.list(at, path, binding).len()).sum::<usize>();
            }
        }
        nodes
    }

    fn stream(&self, id: u32) -> String {
        path_text(&self.network.streams.at(id).path)
    }

    fn join(&self, id: u32) -> String {
        let (bound, rest) = self.parts(id);
        format!("{bound} with {}", if rest.is_empty() { "itself" } else { &rest })
    }

    fn path(&self, join: u32, leaf: Option<Subject>) -> String {
        let (bound, rest) = self.parts(join);
        let leaf = match leaf {
            None | Some(Subject::Value) => String::new(),
            Some(Subject::Text) => "/text()".to_string(),
            Some(Subject::Attribute(label)) => format!("/@{}", self.label(label)),
        };
        format!("{bound}{rest}{leaf} by {bound}")
    }

    /// The path of the bound elements, and the path from there.
    fn parts(&self, join: u32) -> (String, String) {
        let join = self.network.joins.at(join);
        let bound = &self.network.streams.at(join.binding).path;
        let end = &self.network.streams.at(join.end).path;
        (path_text(bound), path_text(&end[bound.len()..]))
    }

    fn label(&self, label: LabelId) -> String {
        if label == LabelId::ANY {
            return "*".to_string();
        }
        let ends = self.view.label_ends;
        let (Some(&start), Some(&end)) = (ends.get(label.index() - 1), ends.get(label.index())) else {
            return "?".to_string();
        };
        let bytes = &self.view.label_bytes[start as usize + 1..end as usize];
        let mut parts = bytes.splitn(2, |&byte| byte == 0);
        let (uri, local) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (uri, local) = (String::from_utf8_lossy(uri), String::from_utf8_lossy(local));
        if uri.is_empty() { local.into_owned() } else { format!("Q{{{uri}}}{local}") }
    }
}

fn path_text(steps: &[ElementStep]) -> String {
    let step = |step: &ElementStep| {
        let axis = match step.axis {
            _ if is_root(&step.test) => "",
            Axis::Child => "/",
            Axis::Descendant => "//",
        };
        match &step.test {
            NameTest::Any => format!("{axis}*"),
            NameTest::AnyIn(uri) => format!("{axis}Q{{{uri}}}*"),
            NameTest::Name(Name { uri, local }) if uri.is_empty() => format!("{axis}{local}"),
            NameTest::Name(Name { uri, local }) => format!("{axis}Q{{{uri}}}{local}"),
            NameTest::Local(local) => format!("{axis}*:{local}"),
        }
    };
    steps.iter().map(step).collect()
}
