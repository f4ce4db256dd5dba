//! Which operators plans drop, and by which claim.

use crate::document::dtd::read_external;
use crate::limits::Limits;
use crate::query::ast::{Expr, Name, NameTest};
use crate::query::element_path::{ElementPath, skeleton};
use crate::query::{Namespaces, parse};
use crate::transform::plan::claims::{Claim, distinct, distinct_pairs, ordered};
use crate::transform::plan::rewrite::{PathStart, rewrite};
use crate::transform::plan::schema::Schema;

/// The book of the seed's examples: sections nest, figures do not.
const BOOK: &str = "<!ELEMENT book (title, section+)> <!ELEMENT section (title, (p | figure | section)*)>
    <!ELEMENT figure (title, image)> <!ELEMENT image EMPTY> <!ELEMENT p (#PCDATA)> <!ELEMENT title (#PCDATA)>";

fn schema(dtd: &str) -> Schema {
    let dtd = read_external(dtd.as_bytes(), &Limits::default(), &|_| None).unwrap();
    let children = |name: &str| {
        dtd.children_of(name.as_bytes()).into_iter().map(|(child, _)| child.to_string()).collect()
    };
    let elements = dtd.elements.iter().map(|(name, _)| (name.to_string(), children(name))).collect();
    Schema::new(elements, &dtd.roots().into_iter().map(str::to_string).collect::<Vec<_>>())
}

fn path(text: &str) -> ElementPath {
    let query = parse(text, &Namespaces::default()).unwrap();
    let Expr::Path(path, _) = &query.expr else { panic!("{text} is a path") };
    skeleton(path)
}

fn text(path: &ElementPath) -> String {
    let step = |step: &crate::query::element_path::ElementStep| {
        let name = match &step.test {
            NameTest::Name(Name { local, .. }) => local.as_str(),
            _ => "*",
        };
        format!("{}{name}", if step.axis == crate::query::ast::Axis::Child { "/" } else { "//" })
    };
    path.iter().map(step).collect()
}

#[test]
fn claims_by_the_query_count_descendant_steps() {
    assert_eq!(distinct(&path("/a//b/c"), None), Some(Claim::One));
    assert_eq!(distinct(&path("//a//b"), None), None);
    assert_eq!(distinct_pairs(&path("//a"), &path("//b"), None), Some(Claim::Three));
    assert_eq!(distinct_pairs(&path("//a//b"), &path("/c"), None), None);
    assert_eq!(ordered(&path("/a/b"), None), Some(Claim::Four));
    assert_eq!(ordered(&path("//a"), None), None);
}

#[test]
fn claims_by_a_dtd_look_at_cycles() {
    let book = schema(BOOK);
    // The seed's queries 8 and 9, in its §6.5.2.
    assert_eq!(distinct(&path("//section//figure"), Some(&book)), None);
    assert_eq!(ordered(&path("//section//figure"), Some(&book)), Some(Claim::Five));
    assert_eq!(distinct_pairs(&path("//section"), &path("//section//title"), Some(&book)), None);
    assert_eq!(distinct_pairs(&path("//section"), &path("/figure"), Some(&book)), Some(Claim::Three));
    assert_eq!(ordered(&path("//section"), Some(&book)), None);
    assert_eq!(distinct(&path("//figure//title"), Some(&book)), Some(Claim::Two));
    // `*` may stand for any element, also one on a cycle.
    assert_eq!(distinct(&path("//*//title"), Some(&book)), None);
    assert_eq!(ordered(&path("//section//*"), Some(&book)), None);
    // ANY allows every element, itself included.
    let any = schema("<!ELEMENT a ANY> <!ELEMENT b (c)> <!ELEMENT c EMPTY>");
    assert_eq!(distinct(&path("//a//c"), Some(&any)), None);
    assert_eq!(distinct(&path("//b//c"), Some(&any)), Some(Claim::Two));
}

#[test]
fn rewriting_writes_out_the_only_path() {
    let book = schema(BOOK);
    let rewritten = |written: &str| text(&rewrite(&path(written), PathStart::Document, &book));
    assert_eq!(rewritten("//book"), "/book");
    assert_eq!(rewritten("//figure//image"), "//figure/image");
    assert_eq!(rewritten("//section"), "//section");
    assert_eq!(rewritten("/book//title"), "/book//title");
    let list = schema(
        "<!ELEMENT list (item*)> <!ELEMENT item (name, price)> <!ELEMENT name (#PCDATA)> <!ELEMENT price (#PCDATA)>",
    );
    assert_eq!(text(&rewrite(&path("//price"), PathStart::Document, &list)), "/list/item/price");
}
