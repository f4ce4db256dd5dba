use super::*;

fn limits() -> Limits {
    Limits { internal_subset: true, ..Limits::default() }
}

fn internal_with(prolog: Prolog, subset: &str) -> Result<Dtd, ReadError> {
    let source = format!("<!DOCTYPE r [{subset}]><r/>");
    let start = source.find('[').unwrap() + 1;
    let (dtd, end) = read_internal(source.as_bytes(), start, prolog, &limits())?;
    assert_eq!(&source[end..end + 2], "]>", "{subset}");
    Ok(dtd)
}

fn internal(subset: &str) -> Result<Dtd, ReadError> {
    internal_with(Prolog::default(), subset)
}

fn external(text: &str) -> Result<Dtd, ReadError> {
    read_external(text.as_bytes(), &limits(), &|_| None)
}

fn text<'a>(dtd: &'a Dtd, entity: &str) -> &'a str {
    match &dtd.entities.get(entity.as_bytes()).unwrap_or_else(|| panic!("no entity {entity}")).kind {
        EntityKind::Internal(text) => text,
        other => panic!("{other:?}"),
    }
}

fn default<'a>(dtd: &'a Dtd, element: &str, attribute: &str) -> Option<&'a str> {
    let declared = dtd.attributes_of(element.as_bytes()).iter().find(|declared| declared.name == attribute);
    declared.unwrap_or_else(|| panic!("no attribute {attribute}")).default.value()
}

fn graph(dtd: &Dtd, element: &str) -> Vec<(String, u32, Option<u32>)> {
    let children = dtd.children_of(element.as_bytes());
    children.into_iter().map(|(name, count)| (name.to_owned(), count.min, count.max)).collect()
}

