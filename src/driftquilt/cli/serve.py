"""`driftquilt serve`, and `driftquilt token` for those who may call it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from driftquilt import server
from driftquilt.cli.console import AsJson, print_json, table_console
from driftquilt.errors import InputError
from driftquilt.server.tokens import Scope, Token, Tokens


def serve(
    store: Annotated[
        Path | None, typer.Option(help="Folder that keeps the streams and the tokens (state).")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on (127.0.0.1); others need a token."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on (8321); 0 takes a free one.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with settings by these names, such as max_rows.")
    ] = None,
    max_body_bytes: Annotated[
        int | None, typer.Option(help="Largest body of a request, in bytes (8,388,608).")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(help="Maximum rows per request (10,000).")] = None,
    max_streams: Annotated[int | None, typer.Option(help="Maximum streams (100).")] = None,
    max_waiting: Annotated[
        int | None,
        typer.Option(help="Maximum predicted rows that wait for labels, per stream (100,000)."),
    ] = None,
    max_waiting_bytes: Annotated[
        int | None,
        typer.Option(help="Maximum bytes of such rows on disk, per stream (268,435,456)."),
    ] = None,
    max_backlog: Annotated[
        int | None,
        typer.Option(help="Maximum labelled rows that wait to be learned, per stream (50,000)."),
    ] = None,
    max_backlog_bytes: Annotated[
        int | None,
        typer.Option(help="Maximum bytes of requests that wait so, per stream (67,108,864)."),
    ] = None,
    max_connections: Annotated[
        int | None,
        typer.Option(help="Maximum open connections, including those of the live page (1,000)."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Maximum requests per second, per token (5,000).")
    ] = None,
    body_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds that a request's body may take to arrive (30)."),
    ] = None,
    drain_seconds: Annotated[
        float | None, typer.Option(help="Seconds that open requests get at shutdown (20).")
    ] = None,
    n_workers: Annotated[int | None, typer.Option(help="Processes that train (1).")] = None,
    feeds: Annotated[
        list[str] | None,
        typer.Option("--feed", help="Brokers that feed streams, as STREAM=URL; repeatable (none)."),
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answers",
            help="Where a fed stream's answers and events go, as STREAM=URL; repeatable (none).",
        ),
    ] = None,
    log_format: Annotated[
        Literal["json", "text"] | None,
        typer.Option(help="Log lines as json for machines or text for people (json)."),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option(help="Lowest level that is logged: debug, info, warning or error (info)."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the settings and the tokens, then end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve streams over HTTP: predict, learn, adapt, and a page to watch them.

    A setting is taken from its flag, else from the environment (DRIFTQUILT_SERVE_PORT and so
    on), else from the file of --config. Until the first token is created, anyone on this machine
    has full access, and no other machine has any. SIGTERM shuts it down cleanly.

    Example: driftquilt serve --store state --port 8321

    Example: driftquilt serve --store state --host 0.0.0.0 --config serve.toml --check
    """
    flags = {name: value for name, value in locals().items() if value is not None}
    for name in ("config", "check", "as_json"):
        flags.pop(name, None)
    for name in flags.keys() & {"feeds", "answers"}:
        flags[name] = _by_stream(flags[name])
    settings = server.load_settings(config, **flags)

    def announce(port: int) -> None:
        url = f"http://{server.address(settings.host, port)}"
        needs_token = server.needs_token(settings)
        if as_json:
            values = {"url": url, "needs_token": needs_token, "settings": settings.to_json()}
            print_json("serve", values)
            return
        callers = "callers need a token" if needs_token else "open to everybody on this machine"
        typer.echo(f"{settings.store} on {url}, {callers}")

    if not check:
        raise typer.Exit(server.serve(settings, announce))
    announce(settings.port)


def _by_stream(pairs: list[str]) -> dict[str, str]:
    """Return URLs by stream; a URL may hold a password, so no message shows it."""
    split = [pair.partition("=") for pair in pairs]
    if not all(name and url for name, _, url in split):
        raise InputError("give a broker as STREAM=URL, such as clicks=redis://host?stream=rows")
    by_stream = {name: url for name, _, url in split}
    if len(by_stream) < len(split):
        raise InputError("a stream is given two brokers; one feeds it, and one takes its answers")
    return by_stream


def token(
    action: Annotated[Literal["create", "list", "revoke"], typer.Argument(help="What to do.")],
    name: Annotated[
        str | None, typer.Argument(help="Name of the token, from letters, digits and _.-")
    ] = None,
    scope: Annotated[
        Scope | None,
        typer.Option(
            help="What it may do; write includes read, admin includes write (default: read)."
        ),
    ] = None,
    store: Annotated[
        Path,
        typer.Option(
            help="Folder of the service's store.", file_okay=False, envvar="DRIFTQUILT_SERVE_STORE"
        ),
    ] = Path("state"),
    as_json: AsJson = False,
) -> None:
    """Create, list and revoke the tokens that callers of the service show.

    A new token is printed once; the store keeps only its hash. A running service notices within a
    second.

    Example: driftquilt token create shop --scope write --store state

    Example: driftquilt token list --store state

    Example: driftquilt token revoke shop --store state
    """
    _check(action, name, scope, store)
    tokens, secret = Tokens(store / "tokens.json"), None
    if action == "create":
        secret = tokens.create(str(name), [scope or "read"])
    elif action == "revoke":
        tokens.revoke(str(name))
    if as_json:
        left = [_document(token) for token in tokens]
        print_json("token", {"action": action, "name": name, "token": secret, "tokens": left})
    elif action == "list":
        table_console().print(_table(tokens))
    else:
        typer.echo(secret or f"{name} is revoked")
    if secret:
        typer.echo("The token is shown only once; keep it where secrets are kept.", err=True)


def _check(action: str, name: str | None, scope: str | None, store: Path) -> None:
    if action == "list" and name is not None:
        raise typer.BadParameter("list takes no name", param_hint="NAME")
    if action != "list" and name is None:
        raise typer.BadParameter(f"{action} needs the name of a token", param_hint="NAME")
    if scope and action != "create":
        raise typer.BadParameter("only create takes it", param_hint="--scope")
    if action != "create" and not store.is_dir():
        raise InputError(f"there is no folder {store}; give --store that of the service")


def _table(tokens: Tokens) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("name", "scopes", "created"):
        table.add_column(column)
    for token in tokens:
        table.add_row(token.name, ", ".join(sorted(token.scopes)), token.created)
    return table


def _document(token: Token) -> dict[str, Any]:
    return {"name": token.name, "scopes": sorted(token.scopes), "created": token.created}
