//! Transformation → canonical text, which parses to the same transformation again without a prefix map.

use super::ast::Path;
use super::text;
use super::transformation::{Block, Element, Item, Outer, Part, PrefixedName, Transformation};
use crate::util::xml_chars;

/// The variable of every block.
const VARIABLE: &str = "$v";

pub fn write(transformation: &Transformation, out: &mut String) {
    match &transformation.outer {
        Outer::Block(place) => block(&transformation.blocks[*place], out),
        other => outer(other, &transformation.blocks, out),
    }
}

fn outer(part: &Outer, blocks: &[Block], out: &mut String) {
    match part {
        Outer::Text(text) => content_text(text, out),
        Outer::Element(constructed) => element(constructed, &[], out, |part, out| outer(part, blocks, out)),
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
        Item::Element(constructed) => {
            element(constructed, returns, out, |part, out| item(part, returns, out))
        }
        Item::Nodes(place) => enclosed("", &returns[*place], "", out),
        Item::Count(place) => enclosed("count(", &returns[*place], ")", out),
        Item::First(place) => enclosed("string(", &returns[*place], ")", out),
    }
}

fn element<T>(element: &Element<T>, returns: &[Path], out: &mut String, child: impl Fn(&T, &mut String)) {
    out.push('<');
    name(&element.name, out);
    for (prefix, uri) in &element.namespaces {
        out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
        out.push_str(prefix);
        out.push_str("=\"");
        value_text(uri, out);
        out.push('"');
    }
    for attribute in &element.attributes {
        out.push(' ');
        name(&attribute.name, out);
        out.push_str("=\"");
        for part in &attribute.value {
            match part {
                Part::Text(text) => value_text(text, out),
                Part::Values(place) => enclosed("", &returns[*place], "", out),
                Part::Count(place) => enclosed("count(", &returns[*place], ")", out),
                Part::First(place) => enclosed("string(", &returns[*place], ")", out),
            }
        }
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

fn value_text(text: &str, out: &mut String) {
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
