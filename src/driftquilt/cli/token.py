"""`driftquilt token`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from driftquilt.cli.options import AsJson
from driftquilt.cli.output import print_json, table_console
from driftquilt.errors import InputError
from driftquilt.server.tokens import Token, Tokens

__all__ = ["token"]


def token(
    action: Annotated[Literal["create", "list", "revoke"], typer.Argument(help="What to do.")],
    name: Annotated[
        str | None, typer.Argument(help="Name of the token, from letters, digits and _.-")
    ] = None,
    scope: Annotated[
        Literal["read", "write", "admin"] | None,
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
