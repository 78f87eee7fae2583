"""`driftquilt token`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from driftquilt.cli.output import AsJson, print_json, table_console
from driftquilt.errors import InputError

if TYPE_CHECKING:
    from driftquilt.server.tokens import Token, Tokens

__all__ = ["token"]


def token(
    action: Annotated[Literal["create", "list", "revoke"], typer.Argument(help="What to do.")],
    name: Annotated[
        str | None, typer.Argument(help="The token's name; of letters, digits and _.-")
    ] = None,
    scope: Annotated[
        Literal["read", "write", "admin"] | None,
        typer.Option(help="What it may do; write includes read, admin includes write (read)."),
    ] = None,
    store: Annotated[
        Path,
        typer.Option(
            help="Folder of the service's store.", file_okay=False, envvar="DRIFTQUILT_SERVE_STORE"
        ),
    ] = Path("state"),
    as_json: AsJson = False,
) -> None:
    """Make, list and revoke the tokens that callers of the service show.

    A new token is printed once; the store keeps only its hash. A running service obeys within a
    second.

    Example: driftquilt token create shop --scope write --store state

    Example: driftquilt token list --store state

    Example: driftquilt token revoke shop --store state
    """
    from driftquilt.server.tokens import Tokens  # noqa: PLC0415

    if (name is None) != (action == "list"):
        wrong = "list takes no name" if name else f"{action} needs the name of a token"
        raise typer.BadParameter(wrong, param_hint="NAME")
    if scope and action != "create":
        raise typer.BadParameter("only create takes it", param_hint="--scope")
    if action != "create" and not store.is_dir():
        raise InputError(f"there is no folder {store}; --store takes that of the service")
    tokens = Tokens(store / "tokens.json")
    secret = tokens.create(name, [scope or "read"]) if name and action == "create" else None
    if name and action == "revoke":
        tokens.revoke(name)
    if as_json:
        left = [_document(one) for one in tokens]
        print_json("token", {"action": action, "name": name, "token": secret, "tokens": left})
    elif name is None:
        table_console().print(_table(tokens))
    else:
        typer.echo(secret or f"{name} is revoked")
    if secret:
        typer.echo("It is shown this once; keep it where secrets are kept.", err=True)


def _table(tokens: Tokens) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("name", "scopes", "created"):
        table.add_column(column)
    for one in tokens:
        table.add_row(one.name, ", ".join(sorted(one.scopes)), one.created)
    return table


def _document(token: Token) -> dict[str, Any]:
    return {"name": token.name, "scopes": sorted(token.scopes), "created": token.created}
