//! Joins with local data, as the index sees them: a record that a message meets is a part of the message.
//!
//! ```text
//! //trade[@symbol = collection('c')/row[sector = 'x' and size > 3]/symbol]
//! ```
//!
//! is true of a message just if it is true that `$join/row[sector = 'x' and size > 3]/symbol`, where `$join` is an element beside the
//! message that has all records of `c` whose `/row/symbol` is the value of some `//trade/@symbol`. So the conditions on
//! records are linear paths, rows, anchors and ranges like others, and what the index costs is what it costs for messages that
//! carry the records. The name of `$join`, which neither messages nor queries can write, says what is joined: queries
//! with the same paths of the same data share it. Whoever matches adds the element (`matching/joiner.rs`).
//!
//! Where a query says more, such as `//trade[price > 5][@symbol = …]`, this is necessary, and verification decides.
//! Nothing is said of joins under `not()`.

use super::ast::{
    Axis, Expr, Name, NameTest, Node, Operator, Path, Predicate, Query, Start, Step, Test, Variable,
};
use super::join::{data_of, is_of_data};
use super::join_name::{Join, JoinStep};
use super::value::{Clause, Computed, NodeTest, Value, Walk, WalkAxis};

/// The condition of a query as the index decomposes it, with its records as parts of the message; `None` if it joins
/// none.
pub fn with_records(query: &Query) -> Option<Query> {
    // Most queries have no computed part, and are not copied.
    if !has_computed(&query.expr) {
        return None;
    }
    let mut pass = Pass { has_joins: false };
    let expr = pass.whole(&query.expr);
    pass.has_joins.then(|| Query::filter(expr))
}

/// The joins of a query that the index knows of.
pub fn joins_of(query: &Query) -> Vec<Join> {
    let mut found = Vec::new();
    if let Some(with_records) = with_records(query) {
        push_joins(&with_records.expr, &mut found);
    }
    found
}

/// Whether a condition has a part that can be a join.
fn has_computed(expr: &Expr) -> bool {
    let is_met = |predicate: &Predicate| matches!(predicate, Predicate::Condition(it) if has_computed(it));
    match expr {
        Expr::Path(path, _) => path.steps.iter().any(|step| step.predicates.iter().any(is_met)),
        Expr::And(operands) | Expr::Or(operands) => operands.iter().any(has_computed),
        Expr::Not(_) => false,
        Expr::Computed(_) => true,
    }
}

fn push_joins(expr: &Expr, found: &mut Vec<Join>) {
    match expr {
        Expr::Path(path, _) => {
            for step in &path.steps {
                if let Node::Element(NameTest::Name(name)) = &step.node {
                    found.extend(Join::of_name(&name.local));
                }
                for predicate in &step.predicates {
                    if let Predicate::Condition(condition) = predicate {
                        push_joins(condition, found);
                    }
                }
            }
        }
        Expr::Not(operand) => push_joins(operand, found),
        Expr::And(operands) | Expr::Or(operands) => {
            operands.iter().for_each(|operand| push_joins(operand, found));
        }
        Expr::Computed(computed) => push_joins(&computed.necessary, found),
    }
}

struct Pass {
    has_joins: bool,
}

/// A join of a comparison: the path to the records, whether it is all that the comparison says, and the nodes of the
/// message whose values are compared.
struct Joined {
    records: Path,
    is_exact: bool,
}

/// The paths of the nodes that variables of a tuple are bound to: in the message, or in records.
enum Bound<'v> {
    Message(Option<Vec<JoinStep>>),
    Records(&'v Walk),
}

impl Pass {
    /// A condition of the whole message.
    fn whole(&mut self, expr: &Expr) -> Expr {
        match expr {
            Expr::And(operands) => Expr::And(operands.iter().map(|operand| self.whole(operand)).collect()),
            Expr::Or(operands) => Expr::Or(operands.iter().map(|operand| self.whole(operand)).collect()),
            expr => match exactly(expr) {
                Some(records) => {
                    self.has_joins = true;
                    Expr::Path(records, Test::Exists)
                }
                None => self.within(expr, Some(Vec::new())),
            },
        }
    }

