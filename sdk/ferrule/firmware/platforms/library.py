# SPDX-License-Identifier: Apache-2.0
"""The C that every project takes along: the model's, its kernels, the backends' own, runtime and link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ferrule.backends.firmware import Contribution
from ferrule.codegen import Artifact
from ferrule.firmware.platforms.platform import LIBRARY_FOLDER, MODEL_FOLDER
from ferrule.resources import root

PORTABLE_FOLDERS = ("src_c/runtime", "src_c/link")
"""Folders below the resources' root whose sources every firmware has."""
INCLUDE_DIR = "include"


def model_files(artifact: Artifact) -> dict[str, bytes]:
    """Return the generated C of the model by path in the project."""
    return {f"{MODEL_FOLDER}/{name}": text.encode() for name, text in artifact.files.items()}


def model_sources(artifact: Artifact) -> tuple[str, ...]:
    """Return the C files of the model by path in the project."""
    return tuple(sorted(f"{MODEL_FOLDER}/{name}" for name in artifact.files if name.endswith(".c")))


def library_files(
    artifact: Artifact, *, folders: Iterable[str] = (), sources: Iterable[str] = (), include_dirs: Iterable[str] = ()
) -> dict[str, bytes]:
    """Return the C that the model is linked with, by path in the project.

    That is what its operators name, `PORTABLE_FOLDERS`, the public headers, and what a platform adds: all C below
    `folders`, the files `sources`, the headers below `include_dirs`, all relative to the resources' root.
    """
    names: set[str] = {*artifact.sources, *sources}
    for folder in (*PORTABLE_FOLDERS, *folders):
        names |= set(_below(folder, ".c")) | set(_below(folder, ".h"))
    for folder in (INCLUDE_DIR, *include_dirs, *artifact.include_dirs):
        names |= set(_below(folder, ".h"))
    for source in artifact.sources:  # headers that are private to kernels stand beside them
        names |= {str(Path(source).parent / path.name) for path in (root() / source).parent.glob("*.h")}
    files = {f"{LIBRARY_FOLDER}/{name}": (root() / name).read_bytes() for name in sorted(names)}
    for contribution in artifact.contributions:
        for path in _contributed(contribution):
            files[f"{_home(contribution)}/{path.relative_to(contribution.folder).as_posix()}"] = path.read_bytes()
    return files


def library_include_dirs(artifact: Artifact, *, include_dirs: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the include folders of the model and of `library_files`, by path in the project."""
    shared = (f"{LIBRARY_FOLDER}/{name}" for name in (INCLUDE_DIR, *include_dirs, *artifact.include_dirs))
    own = (f"{_home(part)}/{include}" for part in artifact.contributions for include in part.include_dirs)
    return tuple(dict.fromkeys((MODEL_FOLDER, *shared, *own)))


def c_sources(files: Iterable[str]) -> tuple[str, ...]:
    """Return the C files among the files of a project, sorted."""
    return tuple(sorted(name for name in files if name.endswith(".c")))


def _home(contribution: Contribution) -> str:
    """Return where a backend's own C lies in the project."""
    return f"{LIBRARY_FOLDER}/backends/{contribution.folder.name}"


def _contributed(contribution: Contribution) -> Iterator[Path]:
    for source in contribution.sources:
        yield contribution.folder / source
    for include in contribution.include_dirs:
        yield from sorted((contribution.folder / include).rglob("*.h"))


def _below(folder: str, suffix: str) -> Iterator[str]:
    for path in sorted((root() / folder).rglob(f"*{suffix}")):
        yield path.relative_to(root()).as_posix()
