//! What a refusal says to the person who wrote the query. Nothing here runs for a good query.

use super::lexer::{Lexer, Token};

pub const TRANSFORMATION: &str = "a transformation is a query of its own: \
    `for … return` and constructed elements are no part of a path or condition";
pub const NO_BLOCK: &str =
    "nothing is taken from the message: there is no `{ for $v in … return … }` in here";
pub const BINDS_LEAF: &str = "a variable is bound to elements, not to attributes or text; bind their element, and write `$v/@a` or `$v/text()`";
pub const BINDS_DOCUMENT: &str = "a variable is bound to elements, not to the document; write `/*`";
pub const BINDS_UNION: &str = "a variable is bound to one path, not to a union; \
    put two `for … return` into a constructed element, or write `//*[a or b]`";
pub const BINDS_NO_PATH: &str =
    "a variable is bound to a path; conditions stand in its predicates or after `where`";
pub const ATTRIBUTE_WITHOUT_ELEMENT: &str =
    "an attribute needs a constructed element around it: `return <r>{ $v/@a }</r>`";
pub const LATE_ATTRIBUTE: &str =
    "an attribute goes before the content of its element; its value as text is `{ string($v/@a) }`";
pub const SEQUENCE: &str =
    "one path stands in a pair of braces; instead of `{ $v/a, $v/b }` write `{ $v/a }{ $v/b }`";
pub const COMMENT: &str = "comments are not supported in constructed elements";
pub const INSTRUCTION: &str = "processing instructions are not supported in constructed elements";
pub const DECLARATION: &str = "after `<!` only a CDATA section can stand here";
pub const TEXT_ALONE: &str = "text stands inside a constructed element";
pub const END_TAG_ALONE: &str = "there is no start tag to this end tag";
pub const UNCLOSED: &str = "the element that starts here is not closed";
pub const REFERENCE: &str = "only `&lt;`, `&gt;`, `&amp;`, `&quot;`, `&apos;` and the numbers of characters, \
    `&#10;` or `&#xA;`, are known; an `&` that is text is written `&amp;`";
pub const COMPUTED_NAMESPACE: &str =
    "a namespace is declared by its URI; it cannot be taken from the message";
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

/// A variable that is not bound where it stands.
pub fn variable(name: &str, bound: Option<&str>) -> String {
    match bound {
        Some(bound) if bound == name => {
            format!("`${name}` cannot stand in a predicate; a path there starts at the node that is tested")
        }
        Some(bound) => format!("the variable `${name}` is not bound; here `${bound}` is"),
        None => format!("the variable `${name}` is not bound here; only `$doc` and `$msg` have a meaning"),
    }
}

/// A path that does not start at the bound element where it should.
pub fn context(bound: &str) -> String {
    format!("a path starts with the variable here: `${bound}/…`")
}

/// What XQuery knows, and blocks do not; None for other tokens.
pub fn clause(lexer: &Lexer) -> Option<String> {
    let instead = match (lexer.token, lexer.word) {
        (Token::Comma, _) => return Some("a `for` binds one variable only".to_string()),
        (Token::Name, "where") => "is said once; join its conditions with `and`",
        (Token::Name, "for") => {
            "does not stand inside another; two can stand side by side in a constructed element"
        }
        (Token::Name, "order" | "stable" | "group") => "is not supported; results are in document order",
        (Token::Name, "at" | "as" | "allowing") => {
            "is not supported; a variable is bound to elements, one by one"
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

/// What stands where a template wants a path from the bound variable, or an element.
pub fn bad_template_item(lexer: &Lexer, bound: Option<&str>) -> (&'static str, String) {
    let next = lexer.follower().unwrap_or_default();
    let template = |reason: &str| ("template", reason.to_string());
    match lexer.token {
        Token::Name => match lexer.word {
            "for" | "let" | "some" | "every" if next == b'$' => ("clause", clause(lexer).unwrap_or_default()),
            "if" | "switch" | "typeswitch" if next == b'(' => ("clause", clause(lexer).unwrap_or_default()),
            "element" | "attribute" | "document" | "text" | "comment" | "namespace" if is_computed(next) => {
                ("constructor", "an element is constructed by its tags: `<name>…</name>`".to_string())
            }
            name if next == b'(' => {
                let reason = format!(
                    "the function `{name}()` is not supported in a template; there are `count()` and `string()`"
                );
                ("unknown-function", reason)
            }
            _ => no_context(bound),
        },
        Token::Text | Token::Number => {
            template("text stands in an element as it is, without braces and quotes")
        }
        Token::Compare(_) => template("a constructed element needs no braces around it"),
        Token::CloseBrace => template("nothing stands between the braces; a brace that is text is doubled"),
        Token::OpenParen => template(SEQUENCE),
        Token::End => ("syntax", "the query ends where a template should be".to_string()),
        _ => no_context(bound),
    }
}

fn is_computed(next: u8) -> bool {
    next == b'{' || next.is_ascii_alphabetic()
}

fn no_context(bound: Option<&str>) -> (&'static str, String) {
    match bound {
        Some(bound) => ("context", context(bound)),
        None => ("template", "only `for … return` can stand in braces here".to_string()),
    }
}

/// A token where the grammar wants a step, or anything that begins an operand.
pub fn no_step(lexer: &Lexer) -> (&'static str, String) {
    let instead = match lexer.token {
        Token::OpenParen => "; instead of `a/(b | c)` write `a/b | a/c`",
        Token::Number | Token::Text => "; a literal cannot be a step",
        _ => "",
    };
    ("syntax", format!("{} where a path should be{instead}", describe_token(lexer)))
}

/// A token where the grammar wants an operator, or what closes the expression.
pub fn unexpected(lexer: &Lexer, wanted: &str) -> (&'static str, String) {
    let found = describe_token(lexer);
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

/// A token where a transformation goes on otherwise, or not at all.
pub fn unexpected_token(lexer: &Lexer, wanted: &str) -> String {
    format!("{} where {wanted} should be", describe_token(lexer))
}

fn arithmetic(found: &str) -> (&'static str, String) {
    ("arithmetic", format!("{found} here: arithmetic is not supported"))
}

/// What stands there, short enough for a message: a word, or one character.
fn describe_token(lexer: &Lexer) -> String {
    let rest = &lexer.text[lexer.start..];
    let word = rest.char_indices().take_while(|(_, c)| c.is_alphanumeric()).take(24).last();
    match word.or(rest.char_indices().next()) {
        Some((at, c)) => format!("`{}` stands", &rest[..at + c.len_utf8()]),
        None => "the query ends".to_string(),
    }
}
