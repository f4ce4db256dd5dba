//! The variables that an expression names (its free variables), and where its paths start.
//!
//! If outside of its predicates all paths of an expression start at one variable, the expression can be rewritten as a
//! predicate of the variable's nodes.
//!
//! ```text
//! $v/b = //c[@x = $v2/@x]    free: $v, $v2    nested: $v2
//! ```

use super::ast::{Expr, Path, Predicate, Start, Variable};
use super::value::{Clause, Computed, Function, Value};

/// A set of variables. The parser limits how many are in scope to fewer than there are bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VariableSet(u64);

impl VariableSet {
    pub fn has(self, Variable(level): Variable) -> bool {
        self.0 >> level & 1 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn with(self, Variable(level): Variable) -> VariableSet {
        VariableSet(self.0 | 1 << level)
    }

    pub fn without(self, Variable(level): Variable) -> VariableSet {
        VariableSet(self.0 & !(1 << level))
    }

    pub fn union(self, other: VariableSet) -> VariableSet {
        VariableSet(self.0 | other.0)
    }

    /// The variable with the highest level.
    pub fn last(self) -> Option<Variable> {
        self.0.checked_ilog2().map(Variable)
    }
}

/// What an expression depends on besides the message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Uses {
    /// The variables that are bound outside of it.
    pub free: VariableSet,
    /// The free variables that are named in predicates.
    pub nested: VariableSet,
    /// Whether a path outside of predicates starts at the context node, or `lang()` does.
    pub context: bool,
}

impl Uses {
    pub fn of(expr: &Expr) -> Uses {
        let mut uses = Uses::default();
        uses.expr(expr);
        uses
    }

    pub fn of_value(value: &Value) -> Uses {
        let mut uses = Uses::default();
        uses.value(value);
        uses
    }

    /// Whether predicates of a path name variables.
    pub fn are_in_steps(path: &Path) -> bool {
        let mut uses = Uses::default();
        uses.path(path);
        !uses.nested.is_empty()
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Path(path, _) => self.path(path),
            Expr::Not(operand) => self.expr(operand),
            Expr::And(operands) | Expr::Or(operands) => {
                operands.iter().for_each(|operand| self.expr(operand));
            }
            Expr::Computed(computed) => self.value(&computed.value),
        }
    }

    fn path(&mut self, path: &Path) {
        match path.start {
            Start::Context => self.context = true,
            Start::Document | Start::Message => {}
            Start::Variable(variable) => self.free = self.free.with(variable),
        }
        for predicate in path.steps.iter().flat_map(|step| &step.predicates) {
            if let Predicate::Condition(expr) = predicate {
                self.nest(Uses::of(expr));
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Literal(_) => {}
            Value::Condition(expr) => self.expr(expr),
            Value::Nodes(path) => self.path(path),
            Value::Call(function, arguments) => {
                self.context |= *function == Function::Lang;
                arguments.iter().for_each(|argument| self.value(argument));
            }
            Value::Union(values) | Value::Sequence(values) => {
                values.iter().for_each(|value| self.value(value));
            }
            Value::If(parts) => parts.iter().for_each(|part| self.value(part)),
            Value::Each(start, each) => {
                self.value(start);
                self.nest(Uses::of_value(each));
            }
            Value::Filter(start, predicates) => {
                self.value(start);
                predicates.iter().for_each(|predicate| self.nest(Uses::of_value(predicate)));
            }
            Value::Walk(walk) => {
                self.value(&walk.start);
                let predicates = walk.steps.iter().flat_map(|step| &step.predicates);
                predicates.for_each(|predicate| self.nest(Uses::of_value(predicate)));
            }
            Value::Negative(operand) | Value::Castable { operand, .. } => self.value(operand),
            Value::Arithmetic(_, left, right)
            | Value::Compare(_, left, right)
            | Value::Sets(_, left, right) => {
                self.value(left);
                self.value(right);
            }
            Value::Variable(variable, _) => self.free = self.free.with(*variable),
            Value::Some(clauses) => {
                let mut inner = Uses::default();
                clauses.iter().for_each(|clause| inner.value(clause.value()));
                for variable in clauses.iter().filter_map(Clause::variable) {
                    inner.free = inner.free.without(variable);
                    inner.nested = inner.nested.without(variable);
                }
                self.add(inner);
            }
        }
    }

    fn add(&mut self, other: Uses) {
        self.free = self.free.union(other.free);
        self.nested = self.nested.union(other.nested);
        self.context |= other.context;
    }

    /// Adds what a predicate depends on.
    fn nest(&mut self, predicate: Uses) {
        self.free = self.free.union(predicate.free);
        self.nested = self.nested.union(predicate.free);
    }
}

/// Whether an expression names variables anywhere, also those that it binds itself.
pub fn names_variables(expr: &Expr) -> bool {
    match expr {
        Expr::Path(path, _) => path_names_variables(path),
        Expr::Not(operand) => names_variables(operand),
        Expr::And(operands) | Expr::Or(operands) => operands.iter().any(names_variables),
        Expr::Computed(computed) => value_names_variables(&computed.value),
    }
}

