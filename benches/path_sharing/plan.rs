//! An unshared plan for each transformation (seed 001 §6.4, §6.5).

use std::sync::Arc;

use tamis::document::Vocabulary;
use tamis::ids::NameId;
use tamis::query::ast::{Axis, Expr, Literal, NameTest, Operator, Predicate, Test};
use tamis::query::element_path::{ElementPath, Leaf, skeleton, streamed};
use tamis::query::transformation::Transformation;
use tamis::query::{Namespaces, parse};
use tamis::transform::Schema;
use tamis::transform::plan::{Interner, PathStart, distinct, distinct_pairs, ordered, rewrite};

/// Which paths the automaton matches; the others are searched for in the tree.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Degree {
    F,
    Fw,
    Fwr,
}

impl Degree {
    pub fn named(name: &str) -> Degree {
        match name {
            "F" => Degree::F,
            "FW" => Degree::Fw,
            "FWR" => Degree::Fwr,
            _ => panic!("{name} is no degree of sharing: F, FW or FWR"),
        }
    }
}

/// The operators that plans leave out.
#[derive(Clone)]
pub enum Optimisation {
    None,
    ByQuery,
    ByDtd(Arc<Schema>),
}

impl Optimisation {
    pub fn named(name: &str, schema: &Arc<Schema>) -> Optimisation {
        match name {
            "none" => Optimisation::None,
            "query" => Optimisation::ByQuery,
            "dtd" => Optimisation::ByDtd(schema.clone()),
            _ => panic!("{name} is no optimisation: none, query or dtd"),
        }
    }

    fn schema(&self) -> Option<&Schema> {
        match self {
            Optimisation::ByDtd(schema) => Some(schema),
            _ => None,
        }
    }

    /// Whether a claim that holds is made use of.
    fn uses<T>(&self, claim: Option<T>) -> bool {
        !matches!(self, Optimisation::None) && claim.is_some()
    }

    fn line(&self, line: &ElementPath, above: impl Fn(&Schema) -> PathStart) -> ElementPath {
        self.schema().map_or_else(|| line.clone(), |schema| rewrite(line, above(schema), schema))
    }
}

/// A transformation of the generated kind: one block, equalities on what is bound, return paths.
pub struct Query {
    binding: ElementPath,
    conditions: Vec<(ElementPath, Leaf, Box<[u8]>)>,
    returns: Vec<ElementPath>,
}

impl Query {
    pub fn parse(text: &str) -> Query {
        let query = parse(text, &Namespaces::default()).expect("a query");
        let transformation = query.transformation.expect("a transformation");
        let Transformation::Blocks(blocks) = *transformation else { panic!("one block: {text}") };
        let [block] = blocks.blocks.as_slice() else { panic!("one block: {text}") };
        let mut conditions = Vec::new();
        for predicate in block.binding.steps.iter().flat_map(|step| &step.predicates) {
            let Predicate::Condition(expr) = predicate else { panic!("no positions: {text}") };
            compared(expr, &mut conditions);
        }
        let line = |path| streamed(path).expect("a path of elements").0;
        Query {
            binding: skeleton(&block.binding),
            conditions,
            returns: block.returns.iter().map(line).collect(),
        }
    }
}

fn compared(expr: &Expr, conditions: &mut Vec<(ElementPath, Leaf, Box<[u8]>)>) {
    match expr {
        Expr::And(all) => all.iter().for_each(|one| compared(one, conditions)),
        Expr::Path(path, Test::Compare(Operator::Equal, Literal::Text(value))) => {
            let (line, leaf) = streamed(path).expect("a path of elements");
            conditions.push((line, leaf, value.as_bytes().into()));
        }
        _ => panic!("equality with a string is all that is generated"),
    }
}

/// Axis and name of each step, as documents have them.
pub type Steps = Box<[(Axis, NameId)]>;

/// The value of an element that is compared.
pub enum Subject {
    Value,
    Text,
    Attribute(NameId),
}