    /// A condition at the nodes of a path of the message; `None` if it is not known.
    fn within(&mut self, expr: &Expr, context: Option<Vec<JoinStep>>) -> Expr {
        match expr {
            Expr::And(all) => Expr::And(all.iter().map(|one| self.within(one, context.clone())).collect()),
            Expr::Or(any) => Expr::Or(any.iter().map(|one| self.within(one, context.clone())).collect()),
            Expr::Not(_) => expr.clone(),
            Expr::Path(path, test) => {
                let mut way = match path.start {
                    Start::Context => context,
                    Start::Document | Start::Message => Some(Vec::new()),
                    Start::Variable(_) => None,
                };
                let mut path = path.clone();
                for step in &mut path.steps {
                    if let Some(way) = &mut way {
                        way.push(plain(step));
                    }
                    for predicate in &mut step.predicates {
                        if let Predicate::Condition(condition) = predicate {
                            *condition = self.within(condition, way.clone());
                        }
                    }
                }
                Expr::Path(path, test.clone())
            }
            Expr::Computed(computed) => self.computed(computed, context),
        }
    }

    fn computed(&mut self, computed: &Computed, context: Option<Vec<JoinStep>>) -> Expr {
        let mut records = Vec::new();
        match &computed.value {
            Value::Some(clauses) => of_clauses(clauses, &mut records),
            value => records.extend(of_comparison(value, context).map(|joined| joined.records)),
        }
        if records.is_empty() {
            return Expr::Computed(Box::new(computed.clone()));
        }
        self.has_joins = true;
        let mut necessary = vec![computed.necessary.clone()];
        necessary.extend(records.into_iter().map(|records| Expr::Path(records, Test::Exists)));
        Expr::Computed(Box::new(Computed { necessary: Expr::And(necessary), ..computed.clone() }))
    }
}

/// A condition that says nothing but that the message joins some records.
fn exactly(expr: &Expr) -> Option<Path> {
    let (value, context) = match expr {
        Expr::Computed(computed) => (&computed.value, Vec::new()),
        Expr::Path(path, Test::Exists) if path.start == Start::Document => {
            let (last, above) = path.steps.split_last()?;
            let [Predicate::Condition(Expr::Computed(computed))] = last.predicates.as_slice() else {
                return None;
            };
            if above.iter().any(|step| !step.predicates.is_empty()) {
                return None;
            }
            (&computed.value, path.steps.iter().map(plain).collect())
        }
        _ => return None,
    };
    let joined = of_comparison(value, Some(context))?;
    joined.is_exact.then_some(joined.records)
}

/// The join of an equality at the nodes of a path of the message.
fn of_comparison(value: &Value, context: Option<Vec<JoinStep>>) -> Option<Joined> {
    let Value::Compare(Operator::Equal, left, right) = value else { return None };
    let (path, walk) = match (&**left, &**right) {
        (Value::Nodes(path), Value::Walk(walk)) | (Value::Walk(walk), Value::Nodes(path))
            if is_of_data(walk) =>
        {
            (path, walk)
        }
        _ => return None,
    };
    let above = match path.start {
        Start::Context => context?,
        Start::Document | Start::Message => Vec::new(),
        Start::Variable(_) => return None,
    };
    let message: Vec<JoinStep> = above.into_iter().chain(path.steps.iter().map(plain)).collect();
    let (steps, is_exact) = steps_of(walk)?;
    let key = steps.iter().map(plain).collect();
    let is_plain = path.steps.iter().all(|step| step.predicates.is_empty());
    Some(Joined { records: records(walk, key, message, steps)?, is_exact: is_exact && is_plain })
}

/// The path to the records of a join: all steps of the walk in them.
fn records(walk: &Walk, key: Vec<JoinStep>, message: Vec<JoinStep>, mut steps: Vec<Step>) -> Option<Path> {
    if message.is_empty() {
        return None;
    }
    let (data, _) = data_of(&walk.start)?;
    let local = Join { data: data.to_string(), key, message }.name();
    let node = Node::Element(NameTest::Name(Name { uri: String::new(), local }));
    steps.insert(0, Step { axis: Axis::Child, node, predicates: Vec::new() });
    Some(Path { start: Start::Document, steps })
}

