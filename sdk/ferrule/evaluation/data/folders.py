# SPDX-License-Identifier: Apache-2.0
"""Lists folders of samples: one folder per class, or one folder of all samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.errors import InputError, some_of
from ferrule.evaluation.data.file_errors import input_errors
from ferrule.evaluation.data.labels import class_names
from ferrule.interface import name_of
from ferrule.reading import is_file, is_folder
from ferrule.reading import list_folder as entries_of
from ferrule.running.data_settings import DataSettings

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".webp")
SOUNDS = (".wav",)


@frozen
class Listing:
    """The files of a folder, class after class, each class sorted by name."""

    sounds: bool
    """Whether they are recordings; otherwise they are images."""
    files: tuple[Path, ...]
    names: tuple[str, ...]
    """Relative to the folder, with `/`."""
    classes: tuple[str, ...]
    """The folder of each file; empty if there are no folders."""
    steps: tuple[str, ...]
    """What was left out."""


def list_folder(folder: Path, settings: DataSettings) -> Listing:
    """Return the samples in a folder, or in the folders of its classes.

    Hidden files are ignored; files of other types are counted in `steps`, and so are the folders that `classes` in the
    `[data]` table does not name.

    Raises:
        InputError: the folder cannot be read, has no samples, has both images and recordings or both files and
            folders, lacks a class, has a class without samples, or a link leads nowhere.
    """
    entries = _entries(folder)
    folders = [entry for entry in entries if is_folder(entry)]
    files = [entry for entry in entries if not is_folder(entry)]
    own, others = _samples(files)
    if folders and own:
        raise InputError(
            f"{folder} has both folders and samples, such as '{own[0].name}'",
            hint=f"expected a folder per class, or all samples in one folder with {name_of('labels')}",
        )
    steps: list[str] = []
    chosen, classes = own, list[str]()
    if folders:
        by_name = {entry.name: entry for entry in folders}
        wanted = class_names(settings)
        left_out = [name for name in by_name if wanted is not None and name not in wanted]
        steps += [f"folders left out: {some_of(left_out, 10)}"] if left_out else []
        for name in by_name if wanted is None else wanted:
            if name not in by_name:
                raise InputError(
                    f"{folder} has no folder for the class '{name}'", hint=f"folders: {some_of(list(by_name), 10)}"
                )
            found, rest = _samples(_entries(by_name[name]))
            others += rest
            if not found:
                raise InputError(f"{by_name[name]} has no samples of the class '{name}'")
            chosen += found
            classes += [name] * len(found)
    if not chosen:
        raise InputError(f"{folder} has no samples", hint=f"expected files such as {', '.join(IMAGES + SOUNDS)}")
    if others:
        steps.append(f"{len(others)} file{'s' if len(others) > 1 else ''} of other types left out")
    sounds = [file for file in chosen if file.suffix.lower() in SOUNDS]
    if sounds and len(sounds) < len(chosen):
        image = next(file for file in chosen if file.suffix.lower() in IMAGES)
        raise InputError(f"{folder} has both recordings, such as {sounds[0].name}, and images, such as {image.name}")
    return Listing(
        sounds=bool(sounds),
        files=tuple(chosen),
        names=tuple(file.relative_to(folder).as_posix() for file in chosen),
        classes=tuple(classes),
        steps=tuple(steps),
    )


def _entries(folder: Path) -> list[Path]:
    with input_errors(folder, "cannot be read"):
        entries = sorted(entries_of(folder), key=lambda entry: entry.name)
    return [entry for entry in entries if not entry.name.startswith(".")]


def _samples(entries: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the samples and the other files; a folder among them has no samples of its own."""
    samples, others = list[Path](), list[Path]()
    for entry in entries:
        if is_folder(entry):
            raise InputError(f"{entry} is a folder in the folder of a class, expected files")
        if entry.suffix.lower() not in IMAGES + SOUNDS:
            others.append(entry)
        elif is_file(entry):
            samples.append(entry)
        else:
            raise InputError(f"{entry} is no file: " + ("the link leads nowhere" if entry.is_symlink() else "a device"))
    return samples, others
