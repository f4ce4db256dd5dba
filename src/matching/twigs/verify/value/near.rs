//! The nodes on an axis from one node, found from the elements alone: without a table of all nodes.
//!
//! A table is made of the whole message (`axes`), which costs more than `../@id` or `count(item)` of one element.

use crate::document::{Document, NodeRef};
use crate::matching::twigs::verify::below::{children, leaves};
use crate::query::value::WalkAxis;
use crate::segment::twig::STEP_ATTRIBUTE_ANY;

/// Whether `for_each` visits all nodes on an axis from a node, or all elements if only those are wanted.
pub fn serves(axis: WalkAxis, only_elements: bool, node: NodeRef) -> bool {
    match axis {
        WalkAxis::Itself
        | WalkAxis::Parent
        | WalkAxis::Ancestor
        | WalkAxis::AncestorOrSelf
        | WalkAxis::Attribute => true,
        WalkAxis::Child => only_elements,
        WalkAxis::FollowingSibling | WalkAxis::PrecedingSibling => {
            only_elements && !matches!(node, NodeRef::Text(_) | NodeRef::Other(_))
        }
        _ => false,
    }
}

/// Calls `visit` with each node, in the order in which positions count them, for as long as it is true.
pub fn for_each(document: &Document, axis: WalkAxis, node: NodeRef, mut visit: impl FnMut(NodeRef) -> bool) {
    match (axis, node) {
        (WalkAxis::Itself, _) => _ = visit(node),
        (WalkAxis::Parent, _) => _ = parent(document, node).is_some_and(visit),
        (WalkAxis::Ancestor | WalkAxis::AncestorOrSelf, _) => {
            let mut next = if axis == WalkAxis::Ancestor { parent(document, node) } else { Some(node) };
            while let Some(at) = next
                && visit(at)
            {
                next = parent(document, at);
            }
        }
        (WalkAxis::Attribute, NodeRef::Element(element)) => {
            _ = leaves(document, STEP_ATTRIBUTE_ANY, element).all(visit);
        }
        (WalkAxis::Child, _) => _ = children(document, node).map(NodeRef::Element).all(visit),
        (WalkAxis::FollowingSibling, NodeRef::Element(element)) => {
            let end = match parent(document, node) {
                Some(NodeRef::Element(parent)) => document.element(parent).end.index(),
                Some(_) => document.message_end(),
                None => return,
            };
            let mut next = document.element(element).end;
            while next.index() < end && visit(NodeRef::Element(next)) {
                next = document.element(next).end;
            }
        }
        (WalkAxis::PrecedingSibling, NodeRef::Element(element)) => {
            let above = document.element(element).parent;
            // The root, and that of the envelope, have no siblings.
            if above.is_none() {
                return;
            }
            let mut last = element;
            while last.0 > above.0 + 1 {
                last.0 -= 1;
                while document.element(last).parent != above {
                    last = document.element(last).parent;
                }
                if !visit(NodeRef::Element(last)) {
                    return;
                }
            }
        }
        _ => {}
    }
}

/// The parent of a node. The document node and the root of the envelope have none.
fn parent(document: &Document, node: NodeRef) -> Option<NodeRef> {
    let above = match node {
        NodeRef::Document => return None,
        NodeRef::Element(element) if document.envelope == Some(element) => return None,
        NodeRef::Element(element) => document.element(element).parent,
        NodeRef::Attribute(element, _) => element,
        NodeRef::Text(place) => document.texts[place as usize].parent,
        NodeRef::Other(place) => document.others[place as usize].parent,
    };
    Some(if above.is_some() { NodeRef::Element(above) } else { NodeRef::Document })
}

#[cfg(test)]
mod tests {
    use super::super::NodeTable;
    use super::*;
    use crate::limits::Limits;
    use crate::query::value::WalkAxis as Axis;

    #[test]
    fn the_nodes_are_those_of_the_table() {
        let message = b"<a x='1'>t<b/><!--c--><b y='2'><c/>u<c><d/></c><?p i?><c/></b><e z=''/>v</a><?q j?>";
        let mut document = Document::default();
        crate::document::Reader::new().read(message, &Limits::default(), &mut document).expect("well-formed");
        let table = NodeTable::new(&document);
        let nodes = (0..table.count()).map(|number| table.node(number)).collect::<Vec<_>>();
        let attributes = nodes.iter().filter_map(|&node| match node {
            NodeRef::Element(element) => Some(leaves(&document, STEP_ATTRIBUTE_ANY, element)),
            _ => None,
        });
        let mut compared = 0;
        for node in nodes.iter().copied().chain(attributes.flatten()) {
            for axis in Axis::ALL {
                for only_elements in [false, true] {
                    if !serves(axis, only_elements, node) {
                        continue;
                    }
                    for most in [1, usize::MAX] {
                        let is_wanted =
                            |node: &NodeRef| !only_elements || matches!(node, NodeRef::Element(_));
                        let (mut near, mut all) = (Vec::new(), Vec::new());
                        for_each(&document, axis, node, |node| {
                            near.extend(Some(node).filter(is_wanted));
                            near.len() < most
                        });
                        table.for_each_in_order(&document, axis, node, |node| {
                            all.extend(Some(node).filter(is_wanted));
                            all.len() < most
                        });
                        assert_eq!(near, all, "{axis:?} from {node:?}");
                        compared += near.len();
                    }
                }
            }
        }
        assert!(compared > 200, "{compared}");
    }
}
