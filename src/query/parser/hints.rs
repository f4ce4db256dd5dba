//! The reasons of refusals, with a hint where one helps. Nothing here runs for an accepted query.

use super::lexer::{Lexer, Token};

pub const TRANSFORMATION: &str = "a transformation must be the whole query: \
    `for … return` and constructed elements are not allowed inside a path or condition";
pub const NO_BLOCK: &str =
    "the template takes nothing from the message; put `{ for $v in … return … }` into it";
pub const BINDS_LEAF: &str = "a variable is bound to elements, not to attributes or text; bind their element and use `$v/@a` or `$v/text()`";
pub const BINDS_DOCUMENT: &str = "a variable is bound to elements, not to the document; write `/*`";
pub const BINDS_UNION: &str = "a variable is bound to one path, not to a union; \
    put two `for … return` into a constructed element, or write `//*[a or b]`";
pub const BINDS_NO_PATH: &str =
    "a variable is bound to a path; put conditions into its predicates or after `where`";
pub const ATTRIBUTE_WITHOUT_ELEMENT: &str =
    "an attribute needs a constructed element around it: `return <r>{ $v/@a }</r>`";
pub const LATE_ATTRIBUTE: &str = "an attribute must come before other content of its element; for its value as text write `{ string($v/@a) }`";
pub const SEQUENCE: &str =
    "a pair of braces contains one path; instead of `{ $v/a, $v/b }` write `{ $v/a }{ $v/b }`";
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
pub const TEXT_CONDITION: &str = "a string is not a condition; compare a path with it: `. = 'x'`";
pub const NUMBER_CONDITION: &str = "a number is a condition only as a position, alone in a predicate: `a[2]`";
pub const FILTER_EXPRESSION: &str = "no step or predicate can follow here; \
    instead of `(a | b)/c[d]` write `a/c[d] | b/c[d]`, and `a[1]` counts per parent";
pub const DESCENDANT_POSITION: &str =
    "a position among all descendants is not supported; `//a[2]` is the second `a` of its parent";

/// An axis that is not supported.
pub fn axis(name: &str) -> String {
    let instead = match name {
        "parent" => "start at the parent: `a[b]` instead of `b/..`",
        "ancestor" | "ancestor-or-self" => {
            "start at the ancestor: `//a//b` or `//a[.//b]` instead of `//b[ancestor::a]`"
        }
        "following" | "preceding" | "following-sibling" | "preceding-sibling" => {
            "test both under their parent: `p[a and b]`"
        }
        "namespace" => "namespaces are matched by the names that use them: `p:*`",
        _ => "supported are `child::`, `descendant::`, `attribute::` and `self::node()`",
    };
    match name {
        "parent" => format!("`..` and the axis `parent::` are not supported; {instead}"),
        _ => format!("the axis `{name}::` is not supported; {instead}"),
    }
}

/// An axis that is supported with `node()` only.
pub fn axis_test(axis: &str) -> String {
    format!("`{axis}::` is supported as `{axis}::node()` only")
}

/// A node type or function as a step, other than `text()`.
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
                    format!("{reason}; a function cannot be a step")
                } else {
                    reason
                },
            )
        }
    }
}

/// A function that is not supported.
pub fn function(name: &str) -> (&'static str, String) {
    match name {
        "doc" | "document" | "collection" | "doc-available" | "uri-collection" => {
            ("local-data", format!("`{name}()`: local data is not supported yet"))
        }
        "last" | "position" => (
            "position-function",
            format!("`{name}()` is not supported; write a position as a number: `a[2]`"),
        ),
        _ => {
            let instead = match name {
                "count" | "exists" | "boolean" => "; a path alone tests whether it selects anything",
                "empty" => "; write `not(path)`",
                "string" | "number" | "data" => "; a comparison converts its operands: `@a = 5`, `@a = 'x'`",
                "normalize-space" => "; white space is compared as it is",
                "ends-with" | "matches" | "substring" => "; use `contains()` or `starts-with()`",
                "name" | "local-name" | "namespace-uri" => "; use a name test: `a`, `p:a`, `p:*`",
                _ if name.eq_ignore_ascii_case("not") => "; write `not(…)`",
                _ if name.eq_ignore_ascii_case("and") => "; write `a and b`",
                _ if name.eq_ignore_ascii_case("or") => "; write `a or b`",
                _ => "; supported are `not()`, `contains()`, `starts-with()`, `true()` and `false()`",
            };
            ("unknown-function", format!("the function `{name}()` is not supported{instead}"))
        }
    }
}

