"""`explain` agrees with `match`, and gives the reason."""

from random import Random

import tamis
from tests.helpers import random_documents as documents
from tests.helpers import random_queries as queries

MESSAGE = b"""<story>
  <topic code='markets'/>
  <company symbol='QLT'><change>9.0</change></company>
</story>"""


def explained(query: str, message: bytes = MESSAGE) -> tamis.Explanation:
    index = tamis.Index()
    index.insert(1, query)
    return index.explain(message, query)


def test_a_match_tells_what_it_selects() -> None:
    explanation = explained("/story/company[change > 0]")
    assert explanation.matches
    (node,) = explanation.nodes
    assert MESSAGE[node.start : node.end].startswith(b"<company")
    assert all(line.holds for line in explanation.lines)
    assert any(way.candidate and way.survives for way in explanation.alternatives)


def test_a_miss_tells_the_test_that_failed_and_where() -> None:
    explanation = explained("/story[topic/@code = 'sport']/company")
    assert not explanation.matches
    (failed,) = [line for line in explanation.lines if not line.holds]
    assert "sport" in failed.text
    assert failed.fails_at is not None
    assert MESSAGE[failed.fails_at.start :].startswith(b"<topic")
    assert failed.text in explanation.reason


def test_a_first_step_that_fails_has_no_place() -> None:
    explanation = explained("/news")
    (line,) = explanation.lines
    assert (line.holds, line.fails_at) == (False, None)


def test_the_access_test_is_shown_for_indexed_queries() -> None:
    index = tamis.Index()
    index.insert(1, "/story[topic/@code = 'markets']")
    (known,) = index.explain(MESSAGE, "/story[topic/@code = 'markets']").alternatives
    assert known.indexed
    assert known.filed is not None
    (unknown,) = index.explain(MESSAGE, "/story[topic/@code = 'sport']").alternatives
    assert not unknown.indexed


def test_a_query_without_a_necessary_test_is_always_a_candidate() -> None:
    explanation = explained("not(//correction)")
    (way,) = explanation.alternatives
    assert explanation.matches
    assert (way.indexed, way.filed, way.candidate) == (True, None, True)


def test_the_text_says_what_fails_and_the_plan_how_it_is_indexed() -> None:
    explanation = explained("/story[topic/@code = 'sport']/company")
    summary, plan = explanation.render(MESSAGE), explanation.render_plan(MESSAGE)
    for part in ("does not match", "/story/topic/@code='sport'", "fails at line 2"):
        assert part in summary
        assert part in plan
    assert "access test" in plan
    assert "access test" not in summary


def test_explanations_and_matches_agree() -> None:
    random = Random(4)
    for _ in range(8):
        original = documents.document(random)
        roots = [original, *(documents.variant(random, original) for _ in range(3))]
        messages = [documents.serialise(random, root) for root in roots]
        for number in range(60):
            production = queries.PRODUCTIONS[number % len(queries.PRODUCTIONS)]
            witness = random.choice([original, *original.descendants()])
            text = queries.query(random, witness, production).text
            index = tamis.Index()
            index.insert(1, text, namespaces=documents.NAMESPACES)
            for message in messages:
                explanation = index.explain(message, text, namespaces=documents.NAMESPACES)
                matched = index.match(message) == [1]
                assert explanation.matches == matched, (text, message)
                # What is necessary holds of every match.
                if matched:
                    ways = explanation.alternatives
                    assert any(way.candidate and way.survives for way in ways), (text, message)
                assert explanation.render(message)
                assert explanation.render_plan(message)


def test_a_position_after_other_predicates_is_shown_as_a_position() -> None:
    """Its line asks for a place among all siblings of the name, not for a value."""
    message = b"<r><a><b/></a><a><b/></a></r>"
    explanation = explained("//a[b][2]", message)
    assert explanation.matches
    assert {line.text: line.nodes for line in explanation.lines} == {"//a/b": 2, "//a[2]": 1}
    assert all(way.survives for way in explanation.alternatives)
    (failed,) = [line for line in explained("//a[b][3]", message).lines if not line.holds]
    assert (failed.text, failed.failing) == ("//a[3]", "[3]")
    assert failed.fails_at is not None
    assert message[failed.fails_at.start :].startswith(b"<a>")


def test_lines_stop_where_nothing_is_bound() -> None:
    message = b"<a><a><a x='1'><b>2</b></a></a></a>"
    explanation = explained("/a//a[@x = '2'][@y][b/text() = '1'][b//c]/a", message)
    stops = {line.text: (line.failing, line.fails_at and line.fails_at.start) for line in explanation.lines}
    assert stops == {
        "/a//a/@x='2'": ("='2'", 6),
        "/a//a/@y": ("/@y", 3),
        "/a//a/b/text()='1'": ("='1'", 18),
        "/a//a/b//c": ("//c", 15),
        "/a//a/a": (None, None),
    }


def test_lines_are_found_together() -> None:
    """A thousand lines of a thousand steps each: they share all of these but the last."""
    steps, branches = "/a" * 1_000, "".join(f"[b{number}]" for number in range(1_000))
    message = b"<a>" * 200 + b"<b/>" * 10_000 + b"</a>" * 200
    explanation = tamis.Index().explain(message, steps + branches)
    assert len(explanation.lines) == 1_000
    assert {line.fails_at is not None for line in explanation.lines} == {True}
