# SPDX-License-Identifier: Apache-2.0
"""Exports what PyTorch computes to ONNX, by PyTorch; it imports nothing from Ferrule.

As a script it has a process and perhaps a Python of its own: PYTHON exporter.py FOLDER reads model.pt2 in the folder
and writes model.onnx there, with packages.txt, a line for each file that names the version of a package; or, with the
exit code 1, lacking.txt, the package that is not installed, or error.txt.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "onnxscript", "onnx")
"""What the exporter needs."""


def lacking() -> str | None:
    """Return the first package that is not installed; None if there is none."""
    return next((name for name in PACKAGES if importlib.util.find_spec(name) is None), None)


def exported(program: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> bytes:  # noqa: ANN401
    """Return a torch.nn.Module, called so, or a torch.export.ExportedProgram as an ONNX model.

    Raises ValueError for a program in the mode of training, and what torch raises.
    """
    import torch

    with _quiet():
        made = torch.onnx.export(program, args, kwargs=kwargs or {}, dynamo=True, verbose=False)
    _require_inference(made.exported_program)
    _name_outputs(made)
    return bytes(made.model_proto.SerializeToString())


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what PyTorch says about itself in the block, such as packages that it could use."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _require_inference(program: Any) -> None:  # noqa: ANN401 a torch.export.ExportedProgram
    """Raise ValueError if a program has a step in the mode of training, which ONNX would have as one of inference."""
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        for index, argument in enumerate(() if schema is None else schema.arguments):
            given = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name)
            if argument.name in {"train", "training"} and given is True:
                raise ValueError(
                    f"{node.name} is in the mode of training: call module.eval() before torch.export.export"
                )


def _name_outputs(made: Any) -> None:  # noqa: ANN401 a torch.onnx.ONNXProgram
    """Give the outputs the names that the module returns them by; PyTorch has the names of operators."""
    graph = made.model.graph
    names = _returned(made.exported_program.call_spec.out_spec)
    taken = {value.name for node in graph for value in node.outputs} | {value.name for value in graph.inputs}
    taken |= set(graph.initializers)
    if len({id(value) for value in graph.outputs}) == len(names) and not taken & set(names):
        for value, name in zip(graph.outputs, names, strict=True):
            if value not in graph.inputs and value.name not in graph.initializers:
                value.name = name


def _returned(structure: Any) -> list[str]:  # noqa: ANN401 a torch.utils._pytree.TreeSpec
    """Return a name for each tensor of what a module returns: the keys of a dict, the fields of a named tuple, else
    output, or output_0 and so on.
    """
    from torch.utils import _pytree

    count = structure.num_leaves
    found = _pytree.tree_unflatten(list(range(count)), structure)
    if isinstance(found, tuple) and hasattr(found, "_asdict"):
        found = found._asdict()
    if isinstance(found, dict) and all(isinstance(leaf, int) for leaf in found.values()):
        return [str(name) for name in sorted(found, key=found.__getitem__)]
    return ["output"] if count == 1 else [f"output_{index}" for index in range(count)]


def first_cause(error: BaseException) -> str:
    """Return the kind and the first line of the error that began a chain of errors; PyTorch's own have many lines."""
    while error.__cause__ is not None:
        error = error.__cause__
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _metadata() -> Iterator[str]:
    """Yield the paths of the files that state the versions of the packages."""
    for name in PACKAGES:
        package = importlib.metadata.distribution(name)
        for file in package.files or ():
            if file.name == "METADATA" and len(file.parts) == 2:
                yield str(package.locate_file(file))


def main() -> int:
    """Export the program of the folder; the exit code is 1 if that is not possible."""
    folder = Path(sys.argv[1])
    absent = lacking()
    if absent is not None:
        (folder / "lacking.txt").write_text(absent, encoding="utf-8")
        return 1
    import torch

    try:
        data = exported(torch.export.load(folder / "model.pt2"))
    except Exception as error:  # noqa: BLE001 it becomes the answer
        (folder / "error.txt").write_text(first_cause(error), encoding="utf-8")
        return 1
    (folder / "packages.txt").write_text("\n".join(_metadata()), encoding="utf-8")
    (folder / "model.onnx").write_bytes(data)
    return 0


if __name__ == "__main__":
    del sys.path[0]  # this folder is no place of packages; Pythons before 3.11 have no option for that
    sys.exit(main())
