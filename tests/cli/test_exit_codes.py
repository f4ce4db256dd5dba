"""The table of exit codes in docs/commands.md, row by row."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis import cli

COMMAND = [sys.executable, "-m", "tamis.cli"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with documents, queries, lines to import and an empty catalog."""
    monkeypatch.chdir(tmp_path)
    for name in ("TAMIS_URL", "TAMIS_CATALOG", "TAMIS_STATE"):
        monkeypatch.delenv(name, raising=False)
    Path("good.xml").write_text("<a><b/></a>")
    Path("bad.xml").write_text("<a>\n <b></a>")
    Path("net.toml").write_text("[[broker]]\nname = 'london'\n")
    Path("good.txt").write_text("//b\n")
    Path("bad.txt").write_text("//b\n//b[\n")
    Path("lines.jsonl").write_text('{"id": "one", "subscriber": "ann", "query": "//b["}\n')


DONE, ERROR, WRONG, STOPPED = 0, 1, 2, 3


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check //a", DONE),
        ("check //a[", ERROR),
        ("explain //b good.xml", DONE),
        ("explain //c good.xml", DONE),
        ("explain //b[ good.xml", ERROR),
        ("explain //b bad.xml", ERROR),
        ("explain //b none.xml", ERROR),
        ("{each} --queries good.txt good.xml", DONE),
        ("{each} --queries bad.txt good.xml", DONE),
        ("{each} --queries good.txt bad.xml", DONE),
        ("{each} --queries good.txt none.xml", DONE),
        ("{each} --queries good.txt none.xml.gz", DONE),
        ("{each} --queries none.txt good.xml", ERROR),
        ("{each} -q //b[ good.xml", ERROR),
        ("{each} -q //b none.xml", DONE),
        ("{each} --strict --queries good.txt good.xml", DONE),
        ("{each} --strict --queries bad.txt good.xml", WRONG),
        ("{each} --strict --queries good.txt bad.xml", WRONG),
        ("{each} --strict --queries good.txt none.xml", WRONG),
        ("{each} --strict -q //b[ good.xml", WRONG),
        ("{each} good.xml", WRONG),
        ("network check net.toml", DONE),
        ("network check bad.txt", ERROR),
        ("network check", ERROR),
        ("subscriptions import lines.jsonl", DONE),
        ("subscriptions import --strict lines.jsonl", WRONG),
        ("subscriptions import none.jsonl", ERROR),
        ("subscriptions add //b[ --subscriber ann", ERROR),
        ("subscriptions remove none", ERROR),
        ("subscriptions show none", ERROR),
        ("tokens revoke none", ERROR),
        ("dead-letters show none", ERROR),
        ("dead-letters replay none", ERROR),
        ("dead-letters replay", WRONG),
        ("run --config none.toml", ERROR),
        ("status", STOPPED),
        ("nonsense", WRONG),
        ("check", WRONG),
    ],
)
def test_exit_codes(command: str, code: int) -> None:
    for each in ("match", "transform") if "{each}" in command else ("",):
        try:
            found = cli.main(command.format(each=each).split())
        except SystemExit as error:
            found = int(error.code or 0)
        assert found == code, each


def test_a_missing_document_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "//b", "none.xml"]) == 1
    assert capsys.readouterr().out == "none.xml: No such file or directory\n"


def test_a_closed_pipe_is_no_error() -> None:
    documents = ["good.xml"] * 10_000
    with subprocess.Popen(
        [*COMMAND, "match", "-q", "//b", *documents], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == b"good.xml\t1\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_names_of_files_need_not_be_text(flags: list[str]) -> None:
    name = b"\xff.xml"
    Path(os.fsdecode(name)).write_text("<a>")
    done = subprocess.run(
        [*COMMAND, "match", *flags, "-q", "//b", name],
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
        check=True,
    )
    assert name in done.stdout
