"""`driftquilt token` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftquilt.server.tokens import Tokens
from tests.cli.conftest import Drive


def test_a_new_token_is_all_that_is_on_standard_output(drive: Drive, tmp_path: Path) -> None:
    made = drive("token", "create", "shop", "--scope", "write", "--store", "kept")
    assert made.code == 0
    assert "shown only once" in made.stderr
    found = Tokens(tmp_path / "kept" / "tokens.json").find(made.stdout.strip())
    assert found is not None
    assert (found.name, sorted(found.scopes)) == ("shop", ["write"])


def test_a_token_is_for_reading_if_nothing_else_is_said(drive: Drive) -> None:
    made = drive("token", "create", "board", "--json").document()
    assert made["tokens"][0]["scopes"] == ["read"]
    assert made["token"].startswith("dq_")


def test_tokens_are_listed_without_their_secret_and_gone_when_revoked(drive: Drive) -> None:
    secret = drive("token", "create", "ops", "--scope", "admin").stdout.strip()
    drive("token", "create", "board")
    listed = drive("token", "list")
    assert "ops" in listed.stdout
    assert "admin" in listed.stdout
    assert secret[3:] not in listed.stdout
    assert drive("token", "list", "--json").document()["token"] is None
    assert drive("token", "revoke", "ops").stdout == "ops is revoked\n"
    left = drive("token", "revoke", "board", "--json").document()
    assert (left["action"], left["name"], left["tokens"]) == ("revoke", "board", [])


def test_the_store_may_be_named_by_the_services_own_variable(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTQUILT_SERVE_STORE", "elsewhere")
    drive("token", "create", "shop")
    assert (tmp_path / "elsewhere" / "tokens.json").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["list", "shop"], "list takes no name"),
        (["create"], "create needs the name of a token"),
        (["revoke"], "revoke needs the name of a token"),
        (["revoke", "shop", "--scope", "read"], "only create takes it"),
        (["create", "shop", "--scope", "root"], "root"),
    ],
)
def test_wrong_usage_is_told(drive: Drive, arguments: list[str], told: str) -> None:
    outcome = drive("token", *arguments)
    assert outcome.code == 2
    assert told in outcome.stderr


def test_a_store_that_is_not_there_has_no_tokens_to_list(drive: Drive) -> None:
    outcome = drive("token", "list", "--store", "stat")
    assert outcome.code == 1
    assert outcome.stderr.startswith("driftquilt: there is no folder stat;")


def test_revoking_an_unknown_name_is_one_line(drive: Drive) -> None:
    drive("token", "create", "other")
    outcome = drive("token", "revoke", "shop")
    assert outcome.code == 1
    assert outcome.stderr.startswith("driftquilt: there is no token 'shop'")