#[test]
fn elements_give_a_graph_with_cardinalities() {
    let dtd = internal(
        "<!ELEMENT a (b, c?, (d | e)+, b*)><!ELEMENT b EMPTY><!ELEMENT c ANY>
         <!ELEMENT d ( #PCDATA | b|c )*><!ELEMENT e ((b,c)|(b,b))><!ELEMENT f (#PCDATA)>",
    )
    .unwrap();
    let named = |name: &str, min, max| (name.to_owned(), min, max);
    assert_eq!(
        graph(&dtd, "a"),
        [named("b", 1, None), named("c", 0, Some(1)), named("d", 0, None), named("e", 0, None)]
    );
    assert_eq!(graph(&dtd, "b"), []);
    assert_eq!(graph(&dtd, "c").len(), 6);
    assert_eq!(graph(&dtd, "d"), [named("b", 0, None), named("c", 0, None)]);
    assert_eq!(graph(&dtd, "e"), [named("b", 1, Some(2)), named("c", 0, Some(1))]);
    assert_eq!(dtd.elements.get(b"f"), Some(&Content::Mixed(vec![])));
    assert_eq!(dtd.roots(), ["a", "f"]);
}

#[test]
fn the_first_declaration_holds() {
    let dtd = internal(
        "<!ATTLIST a x CDATA '1' x CDATA '2'><!ATTLIST a x CDATA '3' y (p|q) 'q'>
         <!ENTITY e 'one'><!ENTITY e 'two'>",
    )
    .unwrap();
    assert_eq!(default(&dtd, "a", "x"), Some("1"));
    assert_eq!(default(&dtd, "a", "y"), Some("q"));
    assert_eq!(text(&dtd, "e"), "one");
}

#[test]
fn entity_values_keep_references_and_replace_characters() {
    // The example of XML 1.0, appendix D.
    let dtd = internal(
        "<!ENTITY example \"<p>An ampersand (&#38;#38;) may be escaped\r\nnumerically (&#38;#38;#38;) or with a \
         general entity (&amp;amp;).</p>\" >",
    )
    .unwrap();
    assert_eq!(
        text(&dtd, "example"),
        "<p>An ampersand (&#38;) may be escaped\nnumerically (&#38;#38;) or with a general entity (&amp;amp;).</p>"
    );
}

#[test]
fn parameter_entities_stand_between_declarations() {
    // The second example of appendix D.
    let dtd = internal(
        "<!ENTITY % xx '&#37;zz;'><!ENTITY % zz '&#60;!ENTITY tricky \"error-prone\" >' >\n%xx;\n<!ENTITY late ''>",
    )
    .unwrap();
    assert_eq!(text(&dtd, "tricky"), "error-prone");
    assert!(dtd.has_parameter_references);
    assert!(dtd.entities.get(b"tricky").unwrap().outside);
    assert!(!dtd.entities.get(b"late").unwrap().outside);
}

#[test]
fn after_an_unread_entity_declarations_no_longer_count() {
    let subset =
        "<!ENTITY % far SYSTEM 'far.ent'><!ENTITY a '1'>%far;<!ENTITY b '2'><!ATTLIST r x CDATA '3'>";
    let dtd = internal(subset).unwrap();
    assert_eq!(text(&dtd, "a"), "1");
    assert!(dtd.entities.get(b"b").is_none() && dtd.attributes_of(b"r").is_empty());
    let dtd = internal_with(Prolog { standalone: true, external: false }, subset).unwrap();
    assert_eq!(text(&dtd, "b"), "2");
    assert_eq!(default(&dtd, "r", "x"), Some("3"));
}

#[test]
fn defaults_are_normalised_for_their_type() {
    let dtd = internal(
        "<!ENTITY e ' &#9; in&#38;#10;side '><!ATTLIST a c CDATA ' x\r\n y&#10;z&e;&lt;' n NMTOKENS ' x\r\n  y '
         q CDATA #FIXED '%not;' r CDATA #REQUIRED i IDREF #IMPLIED>",
    )
    .unwrap();
    assert_eq!(default(&dtd, "a", "c"), Some(" x  y\nz   in\nside <"));
    assert_eq!(default(&dtd, "a", "n"), Some("x y"));
    assert_eq!(default(&dtd, "a", "q"), Some("%not;"));
    assert_eq!(default(&dtd, "a", "r"), None);
}

#[test]
fn an_undeclared_entity_in_a_default_may_be_declared_elsewhere() {
    let subset = "<!ATTLIST a x CDATA 'p&gone;q'>";
    assert_eq!(internal(subset).unwrap_err().code, "undeclared-entity");
    let elsewhere = internal_with(Prolog { standalone: false, external: true }, subset);
    assert_eq!(elsewhere.unwrap_err().code, "unread-entity");
    let standalone = Prolog { standalone: true, external: true };
    assert_eq!(internal_with(standalone, subset).unwrap_err().code, "undeclared-entity");
    let inside = "<!ENTITY % p '<!ENTITY e \"1\">'>%p;<!ATTLIST a x CDATA '&e;'>";
    assert_eq!(default(&internal(inside).unwrap(), "a", "x"), Some("1"));
    assert_eq!(internal_with(standalone, inside).unwrap_err().code, "undeclared-entity");
}

#[test]
fn external_text_has_references_anywhere_and_conditional_sections() {
    let dtd = external(
        "<?xml version='1.0' encoding='utf-8'?>\r<!ENTITY % model '(b, c)'>\r<!ENTITY % in 'INCLUDE'><!ENTITY % out 'IGNORE'>
         <!ELEMENT a %model;><!ENTITY % more 'x CDATA #IMPLIED'><!ATTLIST a %more; y %kind; 'l'>
         <![%in;[<!ELEMENT b EMPTY><![ %out; [ <!ELEMENT b ANY> <![ x ]]> ]]>]]>
         <!ENTITY both 'pre%in;post'><!ENTITY % name 'NAME'><!ENTITY % delayed '<!ELEMENT c (%name;)>'>%delayed;"
            .replace("%kind;", "(l|r)")
            .as_str(),
    )
    .unwrap();
    assert_eq!(graph(&dtd, "a"), [("b".to_owned(), 1, Some(1)), ("c".to_owned(), 1, Some(1))]);
    assert_eq!(dtd.elements.get(b"b"), Some(&Content::Empty));
    assert_eq!(dtd.attributes_of(b"a").len(), 2);
    assert_eq!(text(&dtd, "both"), "preINCLUDEpost");
    assert_eq!(graph(&dtd, "c"), [("NAME".to_owned(), 1, Some(1))]);
}

