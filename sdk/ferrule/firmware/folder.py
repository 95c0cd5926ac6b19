# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a project without leaving partial files or losing the user's changes."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.firmware.manifest import MANIFEST_NAME, PENDING_NAME, Files, Manifest, manifest_bytes, read_manifest
from ferrule.interface import option
from ferrule.reading import confined, exists, is_file, is_folder, read_bytes
from ferrule.record import made
from ferrule.scratch import ScratchFolder, locked, writing

NEW_SUFFIX = ".new"
ORIGINAL_SUFFIX = ".orig"


@frozen
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
    generated: Files,
    starters: Files,
    manifest: Manifest,
    *,
    force: bool = False,
) -> tuple[Kept, ...]:
    """Write a project's files: a new folder is created atomically, an existing project is updated file by file.

    The keys of `generated` and `starters` are paths relative to the folder. A starter that the user edited is left
    unchanged; if its generated contents have changed since, they are written to NAME.new. With `force`, a generated
    file that was edited is renamed to NAME.orig. Files that are no longer generated are removed unless they were
    edited; other files in the folder are left unchanged. Returns the files that were kept for the user.

    Everything is decided, and all new contents are on the disk, before the first file is replaced. If an update is
    killed, the next one completes it; until then, the project cannot be built.

    Raises:
        FerruleError: the folder has other contents, another command uses it, a file cannot be written or, without
            `force`, a generated file was edited by hand. Nothing is changed in these cases.
    """
    made(folder)
    if exists(folder) and not is_folder(folder):
        raise FerruleError(f"{folder} is a file, expected a folder or nothing")
    with writing(folder):
        if is_folder(folder) and any(folder.iterdir()):
            with locked(folder, waiting=lambda: _refuse_busy(folder)):
                return _Update(folder, generated, starters, manifest).write(force=force)
    create_folder(folder, {**generated, **starters, MANIFEST_NAME: manifest_bytes(manifest)})
    return ()


def create_folder(folder: Path, files: Files) -> None:
    """Create a folder with files, given by path relative to it, atomically; an empty folder may exist already.

    Raises:
        FerruleError: the folder cannot be written.
    """
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with ScratchFolder(folder.parent) as scratch:
            made = scratch.path / "project"
            for name, data in files.items():
                path = made / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            if is_folder(folder):
                folder.rmdir()
            made.rename(folder)


def _refuse_busy(folder: Path) -> None:
    raise FerruleError(
        f"{folder} is in use by another ferrule command", hint="repeat this one when the other has ended"
    )


class _Update:
    """The update of an existing project: all decisions are made before the first change."""

    def __init__(self, folder: Path, generated: Files, starters: Files, manifest: Manifest) -> None:
        if not is_file(folder / MANIFEST_NAME):
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
        self._recovers = is_file(folder / PENDING_NAME)
        self._known = {name: {value} for name, value in self._old.files.items()}
        """By generated file: the hashes of the manifest, and of an update that was killed."""
        if self._recovers:
            for name, value in read_manifest(folder, PENDING_NAME).files.items():
                self._known.setdefault(name, set()).add(value)
        self._files = {**generated, **starters}
        self._starters = starters
        self._manifest = manifest

    def write(self, *, force: bool) -> tuple[Kept, ...]:
        """Update the folder and return the files that were kept for the user."""
        edited = frozenset(name for name in self._old.starters if self._differs(name))
        news = {
            f"{name}{NEW_SUFFIX}": self._starters[name]
            for name in edited
            if name in self._starters and sha256(self._starters[name]) != self._old.files[name]
        }
        files = {**self._files, **news}
        candidates = {*files, *self._known} - edited
        in_the_way = sorted(name for name in candidates if self._differs(name))
        if in_the_way and not force:
            raise FerruleError(
                f"{self._folder}: these files were changed by hand and would be lost: {', '.join(in_the_way)}",
                hint="move them out of the way, generate into another folder, or keep them as *.orig with "
                f"{option('force')}",
            )
        aside = {name: self._name_aside(name) for name in in_the_way}
        copies = {target: read_bytes(self._folder / name) for name, target in aside.items()}
        new = {name: data for name, data in files.items() if name not in edited}
        manifest = manifest_bytes(self._new_manifest(edited, news))
        gone = [name for name in self._known if name not in files and name not in edited]
        self._commit({PENDING_NAME: manifest, **copies, **new}, gone)
        kept = tuple(
            Kept(name=name, beside=f"{name}{NEW_SUFFIX}" if f"{name}{NEW_SUFFIX}" in news else None)
            for name in sorted(edited)
        )
        return (*(Kept(name=name, beside=target) for name, target in aside.items()), *kept)

    def _commit(self, files: Files, gone: Sequence[str]) -> None:
        """Write all files beside their places, move them there in this order, and make the pending manifest valid."""
        for name in (*files, *gone):
            self._check_place(name)
        changed = {name: data for name, data in files.items() if self._read(name) != data}
        if not gone and list(changed) == [PENDING_NAME] and self._read(MANIFEST_NAME) == changed[PENDING_NAME]:
            return
        with ScratchFolder(self._folder) as scratch:
            for number, data in enumerate(changed.values()):
                (scratch.path / str(number)).write_bytes(data)
            for number, name in enumerate(changed):
                (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
                (scratch.path / str(number)).replace(self._folder / name)
        for name in gone:
            (self._folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # the folder still contains other files
                (self._folder / name).parent.rmdir()
        (self._folder / PENDING_NAME).replace(self._folder / MANIFEST_NAME)

    def _read(self, name: str) -> bytes | None:
        path = self._folder / name
        return read_bytes(path) if is_file(path) else None

    def _check_place(self, name: str) -> None:
        """Raise FerruleError if a file cannot be put at its place, or removed from it."""
        path = self._folder / name
        try:
            confined(path.parent, self._folder)
        except OSError as error:
            raise FerruleError(f"{path}: {error.strerror}", hint="remove the link in its path") from error
        if is_folder(path):
            raise FerruleError(f"{path} is a folder, but the project has a file of this name", hint="move the folder")
        above = next(each for each in path.parents if exists(each))
        if not is_folder(above):
            raise FerruleError(f"{above} is a file, but the project has a folder of this name", hint="move the file")
        if not os.access(above, os.W_OK | os.X_OK):
            raise FerruleError(f"{path} cannot be written: the folder {above} is read-only")

    def _differs(self, name: str) -> bool:
        """Return whether a file exists that differs both from its generated contents, if any, and from the new ones."""
        present = self._read(name)
        if present is None:
            return False
        return sha256(present) not in self._known.get(name, ()) and present != self._files.get(name)

    def _name_aside(self, name: str) -> str:
        """Return a name for the copy of an edited file; after a death, that of the copy that was made then."""
        number, target = 1, f"{name}{ORIGINAL_SUFFIX}"
        while exists(self._folder / target) and not (self._recovers and self._read(target) == self._read(name)):
            number += 1
            target = f"{name}{ORIGINAL_SUFFIX}{number}"
        return target

    def _new_manifest(self, edited: frozenset[str], news: Files) -> Manifest:
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
