//! The reasons of refusals, with a hint where one helps. Nothing here runs for an accepted query.

use super::lexer::{Lexer, Token};
use crate::query::ast::Operator;
use crate::query::atomic::Atomic;
use crate::query::moment;

pub const TRANSFORMATION: &str = "a transformation must be the whole query: \
    `for … return` and constructed elements are not allowed inside a path or condition";
pub const NO_BLOCK: &str =
    "the template takes nothing from the message; put `{ for $v in … return … }` into it";
pub const LET_CONTENT: &str = "a variable is bound to nodes, a string, a number or a boolean; \
    write what is constructed where it is used";
pub const ELEMENT_IN_VALUE: &str = "an attribute value has no elements in it; take their text";
pub const BINDS_NO_PATH: &str =
    "a variable is bound to a path; put conditions into its predicates or after `where`";
pub const BINDS_ONE_ITEM: &str =
    "`some` and `every` take a path or a sequence; write a condition on one value without them";
pub const ATTRIBUTE_WITHOUT_ELEMENT: &str =
    "an attribute needs a constructed element around it: `return <r>{ $v/@a }</r>`";
pub const LATE_ATTRIBUTE: &str = "an attribute must come before other content of its element; for its value as text write `{ string($v/@a) }`";
pub const COMMENT: &str = "comments are not supported in constructed elements";
pub const INSTRUCTION: &str = "processing instructions are not supported in constructed elements";
pub const DECLARATION: &str = "only a CDATA section is allowed after `<!` here";
pub const TEXT_ALONE: &str = "text is allowed only inside a constructed element";
pub const END_TAG_ALONE: &str = "this end tag has no start tag";
pub const UNCLOSED: &str = "the element that starts here is not closed";
pub const REFERENCE: &str = "only `&lt;`, `&gt;`, `&amp;`, `&quot;`, `&apos;` and character references \
    such as `&#10;` or `&#xA;` are supported; write a literal `&` as `&amp;`";
pub const COMPUTED_NAMESPACE: &str =
    "a namespace declaration must contain a URI; it cannot be taken from the message";
pub const FILTER_EXPRESSION: &str = "no step or predicate can follow here; they follow paths only";

pub const MOMENTS: &str = "a date can only be compared, and only with a date: write `xs:date(…)`, or \
    `xs:dateTime(…)`, on both sides";

pub const PATTERN_LITERAL: &str =
    "the regular expression, its flags and the replacement must be strings in quotes";
pub const MATCHES_EMPTY: &str = "the regular expression matches the empty string; for `replace()` and `tokenize()` it must match something";
pub const PICTURE_LITERAL: &str =
    "the picture of `format-number()` must be a string in quotes; other decimal formats are not supported";
pub const SEQUENCE_POSITION: &str =
    "a predicate after a sequence must be a position, such as `[1]` or `[last()]`";

/// A type that `castable as` does not know.
pub fn no_type() -> String {
    let names = Atomic::ALL.map(Atomic::name).join("`, `");
    format!("the types are `{names}`")
}

/// A picture of `format-number()` that is not valid.
pub fn picture(reason: &str) -> String {
    format!("the picture is refused: {reason}; write it like `#,##0.00`")
}

/// A string that is no date.
pub fn no_moment(name: &str) -> String {
    let example = if name == "xs:date" { "2026-01-31" } else { "2026-01-31T23:59:00Z" };
    format!("the string in `{name}()` is not valid; write it like `{name}('{example}')`")
}

/// A comparison by order with a string that is no number.
pub fn order(operator: Operator, text: &str) -> String {
    let constructor = match text.as_bytes() {
        text if !moment::date(text).is_nan() => "xs:date",
        text if !moment::date_time(text).is_nan() => "xs:dateTime",
        _ => "",
    };
    let instead = match constructor {
        "" => String::new(),
        name => format!("; compare dates as `{name}(…) {} {name}('{text}')`", operator.symbol()),
    };
    format!(
        "`{}` compares numbers and the string is not one, so this is never true{instead}",
        operator.symbol()
    )
}

/// A query that does not depend on the message.
pub fn constant(matches: bool) -> &'static str {
    match matches {
        true => "the query matches every message",
        false => "the query can never match",
    }
}

/// An axis that is not supported.
pub fn axis(name: &str) -> String {
    match name {
        "namespace" => {
            "the axis `namespace::` is not supported; namespaces are matched by the names that use them: `p:*`"
                .to_string()
        }
        _ => format!("there is no axis `{name}::`"),
    }
}

/// A function as a step.
pub fn node_type(name: &str) -> (&'static str, String) {
    match function(name) {
        ("unknown-function", _) => {
            ("syntax", format!("a function cannot be a step; write `{name}(…)` around the path"))
        }
        other => other,
    }
}

/// A wrong number of arguments.
pub fn arguments(name: &str, (fewest, most): (usize, usize), found: usize) -> String {
    let wanted = match (fewest, most) {
        (0, 0) => "no argument".to_string(),
        (1, 1) => "one argument".to_string(),
        (fewest, usize::MAX) => format!("at least {fewest} arguments"),
        (fewest, most) if fewest == most => format!("{most} arguments"),
        (fewest, most) => format!("{fewest} to {most} arguments"),
    };
    format!("`{name}()` takes {wanted}, not {found}")
}

