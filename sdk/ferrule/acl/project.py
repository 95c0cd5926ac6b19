# SPDX-License-Identifier: Apache-2.0
"""Projects of generated classes: folders with the class, its parameters, programs that run it, and its network."""

from __future__ import annotations

from pathlib import Path

from ferrule import resources
from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.acl.program import ON_NEON, VALIDATE, class_values
from ferrule.acl.template import render
from ferrule.codegen.acl import TARGETS, AclArtifact, ArtifactRecord, read_record
from ferrule.codegen.digest import digest
from ferrule.errors import FerruleError, place
from ferrule.firmware.folder import Kept, sha256, write_folder
from ferrule.firmware.manifest import PENDING_NAME, Manifest, read_manifest
from ferrule.formats import load, to_tflite
from ferrule.graph import brief
from ferrule.interface import either
from ferrule.network import Network
from ferrule.reading import exists, read_bytes

_STARTERS = ("CMakeLists.txt", "README.md", "main.cpp")
_HEADERS = ("acl_hdf5.h", "acl_parameters.h", "acl_trace.h")
_OPENCL_HEADERS = (ON_NEON, VALIDATE)


@frozen
class ArtifactProject:
    """The project of a generated class on disk."""

    folder: Path
    record: ArtifactRecord
    files: tuple[str, ...]
    """The generated files, relative to the folder."""
    kept: tuple[Kept, ...] = ()
    """Files edited by the user that the last generation left unchanged or renamed."""

    @override
    def __repr__(self) -> str:
        return f"<ArtifactProject {self.folder}: class {self.record.artifact} for {self.record.target}>"

    def network(self) -> Network:
        """Return the network of the class.

        Raises:
            FerruleError: its file is missing or damaged, or is not the network of the class.
        """
        path, manifest = self.folder / f"{self.record.artifact}.tflite", read_manifest(self.folder)
        network = load(path, manifest.model)
        if digest(network) != manifest.digest:
            raise FerruleError(
                f"{path} is not the network from which the class was generated", hint="generate the project again"
            )
        return network


def write_project(artifact: AclArtifact, folder: Path, network: Network, *, force: bool = False) -> ArtifactProject:
    """Write a class with all that surrounds it to a folder, which is self-contained and can be moved.

    A folder with such a project is updated; `force` replaces generated files that were edited by hand and keeps the
    edited versions beside them as NAME.orig.

    Raises:
        FerruleError: the folder has other contents or cannot be written, the class has the name of another file, or a
            generated file was edited by hand. Nothing is written in these cases.
    """
    name, record = artifact.name, artifact.record
    generated = dict(artifact.files)
    source = resources.root() / "src_cpp" / "acl"
    headers = [*_HEADERS, *(_OPENCL_HEADERS if artifact.target.mapped else ())]
    values = {**class_values(record), "version": VERSION, "model": artifact.graph.name, "title": artifact.target.title}
    values["acl"] = record.acl
    generated |= {header: read_bytes(source / header) for header in headers}
    generated["trace.cpp"] = render("trace.cpp.j2", artifacts=[values]).encode()
    generated[f"{name}.tflite"] = to_tflite(network)
    starters = {file: render(f"{file}.j2", **values).encode() for file in _STARTERS}
    every = {**generated, **starters}
    if len({file.casefold() for file in every}) != len(artifact.files) + len(headers) + 2 + len(starters):
        raise FerruleError(
            f"the class cannot have the name '{name}': its project has other files of this name",
            hint="choose another name, such as AclArtifact",
        )
    manifest = Manifest(
        ferrule_version=VERSION,
        platform=record.target,
        model=artifact.graph.name,
        digest=digest(load(generated[f"{name}.tflite"], artifact.graph.name)),
        board="",
        toolchain="",
        optimization="",
        sources=(f"{name}.cpp", "main.cpp", "trace.cpp"),
        include_dirs=(".",),
        files={file: sha256(every[file]) for file in sorted(every)},
        starters=tuple(sorted(starters)),
    )
    kept = write_folder(folder, generated, starters, manifest, force=force)
    return ArtifactProject(folder=folder, record=record, files=tuple(sorted(every)), kept=kept)


def load_artifact(folder: Path) -> ArtifactProject:
    """Return the project in a folder.

    Raises:
        FerruleError: there is none, it is malformed, or it was not written completely.
    """
    if exists(folder / PENDING_NAME):
        raise FerruleError(
            f"{folder} is not complete: a command that wrote it was ended early",
            hint="generate the project again, into the same folder",
        )
    manifest = read_manifest(folder)
    descriptions = [file for file in manifest.files if file.endswith(".par.json")]
    if manifest.platform not in TARGETS or len(descriptions) != 1:
        raise FerruleError(
            f"{folder} holds a project for {manifest.platform}, expected one for {' or '.join(TARGETS)}",
            hint=either("ferrule generate MODEL --target arm-gpu-c++ --out FOLDER", "ferrule.generate_acl makes one"),
        )
    path = folder / descriptions[0]
    try:
        text = read_bytes(path)
    except OSError as error:
        raise FerruleError(f"{path} cannot be read: {error.strerror}", hint="generate the project again") from error
    with place(str(path)):
        record = read_record(text)
    if f"{record.artifact}.par.json" != descriptions[0] or record.target != manifest.platform:
        raise FerruleError(
            f"{path} describes the class {brief(record.artifact)} for {record.target}, another than the project's"
        )
    return ArtifactProject(folder=folder, record=record, files=tuple(sorted(manifest.files)))
