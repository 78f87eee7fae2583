"""`driftquilt serve` as a user types it, up to the point where it listens."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from driftquilt import Client
from driftquilt.cli.app import load_command
from driftquilt.server import ServeSettings
from driftquilt.server.tokens import Tokens
from tests.cli.conftest import Drive

SERVE = load_command("serve")


HELP = {option.name: option.help for option in SERVE.params}
DEFAULTS = msgspec.structs.asdict(ServeSettings())


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_setting_is_a_flag_with_its_default_in_the_help(name: str) -> None:
    default = DEFAULTS[name]
    shown = f"{default:,.0f}" if isinstance(default, float) else str(default)
    shown = f"{default:,}" if isinstance(default, int) and name != "port" else shown
    assert f"({shown if default != {} else 'none'})" in HELP[name]


def test_flags_variables_and_the_file_become_the_settings(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "serve.toml").write_text("port = 1\nmax_rows = 7\nmax_streams = 7\n")
    monkeypatch.setenv("DRIFTQUILT_SERVE_MAX_ROWS", "8")
    told = drive("serve", "--port", "9", "--config", "serve.toml", "--check", "--json").document()
    settings = told["settings"]
    assert (settings["port"], settings["max_rows"], settings["max_streams"]) == (9, 8, 7)
    assert told["url"] == "http://127.0.0.1:9"


def test_without_tokens_it_is_open_to_this_machine(drive: Drive) -> None:
    told = drive("serve", "--check").stdout
    assert told == "state on http://127.0.0.1:8321, open to everybody on this machine\n"
    drive("token", "create", "shop")
    assert "callers need a token" in drive("serve", "--check").stdout
    drive("token", "revoke", "shop")
    assert "callers need a token" in drive("serve", "--check").stdout


def test_without_tokens_it_is_not_shown_to_others(drive: Drive) -> None:
    refused = drive("serve", "--host", "0.0.0.0", "--store", "kept", "--check")  # noqa: S104
    assert refused.code == 1
    assert "driftquilt token create ops --scope admin --store kept" in refused.stderr
    drive("token", "create", "ops", "--scope", "admin", "--store", "kept")
    assert drive("serve", "--host", "::", "--store", "kept", "--check").stdout == (
        "kept on http://[::]:8321, callers need a token\n"
    )


def test_a_wrong_setting_is_one_line(drive: Drive) -> None:
    outcome = drive("serve", "--port", "70000", "--check")
    assert outcome.code == 1
    assert outcome.stderr.startswith("driftquilt: port is 70000: ")
    assert len(outcome.stderr.splitlines()) == 1


def serving(folder: Path, port: int) -> subprocess.Popen[str]:
    code = "from driftquilt.cli.app import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", str(port)]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_two_brokers_for_one_stream_are_refused(drive: Drive) -> None:
    url = "clicks=redis://h?stream=rows"
    outcome = drive("serve", "--check", "--feed", url, "--feed", url)
    assert outcome.code == 1
    assert "a stream is given two brokers" in outcome.stderr


def test_a_port_that_is_taken_is_one_line_and_no_address_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = serving(tmp_path, port)
        out, err = ended.communicate(timeout=60)
    assert (ended.returncode, out) == (1, "")
    assert err == (
        f"driftquilt: cannot listen on 127.0.0.1:{port}: address already in use; "
        "choose another --port\n"
    )


def test_a_free_port_is_told_by_its_number(tmp_path: Path) -> None:
    with serving(tmp_path, 0) as running:
        try:
            assert running.stdout is not None
            url = running.stdout.readline().split()[2].rstrip(",")
            with Client(url) as client:
                assert client.health() == {"status": "ok"}
        finally:
            running.terminate()
            running.communicate(timeout=60)
    assert running.returncode == 0


def test_without_the_web_packages_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['msgspec'] = None\nfrom driftquilt.cli.app import main; main()"
    command = [sys.executable, "-c", code, "serve", "--check"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "run: pip install 'driftquilt[serve]'" in ended.stderr


def test_tokens_and_help_need_no_web_package(tmp_path: Path) -> None:
    web = ["starlette", "uvicorn", "msgspec", "httpx"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({web}))\n"
        "from driftquilt.cli.app import main; main()"
    )
    for asked in (["token", "create", "shop"], ["serve", "--help"]):
        command = [sys.executable, "-c", code, *asked]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr


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
