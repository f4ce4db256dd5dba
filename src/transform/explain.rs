//! Which operators a transformation runs on a message, for people.

use rustc_hash::FxHashMap;

use crate::query::ast::{Axis, Name, NameTest, Operator};
use crate::query::decompose::Reach;
use crate::query::element_path::ElementStep;
use crate::segment::format::ANY;
use crate::segment::format::columns::View;
use crate::transform::plan::{Bindings, Condition, Constant, Group, Network, OperatorId, Plan, Subject};
use crate::transform::run::{Evaluator, Results, Selected};

pub struct OperatorReport {
    /// stream, join, selection, condition, bindings or group.
    pub kind: &'static str,
    pub text: String,
    /// How many transformations of the index use it.
    pub shared: u32,
    /// How much it gave for this message.
    pub results: usize,
    /// How it runs, and what a claim spared it.
    pub note: String,
}

/// `streams`: how many elements each has.
pub fn report(
    view: View<'_>,
    plan: &Plan,
    run: &Evaluator<'_>,
    streams: &FxHashMap<u32, usize>,
) -> Vec<OperatorReport> {
    let (network, results, taken) = (run.network, &*run.results, &*run.taken);
    let told = OperatorDescriber { network, view, plan, taken, streams };
    let operators = plan.operators.iter();
    operators
        .map(|&operator| {
            let (kind, text, results, note) = told.operator(operator, results);
            OperatorReport { kind, text, shared: network.uses(operator), results, note }
        })
        .collect()
}

/// Operators in words.
struct OperatorDescriber<'a> {
    network: &'a Network,
    view: View<'a>,
    plan: &'a Plan,
    taken: &'a Selected,
    streams: &'a FxHashMap<u32, usize>,
}

impl OperatorDescriber<'_> {
    fn operator(&self, operator: OperatorId, results: &Results) -> (&'static str, String, usize, String) {
        match operator {
            OperatorId::Stream(id) => {
                let note = "matched by the shared automaton".to_string();
                ("stream", self.stream(id), self.streams.get(&id).copied().unwrap_or(0), note)
            }
            OperatorId::Join(id) => {
                let plan = &self.network.join_plans[id as usize];
                let distinct = plan.distinct.map(|claim| format!("no duplicates ({claim})"));
                let distinct = distinct.unwrap_or_else(|| "duplicates eliminated".to_string());
                let note = match plan.ordered {
                    _ if plan.rest == 0 => "each with itself".to_string(),
                    Some(claim) => format!("merged ({claim}), {distinct}"),
                    None => format!("sorted, {distinct}"),
                };
                ("join", self.join(id), results.joins.at(id).len(), note)
            }
            OperatorId::Selection(id) => {
                let selection = self.network.selections.at(id);
                let kind = if selection.numeric { "number" } else { "text" };
                let text =
                    format!("{} compared as {kind}", self.taken(selection.join, Some(selection.subject)));
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
                ("bindings", text, block.map_or(0, |block| self.taken.block(block).len()), note)
            }
            OperatorId::Group(id) => match *self.network.groups.at(id) {
                Group::Joined { join, leaf } => {
                    let plan = &self.network.join_plans[join as usize];
                    let note = match plan.distinct {
                        _ if plan.depth.is_some() || plan.reach != Reach::Unclear => {
                            "merged by depth".to_string()
                        }
                        Some(claim) => format!("merged, no duplicates ({claim})"),
                        None => "merged, duplicates eliminated".to_string(),
                    };
                    ("group", self.taken(join, leaf), self.taken_by(id), note)
                }
                Group::Twig { .. } => {
                    let nodes = self.taken_by(id);
                    ("group", "a return path".to_string(), nodes, "searched for".to_string())
                }
            },
        }
    }

    fn condition(&self, id: u32) -> (String, &'static str) {
        match self.network.conditions.at(id) {
            Condition::Exists { join, leaf } => (self.taken(*join, *leaf), "semijoin"),
            Condition::Compare { selection, operator, constant } => {
                let selection = self.network.selections.at(*selection);
                let taken = self.taken(selection.join, Some(selection.subject));
                let constant = match constant {
                    Constant::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
                    Constant::Number(bits) => f64::from_bits(*bits).to_string(),
                };
                (format!("{taken} {} {constant}", Operator::symbol(*operator)), "semijoin")
            }
            Condition::Found { compared, .. } => (self.condition(*compared).0, "found by matching, semijoin"),
            Condition::Twig { stream, .. } => (self.stream(*stream), "searched for"),
        }
    }

    /// How many nodes a group gave.
    fn taken_by(&self, group: u32) -> usize {
        let mut nodes = 0;
        for (at, block) in self.plan.blocks.iter().enumerate() {
            for path in (0..block.groups.len()).filter(|&path| block.groups[path] == group) {
                let bound = 0..self.taken.block(at).len();
                nodes += bound.map(|binding| self.taken.list(at, path, binding).len()).sum::<usize>();
            }
        }
        nodes
    }

    fn stream(&self, id: u32) -> String {
        line(&self.network.streams.at(id).line)
    }

    fn join(&self, id: u32) -> String {
        let (bound, rest) = self.parts(id);
        format!("{bound} with {}", if rest.is_empty() { "itself" } else { &rest })
    }

    fn taken(&self, join: u32, leaf: Option<Subject>) -> String {
        let (bound, rest) = self.parts(join);
        let leaf = match leaf {
            None | Some(Subject::Value) => String::new(),
            Some(Subject::Text) => "/text()".to_string(),
            Some(Subject::Attribute(label)) => format!("/@{}", self.label(label)),
        };
        format!("{bound}{rest}{leaf} by {bound}")
    }

    /// The line of what is bound, and of what follows it.
    fn parts(&self, join: u32) -> (String, String) {
        let join = self.network.joins.at(join);
        let bound = &self.network.streams.at(join.binding).line;
        let end = &self.network.streams.at(join.end).line;
        (line(bound), line(&end[bound.len()..]))
    }

    fn label(&self, label: u32) -> String {
        if label == ANY {
            return "*".to_string();
        }
        let ends = self.view.label_ends;
        let (Some(&start), Some(&end)) = (ends.get(label as usize - 1), ends.get(label as usize)) else {
            return "?".to_string();
        };
        let bytes = &self.view.label_bytes[start as usize + 1..end as usize];
        let mut parts = bytes.splitn(2, |&byte| byte == 0);
        let (uri, local) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (uri, local) = (String::from_utf8_lossy(uri), String::from_utf8_lossy(local));
        if uri.is_empty() { local.into_owned() } else { format!("Q{{{uri}}}{local}") }
    }
}

fn line(steps: &[ElementStep]) -> String {
    let step = |step: &ElementStep| {
        let axis = if step.axis == Axis::Child { "/" } else { "//" };
        match &step.test {
            NameTest::Any => format!("{axis}*"),
            NameTest::AnyIn(uri) => format!("{axis}Q{{{uri}}}*"),
            NameTest::Name(Name { uri, local }) if uri.is_empty() => format!("{axis}{local}"),
            NameTest::Name(Name { uri, local }) => format!("{axis}Q{{{uri}}}{local}"),
        }
    };
    steps.iter().map(step).collect()
}
