# SPDX-License-Identifier: Apache-2.0
"""The files of a run: inputs and outputs as .npy files, and how results are written."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ferrule.errors import FerruleError, InputError
from ferrule.graph import Array, TensorInfo
from ferrule.reading import exists, is_folder
from ferrule.scratch import write_file, writing


def parse_input_options(options: Sequence[str], inputs: Sequence[TensorInfo], what: str = "input") -> dict[str, Array]:
    """Return the arrays of `--input` or `--state` options by name: "x.npy" for a single one, "name=x.npy" for several.

    Raises:
        InputError: an option names no input, a name is given twice, or a file cannot be read.
    """
    from ferrule.evaluation.data.array_files import map_array

    return {name: np.array(map_array(path)) for name, path in _by_name(what, options, inputs).items()}


def parse_output_options(options: Sequence[str], outputs: Sequence[TensorInfo]) -> dict[str, Path]:
    """Return the files of `--output` options by name.

    Raises:
        FerruleError: an option names no output, two options name the same output, or a file cannot be written.
    """
    paths = _by_name("output", options, outputs)
    for path in paths.values():
        require_writable("--output", path)
    return paths


def _by_name(what: str, options: Sequence[str], infos: Sequence[TensorInfo]) -> dict[str, Path]:
    names = [info.name for info in infos]
    found: dict[str, Path] = {}
    for option in options:
        name, separator, path = option.rpartition("=")
        if name not in names:
            if len(names) != 1 or (what != "output" and separator and not exists(Path(option))):
                raise InputError(
                    f"--{what} {option} names no {what}, expected name=file",
                    hint=f"the model's {what}s: {', '.join(names) or 'none'}",
                )
            name, path = names[0], option
        if name in found:
            raise InputError(f"--{what} {option}: the {what} '{name}' is given twice, with {found[name]} before")
        found[name] = Path(path)
    return found


def require_writable(option: str, path: Path, *, folder: bool = False) -> None:
    """Raise FerruleError, before anything is built, if a file, or a `folder`, cannot be written."""
    parent = path.absolute().parent
    if not is_folder(parent):
        raise FerruleError(f"{option} {path}: there is no folder {parent}")
    if exists(path) and is_folder(path) != folder:
        found, expected = ("file", "folder") if folder else ("folder", "file")
        raise FerruleError(f"{option} {path}: is a {found}, expected a {expected}")
    if not os.access(path if exists(path) else parent, os.W_OK):
        raise FerruleError(f"{option} {path}: cannot be written")


def save_array(path: Path, array: Array) -> None:
    """Write an array to a .npy file; FerruleError if that fails, with an older file left as it was."""
    contents = io.BytesIO()
    np.save(contents, array, allow_pickle=False)
    save(path, contents.getvalue())


def save(path: Path, data: bytes) -> None:
    """Write a file of results; FerruleError if that fails, with an older file left as it was."""
    with writing(path):
        write_file(path, data)
