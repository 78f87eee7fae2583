"""`driftquilt serve`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from driftquilt.cli.output import AsJson, print_json
from driftquilt.errors import InputError, MissingExtraError
from driftquilt.server.setting_words import WORDS

if TYPE_CHECKING:
    from driftquilt.server.settings import ServeSettings

__all__ = ["serve"]


def _words(name: str) -> Any:
    return typer.Option(help=WORDS[name])


def serve(
    store: Annotated[Path | None, _words("store")] = None,
    host: Annotated[str | None, _words("host")] = None,
    port: Annotated[int | None, _words("port")] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with settings by these names, such as max_rows.")
    ] = None,
    max_body_bytes: Annotated[int | None, _words("max_body_bytes")] = None,
    max_rows: Annotated[int | None, _words("max_rows")] = None,
    max_streams: Annotated[int | None, _words("max_streams")] = None,
    max_waiting: Annotated[int | None, _words("max_waiting")] = None,
    max_waiting_bytes: Annotated[int | None, _words("max_waiting_bytes")] = None,
    max_backlog: Annotated[int | None, _words("max_backlog")] = None,
    max_backlog_bytes: Annotated[int | None, _words("max_backlog_bytes")] = None,
    max_connections: Annotated[int | None, _words("max_connections")] = None,
    rate: Annotated[float | None, _words("rate")] = None,
    body_seconds: Annotated[float | None, _words("body_seconds")] = None,
    drain_seconds: Annotated[float | None, _words("drain_seconds")] = None,
    n_workers: Annotated[int | None, _words("n_workers")] = None,
    feeds: Annotated[list[str] | None, typer.Option("--feed", help=WORDS["feeds"])] = None,
    answers: Annotated[list[str] | None, typer.Option("--answers", help=WORDS["answers"])] = None,
    log_format: Annotated[Literal["json", "text"] | None, _words("log_format")] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None, _words("log_level")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the settings and the tokens, then end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve streams over HTTP: predict, learn, adapt, and a page to watch them.

    A setting is taken from its flag, else from the environment (DRIFTQUILT_SERVE_PORT and so
    on), else from the file of --config. Reachable from this machine alone and without tokens,
    everybody on it may do everything; make a token to change that. SIGTERM ends it in order.

    Example: driftquilt serve --store state --port 8321

    Example: driftquilt serve --store state --host 0.0.0.0 --config serve.toml --check
    """
    flags = {name: value for name, value in locals().items() if name in WORDS}
    try:
        from driftquilt.server.run import needs_token  # noqa: PLC0415
        from driftquilt.server.run import serve as run_service  # noqa: PLC0415
        from driftquilt.server.settings import ServeSettings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="serve") from error

    given = {name: value for name, value in flags.items() if value is not None}
    for name in given.keys() & {"feeds", "answers"}:
        given[name] = _by_stream(given[name])
    settings = ServeSettings(config, **given)
    announce = partial(_announce, settings, needs_token(settings), as_json)
    if not check:
        raise typer.Exit(run_service(settings, announce))
    announce(settings.port)


def _by_stream(pairs: list[str]) -> dict[str, str]:
    """URLs by stream; a URL may hold a password, so no message shows it."""
    split = [pair.partition("=") for pair in pairs]
    if not all(name and url for name, _, url in split):
        raise InputError("a broker is given as STREAM=URL, such as clicks=redis://host?stream=rows")
    by_stream = {name: url for name, _, url in split}
    if len(by_stream) < len(split):
        raise InputError("a stream is given two brokers; one feeds it, and one takes its answers")
    return by_stream


def _announce(settings: ServeSettings, closed: bool, as_json: bool, port: int) -> None:
    from driftquilt.server.listen import address  # noqa: PLC0415

    url = f"http://{address(settings.host, port)}"
    if as_json:
        plain = settings.model_dump(mode="json")
        print_json("serve", {"url": url, "needs_token": closed, "settings": plain})
        return
    callers = "callers need a token" if closed else "open to everybody on this machine"
    typer.echo(f"{settings.store} on {url}, {callers}")
