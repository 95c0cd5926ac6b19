# SPDX-License-Identifier: Apache-2.0
"""Names for the devices and calls that the link reports."""

from __future__ import annotations

from dataclasses import replace

import pytest
from device_networks import POOL, artifact

from ferrule.codegen import Artifact
from ferrule.codegen.schedule import Call
from ferrule.link import LinkCall, LinkError, RunFailedError
from ferrule.report import LayerPart
from ferrule.report.document import DeviceWorkPart
from ferrule.report.tracing import device_parts, explained, trace_part

MODEL = artifact()


def planned(model: Artifact) -> tuple[LinkCall, ...]:
    """Return the calls of a model's schedule, as the link reports them if all succeed."""
    indices = {use.device.name: use.index for use in model.devices}
    return tuple(
        LinkCall(operator=call.operator, device=indices[call.device], call=call.call, status=0)
        for call in model.device_calls
    )


PLANNED = planned(MODEL)


def test_the_plan() -> None:
    part = trace_part(MODEL, PLANNED)
    assert part.as_planned
    assert (part.calls[0].layer, part.calls[0].device, part.calls[0].call) == ("[ x (0) -> a (0) ]", "npu0", "activate")


@pytest.mark.parametrize(
    "calls",
    [
        PLANNED[:-1],
        (*PLANNED, PLANNED[-1]),
        (PLANNED[1], PLANNED[0], *PLANNED[2:]),
        (*PLANNED[:1], PLANNED[2], PLANNED[1], *PLANNED[3:]),
        (replace(PLANNED[0], status=-9), *PLANNED[1:]),
        (replace(PLANNED[0], operator=1), *PLANNED[1:]),
        (replace(PLANNED[0], device=1), *PLANNED[1:]),
    ],
)
def test_another_sequence_is_not_as_planned(calls: tuple[LinkCall, ...]) -> None:
    assert not trace_part(MODEL, calls).as_planned


@pytest.mark.parametrize(
    "call",
    [replace(PLANNED[0], operator=1000), replace(PLANNED[0], device=2), replace(PLANNED[0], call=99)],
)
def test_calls_that_there_are_not_are_an_error(call: LinkCall) -> None:
    with pytest.raises(LinkError, match="traced a call that the model does not make"):
        trace_part(MODEL, [call])


def test_the_devices_of_a_set_are_opened_in_any_order() -> None:
    assert [call.call for call in PLANNED[2:4]] == [Call.OPEN, Call.OPEN]
    assert trace_part(MODEL, (*PLANNED[:2], PLANNED[3], PLANNED[2], *PLANNED[4:])).as_planned


def test_any_member_of_a_pool_may_be_open() -> None:
    model = artifact(POOL)
    calls = planned(model)
    powered = (Call.ACTIVATE, Call.DEACTIVATE)
    on_the_second = [call if call.call in powered else replace(call, device=1) for call in calls]
    part = trace_part(model, on_the_second)
    assert part.as_planned
    assert part.calls[2].device == "npu1"
    assert not trace_part(model, [replace(call, device=1) for call in calls]).as_planned


def test_devices() -> None:
    layers = [
        LayerPart(
            index=index,
            name=record.layer,
            type=record.type,
            backend=record.backend,
            kernel=record.kernel,
            macs=0,
            count=100 + index,
            share=0.01,
            constant_bytes=0,
            scratch_bytes=0,
            device=record.device,
        )
        for index, record in enumerate(MODEL.operators)
    ]
    work = {"npu1": DeviceWorkPart(read_bytes=3, written_bytes=2, busy=1)}
    parts = device_parts(
        MODEL, layers, work, {"npu1": {"commands": 2}, "other": {"commands": 3}}, {"npu0": {"stalls": 7}}, {}
    )
    assert [part.driver_counts for part in parts] == [{"stalls": 7}, {}]
    assert [(part.work, part.statistics) for part in parts] == [(None, {}), (work["npu1"], {"commands": 2})]
    assert [(part.name, part.backend, part.activation_lead, part.memory_bytes) for part in parts] == [
        ("npu0", "SoftNpu", 0, 4096),
        ("npu1", "SoftNpu", 2, 2048),
    ]
    assert all(part.memory_used > 0 for part in parts)
    for part in parts:
        own = [layer for layer in layers if layer.device == part.name]
        assert part.layers == len(own) > 1
        assert part.count == sum(layer.count for layer in own)
        assert part.share == pytest.approx(0.01 * len(own))


def test_an_error_says_where() -> None:
    error = RunFailedError("the run failed in operator 1 with status -12 (DEVICE)", status=-12, failed_operator=1)
    assert str(explained(error, MODEL)).endswith("(DEVICE): layer 'a' on SoftNpu/npu0")
    assert str(explained(error, MODEL, {"npu0": "why"})).endswith("(DEVICE): layer 'a' on SoftNpu/npu0\nnpu0: why")
    calls = (*PLANNED[:2], replace(PLANNED[2], status=-9))
    traced = RunFailedError("it failed", status=-9, failed_operator=None, calls=calls)
    assert str(explained(traced, MODEL)).splitlines()[1:] == [
        "calls of devices until then:",
        "  0 npu0 activate: 0 (OK)",
        "  0 npu1 activate: 0 (OK)",
        "  0 npu0 open: -9 (TIMEOUT)",
    ]
    assert PLANNED[2].call == Call.OPEN