fn path_names_variables(path: &Path) -> bool {
    let mut predicates = path.steps.iter().flat_map(|step| &step.predicates);
    matches!(path.start, Start::Variable(_))
        || predicates
            .any(|predicate| matches!(predicate, Predicate::Condition(expr) if names_variables(expr)))
}

fn value_names_variables(value: &Value) -> bool {
    let any = |values: &[Value]| values.iter().any(value_names_variables);
    match value {
        Value::Literal(_) => false,
        Value::Variable(..) | Value::Some(_) => true,
        Value::Condition(expr) => names_variables(expr),
        Value::Nodes(path) => path_names_variables(path),
        Value::Union(values) | Value::Call(_, values) | Value::Sequence(values) => any(values),
        Value::If(parts) => any(parts.as_slice()),
        Value::Filter(start, predicates) => value_names_variables(start) || any(predicates),
        Value::Walk(walk) => {
            value_names_variables(&walk.start) || walk.steps.iter().any(|step| any(&step.predicates))
        }
        Value::Negative(operand) | Value::Castable { operand, .. } => value_names_variables(operand),
        Value::Arithmetic(_, left, right)
        | Value::Compare(_, left, right)
        | Value::Sets(_, left, right)
        | Value::Each(left, right) => value_names_variables(left) || value_names_variables(right),
    }
}

/// Makes an expression on a variable a predicate of the variable's nodes: `$v/b = 1` becomes `b = 1`. Variables that
/// it binds itself get the levels that they have there.
pub struct AsPredicate {
    pub of: Variable,
    /// The level of the first variable that the expression binds.
    pub bound_from: u32,
    /// Whether the variable's nodes may be in records: then `/` may be another document there than outside.
    pub is_of_record: bool,
}

impl AsPredicate {
    pub fn rewrite(&self, expr: &mut Expr) {
        rename_expr(expr, self, false);
    }

    fn start(&self, start: Start, is_nested: bool) -> Start {
        match start {
            Start::Variable(variable) if variable == self.of && !is_nested => Start::Context,
            Start::Variable(variable) => Start::Variable(self.variable(variable)),
            Start::Document if self.is_of_record && !is_nested => Start::Message,
            start => start,
        }
    }

    fn variable(&self, Variable(level): Variable) -> Variable {
        Variable(if level >= self.bound_from { level - self.bound_from + self.of.0 } else { level })
    }
}

fn rename_expr(expr: &mut Expr, renaming: &AsPredicate, is_nested: bool) {
    match expr {
        Expr::Path(path, _) => rename_path(path, renaming, is_nested),
        Expr::Not(operand) => rename_expr(operand, renaming, is_nested),
        Expr::And(operands) | Expr::Or(operands) => {
            operands.iter_mut().for_each(|operand| rename_expr(operand, renaming, is_nested));
        }
        Expr::Computed(computed) => {
            let mut value = std::mem::replace(&mut computed.value, Value::Condition(Expr::TRUE));
            rename_value(&mut value, renaming, is_nested);
            **computed = Computed::new(value);
        }
    }
}

fn rename_path(path: &mut Path, renaming: &AsPredicate, is_nested: bool) {
    path.start = renaming.start(path.start, is_nested);
    for predicate in path.steps.iter_mut().flat_map(|step| &mut step.predicates) {
        if let Predicate::Condition(expr) = predicate {
            rename_expr(expr, renaming, true);
        }
    }
}

fn rename_value(value: &mut Value, renaming: &AsPredicate, is_nested: bool) {
    match value {
        Value::Literal(_) => {}
        Value::Condition(expr) => rename_expr(expr, renaming, is_nested),
        Value::Nodes(path) => rename_path(path, renaming, is_nested),
        Value::Union(values) | Value::Call(_, values) | Value::Sequence(values) => {
            values.iter_mut().for_each(|value| rename_value(value, renaming, is_nested));
        }
        Value::If(parts) => parts.iter_mut().for_each(|part| rename_value(part, renaming, is_nested)),
        Value::Each(start, each) => {
            rename_value(start, renaming, is_nested);
            rename_value(each, renaming, true);
        }
        Value::Filter(start, predicates) => {
            rename_value(start, renaming, is_nested);
            predicates.iter_mut().for_each(|predicate| rename_value(predicate, renaming, true));
        }
        Value::Walk(walk) => {
            rename_value(&mut walk.start, renaming, is_nested);
            let predicates = walk.steps.iter_mut().flat_map(|step| &mut step.predicates);
            predicates.for_each(|predicate| rename_value(predicate, renaming, true));
        }
        Value::Negative(operand) | Value::Castable { operand, .. } => {
            rename_value(operand, renaming, is_nested)
        }
        Value::Arithmetic(_, left, right) | Value::Compare(_, left, right) | Value::Sets(_, left, right) => {
            rename_value(left, renaming, is_nested);
            rename_value(right, renaming, is_nested);
        }
        Value::Variable(variable, _) => *variable = renaming.variable(*variable),
        Value::Some(clauses) => {
            for clause in clauses {
                if let Clause::For(variable, _) | Clause::Let(variable, _) = clause {
                    *variable = renaming.variable(*variable);
                }
                rename_value(clause.value_mut(), renaming, is_nested);
            }
        }
    }
}
