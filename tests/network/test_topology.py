"""`network.toml`: what it says, and every error with its place."""

from pathlib import Path

import pytest

from tamis.cli import main
from tamis.model.matching import Limits
from tamis.network.limits import check_limits
from tamis.network.parcel import LinkError
from tamis.network.topology import (
    RETENTION,
    DirectoryCarrier,
    KafkaCarrier,
    Topology,
    TopologyError,
    read_topology,
)

SEED = ["one-two", "two-three", "one-four", "four-five", "four-six"]
"""Figure 7.2 of seed 001."""


def brokers(*names: str) -> str:
    return "".join(f'[[broker]]\nname = "{name}"\n' for name in names)


def link(one: str, other: str, more: str = "") -> str:
    path = "" if "path" in more else f'path = "{one}-{other}"\n'
    return f'[[link]]\nends = ["{one}", "{other}"]\n{path}{more}\n'


def read(folder: Path, text: str) -> Topology:
    file = folder / "network.toml"
    file.write_text(text)
    return read_topology(file)


def seed(folder: Path) -> Topology:
    names = brokers("one", "two", "three", "four", "five", "six")
    return read(folder, names + "".join(link(*ends.split("-")) for ends in SEED))


def test_who_is_behind_a_link(tmp_path: Path) -> None:
    topology = seed(tmp_path)
    behind = {
        (broker, link.other(broker)): topology.behind(broker, link)
        for broker in topology.brokers
        for link in topology.links_of(broker)
    }
    assert behind["one", "four"] == {"four", "five", "six"}
    assert behind["four", "one"] == {"one", "two", "three"}
    assert behind["three", "two"] == {"one", "two", "four", "five", "six"}
    assert behind["five", "four"] == set(topology.brokers) - {"five"}
    assert topology.toward("three", "six") == "two"
    assert topology.toward("four", "six") == "six"
    assert topology.toward("four", "four") is None
    assert topology.toward("four", "nowhere") is None


def test_a_link_as_it_is_written(tmp_path: Path) -> None:
    text = brokers("a", "b", "c") + link("a", "b", "cost = 5\ntenants = ['acme']\n")
    one, other = read(tmp_path, text + link("c", "b", "path = 'hdfs://h/cb'")).links
    assert (one.name, one.cost, one.carrier) == ("a.b", 5, DirectoryCarrier(str(tmp_path / "a-b")))
    assert one.carries("acme")
    assert not one.carries("other")
    assert (other.name, other.cost) == ("b.c", 1)
    assert other.carrier == DirectoryCarrier("hdfs://h/cb")
    assert other.carries("other")


def test_limits_of_the_network(tmp_path: Path) -> None:
    text = "[limits]\ndocument = '20MiB'\ndepth = 9\ninternal_subset = true\n" + brokers("a")
    limits = read(tmp_path, text).limits
    assert limits == Limits(document=20 << 20, depth=9, internal_subset=True)
    check_limits(limits, limits, [("x", Limits(depth=9)), ("y", limits)], "n.toml")
    with pytest.raises(LinkError, match=r"limits-above-network: source x .*depth: 10 and not 9"):
        check_limits(limits, limits, [("x", Limits(depth=10))], "n.toml")
    with pytest.raises(LinkError, match=r"limits-above-network: .*text: 30000000 and not 20971520"):
        check_limits(limits, limits, [("x", Limits(depth=9, text=30_000_000))], "n.toml")
    with pytest.raises(LinkError, match=r"limits-below-network: .*document: .*internal_subset: 1 and not 0"):
        check_limits(limits, Limits(), [], "n.toml")


AB = brokers("a", "b")
KAFKA = AB + "[[link]]\nends = ['a', 'b']\ncarrier = 'kafka'\n"


