//! What a refusal says to the person who wrote the query. Nothing here runs for a good query.

use super::lexer::{Lexer, Token};

pub const TRANSFORMATION: &str =
    "this is a transformation (`for … return`, constructed elements), and only filters are supported yet";
pub const TEXT_CONDITION: &str = "a string alone is not a condition; compare a path with it: `. = 'x'`";
pub const NUMBER_CONDITION: &str = "a number is a condition only alone in a predicate, as a position: `a[2]`";
pub const FILTER_EXPRESSION: &str = "no step or predicate can follow here; \
    instead of `(a | b)/c[d]` write `a/c[d] | b/c[d]`, and `a[1]` counts per parent";
pub const DESCENDANT_POSITION: &str =
    "a position among all descendants is not supported; `//a[2]` is the second `a` of its parent";

/// An axis that has no meaning here.
pub fn axis(name: &str) -> String {
    let instead = match name {
        "parent" => "say it from above: `a[b]` instead of `b/..`",
        "ancestor" | "ancestor-or-self" => {
            "say it from above: `//a//b` or `//a[.//b]` instead of `//b[ancestor::a]`"
        }
        "following" | "preceding" | "following-sibling" | "preceding-sibling" => {
            "test both under their parent: `p[a and b]`"
        }
        "namespace" => "namespaces are matched by the names that use them: `p:*`",
        _ => "there are `child::`, `descendant::`, `attribute::` and `self::node()`",
    };
    match name {
        "parent" => format!("`..` and the axis `parent::` are not supported; {instead}"),
        _ => format!("the axis `{name}::` is not supported; {instead}"),
    }
}

/// An axis that is understood with `node()` only.
pub fn axis_test(axis: &str) -> String {
    format!("`{axis}::` is supported as `{axis}::node()` only")
}

/// What looks like a node type in the middle of a path, and is not `text()`.
pub fn node_type(name: &str) -> (&'static str, String) {
    match name {
        "node" => ("node-test", "`node()` is not supported here; use `*`, `text()` or `.`".to_string()),
        "comment" | "processing-instruction" => {
            ("node-test", format!("`{name}()` is not supported: filters see elements, attributes and text"))
        }
        _ => {
            let (code, reason) = function(name);
            (
                code,
                if code == "unknown-function" {
                    format!("{reason}; nor can a function be a step")
                } else {
                    reason
                },
            )
        }
    }
}

/// A function outside the language.
pub fn function(name: &str) -> (&'static str, String) {
    match name {
        "doc" | "document" | "collection" | "doc-available" | "uri-collection" => {
            ("local-data", format!("`{name}()`: local data is not supported yet"))
        }
        "last" | "position" => (
            "position-function",
            format!("`{name}()` is not supported; a position is a number alone: `a[2]`"),
        ),
        _ => {
            let instead = match name {
                "count" | "exists" | "boolean" => "; a path alone asks whether it selects anything",
                "empty" => "; write `not(path)`",
                "string" | "number" | "data" => "; a comparison converts by itself: `@a = 5`, `@a = 'x'`",
                "normalize-space" => "; white space counts as it stands",
                "ends-with" | "matches" | "substring" => "; there are `contains()` and `starts-with()`",
                "name" | "local-name" | "namespace-uri" => "; use a name test: `a`, `p:a`, `p:*`",
                _ if name.eq_ignore_ascii_case("not") => "; write `not(…)`",
                _ if name.eq_ignore_ascii_case("and") => "; write `a and b`",
                _ if name.eq_ignore_ascii_case("or") => "; write `a or b`",
                _ => "; there are `not()`, `contains()`, `starts-with()`, `true()` and `false()`",
            };
            ("unknown-function", format!("the function `{name}()` is not supported{instead}"))
        }
    }
}

/// A token where the grammar wants a step, or anything that begins an operand.
pub fn no_step(lexer: &Lexer) -> (&'static str, String) {
    let instead = match lexer.token {
        Token::OpenParen => "; instead of `a/(b | c)` write `a/b | a/c`",
        Token::Number | Token::Text => "; a literal cannot be a step",
        _ => "",
    };
    ("syntax", format!("{} where a path should be{instead}", found(lexer)))
}

/// A token where the grammar wants an operator, or what closes the expression.
pub fn unexpected(lexer: &Lexer, wanted: &str) -> (&'static str, String) {
    let found = found(lexer);
    let instead = match lexer.token {
        Token::Plus | Token::Minus | Token::Star => return arithmetic(&found),
        Token::Compare(_) => {
            let reason = "a comparison cannot be compared again; join two with `and`";
            return ("boolean-comparison", reason.to_string());
        }
        Token::Name => match lexer.word {
            "div" | "mod" | "idiv" => return arithmetic(&found),
            "eq" => "; write `=`",
            "ne" => "; write `!=`",
            "lt" => "; write `<`",
            "le" => "; write `<=`",
            "gt" => "; write `>`",
            "ge" => "; write `>=`",
            "union" => "; write `|`",
            word if word.eq_ignore_ascii_case("and") => "; `and` is written in small letters",
            word if word.eq_ignore_ascii_case("or") => "; `or` is written in small letters",
            _ => "",
        },
        Token::Text => "; a quote inside a string is not doubled: put the other kind around it",
        _ => "",
    };
    ("syntax", format!("{found} where {wanted} should be{instead}"))
}

fn arithmetic(found: &str) -> (&'static str, String) {
    ("arithmetic", format!("{found} here: arithmetic is not supported"))
}

/// What stands there, short enough for a message: a word, or one character.
fn found(lexer: &Lexer) -> String {
    let rest = &lexer.text[lexer.start..];
    let word = rest.char_indices().take_while(|(_, c)| c.is_alphanumeric()).take(24).last();
    match word.or(rest.char_indices().next()) {
        Some((at, c)) => format!("`{}` stands", &rest[..at + c.len_utf8()]),
        None => "the query ends".to_string(),
    }
}