pub struct Plan {
    /// The stream of what is bound.
    pub binding: u32,
    pub eliminate: bool,
    pub conditions: Vec<Condition>,
    pub returns: Vec<Return>,
    /// Which field of predicate and return paths is bound.
    pub field: usize,
    /// Whether their streams are ordered by it.
    pub ordered: bool,
}

pub struct Condition {
    pub path: TracedDocument,
    pub subject: Subject,
    pub constant: Box<[u8]>,
}

pub struct Return {
    pub path: TracedDocument,
    pub eliminate: bool,
}

/// How a path from the bound element is found.
pub enum TracedDocument {
    Streamed(u32),
    Searched(Steps),
}

#[derive(Clone, Copy, Default)]
pub struct Kinds {
    pub hash: usize,
    pub merge: usize,
}

impl Kinds {
    fn add(&mut self, ordered: bool, count: usize) {
        *(if ordered { &mut self.merge } else { &mut self.hash }) += count;
    }
}

#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// Plans that differ.
    pub plans: usize,
    pub semijoins: Kinds,
    pub outer_joins: Kinds,
    /// Operators that eliminate duplicates.
    pub eliminations: usize,
}

/// Makes plans; gives each line that is to be matched a stream.
pub struct Planner<'a> {
    pub degree: Degree,
    pub optimisation: Optimisation,
    pub vocabulary: &'a Vocabulary,
    pub lines: Interner<ElementPath>,
    pub counts: Counts,
}

impl Planner<'_> {
    pub fn plan(&mut self, query: &Query) -> Plan {
        let optimisation = self.optimisation.clone();
        let binding = optimisation.line(&query.binding, |_| PathStart::Document);
        let rest = |line: &ElementPath| optimisation.line(line, |schema| PathStart::after(&binding, schema));
        let schema = optimisation.schema();
        let ordered = optimisation.uses(ordered(&binding, schema));
        let conditions: Vec<Condition> = query
            .conditions
            .iter()
            .map(|(line, leaf, constant)| Condition {
                path: self.found(Degree::Fw, &binding, &rest(line)),
                subject: self.subject(leaf),
                constant: constant.clone(),
            })
            .collect();
        let returns: Vec<Return> = query
            .returns
            .iter()
            .map(|line| {
                let line = rest(line);
                let distinct = optimisation.uses(distinct_pairs(&binding, &line, schema));
                Return { path: self.found(Degree::Fwr, &binding, &line), eliminate: !distinct }
            })
            .collect();
        self.counts.plans += 1;
        let eliminate = !optimisation.uses(distinct(&binding, schema));
        self.counts.eliminations += eliminate as usize;
        if self.degree >= Degree::Fw {
            self.counts.semijoins.add(ordered, conditions.len());
        }
        if self.degree == Degree::Fwr {
            self.counts.outer_joins.add(ordered, 1);
            self.counts.eliminations += returns.iter().filter(|one| one.eliminate).count();
        }
        let field = binding.len() - 1;
        Plan { binding: self.lines.intern(binding), eliminate, conditions, returns, field, ordered }
    }

    fn found(&mut self, from: Degree, binding: &ElementPath, rest: &ElementPath) -> TracedDocument {
        if self.degree >= from {
            TracedDocument::Streamed(self.lines.intern([binding.as_slice(), rest].concat()))
        } else {
            TracedDocument::Searched(steps(rest, self.vocabulary))
        }
    }

    fn subject(&self, leaf: &Leaf) -> Subject {
        match leaf {
            Leaf::Element => Subject::Value,
            Leaf::Text => Subject::Text,
            Leaf::Attribute(test) => Subject::Attribute(name(test, self.vocabulary)),
        }
    }
}

pub fn steps(line: &ElementPath, vocabulary: &Vocabulary) -> Steps {
    line.iter().map(|step| (step.axis, name(&step.test, vocabulary))).collect()
}

/// The name that a test stands for; none if no document has it.
fn name(test: &NameTest, vocabulary: &Vocabulary) -> NameId {
    let NameTest::Name(name) = test else { panic!("names are all that is generated") };
    vocabulary.find_name(name.uri.as_bytes(), name.local.as_bytes()).unwrap_or(NameId::NONE)
}
