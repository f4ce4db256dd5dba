"""Links: parcels cross once, whatever is repeated, damaged, deleted or restored from a copy."""

import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.model.envelope import ENVELOPE
from tamis.network.arrivals import Arrivals, ArrivedMessages
from tamis.network.exchange import Exchange
from tamis.network.link_end import ACKNOWLEDGE_AFTER
from tamis.network.log import LinkLog, UnknownPositionError, read_log
from tamis.network.messages import arrived, crossing, pack, unpack
from tamis.network.parcel import LinkError, Parcel, Position, content_hash
from tamis.storage.place import Directory
from tests.helpers.link_ends import MemoryBroker, messages, settle, tree
from tests.helpers.waiting import until


def pair(folder: Path, **options: object) -> tuple[MemoryBroker, MemoryBroker]:
    topology = tree(folder, "ab", tenants=options.pop("tenants", None))  # type: ignore[arg-type]
    return MemoryBroker(topology, "a", folder), MemoryBroker(topology, "b", folder)


def log_of(folder: Path, direction: str = "a.b") -> Path:
    return folder / "links" / "ab" / direction


def parcels(folder: Path, direction: str = "a.b") -> list[Path]:
    return sorted(log_of(folder, direction).glob("*/*.parcel"))


def test_a_message_reaches_every_broker_once(tmp_path: Path) -> None:
    topology = tree(tmp_path, "ab", "bc", "ad", "de", "df")
    brokers = {name: MemoryBroker(topology, name, tmp_path) for name in topology.brokers}
    for name, broker in brokers.items():
        broker.publish("inbox:0", f"{name}1", f"{name}2")
    settle(brokers.values())
    everything = Counter(f"{name}{number}" for name in brokers for number in (1, 2))
    assert {name: broker.delivered for name, broker in brokers.items()} == dict.fromkeys(brokers, everything)


def test_headers_cross_links_and_older_brokers_read_parcels_without_them(tmp_path: Path) -> None:
    plain = messages("a", "x", "y")
    old = pa.ipc.open_stream(pack(plain)).schema.names
    assert not {"headers", "topology", "form"} & set(old)
    assert unpack(pack(plain), "it").equals(plain)
    headers = pa.array([None, '{"priority":"high"}'], pa.string())
    place = plain.schema.get_field_index("headers")
    marked = plain.set_column(place, plain.schema.field(place), headers)
    assert unpack(pack(marked), "it").equals(marked)
    topology = tree(tmp_path, "ab")
    table = arrived(unpack(pack(marked), "it"), topology, "b", topology.links[0], 32)
    parcel = Parcel("e", 1, "messages", "k", "h", b"")
    Arrivals(tmp_path).store("a", parcel, table)
    read = [ArrivedMessages(tmp_path).read(0)]
    # What an earlier version stored.
    path = next((tmp_path / "arrivals").glob("*.arrow"))
    earlier = read[0].drop_columns(["topic", "headers", "topology", "form"])
    path.unlink()  # it is mapped
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, earlier.schema) as writer:
        writer.write_table(earlier)
    read.append(ArrivedMessages(tmp_path).read(0))
    assert [table.schema for table in read] == [ENVELOPE, ENVELOPE]
    assert [table["headers"].to_pylist() for table in read] == [headers.to_pylist(), [None, None]]


