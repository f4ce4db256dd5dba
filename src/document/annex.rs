//! Records of local data in the document of a message: elements after those of the message and its envelope.
//!
//! The records that a message meets by a join lie below a root of their own, whose name no message can write. What looks
//! at the nodes of a message ends before it: see `Document::message_end`.

use super::vocabulary::Vocabulary;
use super::{Attribute, Document, Element, Reader, Span, Text};
use crate::ids::{ElementId, NameId, NodeId, TagPathId, UriId};

/// The ids that names and tag paths of records have in messages of one epoch, below one root.
#[derive(Default)]
pub struct AnnexNames {
    root: Option<(NameId, TagPathId)>,
    names: Vec<NameId>,
    tag_paths: Vec<TagPathId>,
}

/// A root with the records below it, while it is written.
pub struct Annex<'a> {
    vocabulary: &'a mut Vocabulary,
    document: &'a mut Document,
    names: &'a mut AnnexNames,
    root: ElementId,
    tag_path: TagPathId,
    node: u32,
}

impl<'a> Annex<'a> {
    /// Adds a root called `name` after everything else.
    pub fn new(
        reader: &'a mut Reader,
        document: &'a mut Document,
        names: &'a mut AnnexNames,
        name: &str,
    ) -> Annex<'a> {
        let vocabulary = reader.vocabulary_mut();
        let (name, tag_path) = *names.root.get_or_insert_with(|| {
            let name = vocabulary.name(UriId(0), name.as_bytes());
            (name, vocabulary.tag_path(TagPathId::NONE, name))
        });
        let root = ElementId::from(document.elements.len());
        document.annex.get_or_insert((root, document.texts.len() as u32));
        let node = document.elements.len() + document.texts.len() + document.others.len() + 1;
        let (texts, text) = (document.texts.len(), document.text.len());
        document.elements.push(Element {
            name,
            parent: ElementId::NONE,
            end: root,
            tag_path,
            node: NodeId(node as u32),
            depth: 1,
            attributes_start: document.attributes.len() as u32,
            texts: span(texts, texts),
            text: span(text, text),
            span: span(document.source.len(), document.source.len()),
        });
        Annex { vocabulary, document, names, root, tag_path, node: node as u32 + 1 }
    }

    /// Copies a record.
    pub fn add(&mut self, record: &Document, of_record: &Vocabulary) {
        let first = self.document.elements.len() as u32;
        let texts = self.document.texts.len() as u32;
        let text = self.document.text.len() as u32;
        let attributes = self.document.attributes.len() as u32;
        let end = self.document.source.len();
        let moved = |Span { start, end }: Span, by: u32| Span { start: start + by, end: end + by };
        for element in &record.elements {
            let name = self.name(element.name, of_record);
            let tag_path = self.tag_path(element.tag_path, name, of_record);
            let parent = match element.parent.is_none() {
                true => self.root,
                false => ElementId(element.parent.0 + first),
            };
            let node = self.node_id(record, element.node);
            self.document.elements.push(Element {
                name,
                parent,
                end: ElementId(element.end.0 + first),
                tag_path,
                node,
                depth: element.depth + 1,
                attributes_start: element.attributes_start + attributes,
                texts: moved(element.texts, texts),
                text: moved(element.text, text),
                span: span(end, end),
            });
        }
        for one in &record.texts {
            let parent = ElementId(one.parent.0 + first);
            let node = self.node_id(record, one.node);
            let content = moved(one.content, text);
            self.document.texts.push(Text { parent, node, content, span: span(end, end) });
        }
        self.document.text.extend_from_slice(&record.text);
        for attribute in &record.attributes {
            let start = self.document.values.len();
            self.document.values.extend_from_slice(record.value(attribute));
            let value = span(start, self.document.values.len());
            let name = self.name(attribute.name, of_record);
            self.document.attributes.push(Attribute { name, value });
        }
        self.node += (record.elements.len() + record.texts.len()) as u32;
    }

    /// Ends the root.
    pub fn finish(self) {
        let (elements, texts) = (self.document.elements.len(), self.document.texts.len());
        let text = self.document.text.len();
        let root = &mut self.document.elements[self.root.index()];
        root.end = elements.into();
        root.texts.end = texts as u32;
        root.text.end = text as u32;
    }

    /// The number of a record's node here, where comments and processing instructions have none.
    fn node_id(&self, record: &Document, node: NodeId) -> NodeId {
        let others = record.others.partition_point(|other| other.node < node) as u32;
        NodeId(self.node + node.0 - 1 - others)
    }

    fn name(&mut self, name: NameId, of_record: &Vocabulary) -> NameId {
        let known = slot(&mut self.names.names, name.index(), NameId::NONE);
        if known.is_none() {
            let (uri, local) = of_record.name_parts(name);
            let uri = self.vocabulary.uri(of_record.uri_text(uri));
            *known = self.vocabulary.name(uri, local);
        }
        *known
    }

    /// The tag path of an element; its parent's is known, as it comes first.
    fn tag_path(&mut self, tag_path: TagPathId, name: NameId, of_record: &Vocabulary) -> TagPathId {
        let known = slot(&mut self.names.tag_paths, tag_path.index(), TagPathId::NONE);
        if known.is_some() {
            return *known;
        }
        let (above, _) = of_record.tag_path_parts(tag_path);
        let above = match above.is_none() {
            true => self.tag_path,
            false => self.names.tag_paths[above.index()],
        };
        let here = self.vocabulary.tag_path(above, name);
        self.names.tag_paths[tag_path.index()] = here;
        here
    }
}

fn slot<T: Copy>(items: &mut Vec<T>, at: usize, none: T) -> &mut T {
    if items.len() <= at {
        items.resize(at + 1, none);
    }
    &mut items[at]
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}
