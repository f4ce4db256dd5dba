"""The W3C XML suite: the verdicts of its catalogue, and of accepted documents the content that expat finds.

The internal subset is allowed, for nearly all cases carry one. `w3c_exceptions.toml` says which cases are
not as the catalogue has them, and why; an exception that is no longer needed is an error too.
"""

import tarfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.parsers import expat

import pytest

import tamis
from tests.helpers.reading import Event, by_expat, by_kernel, by_lxml

pytestmark = pytest.mark.data

LIMITS = tamis.Limits(internal_subset=True, skip_unread_entities=True, name=1 << 13)
"""Two cases have names of some thousand bytes. External entities are skipped, as by expat."""

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "w3c_exceptions.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Case:
    """One document of the suite with its entry in the catalogue."""

    id: str
    entry: dict[str, str]
    message: bytes

    @property
    def verdict(self) -> str | None:
        """The verdict of the catalogue; `None` where both are allowed."""
        return {"valid": "accepted", "invalid": "accepted", "not-wf": "refused"}.get(self.entry["TYPE"])


@pytest.fixture(scope="module")
def cases(data: Path) -> list[Case]:
    """All cases of the catalogue."""
    with tarfile.open(data / "xmlconf" / "xmlconf.tar.gz") as archive:
        members = ((member.name, archive.extractfile(member)) for member in archive if member.isfile())
        files = {PurePosixPath(name).relative_to("xmlconf"): file.read() for name, file in members if file}
    return list(catalogue(files))


def catalogue(files: dict[PurePosixPath, bytes]) -> Iterator[Case]:
    """The entries of the catalogue, which is one document in many files."""
    cases: list[Case] = []

    def follow(context: str, base: str | None, system: str | None, public: str | None) -> int:
        part = parser.ExternalEntityParserCreate(context)
        folder = PurePosixPath(system or "").parent

        def start(name: str, entry: dict[str, str]) -> None:
            if name == "TEST":
                cases.append(Case(entry["ID"], entry, files[folder / entry["URI"]]))

        part.StartElementHandler = start
        part.Parse(files[PurePosixPath(system or "")], True)
        return 1

    parser = expat.ParserCreate()
    parser.ExternalEntityRefHandler = follow
    parser.Parse(files[PurePosixPath("xmlconf.xml")], True)
    yield from cases


@pytest.fixture(scope="module")
def results(cases: list[Case]) -> list[list[Event] | str]:
    """Of each case the content, or the code of the error."""
    return by_kernel([case.message for case in cases], LIMITS)


def test_the_verdicts_are_those_of_the_catalogue(cases: list[Case], results: list[list[Event] | str]) -> None:
    listed = {id: exception["verdict"] for exception in EXCEPTIONS["verdict"] for id in exception["cases"]}
    wrong, excused = {}, set()
    for case, result in zip(cases, results, strict=True):
        found = "refused" if isinstance(result, str) else "accepted"
        if case.verdict in (None, found):
            continue
        if listed.get(case.id) == found:
            excused.add(case.id)
        elif not any(applies(rule, case) for rule in EXCEPTIONS["elsewhere"]):
            wrong[case.id] = f"{case.entry['TYPE']}, but {result if found == 'refused' else found}"
    assert wrong == {}
    assert listed.keys() - excused == set(), "exceptions that are not needed"
    assert len(cases) > 2500


def test_accepted_documents_have_the_content_that_expat_finds(
    cases: list[Case], results: list[list[Event] | str]
) -> None:
    by_other = {id for exception in EXCEPTIONS["content"] for id in exception.get("cases", [])}
    different: dict[str, tuple[list[Event], list[Event] | str]] = {}
    compared, needed = 0, set()
    for case, result in zip(cases, results, strict=True):
        if isinstance(result, str):
            continue
        try:
            expected = by_another_parser(case.message)
        except expat.ExpatError as error:
            if case.id in by_other:
                needed.add(case.id)
            elif any(applies(rule, case) for rule in EXCEPTIONS["content"]):
                expected = by_lxml(case.message)
                compared += 1
                if result != expected:
                    different[case.id] = (result, expected)
            elif not any(applies(rule, case) for rule in EXCEPTIONS["elsewhere"]):
                different[case.id] = (result, str(error))
            continue
        compared += 1
        if result != expected:
            different[case.id] = (result, expected)
    assert different == {}
    assert by_other == needed, "exceptions that are not needed"
    assert compared > 900


def by_another_parser(message: bytes) -> list[Event]:
    """The content by expat, or by libxml2 for multi-byte encodings, which pyexpat does not support."""
    if b"iso-2022" in message[:80].lower():
        return by_lxml(message)
    try:
        return by_expat(message)
    except ValueError:
        return by_lxml(message)


def applies(rule: dict[str, str | list[str]], case: Case) -> bool:
    """Whether a rule applies to a case: whether its catalogue entry has the rule's values."""
    keys = [key for key in rule if key.isupper()]
    return bool(keys) and all(case.entry.get(key) in rule[key] for key in keys)
