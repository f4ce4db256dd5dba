//! Rewrites queries into a canonical form, so that many ways to write a query become one query with one id.
//!
//! ```text
//! //a[c and b]   //a[b][c]   //a[c][b][b]        →  //a[b][c]
//! not(x or y)    not(y) and not(x)               →  not(/x) and not(/y)
//! //a[@n < '5']  //a[5 > @n]                     →  //a[@n<5]
//! //a[@n > 'x']                                  →  false()
//! ```
//!
//! One walk from the leaves up. At each expression the passes run in the order of `PASSES`; each keeps
//! the meaning, may rely on canonical sub-expressions, and never makes a query deeper. The cost is that
//! of sorting operands and predicates.

use super::ast::{Axis, Expr, Literal, NameTest, Node, Operator, Path, Predicate, Query, Start, Step, Test};
use super::number::number;
use super::own_name::narrow;
use super::value::Value;

/// The surroundings of an expression that decide which rewrites keep its meaning.
#[derive(Clone, Copy)]
struct Context {
    /// Not inside a predicate. At the top level and not negated, callers can ask which nodes a path
    /// selects. Elsewhere a path may be replaced by one that is merely true for the same messages.
    top: bool,
    negated: bool,
    /// Whether the context node is an attribute or a text node.
    leaf: bool,
}

impl Context {
    fn selects(self) -> bool {
        self.top && !self.negated
    }
}

type Pass = fn(&mut Expr, Context);

const PASSES: [Pass; 11] = [
    compare_numbers,
    test_root_element,
    split_conjunctions,
    narrow_names,
    simplify_positions,
    sort_predicates,
    compare_own_value,
    join_single_predicate,
    fold_constants,
    push_not_inwards,
    sort_operands,
];

const TOP: Context = Context { top: true, negated: false, leaf: false };

pub(super) fn canonicalise(query: &mut Query) {
    if let Some(transformation) = &mut query.transformation {
        // Paths of `for` and `let`, and those that are copied; other expressions stay as they are written.
        transformation.map(canonical_path, |value| match value {
            Value::Nodes(path) => Value::Nodes(canonical_path(path.clone())),
            value => value.clone(),
        });
        query.expr = transformation.filter();
    }
    rewrite(&mut query.expr, TOP);
}

/// The canonical form of a path whose nodes are used: a test of their own value stays a predicate.
fn canonical_path(path: Path) -> Path {
    let Some(last) = path.steps.last() else { return path };
    let (start, node) = (path.start, last.node.clone());
    let mut expr = Expr::Path(path, Test::Exists);
    rewrite(&mut expr, TOP);
    match expr {
        Expr::Path(path, Test::Exists) => path,
        Expr::Path(mut path, test) => {
            let own = Expr::Path(Path::CONTEXT, test);
            if let Some(step) = path.steps.last_mut() {
                step.predicates.push(Predicate::Condition(own));
                sort_runs(&mut step.predicates);
            }
            path
        }
        _ => empty_path(start, node),
    }
}

/// The canonical path that selects nothing: `*[0]`, `@*[0]` or `text()[0]`.
fn empty_path(start: Start, node: Node) -> Path {
    let node = match node {
        Node::Element(_) => Node::Element(NameTest::Any),
        Node::Attribute(_) => Node::Attribute(NameTest::Any),
        Node::Text => Node::Text,
    };
    Path { start, steps: vec![Step { axis: Axis::Child, node, predicates: vec![Predicate::Position(None)] }] }
}

fn rewrite(expr: &mut Expr, context: Context) {
    match expr {
        Expr::Or(operands) | Expr::And(operands) => {
            operands.iter_mut().for_each(|operand| rewrite(operand, context));
        }
        Expr::Not(operand) => rewrite(operand, Context { negated: !context.negated, ..context }),
        Expr::Path(path, _) => {
            for step in &mut path.steps {
                let leaf = !matches!(step.node, Node::Element(_));
                for predicate in &mut step.predicates {
                    if let Predicate::Condition(condition) = predicate {
                        rewrite(condition, Context { top: false, negated: false, leaf });
                    }
                }
            }
        }
        // It stays as it is written: rewrites would have to keep which nodes a position counts.
        Expr::Computed(_) => {}
    }
    for pass in PASSES {
        pass(expr, context);
    }
}

const TRUE: Expr = Expr::TRUE;
const FALSE: Expr = Expr::FALSE;

fn is_true(expr: &Expr) -> bool {
    matches!(expr, Expr::And(operands) if operands.is_empty())
}

fn is_false(expr: &Expr) -> bool {
    matches!(expr, Expr::Or(operands) if operands.is_empty())
}

/// `a < '5'` → `a < 5`, `a = -0` → `a = 0`, `a < 'x'` → `false()`
fn compare_numbers(expr: &mut Expr, _: Context) {
    let Expr::Path(_, Test::Compare(operator, literal)) = expr else {
        return;
    };
    if let Literal::Text(text) = literal
        && !matches!(operator, Operator::Equal | Operator::NotEqual)
    {
        *literal = Literal::Number(number(text.as_bytes()));
    }
    match literal {
        Literal::Number(value) if value.is_nan() => *expr = FALSE,
        Literal::Number(value) if *value == 0.0 => *value = 0.0,
        _ => {}
    }
}