#[test]
fn external_parameter_entities_are_asked_for() {
    let text = "<!ENTITY % far PUBLIC '-//X//Y' 'far.mod'>%far;<!ELEMENT a (%names;)>";
    let resolve = |system: &str| {
        (system == "far.mod").then(|| b"<?xml encoding='UTF-8'?><!ENTITY % names 'b|c'>\r\n".to_vec())
    };
    let dtd = read_external(text.as_bytes(), &limits(), &resolve).unwrap();
    assert_eq!(graph(&dtd, "a").len(), 2);
    let error = external(text).unwrap_err();
    assert_eq!(error.code, "unresolved-entity");
    assert!(error.reason.contains("far.mod"), "{error}");
    let utf16: Vec<u8> =
        "\u{FEFF}<!ELEMENT é EMPTY>".encode_utf16().flat_map(|unit| unit.to_le_bytes()).collect();
    let dtd = read_external(&utf16, &limits(), &|_| None).unwrap();
    assert!(dtd.elements.get("é".as_bytes()).is_some());
    let latin = b"<?xml encoding='ISO-8859-1'?><!ELEMENT \xE9 EMPTY>";
    let dtd = read_external(latin, &limits(), &|_| None).unwrap();
    assert!(dtd.elements.get("é".as_bytes()).is_some());
}

/// Each subset, and the code it is refused with.
const REFUSED: &[(&str, &str)] = &[
    ("<!ELEMENT a>", "bad-declaration"),
    ("<!ELEMENT a(b)>", "bad-declaration"),
    ("<!ELEMENT a (b,c|d)>", "bad-declaration"),
    ("<!ELEMENT a (b|)>", "bad-declaration"),
    ("<!ELEMENT a ()>", "bad-declaration"),
    ("<!ELEMENT a (b) *>", "bad-declaration"),
    ("<!ELEMENT a (#PCDATA|b)>", "bad-declaration"),
    ("<!ELEMENT a (b|#PCDATA)*>", "bad-declaration"),
    ("<!ELEMENT a EMPTYX>", "bad-declaration"),
    ("<!ELEMENT a: EMPTY>", "bad-name"),
    ("<!ELEMENT a:b:c EMPTY>", "bad-name"),
    ("<!ATTLIST a b CDATA>", "bad-declaration"),
    ("<!ATTLIST a b cdata #IMPLIED>", "bad-declaration"),
    ("<!ATTLIST a b CDATA #IMPLIEDc CDATA #IMPLIED>", "bad-declaration"),
    ("<!ATTLIST a b NOTATION(x) #IMPLIED>", "bad-declaration"),
    ("<!ATTLIST a b (x|y,z) #IMPLIED>", "bad-declaration"),
    ("<!ATTLIST a b CDATA '<'>", "less-than-in-attribute"),
    ("<!ENTITY e '<'><!ATTLIST a b CDATA '&e;'>", "less-than-in-attribute"),
    ("<!ENTITY e SYSTEM 'x'><!ATTLIST a b CDATA '&e;'>", "external-entity"),
    ("<!ENTITY e SYSTEM 'x' NDATA n><!ATTLIST a b CDATA '&e;'>", "unparsed-entity"),
    ("<!ENTITY e '&f;'><!ENTITY f '&e;'><!ATTLIST a b CDATA '&e;'>", "entity-recursion"),
    ("<!ENTITY e 'a & b'>", "bad-reference"),
    ("<!ENTITY e '50 %'>", "bad-reference"),
    ("<!ENTITY e '&#xFFFF;'>", "illegal-character"),
    ("<!ENTITY e '&#+38;'>", "bad-reference"),
    ("<!ENTITY e '\u{1}'>", "illegal-character"),
    ("<!ENTITY % e SYSTEM 'x' NDATA n>", "bad-declaration"),
    ("<!ENTITY e PUBLIC '\u{e9}' 'x'>", "bad-declaration"),
    ("<!ENTITY e PUBLIC 'p'>", "bad-declaration"),
    ("<!ENTITY a:b 'x'>", "bad-name"),
    ("<!ENTITY % p 'x'><!ENTITY e '%p;'>", "parameter-reference"),
    ("<!ENTITY % p 'EMPTY'><!ELEMENT a %p;>", "parameter-reference"),
    ("<!ENTITY % p '&#37;p;'>%p;", "entity-recursion"),
    ("<!ENTITY % p '&#37;q;'><!ENTITY % q '&#37;p;'>%q;", "entity-recursion"),
    ("<!ENTITY % p '<!ELEMENT a '>%p; EMPTY>", "unclosed-declaration"),
    ("<!ENTITY % p ']'>%p;", "bad-declaration"),
    ("<![INCLUDE[<!ELEMENT a EMPTY>]]>", "bad-declaration"),
    ("<!NOTATION n>", "bad-declaration"),
    ("<!NOTATION n SYSTEM>", "bad-declaration"),
    ("<!-- a -- b -->", "bad-comment"),
    ("<!-- a --->", "bad-comment"),
    ("<?xml version='1.0'?>", "reserved-target"),
    ("<?a:b c?>", "bad-name"),
    ("<?a+b?>", "bad-declaration"),
    ("text", "bad-declaration"),
    ("&amp;", "bad-declaration"),
    ("<!element a EMPTY>", "bad-declaration"),
    ("% p;", "bad-declaration"),
];

