# SPDX-License-Identifier: Apache-2.0
"""Networks as C++ classes over the Arm Compute Library."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.codegen.acl import DEFAULT_VERSION, AclOptions, explain_class, generate_class, output_problems
from ferrule.formats import ModelFile
from ferrule.network import Network
from ferrule.report.inspection_parts import ClassPart
from ferrule.running.networks import network_of

if TYPE_CHECKING:
    from ferrule.acl import ArtifactProject


def generate_acl(
    model: Network | ModelFile,
    target: str,
    out: str | PathLike[str],
    *,
    name: str = "AclArtifact",
    acl_version: str = DEFAULT_VERSION,
    float16: bool = False,
    force: bool = False,
) -> ArtifactProject:
    """Write a network as a C++ class over the Arm Compute Library, with a program that runs it, and return the project.

    Args:
        model: the network, or the model's file.
        target: "arm-gpu-c++" (OpenCL) or "arm-cpu-c++" (NEON).
        out: the project's folder; empty, not there yet, or one that this function wrote.
        name: the name of the class, and of its files.
        acl_version: the oldest version of the library that the class is for, "20.08" or "24.11".
        float16: whether to compute a float32 network in float16, which the processor or GPU must support.
        force: replace generated files even if they were edited.

    Raises:
        UnsupportedError: layers cannot be part of the class; the message lists each with its reason.
        ModelError: the model's file is malformed.
        FerruleError: there is no such target or version, the class cannot have this name, or the folder has other
            contents or cannot be written; nothing is left half-written.
    """
    from ferrule.acl import write_project

    network = network_of(model)
    artifact = generate_class(
        network, target=target, name=name, options=AclOptions(version=acl_version, float16=float16)
    )
    return write_project(artifact, Path(out), network, force=force)


def inspect_class(network: Network, target: str, options: AclOptions) -> ClassPart:
    """Return what would become of each layer; raises FerruleError if there is no such target or version."""
    return ClassPart(
        target=target,
        acl_version=options.version,
        float16=options.float16,
        layers=tuple(explain_class(network, target=target, options=options)),
        outputs=tuple(output_problems(network)),
    )
