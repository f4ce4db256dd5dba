//! Transformations planned onto a network of operators that they share.
//!
//! ```text
//! stream of a line ─┬─ join ── selection ── condition ─┐
//!   (automaton)     │   (or where matching found it)   ├─ bindings ─┐
//!                   ├──────────────────────────────────┘            ├─ outer-join-select → construct
//!                   └─ group ───────────────────────────────────────┘
//! ```
//!
//! Where the seed hashes, pairs are sorted here, which also brings them into order.
//!
//! An operator is told by its signature (`Interner`): what two transformations have in common is computed
//! once a message. Operators are made when the first transformation that needs them matches.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::matching::automaton::names::Names;
use crate::query::ast::{Axis, Expr, Literal, NameTest, Operator, Path, Predicate, Test};
use crate::query::decompose::Reach;
use crate::query::element_path::{ElementPath, ElementStep, Leaf, skeleton, streamed};
use crate::query::transformation::{Block, Transformation};
use crate::segment::format::NONE;
use crate::segment::format::columns::View;
use crate::segment::format::entries::{SUBJECT_TEXT, SUBJECT_VALUE};
use crate::segment::twig::Twigs;
use crate::transform::output::Program;
use crate::transform::plan::claims::{self, Claim};
use crate::transform::plan::interner::Interner;
use crate::transform::plan::operators::{
    BindingSource, Bindings, BlockPlan, Condition, Constant, Group, Join, JoinPlan, OperatorId, Plan,
    Selection, Stream, StreamPlan, Subject, TwigVariants,
};
use crate::transform::plan::rewrite::{PathStart, rewrite};
use crate::transform::plan::schema::Schema;

/// Longer lines are searched for: sets of steps are words.
const MOST_STEPS: usize = 63;

#[derive(Default)]
pub struct Network {
    /// Set if plans are for messages that conform to it.
    pub schema: Option<Arc<Schema>>,
    pub streams: Interner<Stream>,
    pub stream_plans: Vec<StreamPlan>,
    pub joins: Interner<Join>,
    pub join_plans: Vec<JoinPlan>,
    pub selections: Interner<Selection>,
    pub conditions: Interner<Condition>,
    pub bindings: Interner<Bindings>,
    pub groups: Interner<Group>,
    constructions: Interner<String>,
    /// By construction.
    pub programs: Vec<Program>,
    pub twigs: Twigs,
    /// The operators of the transformation being planned.
    planned: Vec<OperatorId>,
    /// How many transformations use an operator.
    uses: FxHashMap<OperatorId, u32>,
}

/// What a plan is made for: a tenant's transformation of one segment.
#[derive(Clone, Copy)]
pub struct SegmentContext<'a> {
    pub view: View<'a>,
    pub names: &'a Names,
    /// The tenant's root in the trie.
    pub root: u32,
}

impl SegmentContext<'_> {
    /// The trie node that a line leads to.
    fn node(self, line: &[ElementStep]) -> Option<u32> {
        line.iter().try_fold(self.root, |node, step| {
            self.view.child(node, step.axis, self.names.label_of(&step.test))
        })
    }

    /// The condition that a value at the end of a line equals a constant, if the index has it.
    fn condition(self, line: &[ElementStep], subject: Subject, constant: &Constant) -> Option<u32> {
        let (node, view) = (self.node(line)?, self.view);
        let subject = match subject {
            Subject::Value => SUBJECT_VALUE,
            Subject::Text => SUBJECT_TEXT,
            Subject::Attribute(label) => label,
        };
        let entry = view.entries(node).find(|&entry| view.entry_subject[entry] == subject)?;
        let constant = match constant {
            Constant::Text(text) => view.text_constant(text),
            Constant::Number(bits) => view.number_constant(f64::from_bits(*bits)),
        };
        let condition =
            if constant == NONE { NONE } else { view.equal_condition(node, entry as u32, constant) };
        (condition != NONE).then_some(condition)
    }
}

impl Network {
    pub fn new(schema: Option<Arc<Schema>>) -> Network {
        Network { schema, ..Network::default() }
    }

    /// How many operators there are of all kinds.
    pub fn size(&self) -> usize {
        self.streams.count()
            + self.joins.count()
            + self.selections.count()
            + self.conditions.count()
            + self.bindings.count()
            + self.groups.count()
    }

