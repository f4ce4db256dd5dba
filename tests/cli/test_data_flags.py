"""`--data` of `match`, `transform` and `explain`."""

from pathlib import Path

import pytest

from tamis import cli


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, with a message and data."""
    monkeypatch.chdir(tmp_path)
    Path("trade.xml").write_text("<trade symbol='SAP'/>")
    Path("companies.csv").write_text("symbol,name\nIBM,Big Blue\nSAP,Soft\n")
    Path("book.xml").write_text("<book><site id='SAP'/><site id='7'/></book>")
    Path("bad.xml").write_text("<row>")


def run(*arguments: str) -> int:
    return cli.main(arguments)


QUERY = "for $t in //trade, $c in collection('companies')/row[symbol = $t/@symbol] return <d>{ $c/name }</d>"


def test_match_and_transform_join(capsys: pytest.CaptureFixture[str]) -> None:
    data = ("--data", "companies=companies.csv")
    assert run("match", *data, "-q", QUERY, "-q", "//x", "trade.xml") == 0
    assert run("transform", *data, "-q", QUERY, "trade.xml") == 0
    assert capsys.readouterr().out == "trade.xml\t1\ntrade.xml\t1\n<d><name>Soft</name></d>\n"


def test_a_file_is_cut_at_an_element(capsys: pytest.CaptureFixture[str]) -> None:
    query = "//trade[@symbol = collection('book')/site/@id]"
    data = ("--data", "book=book.xml")
    assert run("match", *data, "--data-record", "book=site", "-q", query, "trade.xml") == 0
    assert run("match", *data, "-q", query, "-q", query.replace("/site", "//site"), "trade.xml") == 0
    assert capsys.readouterr().out == "trade.xml\t1\ntrade.xml\t2\n"


def test_explain_joins(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "--data", "companies=companies.csv", QUERY, "trade.xml") == 0
    assert "matches" in capsys.readouterr().out


def test_data_that_is_not_given_refuses_the_query(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("match", "-q", QUERY, "trade.xml") == 1
    assert "there is no local data of the name `companies`" in capsys.readouterr().err
    assert run("explain", QUERY, "trade.xml") == 1
    assert "1:26: there is no local data" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("companies=none.csv", "tamis: unreadable-data: none.csv cannot be read"),
        ("companies=bad.xml", "tamis: unclosed-element: bad.xml: record 1:"),
    ],
)
def test_data_that_cannot_be_read_is_named(
    data: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("match", "--data", data, "-q", QUERY, "trade.xml") == 1
    assert reason in capsys.readouterr().err


def test_the_form_of_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("match", "--data", "companies.csv", "-q", "//a", "trade.xml")
    assert "has not the form NAME=…" in capsys.readouterr().err
    assert run("match", "--data-record", "x=y", "-q", "//a", "trade.xml") == 1
    assert "--data-record names data that --data does not: x" in capsys.readouterr().err
