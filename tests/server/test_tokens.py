"""Tokens: kept as hashes, found in constant time, gone once revoked."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from driftquilt.errors import InputError, StoreError
from driftquilt.server import tokens as module
from driftquilt.server.tokens import Token, Tokens


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "tokens.json"


@pytest.fixture
def _always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.0)


def test_a_token_is_found_by_itself_alone(path: Path) -> None:
    tokens = Tokens(path)
    secrets = {name: tokens.create(name, ["read"]) for name in ("a", "b", "c")}
    for name, secret in secrets.items():
        assert len(secret) == 46
        found = tokens.find(secret)
        assert found is not None
        assert found.name == name
        assert tokens.find(secret[:-1]) is None
        assert tokens.find(found.sha256) is None
    assert tokens.find("") is None
    assert tokens.find("dq_ü\ud800") is None


def test_what_is_kept_does_not_tell_the_token_and_is_its_owners_alone(path: Path) -> None:
    secret = Tokens(path).create("app", ["write", "read"])
    assert secret.removeprefix("dq_") not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    [entry] = json.loads(path.read_text())["tokens"]
    assert list(entry) == ["name", "scopes", "sha256", "created"]
    assert entry["scopes"] == ["read", "write"]


def test_a_draft_left_by_a_crash_lends_its_permissions_to_nobody(path: Path) -> None:
    path.parent.mkdir()
    path.with_name("tokens.json.tmp").touch(mode=0o666)
    Tokens(path).create("app", ["write"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.with_name("tokens.json.tmp").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_tokens_that_root_makes_are_the_services_to_read(path: Path) -> None:
    path.parent.mkdir()
    os.chown(path.parent, 12345, 12345)
    Tokens(path).create("app", ["read"])
    for file in path.parent.iterdir():
        assert (file.stat().st_uid, stat.S_IMODE(file.stat().st_mode)) == (12345, 0o600)


@pytest.mark.parametrize(
    ("scopes", "may"),
    [
        ({"read"}, ["read"]),
        ({"write"}, ["read", "write"]),
        ({"admin"}, ["read", "write", "admin"]),
        ({"read", "admin"}, ["read", "write", "admin"]),
    ],
)
def test_a_scope_includes_those_below_it(scopes: set[str], may: list[str]) -> None:
    token = Token("app", frozenset(scopes), "", "")
    assert [scope for scope in module.SCOPES if token.may(scope)] == may


@pytest.mark.usefixtures("_always_look")
def test_the_last_tokens_revocation_opens_nothing(path: Path) -> None:
    serving = Tokens(path)
    serving.create("app", ["read"])
    serving.revoke("app")
    assert len(serving) == 0
    assert serving.were_made
    assert Tokens(path).were_made
    path.unlink()
    assert serving.were_made


def test_a_new_token_is_known_at_once_and_a_revoked_one_refused_within_a_second(
    path: Path,
) -> None:
    serving = Tokens(path)
    elsewhere = Tokens(path)
    secret = elsewhere.create("app", ["read"])
    assert serving.find(secret) is not None
    elsewhere.revoke("app")
    assert serving.find(secret) is not None  # the file is not looked at for every request
    serving._looked -= 1.0
    assert serving.find(secret) is None


def test_tokens_made_at_the_same_time_are_all_kept(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from driftquilt.server.tokens import Tokens;"
        "tokens = Tokens(Path(sys.argv[1]));"
        "[tokens.create(f'{sys.argv[2]}-{n}', ['read']) for n in range(10)]"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")
    ]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    assert len(Tokens(path)) == 30


def test_a_name_is_taken_once(path: Path) -> None:
    tokens = Tokens(path)
    tokens.create("app", ["read"])
    with pytest.raises(InputError, match="'app' already"):
        tokens.create("app", ["read"])


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 64, "a\n"])
def test_a_name_that_could_be_misread_is_refused(path: Path, name: str) -> None:
    with pytest.raises(InputError, match="the name of a token has"):
        Tokens(path).create(name, ["read"])


@pytest.mark.parametrize("scopes", [[], ["root"], ["read", "root"]])
def test_a_scope_that_does_not_exist_is_refused(path: Path, scopes: list[str]) -> None:
    with pytest.raises(InputError, match="scopes are read, write and admin"):
        Tokens(path).create("app", scopes)


def test_revoking_what_is_not_there_names_what_is(path: Path) -> None:
    tokens = Tokens(path)
    tokens.create("app", ["read"])
    with pytest.raises(InputError, match=r"no token 'ap' in .*tokens.json; there are: app"):
        tokens.revoke("ap")


@pytest.mark.parametrize(
    "content", ["", "{}", '{"tokens": [1]}', '{"tokens": [{"name": "a"}]}', "[]", "\0",
                '{"tokens": [{"name": "a", "scopes": ["x"], "sha256": "", "created": ""}]}']
)  # fmt: skip
def test_a_damaged_file_lets_nobody_in(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(StoreError, match=r"tokens.json is damaged"):
        Tokens(path)


def test_a_damaged_file_forgets_the_tokens_it_had_at_once(path: Path) -> None:
    serving = Tokens(path)
    secret = serving.create("app", ["admin"])
    path.write_text("{")
    serving._looked = 0.0
    for _ in range(3):
        with pytest.raises(StoreError, match="damaged"):
            serving.find(secret)
        assert list(serving) == []