def test_a_batch_has_one_parcel_with_the_next_number(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    first = a.ends["b"].publish("inbox:7", messages("a", "x"))
    assert a.ends["b"].publish("inbox:7", messages("a", "x")) == first
    second = a.ends["b"].publish("inbox:8", messages("a", "y"))
    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (1, 2)
    a.restart()
    assert a.ends["b"].publish("inbox:8", messages("a", "y")) == second
    assert a.ends["b"].publish("inbox:9", messages("a")) is None
    settle([a, b])
    # Deleted, and still known.
    assert parcels(tmp_path) == []
    a.restart()
    assert a.ends["b"].publish("inbox:8", messages("a", "y")) == second
    settle([a, b])
    assert b.delivered == Counter("xy")


def test_a_parcel_is_the_same_for_the_same_messages(tmp_path: Path) -> None:
    one = pack(messages("a", "x", "y", "z"))
    assert one == pack(messages("a", "z", "x", "y"))
    assert unpack(one, "here")["id"].to_pylist() == ["x", "y", "z"]


def test_what_came_over_a_link_does_not_go_back(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    settle([a, b])
    assert b.delivered == Counter("x")
    # B has sent an acknowledgement, and nothing else.
    assert b.ends["a"].status.sent == 1
    assert a.ends["b"].status.acknowledged == 1


def test_acknowledgements_are_acknowledged_now_and_then(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    for number in range(2 * ACKNOWLEDGE_AFTER):
        a.publish(f"inbox:{number}", str(number))
        settle([a, b])
    assert b.ends["a"].status.sent == 2 * ACKNOWLEDGE_AFTER
    assert b.ends["a"].status.acknowledged >= ACKNOWLEDGE_AFTER
    assert len(parcels(tmp_path, "b.a")) <= ACKNOWLEDGE_AFTER
    # What A acknowledged last is not acknowledged itself.
    assert len(parcels(tmp_path, "a.b")) <= 1


def test_tenants_that_may_not_cross_stay(tmp_path: Path) -> None:
    a, b = pair(tmp_path, tenants=["acme"])
    a.publish("inbox:0", "x", tenant="acme")
    a.publish("inbox:1", "y", tenant="other")
    settle([a, b])
    assert b.delivered == Counter("x")


def test_a_barred_tenant_stops_the_link(tmp_path: Path) -> None:
    a = MemoryBroker(tree(tmp_path, "ab"), "a", tmp_path)
    b = MemoryBroker(tree(tmp_path, "ab", tenants=["acme"]), "b", tmp_path)
    a.publish("inbox:0", "x", tenant="other")
    settle([a, b])
    status = b.ends["a"].status
    assert (status.state, status.code, status.received) == ("stopped", "barred-tenant", 0)
    assert "'other'" in status.reason
    assert b.delivered == Counter()


@pytest.mark.parametrize("place", ["header", "body", "cut", "empty"])
def test_a_damaged_parcel_stops_the_link_until_it_is_restored(place: str, tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    a.publish("inbox:1", "y")
    _, second = parcels(tmp_path)
    whole = second.read_bytes()
    at = {"header": 20, "body": len(whole) - 9}.get(place)
    cut = {"cut": whole[:-5], "empty": b""}.get(place, b"")
    second.write_bytes(cut if at is None else whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    settle([a, b])
    status = b.ends["a"].status
    assert (status.state, status.received) == ("stopped", 1)
    assert status.code == "damaged-parcel"
    assert second.name in status.reason
    assert b.delivered == Counter("x")
    second.write_bytes(whole)
    settle([a, b])
    assert b.delivered == Counter("xy")
    assert b.ends["a"].status.state == "up"


@pytest.mark.parametrize("change", [{"format": 2}, {"kind": "pigeons"}])
def test_a_newer_format_stops_the_link(change: dict[str, object], tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    (path,) = parcels(tmp_path)
    line, _, body = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps(json.loads(line) | change).encode() + b"\n" + body)
    b.exchange()
    assert (b.ends["a"].status.state, b.ends["a"].status.code) == ("stopped", "newer-format")


def test_a_log_of_a_newer_format_stops_the_link(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    head = log_of(tmp_path) / "head.json"
    head.write_text(json.dumps(json.loads(head.read_text()) | {"format": 2}))
    b.exchange()
    assert (b.ends["a"].status.state, b.ends["a"].status.code) == ("stopped", "newer-format")
    head.write_text("{")
    b.exchange()
    assert b.ends["a"].status.code == "damaged-log"


def test_a_receiver_that_asks_for_what_is_deleted_is_told_the_gap(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    settle([a, b])
    copy = tmp_path / "copy"
    shutil.copytree(b.state, copy)
    for number in range(1, 4):
        a.publish(f"inbox:{number}", str(number))
    settle([a, b])
    shutil.rmtree(b.state)
    shutil.copytree(copy, b.state)
    b.restart()
    b.exchange()
    status = b.ends["a"].status
    assert (status.state, status.code) == ("stopped", "gap")
    assert "2 to 4" in status.reason


def test_deleted_acknowledgements_are_no_gap(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    settle([a, b])
    copy = tmp_path / "copy"
    shutil.copytree(a.state, copy)
    for number in range(1, 2 * ACKNOWLEDGE_AFTER):
        a.publish(f"inbox:{number}", str(number))
        settle([a, b])
    shutil.rmtree(a.state)
    shutil.copytree(copy, a.state)
    a.restart()
    b.publish("inbox:0", "back")
    settle([a, b])
    assert a.ends["b"].status.state == "up"
    assert a.delivered["back"] == 1


def test_a_sender_that_was_restored_from_a_copy_begins_a_new_log(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    settle([a, b])
    a.publish("inbox:1", "y")
    shutil.copytree(log_of(tmp_path), tmp_path / "copy")
    a.publish("inbox:2", "z")
    settle([a, b])
    shutil.rmtree(log_of(tmp_path))
    shutil.copytree(tmp_path / "copy", log_of(tmp_path))
    a.restart()
    # Under the number of what B has as `z`.
    a.publish("inbox:3", "w")
    settle([a, b])
    a.publish("inbox:4", "v")
    settle([a, b])
    assert b.delivered == Counter("xyzwv")
    assert "does not know" in a.ends["b"].status.began
    assert a.ends["b"].status.state == b.ends["a"].status.state == "up"


def test_both_logs_of_a_link_restored_from_one_copy(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    b.publish("inbox:0", "k")
    settle([a, b])
    shutil.copytree(tmp_path / "links", tmp_path / "copy")
    for number in range(1, 5):
        a.publish(f"inbox:{number}", f"a{number}")
        b.publish(f"inbox:{number}", f"b{number}")
        settle([a, b])
    shutil.rmtree(tmp_path / "links")
    shutil.copytree(tmp_path / "copy", tmp_path / "links")
    a.restart()
    b.restart()
    a.publish("inbox:5", "a5")
    b.publish("inbox:5", "b5")
    settle([a, b])
    everything = Counter(["x", "k", *(f"{name}{number}" for name in "ab" for number in range(1, 6))])
    assert a.delivered == everything
    assert b.delivered == everything


def test_a_message_keeps_the_number_of_the_topology_that_it_entered_with(tmp_path: Path) -> None:
    first = tree(tmp_path, "ab", "bc")
    second = replace(first, number=2)
    a, b, c = (MemoryBroker(second, name, tmp_path) for name in "abc")
    a.publish("inbox:0", "x")
    settle([a, b])
    (path,) = (tmp_path / "links" / "bc" / "b.c").glob("*/*1.parcel")
    sent = unpack(Parcel.decode(path.read_bytes(), "it").body, "it")
    assert sent["topology"].to_pylist() == [2]
    old = MemoryBroker(first, "c", tmp_path)
    old.exchange()
    assert old.ends["b"].status.code == "newer-topology"
    c.restart()
    c.exchange()
    c.process()
    assert c.delivered == Counter("x")
    # Of a message that entered elsewhere with the first one.
    passing = crossing(messages("a", "y"), second, "b", second.links[1])
    assert passing["topology"].to_pylist() == [None]


def test_a_form_that_is_not_known_stops_the_link(tmp_path: Path) -> None:
    plain = messages("a", "x")
    place = plain.schema.get_field_index("form")
    body = pack(plain.set_column(place, plain.schema.field(place), pa.array(["tokens"])))
    with pytest.raises(LinkError, match=r"newer-format.*'tokens'"):
        unpack(body, "it")


def test_a_log_is_full_until_a_quarter_of_it_is_free(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    end = a.ends["b"]
    a.publish("inbox:0", "x")
    one = end.exchange().waiting_bytes
    assert one == len(unpacked_body(tmp_path))
    end.most_bytes = 4 * one
    for number in range(1, 4):
        assert not end.is_full
        a.publish(f"inbox:{number}", "x")
    assert end.is_full
    # Messages under way are taken all the same.
    a.publish("inbox:4", "y")
    # It has room for one more, which is less than a quarter.
    end.most_bytes = 6 * one
    assert end.is_full
    a.restart()
    a.ends["b"].most_bytes = 6 * one
    assert not a.ends["b"].is_full
    a.ends["b"].most_bytes = 4 * one
    assert a.ends["b"].is_full
    settle([a, b])
    assert b.delivered["y"] == 1
    assert not a.ends["b"].is_full


def unpacked_body(folder: Path) -> bytes:
    return Parcel.decode(parcels(folder)[0].read_bytes(), "it").body


def test_a_link_whose_directory_was_removed_begins_anew(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    settle([a, b])
    shutil.rmtree(tmp_path / "links")
    a.publish("inbox:1", "y")
    settle([a, b])
    assert b.delivered == Counter("xy")
    assert b.ends["a"].status.state == "up"


def test_what_does_not_come_from_its_parent_or_from_too_far_is_refused(tmp_path: Path) -> None:
    topology = tree(tmp_path, "ab", "bc")
    b = MemoryBroker(topology, "b", tmp_path, most_hops=2)
    for key, root, hops in [("1", "c", 0), ("2", "nobody", 0), ("3", "a", 2), ("4", "a", 1)]:
        body = pack(messages(root, f"m{key}", hops=hops))
        LinkLog(str(log_of(tmp_path))).publish("messages", key, body)
    b.exchange()
    b.process()
    assert b.refused == [("m1", "not-from-parent"), ("m2", "not-from-parent"), ("m3", "hop-limit")]
    assert b.delivered == Counter(["m4"])


def test_a_log_with_a_hole_is_refused_by_its_writer(tmp_path: Path) -> None:
    log = LinkLog(str(tmp_path / "log"))
    for number in range(3):
        log.publish("topology", f"k:{number}", b"x")
    (tmp_path / "log" / log.head.epoch / f"{2:012}.parcel").unlink()
    with pytest.raises(LinkError, match=r"damaged-log.*no parcel 2"):
        LinkLog(str(tmp_path / "log")).publish("topology", "k:4", b"x")


def test_a_position_of_a_later_log_is_followed_by_a_later_one(tmp_path: Path) -> None:
    log = LinkLog(str(tmp_path / "log"))
    log.publish("topology", "k:1", b"x")
    ahead = Position("99999999999999999-ffffffff", 3, "abc")
    with pytest.raises(UnknownPositionError):
        list(read_log(str(tmp_path / "log"), ahead))
    assert not log.confirm(ahead)
    assert log.head.epoch > ahead.epoch
    (parcel,) = read_log(str(tmp_path / "log"), ahead)
    assert (parcel.number, parcel.body) == (1, b"x")


def test_a_parcel_under_another_number_is_refused(tmp_path: Path) -> None:
    log = LinkLog(str(tmp_path / "log"))
    log.publish("topology", "k:1", b"x")
    folder = tmp_path / "log" / log.head.epoch
    shutil.copy(folder / f"{1:012}.parcel", folder / f"{2:012}.parcel")
    with pytest.raises(LinkError, match="is another parcel"):
        list(read_log(str(tmp_path / "log"), None))


def test_parcels_as_bytes() -> None:
    parcel = Parcel("e", 3, "interest", "k:1", content_hash("interest", "k:1", b"b\ny"), b"b\ny")
    assert Parcel.decode(parcel.encode(), "here") == parcel
    assert parcel.stream == "k"


def test_links_exchange_by_themselves_and_tell_when_they_stop(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    a.publish("inbox:0", "x")
    (path,) = parcels(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    changes: list[tuple[str, str]] = []
    exchange = Exchange([b.ends["a"]], lambda status: changes.append((status.state, status.code)))
    try:
        until(lambda: changes, "the damaged parcel")
        path.write_bytes(whole)
        until(lambda: len(changes) == 2, "the link to continue")
    finally:
        exchange.close()
    assert changes == [("stopped", "damaged-parcel"), ("up", "")]
    b.process()
    assert b.delivered == Counter("x")


def test_an_unforeseen_error_stops_a_link_visibly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, b = pair(tmp_path)

    def fail() -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(b.ends["a"], "exchange", fail)
    changes: list[tuple[str, str]] = []
    exchange = Exchange([b.ends["a"]], lambda status: changes.append((status.code, status.reason)))
    try:
        until(lambda: changes, "the error")
    finally:
        exchange.close()
    assert changes == [("ValueError", "unforeseen")]


@pytest.mark.parametrize("seed", range(30))
def test_random_networks_lose_and_double_nothing(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches, repeats of batches, restarts, failing disks and trimming, in any order; a central oracle."""
    draw = random.Random(seed)
    names = "abcd"[: draw.randint(2, 4)]
    topology = tree(tmp_path, *(draw.choice(names[:at]) + names[at] for at in range(1, len(names))))
    brokers = [MemoryBroker(topology, name, tmp_path) for name in names]
    failing = 0.0
    put = Directory.put

    def maybe_put(place: Directory, folder: str, name: str, content: bytes) -> None:
        early = draw.random() < 0.5
        fails = draw.random() < failing
        if fails and early:
            raise LinkError("link-unreachable", "the disk fails")
        put(place, folder, name, content)
        if fails:
            raise LinkError("link-unreachable", "the disk fails after the write")

    monkeypatch.setattr(Directory, "put", maybe_put)
    expected: Counter[str] = Counter()
    for step in range(60):
        broker = draw.choice(brokers)
        failing = draw.choice([0.0, 0.0, 0.3])
        action = draw.choice(["publish", "exchange", "exchange", "process", "half", "restart"])
        try:
            if action == "publish":
                ids = [f"{step}-{one}" for one in range(draw.randint(1, 3))]
                key = f"inbox-{broker.name}:{step}"
                expected.update(ids)
                while True:
                    try:
                        broker.publish(key, *ids)
                        break
                    except LinkError:
                        if draw.random() < 0.3:
                            broker.restart()
            elif action == "exchange":
                broker.exchange()
            elif action == "restart":
                broker.restart()
            else:
                broker.process(done=action == "process")
        except LinkError:
            pass
    failing = 0.0
    settle(brokers)
    for broker in brokers:
        assert broker.delivered == expected
        assert [end.status.state for end in broker.ends.values()] == ["up"] * len(broker.ends)
