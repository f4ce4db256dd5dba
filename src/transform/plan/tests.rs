//! What plans leave out, and on what ground.

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

fn line(text: &str) -> ElementPath {
    let query = parse(text, &Namespaces::default()).unwrap();
    let Expr::Path(path, _) = &query.expr else { panic!("{text} is a path") };
    skeleton(path)
}

fn text(line: &ElementPath) -> String {
    let step = |step: &crate::query::element_path::ElementStep| {
        let name = match &step.test {
            NameTest::Name(Name { local, .. }) => local.as_str(),
            _ => "*",
        };
        format!("{}{name}", if step.axis == crate::query::ast::Axis::Child { "/" } else { "//" })
    };
    line.iter().map(step).collect()
}

#[test]
fn claims_by_the_query_count_descendant_steps() {
    assert_eq!(distinct(&line("/a//b/c"), None), Some(Claim::One));
    assert_eq!(distinct(&line("//a//b"), None), None);
    assert_eq!(distinct_pairs(&line("//a"), &line("//b"), None), Some(Claim::Three));
    assert_eq!(distinct_pairs(&line("//a//b"), &line("/c"), None), None);
    assert_eq!(ordered(&line("/a/b"), None), Some(Claim::Four));
    assert_eq!(ordered(&line("//a"), None), None);
}

#[test]
fn claims_by_a_dtd_look_at_loops() {
    let book = schema(BOOK);
    // The seed's queries 8 and 9, in its §6.5.2.
    assert_eq!(distinct(&line("//section//figure"), Some(&book)), None);
    assert_eq!(ordered(&line("//section//figure"), Some(&book)), Some(Claim::Five));
    assert_eq!(distinct_pairs(&line("//section"), &line("//section//title"), Some(&book)), None);
    assert_eq!(distinct_pairs(&line("//section"), &line("/figure"), Some(&book)), Some(Claim::Three));
    assert_eq!(ordered(&line("//section"), Some(&book)), None);
    assert_eq!(distinct(&line("//figure//title"), Some(&book)), Some(Claim::Two));
    // `*` may stand for anything, and so on a loop.
    assert_eq!(distinct(&line("//*//title"), Some(&book)), None);
    assert_eq!(ordered(&line("//section//*"), Some(&book)), None);
    // ANY allows every element, itself included.
    let any = schema("<!ELEMENT a ANY> <!ELEMENT b (c)> <!ELEMENT c EMPTY>");
    assert_eq!(distinct(&line("//a//c"), Some(&any)), None);
    assert_eq!(distinct(&line("//b//c"), Some(&any)), Some(Claim::Two));
}

#[test]
fn rewriting_writes_out_the_only_way() {
    let book = schema(BOOK);
    let rewritten = |path: &str| text(&rewrite(&line(path), PathStart::Document, &book));
    assert_eq!(rewritten("//book"), "/book");
    assert_eq!(rewritten("//figure//image"), "//figure/image");
    assert_eq!(rewritten("//section"), "//section");
    assert_eq!(rewritten("/book//title"), "/book//title");
    let list = schema(
        "<!ELEMENT list (item*)> <!ELEMENT item (name, price)> <!ELEMENT name (#PCDATA)> <!ELEMENT price (#PCDATA)>",
    );
    assert_eq!(text(&rewrite(&line("//price"), PathStart::Document, &list)), "/list/item/price");
}
