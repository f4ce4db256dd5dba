"""How many candidates rules are: they are evaluated only for messages that have what they need."""

import pytest

import tamis
from tamis.bench.measure import total

RULES = {
    # A rule with % for a number, and the message that it matches.
    "count": ("//o[@k = '%']/i[count(t) > 1]", "<o k='%'><i><t/><t/></i></o>"),
    "normalize-space": ("//o[normalize-space(k) = '%']", "<o><k> % </k></o>"),
    "normalize-space of one": ("//o[normalize-space(@k) = '%'][i]", "<o k=' %'><i/></o>"),
    "string-length": ("//o[@k = '%'][string-length(n) > 2]", "<o k='%'><n>abc</n></o>"),
    "substring": ("//o[k = '%'][substring(n, 1, 1) = 'a']", "<o><k>%</k><n>abc</n></o>"),
    "arithmetic": ("//o[@k = '%'][n * 2 > 5]", "<o k='%'><n>3</n></o>"),
    "last": ("//o[@k = '%']/n[last()] = 3", "<o k='%'><n>1</n><n>3</n></o>"),
    "parent": ("//n[../k = '%']", "<o><k>%</k><n/></o>"),
    "parent, forward": ("//o/k[. = '%']/../n > 5", "<o><k>%</k><n>6</n></o>"),
    "ancestor": ("//n[ancestor::o/@k = '%']", "<o k='%'><p><n/></p></o>"),
    "sibling": ("/r/o/preceding-sibling::o[1]/@k = '%'", "<o k='%'/><o/>"),
    "matches": ("//o[matches(@k, '^(%|x%)$')][n]", "<o k='%'><n/></o>"),
    "some": ("some $o in //o satisfies $o/@k = '%' and count($o/n) > 1", "<o k='%'><n/><n/></o>"),
    "list": ("//o[@k = ('%', 'x%')][count(n) != 5]", "<o k='%'/>"),
    "filter": ("(//o)[1]/@k = '%'", "<o k='%'/>"),
    "function step": ("//o/string(@k) = '%'", "<o k='%'/>"),
    "maximum": ("max(//o/@k) = %", "<o k='%'/>"),
}
MANY = 1_000


@pytest.mark.parametrize("name", RULES)
def test_few_candidates_are_evaluated(name: str) -> None:
    rule, content = RULES[name]
    index = tamis.Index()
    rules = [rule.replace("%", str(number)) for number in range(10_000, 10_000 + MANY)]
    for target, query in enumerate(rules):
        index.insert(target, query)
    messages = [f"<r>{content.replace('%', str(10_000 + number))}</r>".encode() for number in range(100)]
    found = index.match_batch(messages)
    assert index.targets(found).to_pylist() == [[number] for number in range(100)]
    assert total(found, "verified") <= 100
    # Other messages have no candidates at all.
    others = index.match_batch([message.replace(b"100", b"999") for message in messages])
    assert total(others, "candidates") == 0
