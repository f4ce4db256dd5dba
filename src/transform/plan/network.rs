//! Plans transformations onto a network of operators that they share.
//!
//! ```text
//! stream ─┬─ join ── selection ── condition ─┐
//!         ├──────────────────────────────────┴─ bindings ─┬─ outer-join-select → output program
//!         └─ group ───────────────────────────────────────┘
//! ```
//!
//! Operators are interned by signature: what two transformations have in common runs once per message. They are
//! planned when the first transformation that needs them matches.
//!
//! Example: `for $b in /shop/book where $b/price < 10 return <cheap>{$b/title}</cheap>`, whose binding path is
//! `/shop/book[price < 10]`, becomes one block:
//!
//! | operator | signature | gives |
//! |---|---|---|
//! | stream 0 | `/shop/book` | elements at the end of this linear path |
//! | stream 1 | `/shop/book/price` | elements at the end of this linear path |
//! | join 0 | stream 0, stream 1 | pairs (book, price) |
//! | selection 0 | join 0, string-value as number | the prices, sorted |
//! | condition 0 | selection 0, `<`, 10 | books with a price below 10 |
//! | bindings 0 | stream 0, condition 0 at step 1 | the bound books |
//! | stream 2 | `/shop/book/title` | elements at the end of this linear path |
//! | group 0 | join 1 of streams 0 and 2 | the titles of each bound book |
//!
//! A second transformation with `where $b/price > 50` adds a condition and bindings, and shares the rest. `run/`
//! evaluates the network; the seed joins by hashing, this network by sorting, which also gives document order.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ids::{ConditionId, SubjectId, TrieNodeId};
use crate::matching::automaton::names::Names;
use crate::query::ast::{Axis, Expr, Literal, NameTest, Operator, Path, Predicate, Test};
use crate::query::element_path::{ElementPath, ElementStep, Leaf, skeleton, streamed};
use crate::query::linear_path::Reach;
use crate::query::transformation::{Block, Transformation};
use crate::segment::format::NONE;
use crate::segment::format::columns::View;

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
use crate::transform::plan::tuples::compile;

/// The most steps of a stream: `run/ancestors.rs` keeps a set of steps in one word. Longer paths become twigs.
const MAX_STREAM_STEPS: usize = 63;

/// Steps of a stream, for an estimate of its memory.
const TYPICAL_STEPS: usize = 4;

#[derive(Default)]
pub struct Network {
    /// If set, the plans are only for messages that conform to it.
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
    /// The program of each construction.
    pub programs: Vec<Program>,
    program_bytes: usize,
    pub twigs: Twigs,
    /// The operators of the transformation being planned.
    plan_operators: Vec<OperatorId>,
    /// How many transformations use an operator.
    use_counts: FxHashMap<OperatorId, u32>,
}

/// The segment and tenant whose transformations are planned.
#[derive(Clone, Copy)]
pub struct SegmentContext<'a> {
    pub view: View<'a>,
    pub names: &'a Names,
    /// The tenant's root in the trie.
    pub root: TrieNodeId,
}

impl SegmentContext<'_> {
    /// The trie node at the end of a linear path.
    fn node(self, path: &[ElementStep]) -> Option<TrieNodeId> {
        path.iter().try_fold(self.root, |node, step| {
            self.view.child(node, step.axis, self.names.label_of(&step.test))
        })
    }

    /// The condition of the index that a value at the end of a linear path equals a constant, if there is one.
    fn equality_condition(
        self,
        path: &[ElementStep],
        subject: Subject,
        constant: &Constant,
    ) -> Option<ConditionId> {
        let (node, view) = (self.node(path)?, self.view);
        let subject = match subject {
            Subject::Value => SubjectId::VALUE,
            Subject::Text => SubjectId::TEXT,
            Subject::Attribute(label) => SubjectId::attribute(label),
        };
        let entry = view.entries(node).find(|&entry| view.entry_subject[entry] == subject)?;
        let constant = match constant {
            Constant::Text(text) => view.text_constant(text),
            Constant::Number(bits) => view.number_constant(f64::from_bits(*bits)),
        };
        if constant == NONE {
            return None;
        }
        let condition = view.equal_condition(node, entry as u32, constant);
        condition.is_some().then_some(condition)
    }
}

