//! What is necessary for a value to have a node: each node on the way of its steps must exist.
//!
//! ```text
//! //b/../c                     //*[b]/c or /c
//! //b/ancestor::a/@x           //a[.//b]/@x
//! /r/b/following-sibling::c    /r[b]/c
//! //b/following::c             //b and //c
//! ```
//!
//! Steps to children extend the paths that the nodes lie on, steps to parents and siblings go back on them, other steps
//! start a new path, `//name`. What would make the result large is left out.

use super::of_value;
use crate::query::ast::{Axis, Expr, NameTest, Node, Path, Predicate, Start, Step, Test};
use crate::query::necessary::weakened_path;
use crate::query::own_name::both;
use crate::query::value::{Function, Kind, NodeTest, SetOperation, Value, Walk, WalkAxis, WalkStep};

/// More alternatives of paths than this are not written out.
const JOINED_PATHS: usize = 32;
/// Predicates are repeated in other paths as long as all of them have at most so many name tests.
const REPEATED_NAME_TESTS: usize = 64;

/// What is necessary for a value to have a node.
pub(super) fn exists(value: &Value) -> Expr {
    Way::to(value).passes(&Test::Exists)
}

/// What the steps so far say of the message.
#[derive(Clone, Default)]
pub(super) struct Way {
    /// What is necessary for the steps before the last turn.
    conditions: Vec<Expr>,
    /// Each node reached is selected by one of these paths; `None` if nothing is known of it.
    paths: Option<Vec<Path>>,
    /// A `descendant-or-self::node()` is pending: the next step may go deeper.
    descends: bool,
    /// The nodes are, or may be, in local data: nothing more is known.
    is_outside: bool,
}

impl Way {
    /// The way to the nodes of a value.
    pub(super) fn to(value: &Value) -> Way {
        let mut way = Way::default();
        way.start(value);
        way
    }

    /// What is necessary for one of the nodes to pass a test.
    pub(super) fn passes(mut self, test: &Test) -> Expr {
        self.close(test);
        match self.conditions.len() {
            1 => self.conditions.remove(0),
            _ => Expr::And(self.conditions),
        }
    }

    /// What is necessary for one of the nodes to pass one of the tests.
    pub(super) fn passes_any(self, tests: &[Test]) -> Expr {
        let plain = self.clone().passes(&Test::Exists);
        let mut name_tests = 0;
        plain.for_each_name_test(&mut |_| name_tests += tests.len());
        match tests {
            [test] => self.passes(test),
            _ if name_tests > REPEATED_NAME_TESTS => plain,
            tests => Expr::Or(tests.iter().map(|test| self.clone().passes(test)).collect()),
        }
    }

    fn start(&mut self, value: &Value) {
        match value {
            Value::Nodes(path) => self.paths = Some(vec![weakened_path(path).0]),
            Value::Filter(start, _) => self.start(start),
            Value::Walk(walk) => self.walk(walk),
            Value::Each(start, each) => self.each(start, each),
            Value::Call(Function::Doc | Function::Collection, _) => self.is_outside = true,
            Value::Sets(operation, left, right) => {
                if *operation == SetOperation::Intersect {
                    self.conditions.push(exists(right));
                }
                self.start(left);
            }
            Value::If(parts) => {
                let [then, otherwise] = [&parts[1], &parts[2]].map(|part| self.branch(part));
                let then = Expr::And(vec![of_value(&parts[0]), then]);
                self.conditions.push(Expr::Or(vec![then, otherwise]));
            }
            Value::Union(values) => {
                let mut paths = Vec::new();
                for value in values {
                    let Value::Nodes(path) = value else {
                        let any = values.iter().map(|value| self.branch(value)).collect();
                        return self.conditions.push(Expr::Or(any));
                    };
                    paths.push(weakened_path(path).0);
                }
                self.paths = Some(paths);
            }
            // Of a variable, for example.
            _ => self.is_outside = true,
        }
    }

    /// What is necessary for one of several values to have a node. Its nodes are among those reached.
    fn branch(&mut self, value: &Value) -> Expr {
        if value.kind() != Kind::Nodes {
            self.is_outside = true;
            return of_value(value);
        }
        let way = Way::to(value);
        self.is_outside |= way.may_be_outside();
        way.passes(&Test::Exists)
    }

    /// `a/(b | c)` is `a/b | a/c`.
    fn each(&mut self, start: &Value, each: &Value) {
        self.start(start);
        if self.is_outside {
            return;
        }
        let mut rest = Way::default();
        rest.start(each);
        let may_be_outside = rest.may_be_outside();
        let is_simple = rest.conditions.is_empty() && !self.descends;
        match (&mut self.paths, rest.paths) {
            (Some(paths), Some(more))
                if is_simple
                    && paths.len() * more.len() <= JOINED_PATHS
                    && !paths.iter().any(Path::ends_in_leaf)
                    && more.iter().all(|path| path.start == Start::Context) =>
            {
                let joined = |path: &Path| {
                    let path = path.clone();
                    more.iter().map(move |rest| {
                        let mut joined = path.clone();
                        joined.steps.extend(rest.steps.iter().cloned());
                        joined
                    })
                };
                self.paths = Some(paths.iter().flat_map(joined).collect());
                self.descends = rest.descends;
            }
            _ => {
                self.lose();
                self.is_outside |= may_be_outside;
            }
        }
    }

