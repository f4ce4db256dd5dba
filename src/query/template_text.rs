//! Transformation → canonical text, which parses to the same transformation again without a prefix map.

use super::ast::Path;
use super::flwor::{Content, Flwor};
use super::text;
use super::transformation::{Block, Element, Item, Outer, Part, PrefixedName, Transformation};
use super::value::Clause;
use super::value_text;
use crate::util::xml_chars;

/// The variable of every block.
const VARIABLE: &str = "$v";

pub fn write(transformation: &Transformation, out: &mut String) {
    match transformation {
        Transformation::Blocks(blocks) => match &blocks.outer {
            Outer::Block(place) => block(&blocks.blocks[*place], out),
            other => outer(other, &blocks.blocks, out),
        },
        Transformation::Tuples(parts) => content(parts, out),
    }
}

fn content(part: &Content, out: &mut String) {
    match part {
        Content::Text(text) => content_text(text, out),
        Content::Element(constructed) => element(constructed, out, content, value_part),
        Content::Enclosed(inner) => {
            out.push('{');
            content(inner, out);
            out.push('}');
        }
        Content::Sequence(parts) => {
            out.push('(');
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                content(part, out);
            }
            out.push(')');
        }
        Content::Value(value) => value_text::content(value, out),
        Content::If(condition, yes, no) => {
            out.push_str("if (");
            value_text::condition_text(condition, out);
            out.push_str(") then ");
            content(yes, out);
            out.push_str(" else ");
            content(no, out);
        }
        Content::Flwor(parts) => flwor(parts, out),
    }
}

fn value_part(part: &Content, out: &mut String) {
    match part {
        Content::Text(text) => value_characters(text, out),
        part => content(part, out),
    }
}

/// `for $v in //a where … order by … return …`
fn flwor(flwor: &Flwor, out: &mut String) {
    for part in &flwor.clauses {
        clause(part, out);
        out.push(' ');
    }
    for (at, key) in flwor.order.iter().enumerate() {
        out.push_str(if at == 0 { "order by " } else { ", " });
        value_text::content(&key.value, out);
        if key.is_descending {
            out.push_str(" descending");
        }
        if key.is_empty_greatest {
            out.push_str(" empty greatest");
        }
    }
    out.push_str(if flwor.order.is_empty() { "return " } else { " return " });
    content(&flwor.result, out);
}

pub fn clause(clause: &Clause, out: &mut String) {
    match clause {
        Clause::For(variable, nodes) => {
            out.push_str("for ");
            text::variable(*variable, out);
            out.push_str(" in ");
            value_text::content(nodes, out);
        }
        Clause::Let(variable, value) => {
            out.push_str("let ");
            text::variable(*variable, out);
            out.push_str(" := ");
            value_text::content(value, out);
        }
        Clause::Where(condition) => {
            out.push_str("where ");
            value_text::condition_text(condition, out);
        }
    }
}

fn outer(part: &Outer, blocks: &[Block], out: &mut String) {
    match part {
        Outer::Text(text) => content_text(text, out),
        Outer::Element(constructed) => {
            element(
                constructed,
                out,
                |part, out| outer(part, blocks, out),
                |part, out| attribute_part(part, &[], out),
            );
        }
        Outer::Block(place) => {
            out.push('{');
            block(&blocks[*place], out);
            out.push('}');
        }
    }
}

fn block(block: &Block, out: &mut String) {
    out.push_str("for ");
    out.push_str(VARIABLE);
    out.push_str(" in ");
    text::steps(&block.binding.steps, out);
    out.push_str(" return ");
    for part in &block.template {
        match part {
            Item::Nodes(place) => bound_path(&block.returns[*place], out),
            other => item(other, &block.returns, out),
        }
    }
}

fn item(part: &Item, returns: &[Path], out: &mut String) {
    match part {
        Item::Text(text) => content_text(text, out),
        Item::Element(constructed) => element(
            constructed,
            out,
            |part, out| item(part, returns, out),
            |part, out| attribute_part(part, returns, out),
        ),
        Item::Nodes(place) => enclosed("", &returns[*place], "", out),
        Item::Count(place) => enclosed("count(", &returns[*place], ")", out),
        Item::First(place) => enclosed("string(", &returns[*place], ")", out),
    }
}

fn element<T, P>(
    element: &Element<T, P>,
    out: &mut String,
    child: impl Fn(&T, &mut String),
    value: impl Fn(&P, &mut String),
) {
    out.push('<');
    name(&element.name, out);
    for (prefix, uri) in &element.namespaces {
        out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
        out.push_str(prefix);
        out.push_str("=\"");
        value_characters(uri, out);
        out.push('"');
    }
    for attribute in &element.attributes {
        out.push(' ');
        name(&attribute.name, out);
        out.push_str("=\"");
        attribute.value.iter().for_each(|part| value(part, out));
        out.push('"');
    }
    if element.content.is_empty() {
        out.push_str("/>");
        return;
    }
    out.push('>');
    element.content.iter().for_each(|part| child(part, out));
    out.push_str("</");
    name(&element.name, out);
    out.push('>');
}

/// A part of an attribute value.
fn attribute_part(part: &Part, returns: &[Path], out: &mut String) {
    match part {
        Part::Text(text) => value_characters(text, out),
        Part::Values(place) => enclosed("", &returns[*place], "", out),
        Part::Count(place) => enclosed("count(", &returns[*place], ")", out),
        Part::First(place) => enclosed("string(", &returns[*place], ")", out),
    }
}

fn name(name: &PrefixedName, out: &mut String) {
    if !name.prefix.is_empty() {
        out.push_str(&name.prefix);
        out.push(':');
    }
    out.push_str(&name.local);
}

fn enclosed(opening: &str, path: &Path, closing: &str, out: &mut String) {
    out.push('{');
    out.push_str(opening);
    bound_path(path, out);
    out.push_str(closing);
    out.push('}');
}

fn bound_path(path: &Path, out: &mut String) {
    out.push_str(VARIABLE);
    text::steps(&path.steps, out);
}

fn content_text(text: &str, out: &mut String) {
    // The parser drops text of white space only, so its first character is written as a reference.
    let mut kept = !text.bytes().all(xml_chars::is_space);
    for c in text.chars() {
        match c {
            c if !kept => {
                kept = true;
                reference(c, out);
            }
            '\r' => reference(c, out),
            c => escaped(c, out),
        }
    }
}

fn value_characters(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => reference(c, out),
            c => escaped(c, out),
        }
    }
}

fn escaped(c: char, out: &mut String) {
    match c {
        '<' => out.push_str("&lt;"),
        '&' => out.push_str("&amp;"),
        '{' => out.push_str("{{"),
        '}' => out.push_str("}}"),
        c => out.push(c),
    }
}

fn reference(c: char, out: &mut String) {
    out.push_str(&format!("&#{};", c as u32));
}
