# SPDX-License-Identifier: Apache-2.0
"""Generated classes over the Arm Compute Library, many in one program, run by emulation and compared with numpy.

A test generates its classes under different names, builds them together with `build_many`, and runs each:

    program = build_many([artifact, ...], tmp_path)
    comparisons = run_stepwise(program, "Name", network, inputs)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from needs import require_acl

from ferrule import Network, resources
from ferrule.acl.comparison import TensorComparison, bounded_reference, compare_tensors
from ferrule.acl.program import ON_NEON, TraceProgram, build_program
from ferrule.codegen.acl import AclArtifact
from ferrule.graph import Array

INCLUDES = resources.root() / "src_cpp" / "acl"


def build_many(artifacts: Sequence[AclArtifact], folder: Path, *, prelude: str = ON_NEON) -> TraceProgram:
    """Write the files of classes with different names to a folder, and build one program of them; skips without ACL.

    Building takes about 2 s and 0.3 s per class; both targets can be in one program. By default, classes for
    OpenCL run on NEON, under the rules of `cl_on_neon.h`; with VALIDATE, they only validate, and compute nothing.
    """
    toolchain = require_acl()
    names = [artifact.name for artifact in artifacts]
    assert len(names) == len(set(names)), "classes of one program have different names"
    folder.mkdir(parents=True, exist_ok=True)
    for artifact in artifacts:
        for file, data in artifact.files.items():
            (folder / file).write_bytes(data)
    return build_program([artifact.record for artifact in artifacts], folder, [INCLUDES], toolchain, prelude=prelude)


def run_one(
    program: TraceProgram, name: str, inputs: Mapping[str, Array], *, stepwise: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Run a class and return all tensors that its layers wrote; about 0.5 s.

    `stepwise` has the reference's tensors, with which each layer continues.
    """
    return program.run(name, inputs, replacements=stepwise)


def run_stepwise(
    program: TraceProgram, name: str, network: Network, inputs: Mapping[str, Array]
) -> tuple[TensorComparison, ...]:
    """Run a class with exact inputs of each layer and return the comparison of each tensor with the numpy reference."""
    record = program.records[name]
    expected = bounded_reference(network, record, inputs)
    found = program.run(name, inputs, replacements={tensor: each.values for tensor, each in expected.items()})
    return compare_tensors(network, record, found, expected)
