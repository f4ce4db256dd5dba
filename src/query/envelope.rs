//! `$envelope`: what queries ask of the envelope of a message.
//!
//! A document has its envelope beside its root element, under a name that neither messages nor queries can write. So
//! `$envelope/header` is a path like others, with that name as its first step: it is decomposed, indexed and verified
//! as paths of the message are. Only that name test leads there: `/*`, `//*` and the axes of the message do not.

use super::ast::{Axis, Expr, Name, NameTest, Node, Path, Predicate, Query, Start, Step};
use crate::document::ENVELOPE_ROOT;

/// The variable, without its `$`.
pub const VARIABLE: &str = "envelope";

/// The path that `$envelope` stands for.
pub fn path() -> Path {
    let step = Step { axis: Axis::Child, node: Node::Element(root()), predicates: Vec::new() };
    Path { start: Start::Document, steps: vec![step] }
}

/// The name test of the envelope's root.
pub fn root() -> NameTest {
    NameTest::Name(Name { uri: String::new(), local: ENVELOPE_ROOT.to_string() })
}

/// Whether a name test is that of the envelope's root.
pub fn is_root(test: &NameTest) -> bool {
    matches!(test, NameTest::Name(name) if is_root_name(name.local.as_bytes()))
}

/// Whether a step leads to the envelope.
pub fn leads_to_envelope(step: &Step) -> bool {
    matches!(&step.node, Node::Element(test) if is_root(test))
}

/// Whether a local name is that of the envelope's root.
pub fn is_root_name(local: &[u8]) -> bool {
    local == ENVELOPE_ROOT.as_bytes()
}

/// Makes what is necessary for computed conditions hold for nodes of the envelope, too.
///
/// `necessary` says `//b` of a node `b` when it has lost its way there, as after `following::b`. In a query that asks for
/// the envelope, that node may lie there: `//b or $envelope//b`.
pub fn widen(query: &mut Query) {
    let mut asks = false;
    query.for_each_name_test(&mut |test| asks |= is_root(test));
    if asks {
        in_expr(&mut query.expr, false);
    }
}

/// `is_necessary`: the expression may be weakened.
fn in_expr(expr: &mut Expr, is_necessary: bool) {
    match expr {
        Expr::Path(path, test) => {
            for step in &mut path.steps {
                for predicate in &mut step.predicates {
                    if let Predicate::Condition(condition) = predicate {
                        in_expr(condition, is_necessary);
                    }
                }
            }
            let is_lost = path.start == Start::Document
                && path.steps.first().is_some_and(|first| first.axis == Axis::Descendant);
            if is_necessary && is_lost {
                let mut steps = self::path().steps;
                steps.append(&mut path.steps.clone());
                let in_envelope = Expr::Path(Path { start: Start::Document, steps }, test.clone());
                *expr = Expr::Or(vec![expr.clone(), in_envelope]);
            }
        }
        // What is negated may not be weakened, and `necessary` leaves it as it is written.
        Expr::Not(_) => {}
        Expr::And(operands) | Expr::Or(operands) => {
            operands.iter_mut().for_each(|operand| in_expr(operand, is_necessary));
        }
        Expr::Computed(computed) => in_expr(&mut computed.necessary, true),
    }
}

#[cfg(test)]
mod tests {
    use crate::query::ast::Expr;
    use crate::query::decompose::decompose;
    use crate::query::{Namespaces, Query, parse};

    #[test]
    fn the_envelope_is_written_as_a_variable() {
        for text in [
            "$envelope/header[@name='a']='b'",
            "$envelope",
            "$envelope[source]//header",
            "//a[$envelope/source='x']",
            "count($envelope/header)>2",
            "$envelope/header/preceding::source",
            "for $v in $envelope/header return <r>{$v/@name}</r>",
        ] {
            let query = parse(text, &Namespaces::default()).unwrap();
            let written = query.canonical();
            assert_eq!(written, text);
            assert_eq!(parse(&written, &Namespaces::default()).unwrap(), query);
        }
    }

    #[test]
    fn what_is_necessary_holds_for_nodes_of_the_envelope() {
        let query = parse("count($envelope/source/following::b) > 2", &Namespaces::default()).unwrap();
        let Expr::Computed(computed) = &query.expr else { panic!() };
        let mut necessary = Query::filter(computed.necessary.clone());
        crate::query::canonical::canonicalise(&mut necessary);
        assert_eq!(necessary.canonical(), "$envelope/source and ($envelope//b or //b)");
        assert!(!decompose(&query).lines.is_empty());
    }
}
