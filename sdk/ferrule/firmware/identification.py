# SPDX-License-Identifier: Apache-2.0
"""The identity of a project's firmware, which is generated into it, read back from its ELF file, and verified."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from ferrule.boards import DEFAULT_STACK_BYTES
from ferrule.codegen import Artifact, Program, digest
from ferrule.codegen.identity import DIGEST_BYTES, Identity, identity_files, shortened, sources_digest
from ferrule.errors import FerruleError
from ferrule.firmware.image import Group, Image
from ferrule.firmware.job import Job
from ferrule.firmware.linker import linker_script, reserving
from ferrule.firmware.mlperf_tiny import check_app
from ferrule.firmware.plan import SCRIPT_NAME
from ferrule.firmware.platforms import PLATFORMS, ProjectFiles, ProjectRequest, platform
from ferrule.firmware.platforms.platform import MODEL_FOLDER
from ferrule.firmware.toolchain import check_optimization
from ferrule.interface import name_of
from ferrule.link import BuildInfo
from ferrule.network import Network

_SOURCES = frozenset({".c", ".h", ".ld"})
"""Suffixes of a project's own sources; those of the model's files are the writer's."""
_HEAD = struct.Struct(f"<4sI{DIGEST_BYTES}s{DIGEST_BYTES}s{DIGEST_BYTES}s")
_START = b"FRID" + struct.pack("<I", 1)
"""FERRULE_IDENTITY_MAGIC and FERRULE_IDENTITY_VERSION."""
_WEIGHTS = ("ferrule_weights_start", "ferrule_weights_end")
"""The symbols around the weights in platforms/zephyr/linker/weights.ld."""
_TEXTS = 4
_TEXT_BYTES = 4096
"""More than the texts of an identity have."""


def identified(
    files: ProjectFiles, program: Program, platform_name: str, board_name: str
) -> tuple[tuple[Identity, ...], ProjectFiles]:
    """Return the identity of each model of a project, and the project's files with these identities in them."""
    placeholder = {
        f"{MODEL_FOLDER}/{name}" for each in program.artifacts for name in _identity_files(each, each.identity)
    }
    suffixes = _SOURCES | {program.writer.header_suffix, program.writer.source_suffix}
    sources = {
        name: data
        for name, data in files.generated.items()
        if PurePosixPath(name).suffix in suffixes and name not in placeholder
    }
    project = sources_digest(sources)
    identities = tuple(
        replace(each.identity, sources=project, platform=platform_name, board=board_name) for each in program.artifacts
    )
    own = {
        f"{MODEL_FOLDER}/{name}": text.encode()
        for each, identity in zip(program.artifacts, identities, strict=True)
        for name, text in _identity_files(each, identity).items()
    }
    return identities, replace(files, generated={**files.generated, **own})


def _identity_files(artifact: Artifact, identity: Identity) -> dict[str, str]:
    return identity_files(artifact.symbol, identity, artifact.banner, artifact.writer)


def project_files(program: Program, job: Job) -> tuple[tuple[Identity, ...], ProjectFiles]:
    """Return the identities of a project's models, in their order, and the project's files.

    Raises:
        FerruleError: the platform is unknown, or does not support the board, the toolchain or a model.
    """
    board = job.load_board()
    usual = board if board.placement.stack_is_stated else reserving(board, DEFAULT_STACK_BYTES)
    check_app(job.app, job.platform)
    request = ProjectRequest(
        program=program,
        board=usual,
        toolchain=job.toolchain,
        optimization=check_optimization(job.level),
        self_test=job.self_test,
        app=job.app,
    )
    reason = platform(job.platform).no_self_test
    if job.self_test and reason:
        able = ", ".join(name for name, each in PLATFORMS.items() if not each.no_self_test)
        raise FerruleError(
            f"a project for {job.platform} cannot have a self-test: {reason}",
            hint=f"leave out {name_of('self_test')}, which is for {able}; or generate a library with it: your program "
            "calls ferrule_self_test(), and your build runs seal.py after its link",
        )
    identities, files = identified(platform(job.platform).files(request), program, job.platform, board.name)
    if files.board_folder:  # the digests do not depend on a size that a build has derived
        files = replace(files, generated={**files.generated, SCRIPT_NAME: linker_script(board).encode()})
    return identities, files


def read_identities(image: Image) -> tuple[BuildInfo, ...]:
    """Return the identities in a firmware, by address: one for each model, and none if it was not made by Ferrule."""
    section = image.section(".ferrule_sizes")
    sizes = None if section is None else struct.unpack("<7I", image.read(section.load_address, 28))
    return tuple(replace(each, sizes=sizes) for segment in image.segments for each in _identities(segment.data))


def _identities(data: bytes) -> Iterator[BuildInfo]:
    start = data.find(_START)
    while start >= 0:
        texts = data[start + _HEAD.size : start + _HEAD.size + _TEXT_BYTES].split(b"\0", _TEXTS)
        if len(texts) > _TEXTS:
            _, _, model, plan, sources = _HEAD.unpack_from(data, start)
            names = (text.decode("utf-8", errors="replace") for text in texts[:_TEXTS])
            stated = dict(zip(("platform", "board", "compiler", "flags"), names, strict=True))
            yield BuildInfo(model=model.hex(), plan=plan.hex(), sources=sources.hex(), sizes=None, **stated)
        start = data.find(_START, start + 1)


def linked_sizes(image: Image, workspace_bytes: int) -> tuple[int, ...] | None:
    """Return the sizes of a firmware that states none, in the order of `BuildInfo.sizes`, from its ELF file.

    Stacks are among the variables; None without the symbols that Zephyr's linker script gets for the weights.
    """
    if not (image.has(_WEIGHTS[0]) and image.has(_WEIGHTS[1])):
        return None
    start, end = map(image.address_of, _WEIGHTS)
    sizes = image.groups
    constants, variables = sizes[Group.CONSTANTS] - (end - start), sizes[Group.BSS] - workspace_bytes
    return sizes[Group.CODE], constants, end - start, sizes[Group.DATA], variables, workspace_bytes, 0


def read_identity(image: Image, network: Network) -> BuildInfo:
    """Return the identity in a firmware that has the network's digest, or the first if none has.

    Raises:
        FerruleError: the firmware has no identity.
    """
    identities = read_identities(image)
    if not identities:
        raise FerruleError(
            f"{image.path} carries no digests", hint="it is no firmware of Ferrule, or one of an older version"
        )
    model = shortened(digest(network))
    return next((each for each in identities if each.model == model), identities[0])
