"""`tamis tokens`: made, listed without their secrets, revoked."""

from pathlib import Path

import pytest

from tamis import cli
from tamis.catalog import Catalog
from tamis.model.token import Role


def test_tokens_are_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog_url = str(tmp_path / "catalog.db")
    where = ["--catalog", catalog_url]
    asked = ["--role", "subscriber", "--subscriber", "ann", "--tenant", "acme", "--rate", "9"]
    assert cli.main(["tokens", "create", *where, *asked]) == 0
    secret = capsys.readouterr().out.strip()
    with Catalog(catalog_url) as catalog:
        token = catalog.tokens.find(secret)
        assert token is not None
        assert (token.role, token.tenant, token.subscriber) == (Role.SUBSCRIBER, "acme", "ann")
        assert (token.name, token.rate) == ("subscriber", 9)
        assert cli.main(["tokens", "list", *where]) == 0
        listed = capsys.readouterr().out
        assert token.id in listed
        assert "acme" in listed
        assert secret not in listed
        assert cli.main(["tokens", "revoke", token.id, *where]) == 0
        assert catalog.tokens.find(secret) is None
    assert cli.main(["tokens", "revoke", "none", *where]) == 1
    assert "unknown-token" in capsys.readouterr().err
    assert cli.main(["tokens", "create", *where, "--role", "subscriber"]) == 1
    assert "bad-value" in capsys.readouterr().err