/// The steps of a walk over records, with the predicates that can be said of a record as a part of the message; and
/// whether that is all that the walk says of one node of a record, its root.
fn steps_of(walk: &Walk) -> Option<(Vec<Step>, bool)> {
    let (mut steps, mut descends, mut is_exact) = (Vec::new(), false, true);
    for step in &walk.steps {
        let node = match (step.axis, &step.test) {
            (WalkAxis::DescendantOrSelf, NodeTest::Any) if step.predicates.is_empty() => {
                descends = true;
                continue;
            }
            (WalkAxis::Child | WalkAxis::Descendant, NodeTest::Name(test)) => Node::Element(test.clone()),
            (WalkAxis::Child | WalkAxis::Descendant, NodeTest::Text) => Node::Text,
            (WalkAxis::Attribute, NodeTest::Name(test)) => Node::Attribute(test.clone()),
            _ => return None,
        };
        let is_below = std::mem::take(&mut descends) || step.axis == WalkAxis::Descendant;
        let axis = if is_below { Axis::Descendant } else { Axis::Child };
        let mut predicates = Vec::new();
        for predicate in &step.predicates {
            let (usable, is_all) = usable_value(predicate);
            is_exact &= is_all && steps.is_empty() && !is_below;
            predicates.extend(usable.map(Predicate::Condition));
        }
        steps.push(Step { axis, node, predicates });
    }
    (!steps.is_empty() && !descends).then_some((steps, is_exact))
}

/// What of a predicate can be said of a record as a part of the message, and whether that is all of it.
fn usable_value(value: &Value) -> (Option<Expr>, bool) {
    match value {
        Value::Condition(expr) => usable(expr),
        _ => (None, false),
    }
}

fn usable(expr: &Expr) -> (Option<Expr>, bool) {
    match expr {
        Expr::And(operands) => {
            let parts: Vec<_> = operands.iter().map(usable).collect();
            let is_all = parts.iter().all(|(_, is_all)| *is_all);
            (Some(Expr::And(parts.into_iter().filter_map(|(usable, _)| usable).collect())), is_all)
        }
        expr => match is_of_record(expr) {
            true => (Some(expr.clone()), true),
            false => (None, false),
        },
    }
}

/// Whether a condition speaks of nothing but what is below its context node.
fn is_of_record(expr: &Expr) -> bool {
    match expr {
        Expr::Path(path, _) => {
            let is_plain = |predicate: &Predicate| match predicate {
                Predicate::Position(_) => true,
                Predicate::Condition(condition) => is_of_record(condition),
            };
            path.start == Start::Context && path.steps.iter().all(|step| step.predicates.iter().all(is_plain))
        }
        Expr::Not(operand) => is_of_record(operand),
        Expr::And(operands) | Expr::Or(operands) => operands.iter().all(is_of_record),
        Expr::Computed(_) => false,
    }
}

