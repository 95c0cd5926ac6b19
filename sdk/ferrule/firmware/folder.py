# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a project so that nothing is left half-written and nobody's work is lost."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ferrule.errors import FerruleError
from ferrule.firmware.manifest import MANIFEST_NAME, read_manifest


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a project's files: a new folder appears whole or not at all; an old project is updated file by file.

    `files` are by path relative to the folder and have the manifest among them. Files of the old project that are
    not generated any more are removed, other files in the folder are left alone.

    Raises:
        FerruleError: the folder has other contents, or a generated file was edited by hand; nothing is changed then.
    """
    if folder.exists() and not folder.is_dir():
        raise FerruleError(f"{folder} is a file, expected a folder or nothing")
    try:
        if folder.is_dir() and any(folder.iterdir()):
            _update(folder, files)
        else:
            _create(folder, files)
    except OSError as error:
        raise FerruleError(f"{folder} cannot be written: {error.strerror or error}") from error


def _create(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, data in files.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        temporary.chmod(0o777 & ~_umask())
        if folder.is_dir():
            folder.rmdir()
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _update(folder: Path, files: Mapping[str, bytes]) -> None:
    if not (folder / MANIFEST_NAME).is_file():
        raise FerruleError(
            f"{folder} is not empty and holds no generated project",
            hint="choose another folder, or empty this one",
        )
    old = read_manifest(folder).files
    digests = {**dict.fromkeys(files.keys() - {MANIFEST_NAME}), **old}
    edited = [name for name, digest in digests.items() if _differs(folder / name, digest, files.get(name))]
    if edited:
        raise FerruleError(
            f"{folder}: these files were changed by hand and would be lost: {', '.join(sorted(edited))}",
            hint="move them out of the way, or generate into another folder",
        )
    for name, data in files.items():
        if name != MANIFEST_NAME:
            _replace(folder / name, data)
    for name in old.keys() - files.keys():
        (folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty: others are still in it
            (folder / name).parent.rmdir()
    _replace(folder / MANIFEST_NAME, files[MANIFEST_NAME])


def _differs(path: Path, digest: str | None, new: bytes | None) -> bool:
    """Whether a file is there that is neither as it was generated, if it was, nor as it will be."""
    if not path.is_file():
        return False
    present = path.read_bytes()
    return sha256(present) != digest and present != new


def _replace(path: Path, data: bytes) -> None:
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
