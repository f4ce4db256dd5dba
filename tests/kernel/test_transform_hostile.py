"""Templates and messages made to blow up: an error for that transformation, and nothing else."""

import pytest

import tamis
from tamis import Limits

DEEP = b"<a>" * 250 + b"x" * 20_000 + b"</a>" * 250
WIDE = b"<r>" + b"<i><j/><j/></i>" * 20_000 + b"</r>"

MODEST = "for $v in /* return <found/>"


def made(message: bytes, queries: dict[int, str], limits: Limits) -> dict[int, tamis.Output]:
    index = tamis.Index()
    for target, query in queries.items():
        index.insert(target, query)
    return {output.target: output for output in index.transform(message, limits=limits)}


# 250 levels, and below them twenty thousand elements: five million pairs.
DEEP_AND_WIDE = b"<a>" * 250 + b"<j/>" * 20_000 + b"</a>" * 250

HOSTILE = {
    # Each of 250 nested elements copied whole: the message 250 times.
    "nested copies": (DEEP, "for $v in //a return <c>{ $v }</c>", "output-limit"),
    # 250 × 249 / 2 pairs.
    "pairs of nested": (DEEP, "for $v in //a return <c>{ $v//a }</c>", "bindings-limit"),
    "repeated in a template": (DEEP, f"for $v in /a return <c>{'{ $v }' * 400}</c>", "output-limit"),
    "repeated in an attribute": (DEEP, f'for $v in /a return <c d="{"{ $v }" * 400}"/>', "output-limit"),
    "many small ones": (WIDE, "for $v in //i return <cccccc>{ count($v/k) }</cccccc>", "output-limit"),
    "many bindings": (WIDE, "for $v in //j return <c/>", "bindings-limit"),
    "many taken": (WIDE, "for $v in /r return <c>{ count($v//*) }</c>", "bindings-limit"),
    "many taken by a predicate": (
        WIDE,
        "for $v in /r return <c>{ count($v//*[not(k)]) }</c>",
        "bindings-limit",
    ),
    "many taken by nested": (DEEP_AND_WIDE, "for $v in //a return <c>{ count($v//j) }</c>", "bindings-limit"),
    "many searched by nested": (
        DEEP_AND_WIDE,
        "for $v in //a return <c>{ count($v//j[not(k)]) }</c>",
        "bindings-limit",
    ),
    "many blocks": (WIDE, f"<c>{'{ for $v in //i return <e/> }' * 1_000}</c>", "bindings-limit"),
    "many conditions": (WIDE, "for $v in /r where $v/i/j return <c/>", "bindings-limit"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_blow_up_fails_alone(name: str) -> None:
    message, query, code = HOSTILE[name]
    limits = Limits(output=100_000, bindings=25_000)
    alike = query.replace("<c", "<d").replace("</c", "</d")
    outputs = made(message, {1: MODEST, 2: query, 3: "/*", 4: alike}, limits)
    assert outputs[1].payload == b"<found/>"
    assert outputs[3].payload == message
    for target in (2, 4):
        assert outputs[target].payload is None
        assert outputs[target].code == code
        assert str(limits.output if code == "output-limit" else limits.bindings) in str(
            outputs[target].reason
        )


def test_all_outputs_of_a_message_are_bounded_together() -> None:
    message = b"<r>" + b"x" * 900 + b"</r>"
    queries = {target: f"for $v in /r return <c{target}>{{ $v }}</c{target}>" for target in range(100)}
    outputs = made(message, queries, Limits(outputs=10_000))
    failed = [output for output in outputs.values() if output.payload is None]
    assert {output.code for output in failed} == {"outputs-limit"}
    assert 85 <= len(failed) < 95


def test_ways_that_multiply_are_counted_once() -> None:
    """Thirty-two million ways lead through these steps to 246 elements."""
    outputs = made(DEEP, {1: "for $v in //a//a//a//a//a return <c>{ count($v//a//a//a//a) }</c>"}, Limits())
    payload = outputs[1].payload
    assert payload is not None
    assert payload.startswith(b"<c>242</c><c>241</c>")
    assert payload.count(b"<c>") == 246


def test_equal_outputs_are_made_once() -> None:
    index = tamis.Index()
    for target in range(50):
        index.insert(target, f"for $v in /r where $v/@n > {target} return <c>{{ $v/x }}</c>")
    batch = index.transform_batch([b"<r n='1000'><x>1</x></r>", b"<r n='1001'><x>1</x></r>"])
    assert batch.made.num_rows == 100
    assert batch.outputs.to_pylist() == [b"<c><x>1</x></c>"] * 2


# Four bytes each, a million times.
MILLION = b"<r>" + b"<j/>" * 1_000_000 + b"</r>"


def test_empty_lists_are_counted() -> None:
    """A thousand million of them, and not a node in any."""
    paths = "".join(f"{{ $v/x{number} }}" for number in range(1_000))
    outputs = made(MILLION, {1: MODEST, 2: f"for $v in //j return <c>{paths}</c>"}, Limits())
    assert outputs[1].payload == b"<found/>"
    assert (outputs[2].payload, outputs[2].code) == (None, "bindings-limit")


def test_values_that_are_compared_are_counted() -> None:
    """250 attributes of each of 4,000 elements, for each of 250 elements around them."""
    attributes = b" ".join(b"a%d=''" % number for number in range(250))
    message = b"<a>" * 250 + (b"<j " + attributes + b"/>") * 4_000 + b"</a>" * 250
    outputs = made(message, {1: MODEST, 2: "for $v in //a where $v//j/@* != 'z' return <c/>"}, Limits())
    assert outputs[1].payload == b"<found/>"
    assert (outputs[2].payload, outputs[2].code) == (None, "bindings-limit")


def test_ancestors_of_an_end_are_visited_once() -> None:
    """Without that, each of the 240 elements around an end would cost as many levels."""
    message = b"<a><x>" + b"<a>" * 240 + b"<j/>" * 100_000 + b"</a>" * 240 + b"</x></a>"
    queries = {
        1: "for $v in //a return <c>{ count($v/x//j) }</c>",
        2: "for $v in //a return <c>{ count($v/x//j/@q) }</c>",
    }
    outputs = made(message, queries, Limits())
    assert outputs[1].payload == b"<c>100000</c>" + b"<c>0</c>" * 240
    assert outputs[2].payload == b"<c>0</c>" * 241


def test_texts_of_elements_in_between_are_passed_over() -> None:
    """Each of 240 nested elements has twenty thousand texts further down."""
    message = b"<a>" * 240 + b"<j>t</j>" * 20_000 + b"u" + b"</a>" * 240
    queries = {
        1: "for $v in //a return <c>{ count($v//a/text()) }</c>",
        2: "for $v in //a where $v//a/text() != 't' return <c/>",
    }
    outputs = made(message, queries, Limits())
    assert outputs[1].payload == b"<c>1</c>" * 239 + b"<c>0</c>"
    assert outputs[2].payload == b"<c/>" * 239


def test_texts_among_elements_come_in_order() -> None:
    many = b"".join(b"%d<j>x<a>y%d</a>z</j><j/>" % (number, number) for number in range(30))
    message = b"<a>" + many + b"<![CDATA[last]]></a>"
    outputs = made(message, {1: "for $v in /* return <c>{ $v/text() }-{ $v/j/a/text() }</c>"}, Limits())
    own = b"".join(b"%d" % number for number in range(30))
    inner = b"".join(b"y%d" % number for number in range(30))
    assert outputs[1].payload == b"<c>" + own + b"last-" + inner + b"</c>"


def test_predicates_of_return_paths_are_decided_once() -> None:
    message = b"<a>" * 240 + b"<j/>" * 20_000 + b"</a>" * 240
    queries = {1: "for $v in //a return <c>{ count($v//a[not(.//*[@q])]) }</c>"}
    payload = made(message, queries, Limits())[1].payload
    assert payload == b"".join(b"<c>%d</c>" % number for number in reversed(range(240)))


def test_prefixes_that_clash_are_numbered_in_one_go() -> None:
    count = 20_000
    xs = (b"<x xmlns:p='u%d' p:a='1'/>" % number for number in range(count))
    query = "for $v in /r return <c>{ $v//@* }</c>"
    payload = made(b"<r>" + b"".join(xs) + b"</r>", {1: query}, Limits())[1].payload
    assert payload is not None
    assert payload.startswith(b'<c xmlns:p="u0" p:a="1" xmlns:p_1="u1" p_1:a="1"')
    assert payload.endswith(b' xmlns:p_%d="u%d" p_%d:a="1"/>' % ((count - 1,) * 3))


def test_a_prefix_with_a_number_is_found_again() -> None:
    message = (
        b"<r><x xmlns:p='u' p:a='1'/><x xmlns:p='v' p:b='2'/><x xmlns:p_2='w' p_2:c='3'/>"
        b"<x xmlns:p='v' p:d='4'/><x xmlns:p='z' p:e='5'/></r>"
    )
    queries = {
        1: "for $v in /r return <c>{ $v//@* }</c>",
        2: "for $v in /r return <c>{ $v/x[1]/@* }"
        "<d>{ $v/x[2]/@* }{ $v/x[5]/@* }</d><e>{ $v/x[5]/@* }</e></c>",
    }
    outputs = made(message, queries, Limits())
    assert outputs[1].payload == (
        b'<c xmlns:p="u" p:a="1" xmlns:p_1="v" p_1:b="2" xmlns:p_2="w" p_2:c="3" p_1:d="4"'
        b' xmlns:p_3="z" p_3:e="5"/>'
    )
    assert outputs[2].payload == (
        b'<c xmlns:p="u" p:a="1"><d xmlns:p_1="v" p_1:b="2" xmlns:p_2="z" p_2:e="5"/>'
        b'<e xmlns:p_1="z" p_1:e="5"/></c>'
    )


def test_evicted_results_are_computed_again() -> None:
    """Streams of two thousand transformations do not all fit, nor what passes each of many conditions."""
    marks = b"".join(b"<x%d/>" % number for number in range(2_000))
    message = b"<r>" + marks + b"<j a='1'><k/></j>" * 100_000 + b"<j a='2'><k/></j>" + b"</r>"
    queries = {number: f"for $v in //x{number} return <c>{{ $v }}</c>" for number in range(2_000)}
    conditions = "".join(f"[@a != '{number}']" for number in range(10, 70))
    queries[2_000] = f"for $v in //j{conditions}[k][@a != '1'] return <c>{{ $v/k }}</c>"
    queries[2_001] = f"for $v in /r//j{conditions}[@a != '1']/k[not(l)][not(m)] return <c>{{ $v }}</c>"
    outputs = made(message, queries, Limits())
    for number in range(2_000):
        assert outputs[number].payload == b"<c><x%d/></c>" % number
    assert outputs[2_000].payload == b"<c><k/></c>"
    assert outputs[2_001].payload == b"<c><k/></c>"
