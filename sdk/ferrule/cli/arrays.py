# SPDX-License-Identifier: Apache-2.0
"""The files of a run: inputs and outputs as .npy files, and how results are written."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ferrule.errors import FerruleError, InputError
from ferrule.graph import Array, TensorInfo
from ferrule.reading import exists, is_folder
from ferrule.scratch import write_file


def parse_input_options(options: Sequence[str], inputs: Sequence[TensorInfo]) -> list[Array] | dict[str, Array]:
    """Return the arrays of `--input` options: "x.npy" for a single input, "name=x.npy" for several.

    Raises:
        InputError: a file cannot be read, a name is given twice, or one is missing although there are several inputs.
    """
    from ferrule.evaluation.data.array_files import map_array

    names = {info.name for info in inputs}
    arrays: dict[str, Array] = {}
    for option in options:
        name, separator, path = option.rpartition("=")
        if not separator or name not in names:
            if len(inputs) == 1 and (not separator or exists(Path(option))):
                name, path = inputs[0].name, option
            elif not separator:
                raise InputError(
                    f"--input {option} does not name an input, expected name=file",
                    hint=f"the model's inputs: {', '.join(info.name for info in inputs)}",
                )
        if name in arrays:
            raise InputError(f"input '{name}' is given twice")
        arrays[name] = np.array(map_array(Path(path)))
    return arrays


def parse_output_options(options: Sequence[str], outputs: Sequence[TensorInfo]) -> dict[int, Path]:
    """Return the files of `--output` options by index of the output.

    Raises:
        FerruleError: an option names no output, two options name the same output, or a file cannot be written.
    """
    names = [info.name for info in outputs]
    paths: dict[int, Path] = {}
    for option in options:
        name, separator, path = option.rpartition("=")
        if separator and name in names:
            index = names.index(name)
        elif len(names) == 1:
            index, path = 0, option
        else:
            raise FerruleError(
                f"--output {option} does not name an output, expected name=file",
                hint=f"the model's outputs: {', '.join(names)}",
            )
        if index in paths:
            raise FerruleError(f"--output {option}: the output '{names[index]}' is written to {paths[index]} already")
        paths[index] = Path(path)
        require_writable("--output", paths[index])
    return paths


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


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Yield a path that is written in the block; FerruleError if that fails."""
    try:
        yield path
    except OSError as error:
        raise FerruleError(f"{path} cannot be written: {error.strerror or error}") from error