/// `/ = 'x'` → `/* = 'x'`: the document's string-value is that of its root element.
fn test_root_element(expr: &mut Expr, _: Context) {
    let Expr::Path(path, test) = expr else { return };
    if path.start == Start::Document && path.steps.is_empty() && *test != Test::Exists {
        let mut predicates = Vec::new();
        // `normalize-space()` of the elements of a path can only be written as a predicate.
        if let Test::Normalized(_) = test {
            let own = Expr::Path(Path::CONTEXT, std::mem::replace(test, Test::Exists));
            predicates.push(Predicate::Condition(own));
        }
        path.steps.push(Step { axis: Axis::Child, node: Node::Element(NameTest::Any), predicates });
    }
}

/// `a[b and c]` → `a[b][c]`, `a[true()]` → `a`
fn split_conjunctions(expr: &mut Expr, _: Context) {
    for step in predicated_steps(expr) {
        if !step.predicates.iter().any(|predicate| matches!(predicate, Predicate::Condition(Expr::And(_)))) {
            continue;
        }
        let mut split = Vec::with_capacity(step.predicates.len() + 1);
        for predicate in step.predicates.drain(..) {
            match predicate {
                Predicate::Condition(Expr::And(operands)) => {
                    split.extend(operands.into_iter().map(Predicate::Condition));
                }
                other => split.push(other),
            }
        }
        step.predicates = split;
    }
}

/// `*[self::a]` → `a`, where an inner rewrite left nothing but a condition on the name: `*[false() or self::a]`.
fn narrow_names(expr: &mut Expr, _: Context) {
    for step in predicated_steps(expr) {
        let of_elements = matches!(step.node, Node::Element(_));
        let (Node::Element(test) | Node::Attribute(test)) = &mut step.node else { continue };
        let mut counted = false;
        step.predicates.retain_mut(|predicate| match predicate {
            Predicate::Condition(condition) if !counted => {
                *condition = narrow(test, of_elements, std::mem::replace(condition, TRUE));
                *condition != TRUE
            }
            Predicate::Condition(_) => true,
            Predicate::Position(_) => {
                counted = true;
                true
            }
        });
    }
}

/// `a[2][1]` → `a[2]`, `@a[1]` → `@a`, `/a[1]` → `/a`; `a[2][2]` → `a[0]`, which selects nothing.
///
/// A step that selects at most one node from a parent has a first node and no second.
fn simplify_positions(expr: &mut Expr, _: Context) {
    let Expr::Path(path, _) = expr else { return };
    for (at, step) in path.steps.iter_mut().enumerate().filter(|(_, step)| !step.predicates.is_empty()) {
        let mut single = match step.node {
            Node::Attribute(NameTest::Name(_)) => true,
            Node::Element(_) => path.start == Start::Document && at == 0 && step.axis == Axis::Child,
            _ => false,
        };
        step.predicates.retain_mut(|predicate| match predicate {
            Predicate::Position(Some(1)) if single => false,
            Predicate::Position(position) => {
                if single {
                    *position = None;
                }
                single = true;
                true
            }
            Predicate::Condition(_) => true,
        });
    }
}

/// `a[c][b][b]` → `a[b][c]`, but not across a position: `a[c][1][b]` stays.
fn sort_predicates(expr: &mut Expr, _: Context) {
    for step in predicated_steps(expr) {
        sort_runs(&mut step.predicates);
    }
}

fn sort_runs(predicates: &mut Vec<Predicate>) {
    for run in predicates.split_mut(|predicate| matches!(predicate, Predicate::Position(_))) {
        run.sort_unstable();
    }
    predicates.dedup_by(|a, b| matches!(a, Predicate::Condition(_)) && a == b);
}

/// `a[. = 'x']` → `a = 'x'`; if there is more than one such comparison, all become predicates:
/// `a[. > 1] < 5` → `a[. < 5][. > 1]`
fn compare_own_value(expr: &mut Expr, _: Context) {
    let Expr::Path(path, test) = expr else { return };
    let Some(step) = path.steps.last_mut() else { return };
    let own = final_run(&step.predicates).iter().filter(|predicate| compares_own_value(predicate)).count();
    if own == 0 {
        return;
    }
    if let Test::Compare(..) = test {
        let own = Expr::Path(Path::CONTEXT, std::mem::replace(test, Test::Exists));
        step.predicates.push(Predicate::Condition(own));
        sort_runs(&mut step.predicates);
    }
    let run = step.predicates.len() - final_run(&step.predicates).len();
    let mut own = (run..step.predicates.len()).filter(|&at| compares_own_value(&step.predicates[at]));
    if let (Test::Exists, Some(at), None) = (&*test, own.next(), own.next())
        && let Predicate::Condition(Expr::Path(_, own)) = step.predicates.remove(at)
    {
        *test = own;
    }
}

fn compares_own_value(predicate: &Predicate) -> bool {
    matches!(
        predicate,
        Predicate::Condition(Expr::Path(Path { start: Start::Context, steps }, Test::Compare(..)))
            if steps.is_empty()
    )
}

