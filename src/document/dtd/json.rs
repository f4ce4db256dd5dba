//! A DTD's elements as JSON, for Python: DTDs are small and are passed once.

use std::fmt::Write;

use super::{AttributeDeclaration, AttributeDefault, AttributeType, Content, Dtd, Particle, ParticleKind};

impl Dtd {
    /// `{"roots": [name…], "elements": {name: {"content", "model", "children", "attributes"}}}`:
    /// `content` is `empty`, `any`, `mixed` or `children`; a `model` is `null` or
    /// `[kind, occurrence, parts or name]` with the kinds `seq`, `choice` and `name`; `children` maps a
    /// name to `[min, max or null]`; `attributes` maps a name to `type`, `values`, `default` (`required`,
    /// `implied`, `fixed` or `value`) and `value`.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\"roots\":");
        list(&mut out, '[', self.roots(), ']', string);
        out.push_str(",\"elements\":");
        list(&mut out, '{', self.elements.iter(), '}', |out, (name, content)| {
            string(out, name);
            out.push_str(":{\"content\":");
            string(out, content.keyword());
            out.push_str(",\"model\":");
            match content {
                Content::Empty | Content::Any => out.push_str("null"),
                Content::Mixed(names) => {
                    out.push_str("[\"choice\",\"*\",");
                    list(out, '[', names, ']', |out, name| named(out, name, ""));
                    out.push(']');
                }
                Content::Children(particle) => model(out, particle),
            }
            out.push_str(",\"children\":");
            list(out, '{', self.children_of(name.as_bytes()), '}', |out, (child, count)| {
                string(out, child);
                let _ = write!(out, ":[{},", count.min);
                match count.max {
                    Some(max) => {
                        let _ = write!(out, "{max}]");
                    }
                    None => out.push_str("null]"),
                }
            });
            out.push_str(",\"attributes\":");
            list(out, '{', self.attributes_of(name.as_bytes()), '}', attribute);
            out.push('}');
        });
        out.push('}');
        out
    }
}

impl Content {
    pub fn keyword(&self) -> &'static str {
        match self {
            Content::Empty => "empty",
            Content::Any => "any",
            Content::Mixed(_) => "mixed",
            Content::Children(_) => "children",
        }
    }
}

fn model(out: &mut String, particle: &Particle) {
    let occurrence = particle.occurrence.symbol();
    let (kind, parts) = match &particle.kind {
        ParticleKind::Name(name) => return named(out, name, occurrence),
        ParticleKind::Sequence(parts) => ("seq", parts),
        ParticleKind::Choice(parts) => ("choice", parts),
    };
    let _ = write!(out, "[\"{kind}\",\"{occurrence}\",");
    list(out, '[', parts, ']', model);
    out.push(']');
}

fn named(out: &mut String, name: &str, occurrence: &str) {
    let _ = write!(out, "[\"name\",\"{occurrence}\",");
    string(out, name);
    out.push(']');
}

fn attribute(out: &mut String, attribute: &AttributeDeclaration) {
    string(out, &attribute.name);
    out.push_str(":{\"type\":");
    string(out, attribute.kind.keyword());
    out.push_str(",\"values\":");
    let values: &[String] = match &attribute.kind {
        AttributeType::Notation(values) | AttributeType::Enumeration(values) => values,
        _ => &[],
    };
    list(out, '[', values, ']', |out, value| string(out, value));
    out.push_str(",\"default\":");
    string(
        out,
        match attribute.default {
            AttributeDefault::Required => "required",
            AttributeDefault::Implied => "implied",
            AttributeDefault::Fixed(_) => "fixed",
            AttributeDefault::Value(_) => "value",
        },
    );
    out.push_str(",\"value\":");
    match attribute.default.value() {
        Some(value) => string(out, value),
        None => out.push_str("null"),
    }
    out.push('}');
}

fn list<T>(
    out: &mut String,
    open: char,
    items: impl IntoIterator<Item = T>,
    close: char,
    mut write: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}

fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
