"""Dead letters over HTTP."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.model.batch import Batch
from tamis.sinks.dead_letters import LETTER, DeadLetters
from tests.helpers.served import Served, serving, settings_in


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path)) as served:
        headers = {"headers": '{"priority":"high"}'}
        write_letters(
            tmp_path,
            0,
            [letter("m1", **headers), letter("m2", code="depth-limit"), letter("x", "other", "others")],
        )
        yield served


def letter(id: str, tenant: str = "", source: str = "inbox", **more: Any) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "source": source,
        "id": id,
        "offset": f"{id}#0",
        "received": datetime(2026, 1, 31, tzinfo=UTC),
        "encoding": None,
        "code": "mismatched-tag",
        "reason": "wrong",
        "subscription": None,
        "delivery": None,
        "position": 3,
        "line": 1,
        "column": 4,
        "raw": b"<a></b>",
        **more,
    }


def write_letters(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    letters = DeadLetters(folder / "dead-letters")
    batch = Batch("c", number)
    letters.publish(batch, letters.write(batch, 0, [pa.RecordBatch.from_pylist(rows, schema=LETTER)]))


def test_letters_are_listed_and_shown(served: Served) -> None:
    admin = served.client()
    listed = admin.get("/v1/dead-letters").json()
    assert sorted(one["message"] for one in listed["letters"]) == ["m1", "m2"]
    [one] = admin.get("/v1/dead-letters", params={"code": "depth-limit"}).json()["letters"]
    shown = admin.get(f"/v1/dead-letters/{one['letter']}").json()
    assert base64.b64decode(shown.pop("base64")) == b"<a></b>"
    assert shown == one
    assert admin.get("/v1/dead-letters/m1").json()["message"] == "m1"
    assert (one["position"], one["line"], one["column"]) == (3, 1, 4)
    assert (one["headers"], admin.get("/v1/dead-letters/m1").json()["headers"]) == (
        None,
        {"priority": "high"},
    )
    assert admin.get("/v1/dead-letters", params={"limit": 1}).json()["more"]
    assert admin.get("/v1/dead-letters", params={"since": "2026-02-01T00:00:00"}).json()["letters"] == []
    # Another tenant's are not there.
    assert admin.get("/v1/dead-letters/x").status_code == 404
    other = served.client(tenant="other").get("/v1/dead-letters").json()
    assert [one["message"] for one in other["letters"]] == ["x"]


def test_letters_are_replayed_once(served: Served, tmp_path: Path) -> None:
    admin = served.client()
    assert admin.post("/v1/dead-letters/replay", json={}).status_code == 422
    assert admin.post("/v1/dead-letters/replay", json={"letters": ["x"]}).status_code == 404
    done = admin.post("/v1/dead-letters/replay", json={"source": "inbox"}).json()
    assert done == {"replayed": 2, "refused": []}
    [file] = (tmp_path / "inbox").glob("replay-*.parquet")
    assert set(pq.read_table(file).column("id").to_pylist()) == {"m1", "m2"}
    again = admin.post("/v1/dead-letters/replay", json={"letters": ["m1"]}).json()
    assert (again["replayed"], len(again["refused"])) == (0, 1)
    assert admin.get("/v1/dead-letters/m1").json()["replayed"] is not None
    assert (
        admin.post("/v1/dead-letters/replay", json={"letters": ["m1"], "again": True}).json()["replayed"] == 1
    )
    assert list((tmp_path / "others").iterdir()) == []
