//! Invariants of every document that the reader accepts.

use crate::document::{Document, OtherKind, Span, Vocabulary};
use crate::ids::{ElementId, TagPathId};

pub fn check(document: &Document, vocabulary: &Vocabulary) {
    let Document {
        source,
        elements,
        attributes,
        texts,
        others,
        text,
        values,
        skipped_entities: _,
        envelope: _,
        annex: _,
    } = document;
    assert!(std::str::from_utf8(source).is_ok() && std::str::from_utf8(text).is_ok());
    let within = |span: Span, buffer: &[u8]| span.start <= span.end && span.end as usize <= buffer.len();
    let count = elements.len();
    assert!(count > 0);

    let mut numbers: Vec<u32> = vec![0];
    let mut attributes_seen = 0;
    for (index, element) in elements.iter().enumerate() {
        let id = ElementId::from(index);
        numbers.push(element.node.0);
        assert!(element.end.index() > index && element.end.index() <= count);
        assert!(within(element.span, source) && within(element.text, text));
        assert!(element.texts.start <= element.texts.end && element.texts.end as usize <= texts.len());
        assert_eq!(element.attributes_start as usize, attributes_seen);
        attributes_seen += document.attributes_of(id).len();
        assert!(element.name.index() < vocabulary.names());
        let parent_path = match elements.get(element.parent.index()) {
            None => {
                assert_eq!((index, element.depth, element.end.index()), (0, 1, count));
                TagPathId::NONE
            }
            Some(parent) => {
                assert!(element.parent < id && element.end <= parent.end);
                assert_eq!(element.depth, parent.depth + 1);
                assert!(parent.node < element.node);
                assert!(parent.span.start <= element.span.start && element.span.end <= parent.span.end);
                assert!(parent.texts.start <= element.texts.start && element.texts.end <= parent.texts.end);
                assert!(parent.text.start <= element.text.start && element.text.end <= parent.text.end);
                parent.tag_path
            }
        };
        assert_eq!(vocabulary.tag_path_parts(element.tag_path), (parent_path, element.name));
        // The string-value is the text nodes of the sub-tree, one after the other.
        let inside = &texts[element.texts.start as usize..element.texts.end as usize];
        let joined: Vec<u8> =
            inside.iter().flat_map(|text| text.content.of(&document.text).to_vec()).collect();
        if index == 0 || inside.len() < 100 {
            assert_eq!(joined, document.string_value(id));
        }
        assert!(inside.iter().all(|text| text.parent >= id && text.parent < element.end));
        assert_eq!(document.texts_of(id).count(), texts.iter().filter(|text| text.parent == id).count());
    }
    assert_eq!(attributes_seen, attributes.len());
    for attribute in attributes {
        assert!(attribute.name.index() < vocabulary.names() && within(attribute.value, values));
        assert!(std::str::from_utf8(document.value(attribute)).is_ok());
    }
    for text in texts {
        numbers.push(text.node.0);
        assert!(
            within(text.content, &document.text) && within(text.span, source) && !text.content.is_empty()
        );
        assert!(elements[text.parent.index()].node < text.node);
    }
    for pair in texts.windows(2) {
        assert_eq!(pair[0].content.end, pair[1].content.start);
        assert!(pair[0].node < pair[1].node);
        // Two text nodes never touch: they would be one.
        let touching = pair[0].node.0 + 1 == pair[1].node.0 && pair[0].parent == pair[1].parent;
        assert!(!touching);
    }
    assert_eq!(texts.last().map_or(0, |text| text.content.end as usize), text.len());
    for other in others {
        numbers.push(other.node.0);
        assert!(within(other.content, values) && within(other.span, source));
        if let OtherKind::Instruction { target } = other.kind {
            assert!(within(target, values) && !target.is_empty());
        }
    }
    numbers.sort_unstable();
    assert!(numbers.iter().enumerate().all(|(index, &number)| index == number as usize));
}
