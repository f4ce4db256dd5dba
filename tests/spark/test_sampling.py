"""Which messages of a task are sampled."""

from random import Random

import pyarrow as pa

from tamis.model.sample import MESSAGE_BYTES, MESSAGES, Sampling
from tamis.spark.worker.sampling import Sampler


def batch(
    ranks: list[int], tenants: list[str], xml: list[bytes | None], codes: list[str | None]
) -> pa.RecordBatch:
    columns = {
        "tenant": pa.array(tenants, pa.string()),
        "xml": pa.array(xml, pa.binary()),
        "code": pa.array(codes, pa.string()),
        "rank": pa.array(ranks, pa.int64()),
    }
    return pa.record_batch(columns)


def test_a_task_returns_the_smallest_ranks_of_each_tenant_and_few_others() -> None:
    random = Random(1)
    sampler = Sampler(Sampling(key=0))
    returned: dict[str, list[int]] = {"a": [], "b": []}
    everything: dict[str, list[int]] = {"a": [], "b": []}
    for _ in range(30):
        ranks = [random.getrandbits(63) - 2**62 for _ in range(1_000)]
        tenants = [random.choice("ab") for _ in ranks]
        given = batch(ranks, tenants, [b"<a/>"] * 1_000, [None] * 1_000)
        for tenant, rank, before in zip(
            tenants, sampler.select(given)["rank"].to_pylist(), ranks, strict=True
        ):
            everything[tenant].append(before)
            if rank is not None:
                assert rank == before
                returned[tenant].append(rank)
    for tenant in "ab":
        assert set(sorted(everything[tenant])[:MESSAGES]) <= set(returned[tenant])
        assert len(returned[tenant]) < 8 * MESSAGES


def test_bounds_apply_and_refused_and_long_messages_are_left_out() -> None:
    sampler = Sampler(Sampling(key=0, bound=50, bounds={"a": 10}))
    given = batch(
        [5, 15, 15, 60, 1, 2, 3],
        ["a", "a", "b", "b", "c", "c", "c"],
        [b"<a/>", b"<a/>", b"<a/>", b"<a/>", None, b"x" * (MESSAGE_BYTES + 1), b"<a/>"],
        [None, None, None, None, "bad-row", None, "duplicate-id"],
    )
    assert sampler.select(given)["rank"].to_pylist() == [5, None, 15, None, None, None, None]


def test_an_empty_batch() -> None:
    assert Sampler(Sampling(key=0)).select(batch([], [], [], [])).num_rows == 0
