"""Transforming, measured: messages against transformations, one thread, one interpreter, medians."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from xml.parsers import expat

import tamis
from benches.checks import Check, Confirmation, against, miscounted
from benches.saxon import DOCUMENTS as SAXON_DOCUMENTS
from benches.saxon import Saxon, confirm
from tamis.bench import CACHE_BYTES, ROUNDS
from tamis.bench.measure import Timed, array, build, parse_with_expat, reopen, timed
from tamis.cli.progress import bar
from tamis.engine import read_all
from tamis.model.dtd import Dtd
from tamis.model.progress import Report
from tamis.schema import Schema
from tamis.sources.dtd_file import read_dtd_file
from tamis.workload import (
    DocumentOptions,
    Profile,
    TransformationOptions,
    generate_documents,
    generate_transformations,
)

SAXON_ROUNDS = 3


@dataclass(frozen=True)
class TransformWorkload:
    """Documents and transformations that follow one DTD: the parameters of seed 001 §6.7."""

    dtd: Dtd
    seed: str = "1"
    values: int = 10
    """MaxValue"""
    documents: int = 200
    document_depth: int = 6
    repeats: int = 3
    repeats_of: Mapping[str, int] | None = None
    number: int = 10_000
    binding_depth: int = 2
    predicates: int = 1
    returns: int = 2
    depth: int = 2
    descendant: float = 0.2
    ordered: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any], folder: Path) -> "TransformWorkload":
        """From a workload file; its DTD is named relative to the file."""
        return cls(**{**parameters, "dtd": read_dtd_file(folder / parameters["dtd"])})

    def generate(self) -> tuple[list[bytes], list[str]]:
        """The documents and the transformations."""
        profile = Profile.even(self.dtd, values=self.values)
        documents = DocumentOptions(self.documents, self.document_depth, self.repeats, self.repeats_of or {})
        transformations = TransformationOptions(
            self.number,
            self.binding_depth,
            self.predicates,
            self.returns,
            self.depth,
            self.descendant,
            self.ordered,
        )
        return (
            list(generate_documents(self.dtd, profile, documents, seed=self.seed)),
            list(generate_transformations(self.dtd, profile, transformations, seed=self.seed)),
        )


@dataclass(frozen=True)
class TransformResult(Timed):
    """Times with `_us` are per document and include reading it and handing over outputs as Arrow."""

    queries: int
    distinct: int
    refused: int
    documents: int
    bytes: int
    load_s: float
    cold_us: float
    """The first pass over all documents, with empty caches and no plans."""
    warm_us: float
    """The steady state over all documents."""
    schema_us: float | None
    """The same with plans for documents that conform to a DTD, if one was given."""
    match_us: float
    """Reading and matching: which transformations concern a document."""
    read_us: float
    expat_version: str
    saxon_us: float | None
    """The time of Saxon, if measured: to parse once, to evaluate and serialize all one by one."""
    matches: int
    """Results over all documents: pairs of a document and a transformation that makes something of it."""
    outputs: int
    """How many of them had to be constructed; the others are equal to one of these."""
    output_bytes: int
    failures: int
    """Results that pass a limit."""
    index_bytes: int
    text_bytes: int
    cache_bytes: int


def measure(
    documents: Sequence[bytes],
    transformations: Sequence[str],
    *,
    dtd: Dtd | None = None,
    with_saxon: bool = False,
    rounds: int = ROUNDS,
    cache_bytes: int = CACHE_BYTES,
    report: Report | None = None,
) -> tuple[TransformResult, tamis.Index]:
    """Load the transformations and transform the documents, in the order given, over and over.

    The index is the one that was measured, to ask for more.
    """
    progress = report or (lambda _done, _total: None)
    steps = rounds + 2
    progress(0, steps)
    everything = array(documents)
    index, load_s, refused = build(transformations, documents, cache_bytes=cache_bytes)
    made = index.transform_batch(everything)
    schema = None if dtd is None else Schema(dtd)
    if schema is not None:
        index.transform_batch(everything, schema=schema)
    progress(1, steps)
    times: dict[str, list[float]] = {
        name: [] for name in ("expat", "read", "match", "warm", "schema", "cold")
    }
    with tempfile.TemporaryDirectory() as directory:
        index.snapshot(Path(directory))
        for done in range(rounds):
            times["expat"].append(timed(parse_with_expat, documents)[0])
            times["read"].append(timed(read_all, everything)[0])
            times["match"].append(timed(index.match_batch, everything)[0])
            times["warm"].append(timed(index.transform_batch, everything)[0])
            if schema is not None:
                times["schema"].append(timed(index.transform_batch, everything, schema=schema)[0])
            fresh = reopen(directory, cache_bytes)
            times["cold"].append(timed(fresh.transform_batch, everything)[0])
            progress(done + 2, steps)
    saxon_us = _saxon_us(documents, transformations) if with_saxon else None
    progress(steps, steps)
    stats = index.stats()

    def each(name: str) -> float:
        return median(times[name]) / max(len(documents), 1) * 1e6

    result = TransformResult(
        queries=len(transformations),
        distinct=stats.queries,
        refused=refused,
        documents=len(documents),
        bytes=sum(map(len, documents)),
        load_s=load_s,
        cold_us=each("cold"),
        warm_us=each("warm"),
        schema_us=None if schema is None else each("schema"),
        match_us=each("match"),
        read_us=each("read"),
        expat_us=each("expat"),
        expat_version=expat.EXPAT_VERSION,
        saxon_us=saxon_us,
        matches=made.made.num_rows,
        outputs=len(made.outputs),
        output_bytes=sum(len(output or b"") for output in made.outputs.to_pylist()),
        failures=len(made.made) - made.made.column("code").null_count,
        index_bytes=stats.index_bytes,
        text_bytes=stats.text_bytes,
        cache_bytes=stats.cache_bytes,
    )
    return result, index


def _saxon_us(documents: Sequence[bytes], transformations: Sequence[str]) -> float:
    saxon = Saxon(documents[:SAXON_DOCUMENTS])
    return saxon.each_s(transformations, SAXON_ROUNDS) * 1e6


def run(
    run: Mapping[str, Any], folder: Path, earlier: Mapping[str, TransformResult], *, rounds: int
) -> tuple[TransformResult, dict[str, Any], list[Check], list[str]]:
    """A run of a workload: the result, and its figures, checks and problems."""
    workload = TransformWorkload.of(run["transform"], folder)
    documents, transformations = workload.generate()
    with bar(run["name"]) as report:
        result, index = measure(
            documents,
            transformations,
            dtd=workload.dtd,
            with_saxon="saxon" in run.get("bars", {}),
            rounds=rounds,
            report=report,
        )
    confirmation = confirm(index, documents, transformations)
    figures = result.as_dict() | {
        "confirmed_pairs": confirmation.pairs,
        "confirmed_results": confirmation.matches,
    }
    return result, figures, list(_checks(run, result, earlier)), list(_problems(run, result, confirmation))


def _checks(
    run: Mapping[str, Any], result: TransformResult, earlier: Mapping[str, TransformResult]
) -> Iterator[Check]:
    bars = run.get("bars", {})
    for name in ("warm", "schema", "cold"):
        if name in bars:
            yield Check(f"{name}, × expat", result.ratio(name), bars[name])
    if result.saxon_us is not None:
        yield Check(
            "× faster than Saxon one by one", result.saxon_us / result.warm_us, bars["saxon"], at_least=True
        )
    yield from against(run, result, earlier)


def _problems(run: Mapping[str, Any], result: TransformResult, confirmation: Confirmation) -> Iterator[str]:
    yield from miscounted(run, result.matches)
    if result.refused or result.failures:
        yield f"{result.refused} transformations were refused, {result.failures} results failed"
    yield from confirmation.problems("Saxon")


def lines(result: TransformResult) -> list[str]:
    """The result as lines of text."""
    per_document = max(result.documents, 1)
    names = ["cold", "warm", "schema", "match", "read", "expat"]
    if result.schema_us is None:
        names.remove("schema")
    times = [
        f"{name:<8}{getattr(result, f'{name}_us'):>10.2f} µs a document  {result.ratio(name):>6.2f} × expat"
        for name in names
    ]
    if result.saxon_us is not None:
        times.append(
            f"Saxon   {result.saxon_us:>10.2f} µs a document  "
            f"{result.saxon_us / result.warm_us:>6.2f} × warm, one by one"
        )
    return [
        f"{result.queries:,} transformations ({result.distinct:,} distinct, {result.refused:,} refused), "
        f"{result.documents:,} documents of {result.bytes / per_document:,.0f} bytes on average; "
        f"loaded in {result.load_s:.2f} s",
        *times,
        f"{result.matches / per_document:,.1f} results a document, {result.outputs / per_document:,.1f} of "
        f"them constructed, {result.output_bytes / per_document:,.0f} bytes; {result.failures:,} failures",
        f"index {result.index_bytes / max(result.distinct, 1):.1f} bytes a transformation, "
        f"texts {result.text_bytes:,} bytes, caches {result.cache_bytes / (1 << 20):.1f} MiB",
    ]