/// A function that is not supported.
pub fn function(name: &str) -> (&'static str, String) {
    let instead = match name {
        "document" | "doc-available" | "uri-collection" => {
            "; local data is named by `doc('name')` or `collection('name')`"
        }
        "id" => "; compare the attribute: `//*[@id = 'x']`",
        "data" => "; use `string()` or `number()`",
        "index-of" | "subsequence" | "reverse" => "; positions are predicates: `(a)[1]`",
        "deep-equal" => "; compare values with `=`",
        _ if name.eq_ignore_ascii_case("not") => "; write `not(…)`",
        _ if name.eq_ignore_ascii_case("and") => "; write `a and b`",
        _ if name.eq_ignore_ascii_case("or") => "; write `a or b`",
        _ => "; docs/language.md lists those that are",
    };
    ("unknown-function", format!("the function `{name}()` is not supported{instead}"))
}

/// What names local data is no name.
pub fn data_name(function: &str) -> String {
    format!(
        "`{function}()` takes the name of local data as a literal: letters, digits, `-`, `_` and `.`; URLs and paths are not opened"
    )
}

/// A variable that is not bound here; `bound` is the innermost that is.
pub fn variable(name: &str, bound: Option<&str>) -> String {
    match bound {
        Some(bound) => format!("the variable `${name}` is not bound; the bound variable is `${bound}`"),
        None => {
            format!("the variable `${name}` is not bound; only `$doc`, `$msg` and `$envelope` are predefined")
        }
    }
}

/// A path that must start at the bound element.
pub fn context(bound: &str) -> String {
    format!("a path must start with the variable here: `${bound}/…`")
}

/// An XQuery clause that is not supported; `None` for other tokens.
pub fn clause(lexer: &Lexer) -> Option<String> {
    let instead = match (lexer.token, lexer.word) {
        (Token::Name, "group" | "window" | "tumbling" | "sliding") => "is not supported",
        (Token::Name, "at" | "as" | "allowing") => {
            "is not supported; a variable is bound to one node at a time"
        }
        (Token::Name, "count") => "is not supported as a clause",
        (Token::Name, "collation") => "is not supported; strings are compared character by character",
        (Token::Name, "switch" | "typeswitch" | "try") => "is not supported; write `if (…) then … else …`",
        _ => return None,
    };
    Some(format!(
        "`{}` {instead}; the clauses are `for`, `let`, `where`, `order by` and `return`, in this order",
        lexer.word
    ))
}

/// Content that is not supported or not there; `None` for other tokens.
pub fn bad_content(lexer: &Lexer) -> Option<(&'static str, String)> {
    let next = lexer.follower().unwrap_or_default();
    Some(match (lexer.token, lexer.word) {
        (Token::Name, "switch" | "typeswitch") if next == b'(' => ("clause", clause(lexer)?),
        (Token::Name, "try") if next == b'{' => ("clause", clause(lexer)?),
        (Token::Name, "element" | "attribute" | "document" | "text" | "comment" | "namespace")
            if next == b'{' || next.is_ascii_alphabetic() =>
        {
            let reason = "computed constructors are not supported; write tags: `<name>…</name>`";
            ("constructor", reason.to_string())
        }
        (Token::CloseBrace, _) => {
            ("template", "the braces are empty; write a literal brace as `{{` or `}}`".to_string())
        }
        (Token::End, _) => ("syntax", "the query ends where a template is expected".to_string()),
        _ => return None,
    })
}

/// A token where a step or another operand is expected.
pub fn no_step(lexer: &Lexer) -> (&'static str, String) {
    let instead = match lexer.token {
        Token::Number | Token::Text => "; a literal cannot be a step",
        _ => "",
    };
    ("syntax", format!("{} where a path is expected{instead}", describe_token(lexer)))
}

/// A token where an operator or the end of the expression is expected.
pub fn unexpected(lexer: &Lexer, wanted: &str) -> (&'static str, String) {
    let found = describe_token(lexer);
    let instead = match lexer.token {
        Token::Name => match lexer.word {
            "idiv" => "; write `floor(a div b)`",
            "is" => "; compare values with `=`",
            "to" => "; write `. >= 1 and . <= 9`",
            "instance" | "treat" | "cast" => "; write `castable as` or call the type: `xs:date(…)`",
            word if word.eq_ignore_ascii_case("and") => "; write `and` in lower case",
            word if word.eq_ignore_ascii_case("or") => "; write `or` in lower case",
            _ => "",
        },
        Token::Text => {
            "; a quote cannot be escaped by doubling it; enclose the string in the other kind of quote"
        }
        _ => "",
    };
    ("syntax", format!("{found} where {wanted} is expected{instead}"))
}

/// A token where a transformation expects another one.
pub fn unexpected_token(lexer: &Lexer, wanted: &str) -> String {
    format!("{} where {wanted} is expected", describe_token(lexer))
}

/// The current token, shortened for an error message: a word, or one character.
fn describe_token(lexer: &Lexer) -> String {
    let rest = &lexer.text[lexer.start..];
    let word = rest.char_indices().take_while(|(_, c)| c.is_alphanumeric()).take(24).last();
    match word.or(rest.char_indices().next()) {
        Some((at, c)) => format!("`{}` is found", &rest[..at + c.len_utf8()]),
        None => "the query ends".to_string(),
    }
}
