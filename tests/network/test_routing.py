"""Routing by interest in random networks: what is established is delivered, once; and little else crosses."""

import json
import os
import random
import zlib

import pytest

from tamis.network.notices import Hello, InForce, Notice, TableChange, decode, encode
from tamis.network.parcel import LinkError
from tamis.network.tables import EMPTY, TableVersion, changed_hash
from tests.helpers.routing_network import SimBroker, SimNetwork
from tests.helpers.routing_oracle import MESSAGES, QUERIES, Oracle, check_quiet

STEPS = {
    "subscribe": 30,
    "unsubscribe": 20,
    "publish": 40,
    "step": 80,
    "receive": 120,
    "begin": 40,
    "finish": 40,
    "away": 5,
    "restart": 5,
    "copy": 3,
    "restore": 2,
}
"""What happens to a broker, and how often."""

NETWORKS = int(os.environ.get("TAMIS_NETWORKS", "300"))
"""Random networks; `make soak` takes 10,000."""


def random_tree(draw: random.Random) -> SimNetwork:
    names = "abcdef"[: draw.randint(2, 6)]
    ends = [draw.choice(names[:at]) + names[at] for at in range(1, len(names))]
    barred = {one: frozenset("t") for one in ends if draw.random() < 0.1}
    network = SimNetwork(*ends, tenants=barred, budget=draw.choice([None, None, 1, 3]))
    network.is_patient = draw.random() < 0.5
    return network