/// The conditions after the last position.
fn final_run(predicates: &[Predicate]) -> &[Predicate] {
    let start = predicates.iter().rposition(|predicate| matches!(predicate, Predicate::Position(_)));
    &predicates[start.map_or(0, |at| at + 1)..]
}

/// `x[a[b = 1]]` → `x[a/b = 1]`, where only the truth of `a[b = 1]` matters.
fn join_single_predicate(expr: &mut Expr, context: Context) {
    let Expr::Path(path, test) = expr else { return };
    if context.selects() || *test != Test::Exists {
        return;
    }
    let Some(step) = path.steps.last_mut() else { return };
    let [Predicate::Condition(Expr::Path(inner, Test::Exists | Test::Compare(..)))] =
        final_run(&step.predicates)
    else {
        return;
    };
    if inner.start != Start::Context || inner.steps.is_empty() {
        return;
    }
    if let Some(Predicate::Condition(Expr::Path(inner, inner_test))) = step.predicates.pop() {
        path.steps.extend(inner.steps);
        *test = inner_test;
    }
}

/// `contains(a, '')` → `true()`, `a[.]` → `a[true()]`; `a[0]`, `a[false()]`, `/@a`, `@a[b]` → `false()`
fn fold_constants(expr: &mut Expr, context: Context) {
    let Expr::Path(path, test) = expr else { return };
    match test {
        Test::Contains(text) | Test::StartsWith(text) if text.is_empty() => return *expr = TRUE,
        // Not of a variable, which may be bound to no node.
        Test::Exists if path.steps.is_empty() && !matches!(path.start, Start::Variable(_)) => {
            return *expr = TRUE;
        }
        _ => {}
    }
    let Some(first) = path.steps.first() else { return };
    let starts_nowhere = match path.start {
        Start::Document => first.axis == Axis::Child && !matches!(first.node, Node::Element(_)),
        Start::Context => context.leaf,
        Start::Variable(_) | Start::Message => false,
    };
    let never = |predicate: &Predicate| match predicate {
        Predicate::Position(position) => position.is_none(),
        Predicate::Condition(condition) => is_false(condition),
    };
    // Every test fails on an empty node set: `contains` and `starts-with` of '' are folded above.
    if starts_nowhere || path.steps.iter().any(|step| step.predicates.iter().any(never)) {
        *expr = FALSE;
    }
}

/// `not(not(a))` → `a`, `not(a or b)` → `not(a) and not(b)`, `not(. = 'x')` → `. != 'x'`
fn push_not_inwards(expr: &mut Expr, _: Context) {
    if let Expr::Not(operand) = expr {
        *expr = negate(std::mem::replace(operand, TRUE));
    }
}

fn negate(expr: Expr) -> Expr {
    let all = |operands: Vec<Expr>| {
        let mut operands: Vec<Expr> = operands.into_iter().map(negate).collect();
        operands.sort_unstable();
        operands
    };
    match expr {
        Expr::Or(operands) => Expr::And(all(operands)),
        Expr::And(operands) => Expr::Or(all(operands)),
        Expr::Not(operand) => *operand,
        // Correct only for the context node, which is one node. (A set of nodes can be both `= 'x'` and
        // `!= 'x'`, and `not(. < 1)` is true for a value that is not a number.)
        Expr::Path(path, Test::Compare(operator @ (Operator::Equal | Operator::NotEqual), literal))
            if path.start == Start::Context && path.steps.is_empty() =>
        {
            let opposite = if operator == Operator::Equal { Operator::NotEqual } else { Operator::Equal };
            Expr::Path(path, Test::Compare(opposite, literal))
        }
        path => Expr::Not(Box::new(path)),
    }
}

/// `b or (a or b)` → `a or b`, `a and true()` → `a`, `a or true()` → `true()`
fn sort_operands(expr: &mut Expr, _: Context) {
    let conjunction = match expr {
        Expr::And(_) => true,
        Expr::Or(_) => false,
        _ => return,
    };
    let (Expr::And(operands) | Expr::Or(operands)) = expr else {
        return;
    };
    let mut flat = Vec::with_capacity(operands.len());
    for operand in std::mem::take(operands) {
        match operand {
            Expr::And(inner) if conjunction => flat.extend(inner),
            Expr::Or(inner) if !conjunction => flat.extend(inner),
            // `false()` in a conjunction, `true()` in a disjunction.
            other if is_true(&other) || is_false(&other) => return *expr = other,
            other => flat.push(other),
        }
    }
    flat.sort_unstable();
    flat.dedup();
    *expr = match (flat.len(), conjunction) {
        (1, _) => flat.remove(0),
        (_, true) => Expr::And(flat),
        (_, false) => Expr::Or(flat),
    };
}

fn predicated_steps(expr: &mut Expr) -> impl Iterator<Item = &mut Step> {
    let steps = match expr {
        Expr::Path(path, _) => path.steps.as_mut_slice(),
        _ => &mut [],
    };
    steps.iter_mut().filter(|step| !step.predicates.is_empty())
}
