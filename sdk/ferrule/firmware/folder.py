# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a project without leaving partial files or losing the user's changes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ferrule.errors import FerruleError
from ferrule.firmware.manifest import MANIFEST_NAME, Manifest, manifest_bytes, read_manifest

NEW_SUFFIX = ".new"
ORIGINAL_SUFFIX = ".orig"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file edited by the user that was left unchanged or renamed."""

    name: str
    """Path relative to the project's folder."""
    beside: str | None
    """The file written beside it, with the newly generated contents or the user's; None if there is none."""


def sha256(data: bytes) -> str:
    """Return the SHA-256 hash of the data in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_folder(
    folder: Path,
    generated: Mapping[str, bytes],
    starters: Mapping[str, bytes],
    manifest: Manifest,
    *,
    force: bool = False,
) -> tuple[Kept, ...]:
    """Write a project's files: a new folder is created atomically, an existing project is updated file by file.

    The keys of `generated` and `starters` are paths relative to the folder. A starter that the user edited is left
    unchanged; if its generated contents have changed since, they are written to NAME.new. With `force`, a generated
    file that was edited is renamed to NAME.orig. Files that are no longer generated are removed unless they were
    edited; other files in the folder are left unchanged. Returns the files that were kept for the user.

    Raises:
        FerruleError: the folder has other contents or, without `force`, a generated file was edited by hand. Nothing is
            changed in either case.
    """
    if folder.exists() and not folder.is_dir():
        raise FerruleError(f"{folder} is a file, expected a folder or nothing")
    with _explained(folder):
        if folder.is_dir() and any(folder.iterdir()):
            return _Update(folder, generated, starters, manifest).write(force=force)
    create_folder(folder, {**generated, **starters, MANIFEST_NAME: manifest_bytes(manifest)})
    return ()


def create_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Create a folder with files, given by path relative to it, atomically; an empty folder may exist already.

    Raises:
        FerruleError: the folder cannot be written.
    """
    with _explained(folder):
        _create(folder, files)


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
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


class _Update:
    """The update of an existing project: all decisions are made before the first change."""

    def __init__(
        self, folder: Path, generated: Mapping[str, bytes], starters: Mapping[str, bytes], manifest: Manifest
    ) -> None:
        if not (folder / MANIFEST_NAME).is_file():
            raise FerruleError(
                f"{folder} is not empty and holds no generated project",
                hint="choose another folder, or empty this one",
            )
        self._folder = folder
        self._old = read_manifest(folder)
        if self._old.platform != manifest.platform:
            raise FerruleError(
                f"{folder} holds a project for {self._old.platform}, which cannot become one for {manifest.platform}",
                hint="choose another folder",
            )
        self._files = {**generated, **starters}
        self._starters = starters
        self._manifest = manifest

    def write(self, *, force: bool) -> tuple[Kept, ...]:
        """Update the folder and return the files that were kept for the user."""
        news = self._news()
        edited = self._edited_starters()
        files = {**self._files, **news}
        candidates = {*files, *self._old.files} - edited
        in_the_way = sorted(name for name in candidates if self._differs(name))
        if in_the_way and not force:
            raise FerruleError(
                f"{self._folder}: these files were changed by hand and would be lost: {', '.join(in_the_way)}",
                hint="move them out of the way, generate into another folder, or keep them as *.orig with --force",
            )
        aside = tuple(Kept(name=name, beside=self._put_aside(name)) for name in in_the_way)
        for name, data in files.items():
            if name not in edited:
                _replace(self._folder / name, data)
        self._remove(name for name in self._old.files if name not in files and name not in edited)
        _replace(self._folder / MANIFEST_NAME, manifest_bytes(self._new_manifest(edited, news)))
        kept = tuple(
            Kept(name=name, beside=f"{name}{NEW_SUFFIX}" if f"{name}{NEW_SUFFIX}" in news else None)
            for name in sorted(edited)
        )
        return (*aside, *kept)

    def _edited_starters(self) -> frozenset[str]:
        """Return the old starters that differ both from their generated contents and from the new ones."""
        return frozenset(name for name in self._old.starters if self._differs(name))

    def _news(self) -> dict[str, bytes]:
        """Return the new contents of edited starters that have changed, by the name of the file beside the starter."""
        return {
            f"{name}{NEW_SUFFIX}": self._starters[name]
            for name in self._edited_starters()
            if name in self._starters and sha256(self._starters[name]) != self._old.files[name]
        }

    def _differs(self, name: str) -> bool:
        """Return whether a file exists that differs both from its generated contents, if any, and from the new ones."""
        path = self._folder / name
        if not path.is_file():
            return False
        present = path.read_bytes()
        return sha256(present) != self._old.files.get(name) and present != self._files.get(name)

    def _put_aside(self, name: str) -> str:
        """Rename an edited file and return its new name, relative to the folder."""
        path = self._folder / name
        number, target = 1, path.with_name(f"{path.name}{ORIGINAL_SUFFIX}")
        while target.exists():
            number += 1
            target = path.with_name(f"{path.name}{ORIGINAL_SUFFIX}{number}")
        path.rename(target)
        return target.relative_to(self._folder).as_posix()

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self._folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # the folder still contains other files
                (self._folder / name).parent.rmdir()

    def _new_manifest(self, edited: frozenset[str], news: Mapping[str, bytes]) -> Manifest:
        """Return the manifest with the original hashes of edited starters, and those of the files beside them."""
        files = {
            **self._manifest.files,
            **{name: self._old.files[name] for name in edited},
            **{name: sha256(data) for name, data in news.items()},
        }
        starters = sorted({*self._manifest.starters, *edited})
        return msgspec.structs.replace(
            self._manifest, files={name: files[name] for name in sorted(files)}, starters=tuple(starters)
        )


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