def test_a_link_by_kafka(tmp_path: Path) -> None:
    (link,) = read(tmp_path, KAFKA + "servers = 'k:1'\n").links
    assert link.carrier == KafkaCarrier("k:1", "tamis", RETENTION, {})
    more = "topics = 'x.y'\nretention = 60\nclient = { 'security.protocol' = 'SSL' }\n"
    (link,) = read(tmp_path, KAFKA + "servers = 'k:1'\n" + more).links
    assert link.carrier == KafkaCarrier("k:1", "x.y", 60.0, {"security.protocol": "SSL"})
    assert (link.carrier.kind, link.carrier.location) == ("kafka", "k:1/x.y")
    assert hash(link) == hash(link)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("[[broker]\n", ["bad-toml"]),
        ("", ["the file: no-broker"]),
        ("x = 1\n" + AB + link("a", "b"), ["the file: unknown-key"]),
        ("broker = 1", ["broker: bad-value"]),
        ("number = 0\n" + brokers("a"), ["number: bad-value"]),
        ("number = true\n" + brokers("a"), ["number: bad-value"]),
        ("[[broker]]\n", ["[[broker]] 1: missing-key"]),
        (brokers("a", "."), ["[[broker]] 2: name: bad-name"]),
        (brokers("a", "a"), ["[[broker]] 2: name: two-brokers"]),
        (brokers("a", "b"), ["[[broker]] 2: not-connected"]),
        (AB + link("a", "b", "size = 1"), ["[[link]] 1: unknown-key"]),
        (AB + "[[link]]\npath = 'x'", ["[[link]] 1: missing-key"]),
        (AB + "[[link]]\npath = 'x'\nends = ['a']", ["[[link]] 1: ends: bad-value"]),
        (AB + link("a", "c"), ["[[link]] 1: ends: unknown-broker"]),
        (AB + link("a", "a"), ["[[link]] 1: ends: self-link"]),
        (AB + link("a", "b", "carrier = 'pigeon'"), ["[[link]] 1: carrier: bad-carrier"]),
        (AB + "[[link]]\nends = ['a', 'b']", ["[[link]] 1: path: missing-key"]),
        (AB + link("a", "b", "path = 1"), ["[[link]] 1: path: bad-value"]),
        ("limits = 1\n" + brokers("a"), ["[limits]: bad-value"]),
        ("[limits]\nx = 1\n" + brokers("a"), ["[limits]: unknown-key"]),
        ("[limits]\ndepth = true\n" + brokers("a"), ["[limits]: depth: bad-value"]),
        ("[limits]\ndocument = 'much'\n" + brokers("a"), ["[limits]: document: bad-value"]),
        (KAFKA, ["[[link]] 1: servers: missing-key"]),
        (KAFKA + "servers = 1", ["[[link]] 1: servers: bad-value"]),
        (KAFKA + "servers = 'k'\npath = 'x'", ["[[link]] 1: unknown-key"]),
        (AB + link("a", "b", "servers = 'k'"), ["[[link]] 1: unknown-key"]),
        (KAFKA + "servers = 'k'\ntopics = 'a/b'", ["[[link]] 1: topics: bad-value"]),
        (KAFKA + "servers = 'k'\nretention = 0", ["[[link]] 1: retention: bad-value"]),
        (KAFKA + "servers = 'k'\nclient = { x = 1 }", ["[[link]] 1: client: bad-value"]),
        (AB + link("a", "b", "cost = 0"), ["[[link]] 1: cost: bad-value"]),
        (AB + link("a", "b", "cost = 1.5"), ["[[link]] 1: cost: bad-value"]),
        (AB + link("a", "b", "tenants = 'acme'"), ["[[link]] 1: tenants: bad-value"]),
        (AB + link("a", "b") + link("b", "a"), ["[[link]] 2: ends: two-links"]),
        (
            brokers("a", "b", "c") + link("a", "b") + link("b", "c") + link("c", "a"),
            ["[[link]] 3: ends: not-a-tree"],
        ),
        (
            brokers("a", "b", "c") + link("a", "b") + link("b", "c", "path = 'a-b'"),
            ["[[link]] 2: path: shared-path"],
        ),
        (
            brokers("a", "") + link("a", "b", "cost = -1\ntenants = [1]"),
            [
                "[[broker]] 2: name: bad-name",
                "[[link]] 1: ends: unknown-broker",
                "[[link]] 1: cost: bad-value",
                "[[link]] 1: tenants: bad-value",
            ],
        ),
    ],
)
def test_every_problem_has_a_code_and_a_place(text: str, problems: list[str], tmp_path: Path) -> None:
    with pytest.raises(TopologyError) as error:
        read(tmp_path, text)
    found = [str(problem) for problem in error.value.problems]
    assert len(found) == len(problems)
    for one, expected in zip(found, problems, strict=True):
        assert expected in one
        assert error.value.problems[0].code == error.value.code


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="no-network"):
        read_topology(tmp_path / "none.toml")


def test_check_prints_the_links_or_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "network.toml"
    file.write_text(AB + link("a", "b", "path = '/ab'\ntenants = ['y', 'x']"))
    assert main(["network", "check", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "broker\ta\tb",
        "broker\tb\ta",
        "link\ta\tb\tdirectory\t/ab\t1\tx, y",
    ]
    file.write_text(AB + link("a", "c", "cost = 0"))
    assert main(["network", "check", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "[[link]] 1: ends: unknown-broker: no [[broker]] is called 'c'",
        "[[link]] 1: cost: bad-value: a cost is a whole number from 1 to 1000000, not 0",
    ]
