# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a project so that nothing is left half-written and nobody's work is lost."""

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
    """A file that the user had edited and that was left alone, or put aside."""

    name: str
    """Relative to the project's folder."""
    beside: str | None
    """The file beside it: with the contents that it would have got, or with the user's; None where there is no news."""


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_folder(
    folder: Path,
    generated: Mapping[str, bytes],
    starters: Mapping[str, bytes],
    manifest: Manifest,
    *,
    force: bool = False,
) -> tuple[Kept, ...]:
    """Write a project's files: a new folder appears whole or not at all; an old project is updated file by file.

    Files are by path relative to the folder. A starter that the user edited is left alone; if it would now be
    generated otherwise than when the user got it, NAME.new has that. With `force` a generated file that was edited is
    put aside as NAME.orig. Files of the old project that are not generated any more are removed, unless they were
    edited; other files in the folder are left alone. Returns what was kept for the user.

    Raises:
        FerruleError: the folder has other contents, or, without `force`, a generated file was edited by hand; nothing
            is changed then.
    """
    if folder.exists() and not folder.is_dir():
        raise FerruleError(f"{folder} is a file, expected a folder or nothing")
    with _explained(folder):
        if folder.is_dir() and any(folder.iterdir()):
            return _Update(folder, generated, starters, manifest).write(force=force)
    create_folder(folder, {**generated, **starters, MANIFEST_NAME: manifest_bytes(manifest)})
    return ()


def create_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, by path relative to the folder, into a new or empty folder, which appears whole or not at all.

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
    """The update of a project that is there: first all decisions, then all changes."""

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
        """Update the folder and return what was kept for the user."""
        news = self._news()
        edited = self._edited_starters()
        files = {**self._files, **news}
        candidates = {*files, *self._old.files} - edited
        in_the_way = sorted(name for name in candidates if self._differs(name))
        if in_the_way and not force:
            raise FerruleError(
                f"{self._folder}: these files were changed by hand and would be lost: {', '.join(in_the_way)}",
                hint="move them out of the way, generate into another folder, or put them aside as *.orig with --force",
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
        """Return the user's own: starters of old that are not as they were generated, nor as they will be."""
        return frozenset(name for name in self._old.starters if self._differs(name))

    def _news(self) -> dict[str, bytes]:
        """Return what edited starters would be now, by the name of a file beside them."""
        return {
            f"{name}{NEW_SUFFIX}": self._starters[name]
            for name in self._edited_starters()
            if name in self._starters and sha256(self._starters[name]) != self._old.files[name]
        }

    def _differs(self, name: str) -> bool:
        """Whether a file is there that is neither as it was generated, if it was, nor as it will be."""
        path = self._folder / name
        if not path.is_file():
            return False
        present = path.read_bytes()
        return sha256(present) != self._old.files.get(name) and present != self._files.get(name)

    def _put_aside(self, name: str) -> str:
        """Rename a file of the user's and return its new name, relative to the folder."""
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
            with contextlib.suppress(OSError):  # not empty: others are still in it
                (self._folder / name).parent.rmdir()

    def _new_manifest(self, edited: frozenset[str], news: Mapping[str, bytes]) -> Manifest:
        """Return the manifest with the digests of edited starters as the user got them."""
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