/// The joins of the clauses of a tuple: `$c in collection('c')/row[symbol = $t/@symbol]`, and conditions on both.
fn of_clauses(clauses: &[Clause], found: &mut Vec<Path>) {
    let mut bound: Vec<(Variable, Bound<'_>)> = Vec::new();
    for clause in clauses {
        match clause {
            Clause::For(variable, nodes) | Clause::Let(variable, nodes) => {
                let is_for = matches!(clause, Clause::For(..));
                bound.push((
                    *variable,
                    match nodes {
                        Value::Nodes(path) => Bound::Message(message_path(path, &bound)),
                        Value::Walk(walk) if is_for && is_of_data(walk) => {
                            found.extend(of_walk(walk, &bound));
                            Bound::Records(walk)
                        }
                        _ => Bound::Message(None),
                    },
                ));
            }
            Clause::Where(value) => of_where(value, &bound, found),
        }
    }
}

/// The path of the nodes of the message that a path selects, and maybe others.
fn message_path(path: &Path, bound: &[(Variable, Bound<'_>)]) -> Option<Vec<JoinStep>> {
    let mut steps = match path.start {
        Start::Document | Start::Message => Vec::new(),
        Start::Context => return None,
        Start::Variable(variable) => match bound.iter().rev().find(|(known, _)| *known == variable) {
            Some((_, Bound::Message(Some(steps)))) => steps.clone(),
            _ => return None,
        },
    };
    steps.extend(path.steps.iter().map(plain));
    (!steps.is_empty()).then_some(steps)
}

/// The join of a walk over records by an equality in a predicate.
fn of_walk(walk: &Walk, bound: &[(Variable, Bound<'_>)]) -> Option<Path> {
    let (steps, _) = steps_of(walk)?;
    let mut place = 0;
    for step in &walk.steps {
        if step.axis == WalkAxis::DescendantOrSelf {
            continue;
        }
        for predicate in &step.predicates {
            let mut equalities = Vec::new();
            equalities_of(predicate, &mut equalities);
            for (own, other) in equalities {
                if own.start == Start::Context
                    && let Some(message) = message_path(other, bound)
                {
                    let way = steps[..=place].iter().chain(&own.steps).map(plain).collect();
                    return records(walk, way, message, steps);
                }
            }
        }
        place += 1;
    }
    None
}

/// The joins of a condition on a record and the message.
fn of_where(value: &Value, bound: &[(Variable, Bound<'_>)], found: &mut Vec<Path>) {
    let mut equalities = Vec::new();
    equalities_of(value, &mut equalities);
    for (own, other) in equalities {
        let Start::Variable(variable) = own.start else { continue };
        let Some((_, Bound::Records(walk))) = bound.iter().rev().find(|(known, _)| *known == variable) else {
            continue;
        };
        if let Some((steps, _)) = steps_of(walk)
            && let Some(message) = message_path(other, bound)
        {
            let key = steps.iter().chain(&own.steps).map(plain).collect();
            found.extend(records(walk, key, message, steps));
        }
    }
}

/// The equalities of two paths that a value implies, each both ways.
fn equalities_of<'v>(value: &'v Value, found: &mut Vec<(&'v Path, &'v Path)>) {
    match value {
        Value::Condition(expr) => equalities_of_condition(expr, found),
        Value::Compare(Operator::Equal, left, right) => {
            if let (Value::Nodes(left), Value::Nodes(right)) = (&**left, &**right) {
                found.extend([(left, right), (right, left)]);
            }
        }
        _ => {}
    }
}

fn equalities_of_condition<'v>(expr: &'v Expr, found: &mut Vec<(&'v Path, &'v Path)>) {
    match expr {
        Expr::And(operands) => operands.iter().for_each(|operand| equalities_of_condition(operand, found)),
        Expr::Computed(computed) => equalities_of(&computed.value, found),
        _ => {}
    }
}

fn plain(step: &Step) -> JoinStep {
    JoinStep { descends: step.axis == Axis::Descendant, node: step.node.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Namespaces, parse};

    /// The joins that a query has to the index, and whether they are all that it says.
    fn joins(text: &str) -> Option<(Vec<Join>, bool)> {
        let query = parse(text, &Namespaces::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let with_records = with_records(&query)?;
        let mut first = None;
        if let Expr::Path(path, _) = &with_records.expr
            && let Node::Element(NameTest::Name(name)) = &path.steps[0].node
        {
            first = Join::of_name(&name.local);
        }
        Some((joins_of(&query), first.is_some()))
    }

    fn paths(Join { data, key, message }: &Join) -> String {
        let path = |steps: &[JoinStep]| {
            let step = |JoinStep { descends, node }: &JoinStep| {
                let name = match node {
                    Node::Element(NameTest::Name(name)) => name.local.clone(),
                    Node::Attribute(NameTest::Name(name)) => format!("@{}", name.local),
                    Node::Text => "text()".to_string(),
                    _ => "*".to_string(),
                };
                format!("{}{name}", if *descends { "//" } else { "/" })
            };
            steps.iter().map(step).collect::<String>()
        };
        format!("{data}{} = {}", path(key), path(message))
    }

    #[test]
    fn joins_are_paths_of_records_and_of_the_message() {
        let exact = "//trade[@symbol = collection('c')/row[sector = 'x' and size > 3]/symbol]";
        let cases = [
            (exact, "c/row/symbol = //trade/@symbol", true),
            ("/a/b[collection('c')//row/@k = n]", "c//row/@k = /a/b/n", true),
            ("//trade[x > 1][@symbol = collection('c')/row/symbol]", "c/row/symbol = //trade/@symbol", false),
            (
                "//trade[@symbol = collection('c')/row[count(n) > 1]/symbol]",
                "c/row/symbol = //trade/@symbol",
                false,
            ),
            (
                "//trade[@symbol = collection('c')/row/symbol[. = 'x']]",
                "c/row/symbol = //trade/@symbol",
                false,
            ),
            (
                "for $t in //trade, $c in collection('c')/row[symbol = $t/@symbol] return $c",
                "c/row/symbol = //trade/@symbol",
                false,
            ),
            (
                "for $t in //trade, $c in collection('c')/row where $c/symbol = $t/@symbol return $c",
                "c/row/symbol = //trade/@symbol",
                false,
            ),
        ];
        for (text, join, is_exact) in cases {
            let (found, all) = joins(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found.iter().map(paths).collect::<Vec<_>>(), [join], "{text}");
            assert_eq!(all, is_exact, "{text}");
        }
        for text in ["//trade[not(@symbol = collection('c')/row/symbol)]", "//trade[@symbol = 'x']"] {
            assert_eq!(joins(text), None, "{text}");
        }
    }
}
