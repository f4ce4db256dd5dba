//! Why an alternative of a decomposition does not say all that its query says, so that the query must be verified.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inexact {
    Computed,
    FirstNode,
    Negation,
    Position,
    LeafPredicate,
    DocumentNode,
    Alternatives,
}

impl Inexact {
    /// For people.
    pub fn reason(self) -> &'static str {
        match self {
            Inexact::Computed => "a value is computed on the message",
            Inexact::FirstNode => "a function of strings takes the first node only",
            Inexact::Negation => "what is negated may be at another element",
            Inexact::Position => "a position counts what other predicates leave",
            Inexact::LeafPredicate => "an attribute or a text node has predicates",
            Inexact::DocumentNode => "the document node is tested",
            Inexact::Alternatives => "there are too many alternatives",
        }
    }
}