    fn walk(&mut self, walk: &Walk) {
        self.start(&walk.start);
        walk.steps.iter().for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &WalkStep) {
        if self.is_outside {
            return;
        }
        match (&step.test, step.axis) {
            (NodeTest::Any, WalkAxis::DescendantOrSelf) if step.predicates.is_empty() => {
                return self.descends = true;
            }
            // The same nodes, or fewer of them.
            (_, WalkAxis::Itself) => return,
            (test, WalkAxis::Parent) => return self.parents(test, conditions(step)),
            _ => {}
        }
        let node = match (&step.test, step.axis) {
            (NodeTest::Name(test), WalkAxis::Attribute) => Node::Attribute(test.clone()),
            (NodeTest::Name(test), _) => Node::Element(test.clone()),
            (NodeTest::Text, axis) if axis != WalkAxis::Attribute => Node::Text,
            _ => return self.lose(),
        };
        let predicates = if let Node::Element(_) = node { conditions(step) } else { Vec::new() };
        let mut next = Step { axis: Axis::Child, node, predicates };
        match step.axis {
            WalkAxis::Child | WalkAxis::Attribute if !self.descends => {}
            WalkAxis::Child | WalkAxis::Attribute | WalkAxis::Descendant => next.axis = Axis::Descendant,
            WalkAxis::Ancestor => return self.ancestors(next),
            WalkAxis::FollowingSibling | WalkAxis::PrecedingSibling if !self.descends => {
                return self.siblings(next);
            }
            _ => {
                self.lose();
                next.axis = Axis::Descendant;
            }
        }
        self.descends = false;
        match &mut self.paths {
            Some(paths) if !paths.iter().any(Path::ends_in_leaf) => append(paths, &next),
            _ => self.restart(next),
        }
    }

    /// `a/b/..` is `a[b]`, `a//b/..` is `a[b]` or `a//*[b]`.
    fn parents(&mut self, test: &NodeTest, mut conditions: Vec<Predicate>) {
        let name = match test {
            NodeTest::Any => &NameTest::Any,
            NodeTest::Name(name) => name,
            _ => return self.lose(),
        };
        let paths = self.paths.as_deref().filter(|_| !self.descends);
        let parents: Option<Vec<(Path, Step)>> =
            paths.and_then(|paths| paths.iter().map(without_last).collect());
        let Some(parents) = parents.filter(|parents| 2 * parents.len() <= JOINED_PATHS) else {
            // Without a name it may be the document node.
            match name {
                NameTest::Any => self.lose(),
                name => self.restart(element(name.clone(), conditions)),
            }
            return;
        };
        if !repeats_little(&conditions, 2 * parents.len()) {
            conditions.clear();
        }
        let mut reached = Vec::new();
        for (mut path, last) in parents {
            let child = Step { axis: Axis::Child, ..last.clone() };
            let below = Predicate::Condition(Expr::Path(relative(child), Test::Exists));
            let predicates = [std::slice::from_ref(&below), &conditions].concat();
            if last.axis == Axis::Descendant {
                let mut deeper = path.clone();
                let step = element(name.clone(), predicates.clone());
                deeper.steps.push(Step { axis: Axis::Descendant, ..step });
                reached.push(deeper);
            }
            match path.steps.last_mut() {
                Some(Step { node: Node::Element(own), predicates: others, .. }) => {
                    let Some(narrowed) = both(own, name) else { continue };
                    *own = narrowed;
                    others.extend(predicates);
                }
                Some(_) => continue,
                // The document node has no name, no attributes and no text.
                None if path.start == Start::Document
                    && (*name != NameTest::Any || !matches!(last.node, Node::Element(_))) =>
                {
                    continue;
                }
                None => {}
            }
            reached.push(path);
        }
        if reached.iter().any(|path| path.steps.is_empty()) {
            self.close(&Test::Exists);
        }
        self.paths = Some(reached);
    }

    /// `//b/ancestor::a` is `//a[.//b]`.
    fn ancestors(&mut self, mut next: Step) {
        let below = match self.paths.as_deref() {
            Some([path]) if !self.descends => path.steps.last().map(|last| (path, last)),
            _ => None,
        };
        let below = below.map(|(path, last): (&Path, &Step)| {
            let light = light(last);
            let is_said =
                path.start == Start::Document && path.steps.len() == 1 && light.predicates == last.predicates;
            let below = relative(Step { axis: Axis::Descendant, ..light });
            (Predicate::Condition(Expr::Path(below, Test::Exists)), is_said)
        });
        match below {
            // The new path says as much as the one before.
            Some((_, true)) => self.paths = None,
            _ => self.lose(),
        }
        next.predicates.extend(below.map(|(below, _)| below));
        self.restart(next);
    }