@pytest.mark.parametrize("part", range(4))
def test_random_networks(part: int) -> None:
    for number in range(part, NETWORKS, 4):
        seed = int(os.environ.get("TAMIS_SEED") or 0) * 1_000_000 + number
        try:
            run(random.Random(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def run(draw: random.Random) -> None:
    """Changes, messages, batches, restarts and catalogs that are away, in any order; then quiet."""
    network = random_tree(draw)
    oracle = Oracle(network)
    names = list(network.brokers)
    if draw.random() < 0.5:
        network.settle()
    for _ in range(draw.randint(20, 120)):
        broker = network.brokers[draw.choice(names)]
        match draw.choices(
            [*STEPS],
            [*STEPS.values()],
        )[0]:
            case "subscribe":
                oracle.subscribe(broker.name, draw.choice("tu"), draw.choice(QUERIES))
            case "unsubscribe" if oracle.active:
                oracle.unsubscribe(draw.choice(sorted(oracle.active)))
            case "publish":
                oracle.publish(broker.name, draw.choice("tu"), draw.choice(MESSAGES))
            case "step":
                broker.step()
            case "receive":
                network.receive(*draw.choice(list(network.wires)))
            case "begin":
                broker.begin(own=draw.random() < 0.5)
            case "finish":
                broker.finish()
            case "away":
                broker.catalog.away = not broker.catalog.away
            case "restart":
                broker.restart()
            case "copy":
                broker.catalog.copy()
            case "restore":
                restore(oracle, broker)
    for broker in network.brokers.values():
        broker.catalog.away = False
    network.settle()
    oracle.check()
    check_quiet(network, oracle)


def restore(oracle: Oracle, broker: SimBroker) -> None:
    """The catalog of a broker is restored from its copy."""
    before = dict(broker.catalog.content.subscriptions)
    broker.catalog.restore()
    oracle.restored(broker.catalog.content.subscriptions.keys(), before, broker.name)


def pair() -> tuple[SimNetwork, Oracle]:
    """Two brokers; what B wants is established."""
    network = SimNetwork("ab")
    oracle = Oracle(network)
    oracle.subscribe("b", "t", "//a[b = 1]")
    network.settle()
    return network, oracle


def test_only_what_is_wanted_crosses() -> None:
    network, oracle = pair()
    oracle.publish("a", "t", "<r><a><b>1</b></a></r>")
    oracle.publish("a", "t", "<r><a><b>2</b></a></r>")
    oracle.publish("a", "u", "<r><a><b>1</b></a></r>")
    network.settle()
    assert [message.id for message in network.crossed["a", "b"]] == [0]
    assert dict(network.delivered) == {(0, "s0"): 1}


def test_everything_crosses_until_a_table_is_confirmed() -> None:
    network, oracle = pair()
    network.brokers["a"].restart()
    oracle.publish("a", "t", "<r/>")
    network.brokers["a"].begin(own=True)
    network.brokers["a"].finish()
    assert len(network.crossed["a", "b"]) == 1
    network.settle()
    oracle.publish("a", "t", "<r/>")
    network.settle()
    assert len(network.crossed["a", "b"]) == 1


def test_a_table_that_is_superseded_is_not_used_again_by_a_restored_catalog() -> None:
    """Before any step: the next batch meets the old table."""
    network, oracle = pair()
    a = network.brokers["a"]
    a.catalog.copy()
    oracle.subscribe("b", "t", "//c")
    network.settle()
    restore(oracle, network.brokers["a"])
    message = oracle.publish("a", "t", "<r><c/></r>")
    assert oracle.due == {(message.id, "s1")}
    a.begin(own=True)
    a.finish()
    network.settle()
    oracle.check()
    check_quiet(network, oracle)


def test_what_is_established_is_in_the_generation_that_batches_use_without_the_catalog() -> None:
    network, oracle = pair()
    a, b = network.brokers["a"], network.brokers["b"]
    oracle.subscribe("a", "t", "//c")
    a.step()
    a.catalog.away = b.catalog.away = True
    message = oracle.publish("a", "t", "<r><c/></r>")
    assert oracle.due == {(message.id, "s1")}
    a.begin(own=True)
    a.finish()
    oracle.check()


def test_an_old_notice_is_no_answer() -> None:
    """State and catalog restored from a copy: old parcels are read again."""
    network, oracle = pair()
    a, wire = network.brokers["a"], network.wires["b", "a"]
    a.catalog.copy()
    wire.history.clear()
    network.brokers["b"].restart()
    a.restart()
    network.settle()
    old = [one for one in wire.history if isinstance(one, bytes)]
    oracle.subscribe("b", "t", "//c")
    network.settle()
    restore(oracle, network.brokers["a"])
    a.restart()
    for notice in old:
        a.routing.receive("a.b", notice)
    a.step()
    oracle.publish("a", "t", "<r><c/></r>")
    a.begin(own=True)
    a.finish()
    network.settle()
    oracle.check()
    check_quiet(network, oracle)


def test_a_neighbour_that_does_not_answer_makes_others_send_everything() -> None:
    network = SimNetwork("ab", "bc")
    oracle = Oracle(network)
    oracle.subscribe("b", "t", "//c")

    def settle(*names: str) -> None:
        """Without the other brokers."""
        for _ in range(5):
            for name in names:
                network.brokers[name].step()
            for one in network.wires:
                if set(one) <= set(names):
                    while network.wires[one].parcels:
                        network.receive(*one)

    settle("a", "b")
    # B's own subscription is established at A, though C is away: all crosses.
    assert oracle.is_established("s0", "a")
    assert not oracle.is_established("s0", "c")
    oracle.publish("a", "t", "<r/>")
    network.settle()
    assert len(network.crossed["a", "b"]) == 1
    check_quiet(network, oracle)


def test_a_row_that_is_no_query_is_refused_and_everything_crosses() -> None:
    network, oracle = pair()
    a = network.brokers["a"].routing
    neighbour = a.neighbours["a.b"]
    rows = frozenset({("t", "future('x')")})
    version = TableVersion(9, "m", changed_hash(EMPTY, rows, ()))
    a.receive("a.b", encode(TableChange(neighbour.nonce, None, version, rows, frozenset())))
    a.step()
    assert "newer-format" in neighbour.problem
    assert a.routed_links(network.brokers["a"].publish().tables) == frozenset()
    a.receive("a.b", b"no notice")
    a.step()
    assert "damaged-notice" in neighbour.problem
    oracle.publish("a", "t", "<r/>")
    network.settle()
    assert len(network.crossed["a", "b"]) == 1


def test_a_delta_that_does_not_fit_leaves_the_old_table_and_the_whole_one_follows() -> None:
    network, oracle = pair()
    wire = network.wires["b", "a"]
    oracle.subscribe("b", "t", "//c")
    network.brokers["b"].step()
    # It is lost.
    wire.parcels.clear()
    oracle.subscribe("b", "t", "//d")
    network.brokers["b"].step()
    network.receive("b", "a")
    network.brokers["a"].step()
    assert not oracle.is_established("s1", "a")
    network.settle()
    check_quiet(network, oracle)


def test_a_new_log_begins_with_a_question() -> None:
    network, oracle = pair()
    wire = network.wires["b", "a"]
    oracle.subscribe("b", "t", "//c")
    network.brokers["b"].step()
    # The log is restored from a copy.
    wire.parcels.clear()
    wire.epoch = "2"
    network.settle()
    check_quiet(network, oracle)


def test_a_link_that_fails_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    network, oracle = pair()
    wire = network.wires["b", "a"]

    def fail(notice: bytes) -> None:
        raise LinkError("link-unreachable", "a test")

    oracle.subscribe("b", "t", "//c")
    with monkeypatch.context() as patched:
        patched.setattr(wire, "send", fail)
        network.brokers["b"].step()
    assert not oracle.is_established("s1", "a")
    network.settle()
    check_quiet(network, oracle)


def test_the_work_of_a_step_follows_the_change() -> None:
    """One change among many routes: one row is told, and few rows are compared."""
    network = SimNetwork("ab", "bc")
    oracle = Oracle(network)
    for number in range(500):
        oracle.subscribe("c", "t", f"//a[b = {number}]")
    network.settle()
    wire = network.wires["b", "a"]
    wire.history.clear()
    oracle.subscribe("c", "t", "//a[b = 1000]")
    network.settle()
    sent: list[Notice] = [decode(one, "here") for one in wire.history if isinstance(one, bytes)]
    (change,) = [one for one in sent if isinstance(one, TableChange)]
    assert (len(change.added), len(change.removed)) == (1, 0)
    assert change.since is not None


def test_notices_as_bytes() -> None:
    version = TableVersion(3, "m", EMPTY)
    rows = frozenset({("t", "//a"), ("", "//é")})
    for notice in (
        Hello("n", None, ask=True),
        Hello("n", version, ask=False),
        TableChange("n", version, version, rows, frozenset()),
        InForce("m", {"a": 3}),
    ):
        assert decode(encode(notice), "here") == notice
    newer = zlib.compress(json.dumps({"format": 2, "notice": "hello"}).encode())
    for body, code in ((newer, "newer-format"), (encode(Hello("n", None, True))[:-3], "damaged-notice")):
        with pytest.raises(LinkError, match=code):
            decode(body, "here")


def test_roots_wait_for_a_full_log_and_what_is_under_way_does_not() -> None:
    network = SimNetwork("ab", "bc", "bd")
    oracle = Oracle(network)
    oracle.subscribe("c", "t", "//a")
    network.settle()

    def waits() -> dict[str, set[str]]:
        return {name: set(one.routing.pressed_by) for name, one in network.brokers.items()}

    assert waits() == {"a": set(), "b": set(), "c": set(), "d": set()}
    network.wires["b", "c"].is_full = True
    oracle.publish("a", "t", MESSAGES[1])
    network.settle()
    # All roots that send through b, and not c, to which the full link leads.
    pressed = {"a": {"a.b"}, "b": {"b.c"}, "c": set(), "d": {"b.d"}}
    assert waits() == pressed
    assert network.delivered.total() == 1
    for name in "ab":
        network.brokers[name].restart()
        network.settle()
        assert waits() == pressed
    network.wires["b", "c"].is_full = False
    network.settle()
    assert waits() == {"a": set(), "b": set(), "c": set(), "d": set()}
    oracle.check()
