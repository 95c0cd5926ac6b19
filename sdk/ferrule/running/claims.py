# SPDX-License-Identifier: Apache-2.0
"""Checks what a board states of itself over the link, before anything that it computes is compared.

A board may hold another firmware, be damaged, or be another program altogether. What it states has to be what was
generated, in every number that the report takes from it.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    if build is not None and build.model != artifact.identity.model:
        raise FerruleError(
            f"the firmware on the board has the identity of another model ({build.model}, expected "
            f"{artifact.identity.model})",
            hint=_AGAIN,
        )
    if build is not None and build.plan != artifact.identity.plan:
        raise FerruleError(
            f"the firmware on the board has another plan of the same model ({build.plan}, expected "
            f"{artifact.identity.plan})",
            hint="give the options that it was generated with, or build and load it again with this version of ferrule",
        )
    if info.operator_count != len(artifact.operators):
        raise _mismatch(f"{info.operator_count} operators", f"{len(artifact.operators)}")
    workspace_bytes = artifact.workspace_bytes + artifact.state_bytes
    if info.workspace_bytes != workspace_bytes:
        raise _mismatch(f"a workspace of {info.workspace_bytes:,} B", f"{workspace_bytes:,} B")
    _check_tensors("input", info.inputs, artifact.graph.inputs)
    _check_tensors("output", info.outputs, artifact.graph.outputs)


def check_run(info: ModelInfo, done: LinkRun) -> None:
    """Raise LinkError if a run that is said to have succeeded cannot have taken place."""
    if info.counter is CounterSource.DWT and not done.total:
        raise LinkError("the firmware states that the run has succeeded, and that it took no cycle: nothing ran")


def _check_tensors(kind: str, stated: Sequence[LinkTensor], generated: Sequence[TensorInfo]) -> None:
    if len(stated) != len(generated):
        raise _mismatch(f"{len(stated)} {kind}s", f"{len(generated)}")
    for theirs, ours in zip(stated, generated, strict=True):
        if (theirs.dtype, theirs.shape) != (ours.dtype, tuple(ours.shape)):
            raise _mismatch(
                f"{kind} '{ours.name}' as {theirs.dtype}{list(theirs.shape)}", f"{ours.dtype}{list(ours.shape)}"
            )


def _mismatch(stated: str, expected: str) -> FerruleError:
    return FerruleError(
        f"the firmware on the board states {stated}, expected {expected} for this model: it is not what was generated",
        hint=_AGAIN,
    )


def _is_of(firmware: BuiltFirmware, info: ModelInfo) -> bool:
    return info.input_hash == shortened(firmware.artifact.digest)
