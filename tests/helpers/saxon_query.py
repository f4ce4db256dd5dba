"""The query that Saxon is asked, around a transformation."""

from collections.abc import Iterable, Mapping

PROLOG = r"""
declare boundary-space strip;
declare copy-namespaces preserve, inherit;
declare namespace output = "http://www.w3.org/2010/xslt-xquery-serialization";
declare option output:omit-xml-declaration "yes";
declare option output:indent "no";
declare function local:number($node) as xs:double {
  if (matches(string($node), '^[ \t\n\r]*-?([0-9]+(\.[0-9]*)?|\.[0-9]+)[ \t\n\r]*$'))
  then number($node) else number('NaN')
};
declare function local:any($value) as xs:double {
  if ($value instance of xs:double) then $value else local:number($value)
};
declare function local:text($number as xs:double) as xs:string {
  if ($number eq round($number) and abs($number) lt 1e15) then string(xs:integer($number))
  else if ($number ne $number) then 'NaN'
  else if (abs($number) eq xs:double('INF')) then replace(string($number), 'INF', 'Infinity')
  else string(xs:decimal($number))
};
declare variable $messages external;
declare variable $never := exists($messages/self::text());
"""
"""`$never` is false, and Saxon does not know: of a path that it knows to be empty, it refuses conditions."""

EACH_MESSAGE = """
for $doc at $place in $messages let $envelope := $envelopes[$place]/envelope/document { node() }"""
"""`$envelope` has a document node of its own, and is empty for a message without an envelope."""


def for_each_message(made: str, namespaces: Mapping[str, str], variables: Iterable[str] = ()) -> str:
    """The value of an expression for each `$doc` of `$messages`, or an element `error`."""
    declared = "".join(
        f"declare namespace {prefix} = {literal(uri)};\n" for prefix, uri in namespaces.items()
    )
    return f"""{declared}{PROLOG}{declarations(variables)}
<all>{{ {EACH_MESSAGE} return
  (: Named twice, what is made is a tree before it is written: an error can still be caught. :)
  try {{
    let $made := {made}
    return ($made, $made[2])
  }}
  catch * {{ <error>{{ local-name-from-QName($err:code) }}</error> }}
}}</all>"""


def declarations(variables: Iterable[str]) -> str:
    """Declarations of external variables, besides `$messages`."""
    return "".join(f"declare variable ${name} external;\n" for name in ("envelopes", *variables))


def as_written(text: str, variables: Iterable[str] = ()) -> str:
    """A query over all `$messages` for a transformation that has the same meaning in XQuery."""
    return for_each_message(f"$doc/<oracle>{{ {text} }}</oracle>", {}, variables)


def literal(value: str) -> str:
    """A string literal: XQuery reads references in it, and doubled quotes."""
    return "'" + value.replace("&", "&amp;").replace("'", "''") + "'"