#[test]
fn what_is_not_well_formed_is_refused() {
    for (subset, code) in REFUSED {
        match internal(subset) {
            Ok(_) => panic!("accepted: {subset}"),
            Err(error) => assert_eq!(error.code, *code, "{subset}: {error}"),
        }
    }
}

#[test]
fn errors_have_positions() {
    let source = b"<!DOCTYPE r [\n<!ENTITY % p '<!ELEMENT a'>\n %p;\n]>";
    let error = read_internal(source, 13, Prolog::default(), &limits()).unwrap_err();
    assert_eq!((error.position.line, error.position.column), (3, 2));
    let source = b"<!DOCTYPE r [\n<!ELEMENT a b>]>";
    let error = read_internal(source, 13, Prolog::default(), &limits()).unwrap_err();
    assert_eq!((error.position.line, error.position.column), (2, 13));
    assert_eq!(external("<![INCLUDE[").unwrap_err().code, "unclosed-declaration");
    assert_eq!(external("<![IGNORE[ <![ ]]>").unwrap_err().code, "unclosed-declaration");
    assert_eq!(external("%gone;").unwrap_err().code, "undeclared-entity");
    assert_eq!(external("<?xml encoding='latin-9'?>").unwrap_err().code, "unsupported-encoding");
    let read = |text: &[u8]| read_external(text, &limits(), &|_| None);
    let error = read(b"<?xml encoding='windows-1252'?>\n<!-- \xE9\x81 -->").unwrap_err();
    assert_eq!((error.code, error.position.line, error.position.column), ("bad-encoding", 2, 7));
    let error = read(b"<?xml encoding='us-ascii'?>\n<!-- \xC3\xA9 -->").unwrap_err();
    assert_eq!((error.code, error.position.line, error.position.column), ("encoding-mismatch", 2, 6));
}

