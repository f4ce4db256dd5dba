//! The table of functions.

use super::value::Kind;

/// The core functions of XPath 1.0, without those that are conditions (`not()`, `true()`,
/// `false()`, `boolean()`) and without `id()`; functions of XPath 2.0; and the names of local data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Function {
    Last,
    Position,
    Count,
    LocalName,
    NamespaceUri,
    Name,
    String,
    Concat,
    StartsWith,
    Contains,
    SubstringBefore,
    SubstringAfter,
    Substring,
    StringLength,
    NormalizeSpace,
    Translate,
    Lang,
    Number,
    Sum,
    Floor,
    Ceiling,
    Round,
    Date,
    DateTime,
    Exists,
    Empty,
    EndsWith,
    LowerCase,
    UpperCase,
    Matches,
    Replace,
    Tokenize,
    StringJoin,
    Abs,
    Min,
    Max,
    Avg,
    DistinctValues,
    Integer,
    Decimal,
    Double,
    Doc,
    Collection,
    FormatNumber,
}

/// A row of the table of functions.
pub struct Signature {
    pub function: Function,
    pub name: &'static str,
    pub kind: Kind,
    /// The smallest and the largest number of arguments.
    pub arguments: (usize, usize),
    /// Without arguments, it takes the context node.
    pub of_context: bool,
    pub first: FirstArgument,
}

/// The required kind of the first argument of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstArgument {
    Any,
    Nodes,
    /// Nodes or a sequence.
    Items,
}

const fn signature(
    function: Function,
    name: &'static str,
    kind: Kind,
    arguments: (usize, usize),
) -> Signature {
    Signature { function, name, kind, arguments, of_context: false, first: FirstArgument::Any }
}

const fn of_nodes(
    function: Function,
    name: &'static str,
    kind: Kind,
    arguments: (usize, usize),
) -> Signature {
    let of_context = arguments.0 == 0;
    Signature { function, name, kind, arguments, of_context, first: FirstArgument::Nodes }
}

const fn of_context(function: Function, name: &'static str, kind: Kind) -> Signature {
    Signature { function, name, kind, arguments: (0, 1), of_context: true, first: FirstArgument::Any }
}

const fn of_items(
    function: Function,
    name: &'static str,
    kind: Kind,
    arguments: (usize, usize),
) -> Signature {
    Signature { function, name, kind, arguments, of_context: false, first: FirstArgument::Items }
}

/// In the order of `Function`.
pub const FUNCTIONS: [Signature; 44] = [
    signature(Function::Last, "last", Kind::Number, (0, 0)),
    signature(Function::Position, "position", Kind::Number, (0, 0)),
    of_items(Function::Count, "count", Kind::Number, (1, 1)),
    of_nodes(Function::LocalName, "local-name", Kind::Text, (0, 1)),
    of_nodes(Function::NamespaceUri, "namespace-uri", Kind::Text, (0, 1)),
    of_nodes(Function::Name, "name", Kind::Text, (0, 1)),
    of_context(Function::String, "string", Kind::Text),
    signature(Function::Concat, "concat", Kind::Text, (2, usize::MAX)),
    signature(Function::StartsWith, "starts-with", Kind::Boolean, (2, 2)),
    signature(Function::Contains, "contains", Kind::Boolean, (2, 2)),
    signature(Function::SubstringBefore, "substring-before", Kind::Text, (2, 2)),
    signature(Function::SubstringAfter, "substring-after", Kind::Text, (2, 2)),
    signature(Function::Substring, "substring", Kind::Text, (2, 3)),
    of_context(Function::StringLength, "string-length", Kind::Number),
    of_context(Function::NormalizeSpace, "normalize-space", Kind::Text),
    signature(Function::Translate, "translate", Kind::Text, (3, 3)),
    signature(Function::Lang, "lang", Kind::Boolean, (1, 1)),
    of_context(Function::Number, "number", Kind::Number),
    of_items(Function::Sum, "sum", Kind::Number, (1, 1)),
    signature(Function::Floor, "floor", Kind::Number, (1, 1)),
    signature(Function::Ceiling, "ceiling", Kind::Number, (1, 1)),
    signature(Function::Round, "round", Kind::Number, (1, 1)),
    signature(Function::Date, "xs:date", Kind::Date, (1, 1)),
    signature(Function::DateTime, "xs:dateTime", Kind::DateTime, (1, 1)),
    of_items(Function::Exists, "exists", Kind::Boolean, (1, 1)),
    of_items(Function::Empty, "empty", Kind::Boolean, (1, 1)),
    signature(Function::EndsWith, "ends-with", Kind::Boolean, (2, 2)),
    signature(Function::LowerCase, "lower-case", Kind::Text, (1, 1)),
    signature(Function::UpperCase, "upper-case", Kind::Text, (1, 1)),
    signature(Function::Matches, "matches", Kind::Boolean, (2, 3)),
    signature(Function::Replace, "replace", Kind::Text, (3, 4)),
    signature(Function::Tokenize, "tokenize", Kind::Sequence, (1, 3)),
    of_items(Function::StringJoin, "string-join", Kind::Text, (1, 2)),
    signature(Function::Abs, "abs", Kind::Number, (1, 1)),
    of_items(Function::Min, "min", Kind::Number, (1, 1)),
    of_items(Function::Max, "max", Kind::Number, (1, 1)),
    of_items(Function::Avg, "avg", Kind::Number, (1, 1)),
    of_items(Function::DistinctValues, "distinct-values", Kind::Sequence, (1, 1)),
    signature(Function::Integer, "xs:integer", Kind::Number, (1, 1)),
    signature(Function::Decimal, "xs:decimal", Kind::Number, (1, 1)),
    signature(Function::Double, "xs:double", Kind::Number, (1, 1)),
    signature(Function::Doc, "doc", Kind::Nodes, (1, 1)),
    signature(Function::Collection, "collection", Kind::Nodes, (1, 1)),
    signature(Function::FormatNumber, "format-number", Kind::Text, (2, 2)),
];

impl Function {
    pub fn signature(self) -> &'static Signature {
        &FUNCTIONS[self as usize]
    }

    pub fn named(name: &str) -> Option<&'static Signature> {
        FUNCTIONS.iter().find(|signature| signature.name == name)
    }
}