impl Network {
    pub fn new(schema: Option<Arc<Schema>>) -> Network {
        Network { schema, ..Network::default() }
    }

    /// Memory of the network, about.
    pub fn bytes(&self) -> usize {
        let stream_plan = size_of::<StreamPlan>() + TYPICAL_STEPS * size_of::<(Axis, u32)>();
        self.streams.bytes()
            + self.stream_plans.len() * stream_plan
            + self.joins.bytes()
            + self.join_plans.len() * size_of::<JoinPlan>()
            + self.selections.bytes()
            + self.conditions.bytes()
            + self.bindings.bytes()
            + self.groups.bytes()
            + self.constructions.bytes()
            + self.program_bytes
            + size_of_val(self.twigs.words())
            + self.use_counts.len() * size_of::<(OperatorId, u32)>()
    }

    /// Plans a transformation; adds the operators that are new.
    pub fn plan(&mut self, context: SegmentContext<'_>, transformation: &Transformation) -> Plan {
        let transformation = match transformation {
            Transformation::Blocks(blocks) => blocks,
            Transformation::Tuples(content) => {
                let mut label = |test: &NameTest| context.names.label_of(test);
                return Plan::of_tuples(compile(content, &mut self.twigs, &mut label));
            }
        };
        let construction = self.constructions.intern(transformation.construction());
        if construction as usize == self.programs.len() {
            let program = Program::new(transformation);
            self.program_bytes += program.bytes();
            self.programs.push(program);
        }
        let blocks = transformation.blocks.iter().map(|block| self.plan_block(context, block)).collect();
        let mut operators = std::mem::take(&mut self.plan_operators);
        let mut seen = FxHashSet::default();
        operators.retain(|operator| seen.insert(*operator));
        operators.iter().for_each(|operator| *self.use_counts.entry(*operator).or_default() += 1);
        let index_condition = |operator: &OperatorId| match operator {
            OperatorId::Condition(id) => match self.conditions.at(*id) {
                Condition::Indexed { index_condition, .. } => Some(*index_condition),
                _ => None,
            },
            _ => None,
        };
        let index_conditions = operators.iter().filter_map(index_condition).collect();
        Plan { construction, blocks, operators, index_conditions, tuples: None }
    }

    /// How many transformations use an operator.
    pub fn use_count(&self, operator: OperatorId) -> u32 {
        self.use_counts.get(&operator).copied().unwrap_or(0)
    }

    fn plan_block(&mut self, context: SegmentContext<'_>, block: &Block) -> BlockPlan {
        let written = skeleton(&block.binding);
        let bound = self.rewritten(&written, PathStart::Document);
        let stream = self.stream(context, &written, bound.clone());
        let distinct = claims::distinct(&bound, self.schema.as_deref());
        let bindings = self.plan_bindings(context, &block.binding, stream);
        let groups = block
            .returns
            .iter()
            .map(|path| {
                let group = match (streamed(path), stream) {
                    (Some((rest, leaf)), Some(stream)) => self
                        .join(context, (&written, &bound, stream), &rest)
                        .map(|join| Group::Joined { join, leaf: subject(context, &leaf) }),
                    _ => None,
                };
                let group = group.unwrap_or_else(|| {
                    let expr = Expr::Path(path.clone(), Test::Exists);
                    Group::Twig { twig: self.compile_twig(context, &bound, &expr) }
                });
                let group = self.groups.intern(group);
                self.plan_operators.push(OperatorId::Group(group));
                group
            })
            .collect();
        BlockPlan { bindings, source: self.binding_source(bindings), groups, distinct }
    }

