# SPDX-License-Identifier: Apache-2.0
"""Has PyTorch export modules in this process, and programs in a process of their own, whose Python has PyTorch."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ferrule.child_process import CommandError, run
from ferrule.errors import FerruleError, MissingToolError, ModelError
from ferrule.formats.pytorch import exporter
from ferrule.reading import is_file, read_bytes, read_text
from ferrule.record import declare, variable
from ferrule.scratch import ScratchFolder

VARIABLE = "FERRULE_TORCH"
_LIMIT_S = 1800.0
_INSTALL = "pip install torch onnxscript onnx"
_OTHER = f"set {VARIABLE} to a Python that has torch, onnxscript and onnx"


def onnx_of_program(data: bytes) -> bytes:
    """Return the ONNX model of a program in a file of torch.export, which PyTorch loads and may run code of.

    Raises:
        MissingToolError: no Python with PyTorch's exporter is found.
        ModelError: PyTorch cannot load or export the program.
    """
    python = shlex.split(variable(VARIABLE)) or [sys.executable]
    if shutil.which(python[0]) is None:
        raise MissingToolError(f"{VARIABLE} names {python[0]}, and there is no such program", hint=_OTHER)
    with ScratchFolder() as scratch:
        folder = scratch.path
        (folder / "model.pt2").write_bytes(data)
        try:
            run([*python, "-W", "ignore", exporter.__file__, str(folder)], _LIMIT_S)
        except CommandError as error:
            raise _refusal(folder, python, error) from error
        for path in read_text(folder / "packages.txt").splitlines():
            declare(path)
        return read_bytes(folder / "model.onnx")


def _refusal(folder: Path, python: list[str], error: CommandError) -> FerruleError:
    """Return the error for an exporter that failed, by the file that it left."""
    lacking, reason = folder / "lacking.txt", folder / "error.txt"
    if is_file(lacking):
        return MissingToolError(
            f"it is a program of PyTorch, which the Python package {read_text(lacking)} reads or exports, and "
            f"{shlex.join(python)} does not have it",
            hint=_elsewhere(python),
        )
    if is_file(reason):
        return ModelError(f"PyTorch cannot export the program: {read_text(reason)}")
    return FerruleError(f"PyTorch cannot export the program: {error}")


def _elsewhere(python: list[str]) -> str:
    here = f"{shlex.join(python)} -m {_INSTALL}"
    return f"{here}; or {_OTHER}"


def onnx_of_module(module: Any, example: Any) -> tuple[bytes, str]:  # noqa: ANN401 torch is no dependency
    """Return the ONNX model of a module called with an example, or of an exported program, and the class's name.

    Raises:
        MissingToolError: a package of PyTorch's exporter is not installed.
        FerruleError: `module` is neither, there is no example for a module, or PyTorch cannot export it.
    """
    absent = exporter.lacking()
    if absent is not None:
        raise MissingToolError(
            f"the Python package {absent} is not installed, with which PyTorch exports modules", hint=_INSTALL
        )
    import torch

    if isinstance(module, torch.export.ExportedProgram):
        if example is not None:
            raise FerruleError(
                "an example is given, and an exported program has its inputs' shapes", hint="leave the example out"
            )
        return _exported(module, "program"), "model"
    name = type(module).__name__
    if not isinstance(module, torch.nn.Module):
        raise FerruleError(
            f"the module is of type {name}, expected a torch.nn.Module or a torch.export.ExportedProgram"
        )
    if example is None:
        raise FerruleError(
            f"the module {name} is given without an example of its inputs",
            hint="give one input, a tuple of all, or a dict of them by name; a batch of one sample suits a board",
        )
    place = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    with _evaluating(module), torch.no_grad():
        return _exported(module, f"module {name}", *_arguments(example, place)), name


def _exported(program: Any, what: str, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> bytes:  # noqa: ANN401
    try:
        return exporter.exported(program, args, kwargs)
    except Exception as error:
        raise FerruleError(f"PyTorch cannot export the {what}: {exporter.first_cause(error)}") from error


def _arguments(example: Any, place: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:  # noqa: ANN401
    """Return the positional arguments and those by name, with arrays as tensors where the module's weights are."""
    import torch

    def placed(value: Any) -> Any:  # noqa: ANN401
        value = torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        return value.to(place) if isinstance(value, torch.Tensor) else value

    if isinstance(example, Mapping):
        return (), {name: placed(value) for name, value in example.items()}
    given = example if isinstance(example, tuple) else (example,)
    return tuple(map(placed, given)), {}


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:  # noqa: ANN401
    """Have a module and the modules in it in the mode of inference in the block, and as they were after it."""
    before = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for each, training in before:
            each.training = training
