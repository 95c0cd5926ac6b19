# SPDX-License-Identifier: Apache-2.0
"""The manifest of a generated project, ferrule-project.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ferrule.documents import decode_json, json_text
from ferrule.errors import FerruleError
from ferrule.interface import either
from ferrule.reading import read_bytes

Files = Mapping[str, bytes]
"""The contents of files, by path relative to the folder of a project, with `/` as the separator."""
MANIFEST_NAME = "ferrule-project.json"
PENDING_NAME = "ferrule-project.pending.json"
"""The manifest that a project gets at the end of an update; it is there only during the update, or after its death."""
SCHEMA_VERSION = 2


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings that the project was generated with, and the SHA-256 of every written file."""

    schema_version: int = SCHEMA_VERSION
    ferrule_version: str
    platform: str
    model: str
    digest: str
    board: str
    """The board's folder, relative to the project; empty if the platform's own tools know the board."""
    board_name: str = ""
    """The board's name, which the build of a platform with tools of its own needs; otherwise empty."""
    toolchain: str
    optimization: str
    sources: tuple[str, ...]
    """C files as paths relative to the project."""
    third_party: tuple[str, ...] = ()
    """The subset of `sources` that is compiled without warnings."""
    include_dirs: tuple[str, ...]
    system_include_dirs: tuple[str, ...] = ()
    """Include folders of third-party code."""
    defines: dict[str, str] = {}
    """Macros defined for all C files."""
    stack_bytes: int = 0
    """Size of the stack in the linker script if the board states none, else 0; 0 on a platform with kernel."""
    files: dict[str, str]
    """SHA-256 of the generated contents in hexadecimal, by path relative to the project; this file is omitted."""
    starters: tuple[str, ...]
    """The subset of `files` that the user may edit."""


class _Version(msgspec.Struct, frozen=True):
    """The field that every version of the schema has."""

    schema_version: int


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the contents of a manifest's file."""
    return f"{json_text(manifest)}\n".encode()


def read_manifest(folder: Path, name: str = MANIFEST_NAME) -> Manifest:
    """Return the manifest of a project, or the pending one.

    Raises:
        FerruleError: the folder has no manifest, or it is malformed; the message names the field.
    """
    path = folder / name
    try:
        data = read_bytes(path)
    except OSError as error:
        raise FerruleError(
            f"{folder} is not a generated project: {name} cannot be read ({error.strerror})",
            hint=either("make one with: ferrule generate MODEL --out FOLDER", "make one by ferrule.generate"),
        ) from error
    hint = "generate the project again, into another folder"
    version = decode_json(str(path), data, _Version, hint=hint).schema_version
    if version != SCHEMA_VERSION:
        raise FerruleError(
            f"{path} has schema version {version}, expected {SCHEMA_VERSION}",
            hint="generate the project again with this version of ferrule, into another folder",
        )
    manifest = decode_json(str(path), data, Manifest, hint=hint)
    folders = (*manifest.include_dirs, *manifest.system_include_dirs)
    for each in (manifest.board, *manifest.sources, *folders, *manifest.files, *manifest.starters):
        if Path(each).is_absolute() or ".." in Path(each).parts:
            raise FerruleError(f"{path}: '{each}' is outside the project", hint=hint)
    return manifest
