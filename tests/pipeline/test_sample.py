"""The sample of a job's messages."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tamis.model.envelope_value import Envelope
from tamis.model.sample import MESSAGES, Sampled
from tamis.pipeline import sample
from tamis.pipeline.sample import PERIOD_BYTES, PERIOD_HOURS, PERIODS, MessageSample

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def messages(random: Random, count: int, tenants: tuple[str, ...] = ("",), size: int = 10) -> list[Sampled]:
    return [
        Sampled(random.getrandbits(63) - 2**62, random.choice(tenants), b"<m/>".ljust(size))
        for _ in range(count)
    ]


def smallest(given: list[Sampled], tenant: str) -> list[Sampled]:
    return sorted((one for one in given if one.tenant == tenant), key=lambda one: one.rank)[:MESSAGES]


def test_it_has_the_smallest_ranks_however_batches_are_cut_and_repeated(tmp_path: Path) -> None:
    random = Random(1)
    given = messages(random, 3_000, ("a", "b", "c"))
    whole, parts = MessageSample(tmp_path / "whole"), MessageSample(tmp_path / "parts")
    whole.add(NOW, given)
    for start in range(0, 3_000, 700):
        for _ in range(2):
            parts.add(NOW, given[start : start + 700])
    expected = sorted((one for tenant in "abc" for one in smallest(given, tenant)), key=lambda one: one.rank)
    assert whole.messages() == parts.messages() == expected
    assert whole.sampling(NOW).bounds == {tenant: smallest(given, tenant)[-1].rank for tenant in "abc"}


def test_a_new_period_begins_without_bounds_and_old_periods_are_forgotten(tmp_path: Path) -> None:
    random = Random(2)
    kept = MessageSample(tmp_path / "sample")
    first = messages(random, 500)
    kept.add(NOW, first)
    hours = timedelta(hours=PERIOD_HOURS)
    assert kept.sampling(NOW + hours).bounds == {}
    later = messages(random, 10)
    kept.add(NOW + hours, later)
    assert kept.messages() == smallest([*first, *later], "")
    kept.add(NOW + PERIODS * hours, [])
    assert kept.messages() == smallest(later, "")


def test_it_is_bounded_in_bytes_and_keeps_the_same_share_of_each_tenant(tmp_path: Path) -> None:
    random = Random(3)
    kept = MessageSample(tmp_path / "sample")
    given = messages(random, 2_000, tuple(f"t{number}" for number in range(50)), size=PERIOD_BYTES // 400)
    for start in range(0, len(given), 100):
        kept.add(NOW, given[start : start + 100])
    ranked = sorted(given, key=lambda one: one.rank)
    assert kept.messages() == ranked[:400]
    assert kept.sampling(NOW).bound == ranked[400].rank


def test_it_survives_a_restart_and_is_cleared_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "state" / "sample.arrow"
    random = Random(4)
    kept = MessageSample(path)
    kept.add(NOW, messages(random, 300, ("a", "b")))
    kept.save()
    again = MessageSample(path)
    assert again.messages() == kept.messages()
    assert again.sampling(NOW) == kept.sampling(NOW)
    path.unlink()
    more = messages(random, 3)
    again.add(NOW, more)
    assert again.messages() == smallest(more, "")
    assert again.sampling(NOW).key != kept.sampling(NOW).key


def test_envelopes_are_kept_and_count_as_bytes(tmp_path: Path) -> None:
    path = tmp_path / "sample"
    kept = MessageSample(path)
    whole = Envelope("s", "t", datetime(2026, 1, 1, 12, 0, 0, 7, UTC), {"n": "ä", "m": "2"})
    given = [Sampled(1, "", b"<a/>", whole), Sampled(2, "", b"<b/>", Envelope("s")), Sampled(3, "", b"<c/>")]
    assert [one.size for one in given] == [8, 4, 4]
    kept.add(NOW, given)
    kept.save()
    assert MessageSample(path).messages() == given


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"\x00" * 100])
def test_a_damaged_file_is_an_empty_sample(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sample"
    path.write_bytes(content)
    kept = MessageSample(path)
    assert kept.messages() == []
    kept.add(NOW, [Sampled(1, "", b"<a/>")])
    kept.save()
    assert MessageSample(path).messages() == [Sampled(1, "", b"<a/>")]


def test_the_file_is_written_only_if_the_sample_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = MessageSample(tmp_path / "sample")
    one = Sampled(5, "", b"<a/>")
    kept.add(NOW, [one])
    kept.save()
    monkeypatch.setattr(sample, "atomic_file", lambda path: pytest.fail("written again"))
    kept.add(NOW, [one, replace(one)])
    kept.save()