/// A variable that is not bound here.
pub fn variable(name: &str, bound: Option<&str>) -> String {
    match bound {
        Some(bound) if bound == name => {
            format!(
                "`${name}` is not allowed in a predicate; a path in a predicate starts at the node that is tested"
            )
        }
        Some(bound) => format!("the variable `${name}` is not bound; the bound variable is `${bound}`"),
        None => format!("the variable `${name}` is not bound; only `$doc` and `$msg` are predefined"),
    }
}

/// A path that must start at the bound element.
pub fn context(bound: &str) -> String {
    format!("a path must start with the variable here: `${bound}/…`")
}

/// An XQuery clause that blocks do not support; `None` for other tokens.
pub fn clause(lexer: &Lexer) -> Option<String> {
    let instead = match (lexer.token, lexer.word) {
        (Token::Comma, _) => return Some("a `for` can bind only one variable".to_string()),
        (Token::Name, "where") => "is allowed once; combine conditions with `and`",
        (Token::Name, "for") => "cannot be nested; put two side by side into a constructed element",
        (Token::Name, "order" | "stable" | "group") => "is not supported; results are in document order",
        (Token::Name, "at" | "as" | "allowing") => {
            "is not supported; a variable is bound to one element at a time"
        }
        (Token::Name, "let" | "some" | "every" | "if" | "switch" | "typeswitch" | "count") => {
            "is not supported"
        }
        _ => return None,
    };
    Some(format!(
        "`{}` {instead}; a transformation is `for $v in path where condition return template`",
        lexer.word
    ))
}

/// A token where a template expects a path from the bound variable or an element.
pub fn bad_template_item(lexer: &Lexer, bound: Option<&str>) -> (&'static str, String) {
    let next = lexer.follower().unwrap_or_default();
    let template = |reason: &str| ("template", reason.to_string());
    match lexer.token {
        Token::Name => match lexer.word {
            "for" | "let" | "some" | "every" if next == b'$' => ("clause", clause(lexer).unwrap_or_default()),
            "if" | "switch" | "typeswitch" if next == b'(' => ("clause", clause(lexer).unwrap_or_default()),
            "element" | "attribute" | "document" | "text" | "comment" | "namespace" if is_computed(next) => (
                "constructor",
                "computed constructors are not supported; write tags: `<name>…</name>`".to_string(),
            ),
            name if next == b'(' => {
                let reason = format!(
                    "the function `{name}()` is not supported in a template; supported are `count()` and `string()`"
                );
                ("unknown-function", reason)
            }
            _ => no_context(bound),
        },
        Token::Text | Token::Number => template("write text in an element without braces and quotes"),
        Token::Compare(_) => template("write a constructed element without braces around it"),
        Token::CloseBrace => template("the braces are empty; write a literal brace as `{{` or `}}`"),
        Token::OpenParen => template(SEQUENCE),
        Token::End => ("syntax", "the query ends where a template is expected".to_string()),
        _ => no_context(bound),
    }
}

fn is_computed(next: u8) -> bool {
    next == b'{' || next.is_ascii_alphabetic()
}

fn no_context(bound: Option<&str>) -> (&'static str, String) {
    match bound {
        Some(bound) => ("context", context(bound)),
        None => ("template", "only `for … return` is allowed in braces here".to_string()),
    }
}

/// A token where a step or another operand is expected.
pub fn no_step(lexer: &Lexer) -> (&'static str, String) {
    let instead = match lexer.token {
        Token::OpenParen => "; instead of `a/(b | c)` write `a/b | a/c`",
        Token::Number | Token::Text => "; a literal cannot be a step",
        _ => "",
    };
    ("syntax", format!("{} where a path is expected{instead}", describe_token(lexer)))
}

/// A token where an operator or the end of the expression is expected.
pub fn unexpected(lexer: &Lexer, wanted: &str) -> (&'static str, String) {
    let found = describe_token(lexer);
    let instead = match lexer.token {
        Token::Plus | Token::Minus | Token::Star => return arithmetic(&found),
        Token::Compare(_) => {
            let reason = "a comparison cannot be compared; combine two comparisons with `and`";
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

fn arithmetic(found: &str) -> (&'static str, String) {
    ("arithmetic", format!("{found} here: arithmetic is not supported"))
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
