"""`driftquilt export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftquilt.cli.options import AsJson
from driftquilt.cli.output import print_json
from driftquilt.errors import InputError
from driftquilt.files import atomic_write
from driftquilt.integrations.onnx.classifier import OUTPUTS, describe_inputs
from driftquilt.quilt.classifier import QuiltClassifier

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(help="A model written by `select` or `save`.")],
    to: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    missing: Annotated[str, typer.Option(help="Text that stands for a missing value.")] = "",
    as_json: AsJson = False,
) -> None:
    """Write a model as ONNX, for runtimes without driftquilt: raw columns in, labels out.

    Example: driftquilt export out/model.safetensors --to model.onnx
    """
    if to.suffix.lower() != ".onnx":
        raise InputError(f"cannot write {to}: its name must end in .onnx")
    classifier = QuiltClassifier.load(model)
    content = classifier.to_onnx(missing=missing)
    with atomic_write(to) as file:
        file.write(content)
    inputs = describe_inputs(classifier, missing)
    if as_json:
        document = {"out": str(to), "n_bytes": len(content), "inputs": inputs}
        classes = classifier.classes_.tolist()
        print_json("export", document | {"outputs": list(OUTPUTS), "classes": classes})
        return
    typer.echo(f"{to}: {len(content):,} bytes")
    for one in inputs:
        typer.echo(f"  in   {one['name']}: {one['type']}, {one['holds']}")
    if classifier.encoder_ is not None:
        typer.echo("       each as a column, of the shape (rows, 1)")
    typer.echo(f"  out  {OUTPUTS[0]}, {OUTPUTS[1]}: of {', '.join(map(str, classifier.classes_))}")