#[test]
fn attacks_are_bounded() {
    let mut laughs = String::from("<!ENTITY % a0 'aaaaaaaaaa'>");
    let mut general = String::from("<!ENTITY b0 'bbbbbbbbbb'>");
    for level in 1..20 {
        let below = level - 1;
        laughs.push_str(&format!("<!ENTITY % a{level} '{}'>", format!("&#37;a{below};").repeat(10)));
        general.push_str(&format!("<!ENTITY b{level} '{}'>", format!("&b{below};").repeat(10)));
    }
    let error = external(&format!("{laughs}%a19;")).unwrap_err();
    assert!(matches!(error.code, "expansion-limit" | "bad-declaration"), "{error}");
    let empty = laughs.replace("aaaaaaaaaa", "");
    assert_eq!(external(&format!("{empty}%a19;")).unwrap_err().code, "expansion-limit");
    assert_eq!(internal(&format!("{empty}%a19;")).unwrap_err().code, "expansion-limit");
    let value = external(&format!("{laughs}<!ENTITY e '%a19;'>")).unwrap_err();
    assert_eq!(value.code, "expansion-limit");
    assert_eq!(value.exceeded.unwrap().limit, limits().expansion as u64);
    let attribute = internal(&format!("{general}<!ATTLIST r x CDATA '&b19;'>")).unwrap_err();
    assert_eq!(attribute.code, "expansion-limit");

    let nested = format!("<!ELEMENT a {}b{}>", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(internal(&nested).unwrap_err().code, "depth-limit");
    let many: String = (0..300).map(|n| format!(" a{n} CDATA #IMPLIED")).collect();
    assert_eq!(internal(&format!("<!ATTLIST a{many}>")).unwrap_err().code, "attributes-limit");
    assert_eq!(internal(&format!("<!ELEMENT {} EMPTY>", "n".repeat(2000))).unwrap_err().code, "name-limit");
    let long = format!("<!ENTITY e '{}'>", "x".repeat(limits().text + 1));
    assert_eq!(internal(&long).unwrap_err().code, "text-limit");

    // A chain as long as a message allows: entities nest on the heap.
    let mut chain = String::from("<!ENTITY % c0 ''><!ENTITY d0 ''>");
    for level in 1..50_000 {
        let below = level - 1;
        chain.push_str(&format!("<!ENTITY % c{level} '&#37;c{below};'><!ENTITY d{level} '&d{below};'>"));
    }
    internal(&format!("{chain}%c49999;<!ATTLIST r x CDATA '&d49999;'>")).unwrap();
}

/// Cutting a subset anywhere gives an error, never a panic; so does any one byte changed.
#[test]
fn damage_never_panics() {
    let subset = "<!ENTITY % p '<!ELEMENT q (a|b)*>'>%p;<!ELEMENT a (b?,(c|d)+)><!ATTLIST a é (x|y) \"x\" n NOTATION (m) \
                  #IMPLIED><!-- c --><?t d?><!ENTITY e SYSTEM 'u' NDATA m><!NOTATION m PUBLIC 'p'><![IGNORE[x]]>";
    for bytes in [format!("{subset}]").into_bytes(), subset.as_bytes().to_vec()] {
        for cut in 0..bytes.len() {
            let _ = read_internal(&bytes[..cut], 0, Prolog::default(), &limits());
            let _ = read_external(&bytes[..cut], &limits(), &|_| None);
            for byte in [0u8, b'%', b'<', b'>', b'\'', b'&', b';', b'(', b']', 0xC3, 0xFF] {
                let mut changed = bytes.clone();
                changed[cut] = byte;
                let _ = read_internal(&changed, 0, Prolog::default(), &limits());
                let _ = read_external(&changed, &limits(), &|_| None);
            }
        }
    }
}

#[test]
fn json_tells_the_python_side_everything() {
    let dtd = internal("<!ELEMENT a (b?|c)+><!ATTLIST a x (p|q) 'p' y CDATA #FIXED '\"\\'>").unwrap();
    assert_eq!(
        dtd.to_json(),
        r#"{"roots":["a"],"elements":{"a":{"content":"children","model":["choice","+",[["name","?","b"],["name","","c"]]],"children":{"b":[0,null],"c":[0,null]},"attributes":{"x":{"type":"enumeration","values":["p","q"],"default":"value","value":"p"},"y":{"type":"CDATA","values":[],"default":"fixed","value":"\"\\"}}}}}"#
    );
}

#[test]
fn the_news_dtd_is_read() {
    let Some(data) = std::env::var_os("TAMIS_DATA") else {
        return;
    };
    let bytes = std::fs::read(std::path::Path::new(&data).join("nitf/nitf-2-5.dtd")).unwrap();
    let dtd = read_external(&bytes, &limits(), &|_| None).unwrap();
    assert_eq!(dtd.elements.len(), 123);
    assert_eq!(dtd.roots(), ["nitf"]);
    assert_eq!(graph(&dtd, "nitf").len(), 2);
    let attributes: usize = dtd.attributes.iter().map(|(_, attributes)| attributes.len()).sum();
    assert!((500..=520).contains(&attributes), "{attributes}");
}
