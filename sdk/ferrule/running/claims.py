# SPDX-License-Identifier: Apache-2.0
"""Checks what a board states of itself over the link, before anything that it computes is compared.

A board may hold another firmware, be damaged, or be another program altogether. What it states has to be what was
generated, in every number that the report takes from it.
"""

from __future__ import annotations

from ferrule.codegen.identity import shortened
from ferrule.errors import FerruleError
from ferrule.firmware import BuiltFirmware
from ferrule.firmware.seal import RECORD_SYMBOL
from ferrule.graph import TensorInfo
from ferrule.link import BuildInfo, CounterSource, LinkError, LinkRun, LinkSession, LinkTensor, ModelInfo, SelfTest

_AGAIN = "build and load the firmware again"


def choose_model(firmware: BuiltFirmware, link: LinkSession) -> None:
    """Let the board choose the firmware's model among several; a board without it keeps the first."""
    if _is_of(firmware, link.model_info()) or link.model_count() == 1:
        return
    for index in range(1, link.model_count()):
        link.choose_model(index)
        if _is_of(firmware, link.model_info()):
            return
    link.choose_model(0)


def self_test(firmware: BuiltFirmware, link: LinkSession) -> SelfTest | None:
    """Return what the self-test of a firmware has found at its start; None if it was built without one.

    Raises:
        FerruleError: something is damaged, or the board knows nothing of the test that was built into the firmware.
    """
    if not firmware.image.has(RECORD_SYMBOL):
        return None
    result = link.self_test()
    if result is None:
        raise FerruleError(
            "the firmware on the board has no self-test, and the one that was built has: it is another firmware",
            hint=_AGAIN,
        )
    if result in {SelfTest.EQUAL, SelfTest.NOT_RECORDED}:
        return result
    what = "the record of the self-test" if result is SelfTest.RECORD else f"its {result.name.lower()}"
    raise FerruleError(
        f"the firmware has found at its start that {what} in memory cannot be what was linked: the CRC-32 differs",
        hint="load the firmware again; if that does not help, the memory is faulty, or the file was changed",
    )


def check_claims(firmware: BuiltFirmware, info: ModelInfo, build: BuildInfo | None) -> None:
    """Raise FerruleError if a board states another model, plan, operators, memory or tensors than were generated."""
    artifact = firmware.artifact
    if not _is_of(firmware, info):
        raise FerruleError(
            f"the firmware on the board was generated from another model ({info.name}, {info.input_hash})",
            hint=_AGAIN,
        )
    own = artifact.identity
    if build is not None and build.model != own.model:
        raise FerruleError(
            f"the firmware on the board has the identity of another model ({build.model}, expected {own.model})",
            hint=_AGAIN,
        )
    if build is not None and build.plan != own.plan:
        raise FerruleError(
            f"the firmware on the board has another plan of the same model ({build.plan}, expected {own.plan})",
            hint="give the options that it was generated with, or build and load it again with this version of ferrule",
        )
    _require(f"{info.operator_count} operators", f"{len(artifact.operators)} operators")
    expected_bytes = artifact.workspace_bytes + artifact.state_bytes
    _require(f"a workspace of {info.workspace_bytes:,} B", f"a workspace of {expected_bytes:,} B")
    for kind, stated, generated in (
        ("input", info.inputs, artifact.graph.inputs),
        ("output", info.outputs, artifact.graph.outputs),
    ):
        _require(f"{len(stated)} {kind}s", f"{len(generated)} {kind}s")
        for theirs, ours in zip(stated, generated, strict=True):
            _require(_described(kind, ours.name, theirs), _described(kind, ours.name, ours))


def check_run(info: ModelInfo, done: LinkRun) -> None:
    """Raise LinkError if a run that is said to have succeeded cannot have taken place."""
    if info.counter is CounterSource.DWT and not done.total:
        raise LinkError("the firmware states that the run has succeeded, and that it took no cycle: nothing ran")


def _described(kind: str, name: str, tensor: LinkTensor | TensorInfo) -> str:
    return f"{kind} '{name}' as {tensor.dtype}{list(tensor.shape)}"


def _require(stated: str, expected: str) -> None:
    if stated != expected:
        raise FerruleError(
            f"the firmware on the board states {stated}, expected {expected} for this model: it is not what was "
            "generated",
            hint=_AGAIN,
        )


def _is_of(firmware: BuiltFirmware, info: ModelInfo) -> bool:
    return info.input_hash == shortened(firmware.artifact.digest)