    fn binding_source(&self, bindings: u32) -> BindingSource {
        let Bindings::Joined { stream, conditions } = self.bindings.at(bindings) else {
            return BindingSource::Bindings(bindings);
        };
        let last = self.stream_plans[*stream as usize].steps.len() as u32 - 1;
        match conditions.as_slice() {
            [] => BindingSource::Stream(*stream),
            // A condition at the last step gives elements of the stream.
            [(step, condition)] if *step == last => BindingSource::Condition(*condition),
            _ => BindingSource::Bindings(bindings),
        }
    }

    /// A linear path as conforming messages can have it.
    fn rewritten(&self, path: &[ElementStep], start: PathStart) -> ElementPath {
        match &self.schema {
            Some(schema) => rewrite(path, start, schema),
            None => path.to_vec(),
        }
    }

    /// The stream of a linear path: `written` as in the query, `path` as rewritten for conforming messages. `None` if
    /// the automaton does not have it.
    fn stream(
        &mut self,
        context: SegmentContext<'_>,
        written: &[ElementStep],
        path: ElementPath,
    ) -> Option<u32> {
        if path.len() > MAX_STREAM_STEPS {
            return None;
        }
        let node = context.node(written)?;
        let stream = Stream { root: context.root, path };
        let id = self.streams.intern(stream);
        if id as usize == self.stream_plans.len() {
            let label = |step: &ElementStep| context.names.label_of(&step.test);
            let steps = self.streams.at(id).path.iter().map(|step| (step.axis, label(step))).collect();
            self.stream_plans.push(StreamPlan { node, steps });
        }
        self.plan_operators.push(OperatorId::Stream(id));
        Some(id)
    }

    /// The join of the stream of a bound element with the stream of a path from there. `None` if the path has no
    /// stream.
    fn join(
        &mut self,
        context: SegmentContext<'_>,
        (written, bound, stream): (&[ElementStep], &[ElementStep], u32),
        rest: &[ElementStep],
    ) -> Option<u32> {
        let start = match &self.schema {
            Some(schema) => PathStart::after(bound, schema),
            None => PathStart::Unknown,
        };
        let rest_path = self.rewritten(rest, start);
        let path = [bound, &rest_path].concat();
        let end = self.stream(context, &[written, rest].concat(), path)?;
        let id = self.joins.intern(Join { binding: stream, end });
        if id as usize == self.join_plans.len() {
            let schema = self.schema.as_deref();
            let ordered = claims::ordered(bound, schema);
            self.join_plans.push(JoinPlan {
                steps: rest_path.len(),
                reach: reach(&rest_path),
                bound_depth: (ordered == Some(Claim::Four)).then_some(bound.len() as u32),
                distinct: claims::distinct_pairs(bound, &rest_path, schema),
                ordered,
            });
        }
        Some(id)
    }

    fn plan_bindings(&mut self, context: SegmentContext<'_>, path: &Path, stream: Option<u32>) -> u32 {
        let is_position = |predicate: &Predicate| matches!(predicate, Predicate::Position(_));
        let has_positions = path.steps.iter().any(|step| step.predicates.iter().any(is_position));
        let bindings = match stream {
            Some(stream) if !has_positions => {
                let conditions = self.plan_conditions(context, path);
                conditions.map(|conditions| Bindings::Joined { stream, conditions })
            }
            _ => None,
        };
        let bindings = bindings.unwrap_or_else(|| {
            let expr = Expr::Path(path.clone(), Test::Exists);
            let mut label = |test: &NameTest| context.names.label_of(test);
            Bindings::Twig { twig: self.twigs.compile(&expr, &mut label) }
        });
        let bindings = self.bindings.intern(bindings);
        self.plan_operators.push(OperatorId::Bindings(bindings));
        bindings
    }