    /// `a/b/following-sibling::c` is `a[b]/c`, `a//b/following-sibling::c` is `a//c`.
    fn siblings(&mut self, next: Step) {
        let siblings = self.paths.as_ref().and_then(|paths| {
            paths
                .iter()
                .map(|path| {
                    let (mut path, last) = without_last(path)?;
                    let axis = last.axis;
                    if let (Axis::Child, Some(parent)) = (axis, path.steps.last_mut()) {
                        parent
                            .predicates
                            .push(Predicate::Condition(Expr::Path(relative(last), Test::Exists)));
                    }
                    path.steps.push(Step { axis, ..next.clone() });
                    Some(path)
                })
                .collect::<Option<Vec<Path>>>()
        });
        match siblings {
            Some(siblings) if repeats_little(&next.predicates, siblings.len()) => {
                // The nodes of a path may be in the new one only if it is a single step.
                if self.paths.as_ref().is_some_and(|paths| paths.iter().any(loses_last)) {
                    self.close(&Test::Exists);
                }
                self.paths = Some(siblings);
            }
            _ => self.restart(next),
        }
    }

    /// Every node that matters satisfies a condition.
    pub(super) fn add_condition(&mut self, condition: Expr) {
        let predicates = [Predicate::Condition(condition)];
        let Some(paths) = self.paths.as_mut().filter(|paths| repeats_little(&predicates, paths.len())) else {
            return;
        };
        for last in paths.iter_mut().filter_map(|path| path.steps.last_mut()) {
            if !self.descends && matches!(last.node, Node::Element(_)) {
                last.predicates.extend_from_slice(&predicates);
            }
        }
    }

    /// The next nodes lie where no path leads: they are anywhere.
    fn restart(&mut self, next: Step) {
        self.lose();
        if !self.is_outside {
            self.paths = Some(vec![anywhere(next)]);
        }
    }

    /// Nothing is known of where the next nodes lie.
    fn lose(&mut self) {
        self.is_outside = self.may_be_outside();
        self.close(&Test::Exists);
        self.paths = None;
        self.descends = false;
    }

    /// From a variable the nodes may lie in local data.
    fn may_be_outside(&self) -> bool {
        let is_of_variable = |path: &Path| matches!(path.start, Start::Variable(_));
        self.is_outside || self.paths.as_ref().is_some_and(|paths| paths.iter().any(is_of_variable))
    }

    /// A node of the paths passes a test.
    fn close(&mut self, test: &Test) {
        // A step that may go deeper was the last.
        let test = if self.descends { &Test::Exists } else { test };
        let Some(paths) = &mut self.paths else { return };
        let all = paths.drain(..).map(|path| Expr::Path(path, test.clone()));
        self.conditions.push(Expr::Or(all.collect()));
    }
}

/// `//step`
fn anywhere(step: Step) -> Path {
    Path { start: Start::Document, steps: vec![Step { axis: Axis::Descendant, ..step }] }
}

fn relative(step: Step) -> Path {
    Path { start: Start::Context, steps: vec![step] }
}

fn element(name: NameTest, predicates: Vec<Predicate>) -> Step {
    Step { axis: Axis::Child, node: Node::Element(name), predicates }
}

/// Adds a step to paths.
fn append(paths: &mut [Path], next: &Step) {
    let mut next = next.clone();
    if !repeats_little(&next.predicates, paths.len()) {
        next.predicates.clear();
    }
    paths.iter_mut().for_each(|path| path.steps.push(next.clone()));
}

/// The path to the parent of what a path selects, or to where a `//` starts, and its last step.
fn without_last(path: &Path) -> Option<(Path, Step)> {
    let (last, before) = path.steps.split_last()?;
    Some((Path { start: path.start, steps: before.to_vec() }, light(last)))
}

/// Whether the last step of a path is nowhere in the path to its siblings.
fn loses_last(path: &Path) -> bool {
    path.steps.len() == 1 || path.steps.last().is_some_and(|last| last.axis == Axis::Descendant)
}

/// The step, without predicates that would be much to repeat.
fn light(step: &Step) -> Step {
    let mut step = step.clone();
    if !repeats_little(&step.predicates, 2) {
        step.predicates.clear();
    }
    // The step may start elsewhere, where its positions count others.
    step.predicates.retain(|predicate| matches!(predicate, Predicate::Condition(_)));
    step
}

fn repeats_little(predicates: &[Predicate], times: usize) -> bool {
    times == 1 || predicates.iter().map(name_tests).sum::<usize>() * times <= REPEATED_NAME_TESTS
}

fn name_tests(predicate: &Predicate) -> usize {
    let mut count = 1;
    if let Predicate::Condition(expr) = predicate {
        expr.for_each_name_test(&mut |_| count += 1);
    }
    count
}

/// What the predicates of a step say of its nodes, without those that count them.
fn conditions(step: &WalkStep) -> Vec<Predicate> {
    let conditions = step.predicates.iter().filter(|predicate| !predicate.selects_by_position());
    conditions.map(|predicate| Predicate::Condition(of_value(predicate))).collect()
}