    /// Plans a transformation.
    pub fn plan(&mut self, ground: SegmentContext<'_>, transformation: &Transformation) -> Plan {
        let construction = self.constructions.get(transformation.construction());
        if construction as usize == self.programs.len() {
            self.programs.push(Program::new(transformation));
        }
        let blocks = transformation.blocks.iter().map(|block| self.block(ground, block)).collect();
        let mut operators = std::mem::take(&mut self.planned);
        let mut seen = FxHashSet::default();
        operators.retain(|operator| seen.insert(*operator));
        operators.iter().for_each(|operator| *self.uses.entry(*operator).or_default() += 1);
        let found = |operator: &OperatorId| match operator {
            OperatorId::Condition(id) => match self.conditions.at(*id) {
                Condition::Found { condition, .. } => Some(*condition),
                _ => None,
            },
            _ => None,
        };
        let found = operators.iter().filter_map(found).collect();
        Plan { construction, blocks, operators, found }
    }

    /// How many transformations use an operator.
    pub fn uses(&self, operator: OperatorId) -> u32 {
        self.uses.get(&operator).copied().unwrap_or(0)
    }

    fn block(&mut self, ground: SegmentContext<'_>, block: &Block) -> BlockPlan {
        let written = skeleton(&block.binding);
        let bound = self.line(&written, PathStart::Document);
        let stream = self.stream(ground, &written, bound.clone());
        let distinct = claims::distinct(&bound, self.schema.as_deref());
        let bindings = self.bind(ground, &block.binding, stream);
        let groups = block
            .returns
            .iter()
            .map(|path| {
                let group = match (streamed(path), stream) {
                    (Some((rest, leaf)), Some(stream)) => self
                        .join(ground, (&written, &bound, stream), &rest)
                        .map(|join| Group::Joined { join, leaf: subject(ground, &leaf) }),
                    _ => None,
                };
                let group = group.unwrap_or_else(|| {
                    let expr = Expr::Path(path.clone(), Test::Exists);
                    Group::Twig { twig: self.walk(ground, &bound, &expr) }
                });
                let group = self.groups.get(group);
                self.planned.push(OperatorId::Group(group));
                group
            })
            .collect();
        BlockPlan { bindings, bound: self.bound(bindings), groups, distinct }
    }

    fn bound(&self, bindings: u32) -> BindingSource {
        let Bindings::Joined { stream, conditions } = self.bindings.at(bindings) else {
            return BindingSource::Joined(bindings);
        };
        let last = self.stream_plans[*stream as usize].steps.len() as u32 - 1;
        match conditions.as_slice() {
            [] => BindingSource::Stream(*stream),
            // What passes a condition at the last step is in the stream.
            [(step, condition)] if *step == last => BindingSource::Condition(*condition),
            _ => BindingSource::Joined(bindings),
        }
    }

    /// A line as conforming messages may have it.
    fn line(&self, line: &[ElementStep], above: PathStart) -> ElementPath {
        match &self.schema {
            Some(schema) => rewrite(line, above, schema),
            None => line.to_vec(),
        }
    }

    /// The stream of a line that is written so in the query, or so for messages that conform. `None` if
    /// the automaton does not have it.
    fn stream(
        &mut self,
        ground: SegmentContext<'_>,
        written: &[ElementStep],
        line: ElementPath,
    ) -> Option<u32> {
        if line.len() > MOST_STEPS {
            return None;
        }
        let node = ground.node(written)?;
        let stream = Stream { root: ground.root, line };
        let id = self.streams.get(stream);
        if id as usize == self.stream_plans.len() {
            let label = |step: &ElementStep| ground.names.label_of(&step.test);
            let steps = self.streams.at(id).line.iter().map(|step| (step.axis, label(step))).collect();
            self.stream_plans.push(StreamPlan { node, steps });
        }
        self.planned.push(OperatorId::Stream(id));
        Some(id)
    }

    /// The join of a bound element's stream with that of a path from there. `None` if it cannot be streamed.
    fn join(
        &mut self,
        ground: SegmentContext<'_>,
        (written, bound, stream): (&[ElementStep], &[ElementStep], u32),
        rest: &[ElementStep],
    ) -> Option<u32> {
        let above = match &self.schema {
            Some(schema) => PathStart::after(bound, schema),
            None => PathStart::Unknown,
        };
        let rest_line = self.line(rest, above);
        let line = [bound, &rest_line].concat();
        let end = self.stream(ground, &[written, rest].concat(), line)?;
        let id = self.joins.get(Join { binding: stream, end });
        if id as usize == self.join_plans.len() {
            let schema = self.schema.as_deref();
            let ordered = claims::ordered(bound, schema);
            self.join_plans.push(JoinPlan {
                rest: rest_line.len(),
                reach: reach(&rest_line),
                depth: (ordered == Some(Claim::Four)).then_some(bound.len() as u32),
                distinct: claims::distinct_pairs(bound, &rest_line, schema),
                ordered,
            });
        }
        Some(id)
    }