    /// The conditions at the steps of a binding path, as (step, condition); `None` if one of the steps has no stream.
    fn plan_conditions(&mut self, context: SegmentContext<'_>, path: &Path) -> Option<Vec<(u32, u32)>> {
        let written = skeleton(path);
        let mut conditions = Vec::new();
        for (at, step) in path.steps.iter().enumerate() {
            if step.predicates.is_empty() {
                continue;
            }
            let written = &written[..=at];
            let bound = self.rewritten(written, PathStart::Document);
            let stream = self.stream(context, written, bound.clone())?;
            for predicate in &step.predicates {
                let Predicate::Condition(expr) = predicate else { return None };
                let condition = match self.streamed_condition(context, (written, &bound, stream), expr) {
                    Some(condition) => condition,
                    None => Condition::Twig { stream, twig: self.compile_twig(context, &bound, expr) },
                };
                let condition = self.conditions.intern(condition);
                self.plan_operators.push(OperatorId::Condition(condition));
                // Rewriting goes from left to right: this step is the last of the rewritten prefix.
                conditions.push((bound.len() as u32 - 1, condition));
            }
        }
        conditions.sort_unstable();
        conditions.dedup();
        Some(conditions)
    }

    /// The condition of a predicate that streams can decide.
    fn streamed_condition(
        &mut self,
        context: SegmentContext<'_>,
        bound: (&[ElementStep], &[ElementStep], u32),
        expr: &Expr,
    ) -> Option<Condition> {
        let Expr::Path(path, test) = expr else { return None };
        let (rest, leaf) = streamed(path)?;
        let subject = subject(context, &leaf);
        match test {
            Test::Exists => {
                let join = self.join(context, bound, &rest)?;
                self.plan_operators.push(OperatorId::Join(join));
                Some(Condition::Exists { join, leaf: subject })
            }
            Test::Compare(operator, literal) => {
                let join = self.join(context, bound, &rest)?;
                let text = matches!(operator, Operator::Equal | Operator::NotEqual);
                let (numeric, constant) = match literal {
                    Literal::Text(value) if text => (false, Constant::Text(value.as_bytes().into())),
                    _ => (true, Constant::Number(literal.number().to_bits())),
                };
                let subject = subject.unwrap_or(Subject::Value);
                let selection = self.selections.intern(Selection { join, subject, numeric });
                let full_path = [bound.0, &rest].concat();
                let index_condition = match operator {
                    Operator::Equal => context.equality_condition(&full_path, subject, &constant),
                    _ => None,
                };
                let compare = Condition::Compare { selection, operator: *operator, constant };
                Some(match index_condition {
                    Some(index_condition) => {
                        let fallback = self.conditions.intern(compare);
                        Condition::Indexed { index_condition, join, fallback }
                    }
                    None => {
                        self.plan_operators
                            .extend([OperatorId::Join(join), OperatorId::Selection(selection)]);
                        compare
                    }
                })
            }
            Test::Normalized(_) | Test::Contains(_) | Test::StartsWith(_) => None,
        }
    }

    /// The twig of an expression that is evaluated at the elements of a linear path.
    fn compile_twig(
        &mut self,
        context: SegmentContext<'_>,
        bound: &[ElementStep],
        expr: &Expr,
    ) -> TwigVariants {
        let mut label = |test: &NameTest| context.names.label_of(test);
        let plain = self.twigs.compile(expr, &mut label);
        let memoized = match bound.iter().any(|step| step.axis == Axis::Descendant) {
            true => self.twigs.compile_nested(expr, &mut label),
            false => plain,
        };
        TwigVariants { plain, memoized }
    }
}

/// How far below its start a linear path leads.
fn reach(path: &[ElementStep]) -> Reach {
    let is_descendant = |step: &ElementStep| step.axis == Axis::Descendant;
    match path.split_first() {
        Some((_, others)) if others.iter().any(is_descendant) => Reach::Unclear,
        Some((first, _)) if is_descendant(first) => Reach::AtLeast(path.len() as u32),
        _ => Reach::Exactly(path.len() as u32),
    }
}

fn subject(context: SegmentContext<'_>, leaf: &Leaf) -> Option<Subject> {
    match leaf {
        Leaf::Element => None,
        Leaf::Text => Some(Subject::Text),
        Leaf::Attribute(test) => Some(Subject::Attribute(context.names.label_of(test))),
    }
}