    fn bind(&mut self, ground: SegmentContext<'_>, path: &Path, stream: Option<u32>) -> u32 {
        let positions = |predicate: &Predicate| matches!(predicate, Predicate::Position(_));
        let counted = path.steps.iter().any(|step| step.predicates.iter().any(positions));
        let bindings = match stream {
            Some(stream) if !counted => {
                let conditions = self.conditions(ground, path);
                conditions.map(|conditions| Bindings::Joined { stream, conditions })
            }
            _ => None,
        };
        let bindings = bindings.unwrap_or_else(|| {
            let expr = Expr::Path(path.clone(), Test::Exists);
            let mut label = |test: &NameTest| ground.names.label_of(test);
            Bindings::Twig { twig: self.twigs.compile(&expr, &mut label) }
        });
        let bindings = self.bindings.get(bindings);
        self.planned.push(OperatorId::Bindings(bindings));
        bindings
    }

    /// The conditions at the steps of a binding path; `None` if one of them cannot be a stream.
    fn conditions(&mut self, ground: SegmentContext<'_>, path: &Path) -> Option<Vec<(u32, u32)>> {
        let written = skeleton(path);
        let mut conditions = Vec::new();
        for (at, step) in path.steps.iter().enumerate() {
            if step.predicates.is_empty() {
                continue;
            }
            let written = &written[..=at];
            let bound = self.line(written, PathStart::Document);
            let stream = self.stream(ground, written, bound.clone())?;
            for predicate in &step.predicates {
                let Predicate::Condition(expr) = predicate else { return None };
                let condition = match self.compared(ground, (written, &bound, stream), expr) {
                    Some(condition) => condition,
                    None => Condition::Twig { stream, twig: self.walk(ground, &bound, expr) },
                };
                let condition = self.conditions.get(condition);
                self.planned.push(OperatorId::Condition(condition));
                // Rewriting goes from left to right: the step is the last of what its prefix became.
                conditions.push((bound.len() as u32 - 1, condition));
            }
        }
        conditions.sort_unstable();
        conditions.dedup();
        Some(conditions)
    }

    /// A predicate that streams can decide.
    fn compared(
        &mut self,
        ground: SegmentContext<'_>,
        bound: (&[ElementStep], &[ElementStep], u32),
        expr: &Expr,
    ) -> Option<Condition> {
        let Expr::Path(path, test) = expr else { return None };
        let (rest, leaf) = streamed(path)?;
        let subject = subject(ground, &leaf);
        match test {
            Test::Exists => {
                let join = self.join(ground, bound, &rest)?;
                self.planned.push(OperatorId::Join(join));
                Some(Condition::Exists { join, leaf: subject })
            }
            Test::Compare(operator, literal) => {
                let join = self.join(ground, bound, &rest)?;
                let text = matches!(operator, Operator::Equal | Operator::NotEqual);
                let (numeric, constant) = match literal {
                    Literal::Text(value) if text => (false, Constant::Text(value.as_bytes().into())),
                    _ => (true, Constant::Number(literal.number().to_bits())),
                };
                let subject = subject.unwrap_or(Subject::Value);
                let selection = self.selections.get(Selection { join, subject, numeric });
                let line = [bound.0, &rest].concat();
                let found = match operator {
                    Operator::Equal => ground.condition(&line, subject, &constant),
                    _ => None,
                };
                let compared = Condition::Compare { selection, operator: *operator, constant };
                Some(match found {
                    Some(condition) => {
                        let compared = self.conditions.get(compared);
                        Condition::Found { condition, join, compared }
                    }
                    None => {
                        self.planned.extend([OperatorId::Join(join), OperatorId::Selection(selection)]);
                        compared
                    }
                })
            }
            Test::Contains(_) | Test::StartsWith(_) => None,
        }
    }

    /// The twig of an expression that is asked of the elements at the end of a line.
    fn walk(&mut self, ground: SegmentContext<'_>, bound: &[ElementStep], expr: &Expr) -> TwigVariants {
        let mut label = |test: &NameTest| ground.names.label_of(test);
        let plain = self.twigs.compile(expr, &mut label);
        let remembering = match bound.iter().any(|step| step.axis == Axis::Descendant) {
            true => self.twigs.compile_nested(expr, &mut label),
            false => plain,
        };
        TwigVariants { plain, remembering }
    }
}

/// How far below its start a line leads.
fn reach(line: &[ElementStep]) -> Reach {
    let deep = |step: &ElementStep| step.axis == Axis::Descendant;
    match line.split_first() {
        Some((_, others)) if others.iter().any(deep) => Reach::Unclear,
        Some((first, _)) if deep(first) => Reach::AtLeast(line.len() as u32),
        _ => Reach::Exactly(line.len() as u32),
    }
}

fn subject(ground: SegmentContext<'_>, leaf: &Leaf) -> Option<Subject> {
    match leaf {
        Leaf::Element => None,
        Leaf::Text => Some(Subject::Text),
        Leaf::Attribute(test) => Some(Subject::Attribute(ground.names.label_of(test))),
    }
}
