# SPDX-License-Identifier: Apache-2.0
"""The C driver on the host, with the model at the other end of a line: every possible result of a call."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import require_cc, require_module, require_sanitizers
from uart_woofles_bench import (
    DRIVER,
    MEMORY_BYTES,
    MEMORY_ERROR,
    OUTPUT,
    STORE_BYTES,
    Babble,
    HostLine,
    Silence,
    UartBench,
)
from woofles_bench import ARGUMENT, DEVICE, OK, STATE, TIMEOUT, UNAVAILABLE, Job, jobs

from ferrule._typing import override
from ferrule.backends.uart_woofles import UartWooflesModel
from ferrule.backends.uart_woofles.protocol import RESPONSE, ErrorCode, MessageType, error_payload
from ferrule.devices import FaultyLine, LineFault, LineFaultKind, SerialModel
from ferrule.link.frame import Frame, FrameReceiver
from ferrule.testing import Adapter, build_adapter, run_sanitized

pytestmark = pytest.mark.cc

JOBS = jobs()
MakeBench = Callable[..., UartBench]


@pytest.fixture(scope="module")
def adapter() -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter("bare_metal", **DRIVER)


@pytest.fixture
def bench(adapter: Adapter[Any]) -> MakeBench:
    def make(**options: Any) -> UartBench:  # noqa: ANN401 those of UartBench
        adapter.reset()
        return UartBench(adapter, **options)

    return make


def ready(bench: UartBench) -> UartBench:
    assert bench.activate() == OK
    assert bench.open() == OK
    return bench


class Altered(SerialModel):
    """A model that alters its responses to one kind of request."""

    def __init__(self, model: SerialModel, kind: MessageType, change: Callable[[Frame], Frame]) -> None:
        super().__init__()
        self._model, self._kind, self._change = model, kind, change

    @override
    def receive(self, data: bytes) -> bytes:
        frames = FrameReceiver().feed(self._model.receive(data))
        return b"".join((self._change(f) if f.type == self._kind | RESPONSE else f).encode() for f in frames)


@pytest.mark.parametrize("name", JOBS)
def test_each_operation(bench: MakeBench, name: str) -> None:
    device = bench()
    layer = device.layer(JOBS[name])
    for _ in range(3):
        assert device.run(JOBS[name], layer) == (OK, True)
    assert device.context.repeated == 0
    assert device.line.waited_ms == 0


def test_copies_of_any_size(bench: MakeBench) -> None:
    device = ready(bench())
    for offset, size in ((0, 1), (5, 1019), (1, 1020), (3, 1021), (0, MEMORY_BYTES), (MEMORY_BYTES, 0)):
        data = bytes((offset + 7 * index) % 251 for index in range(size))
        assert device.copy_to(offset, data) == OK
        assert device.copy_from(offset, size) == (OK, data)
    assert device.copy_to(MEMORY_BYTES, b"x") == ARGUMENT
    assert device.copy_from(1, MEMORY_BYTES)[0] == ARGUMENT


def test_constants_go_over_the_wire_once(bench: MakeBench) -> None:
    device = bench()
    job = JOBS["conv_2d"]
    layer = device.layer(job)
    assert device.run(job, layer) == (OK, True)
    first = device.line.sent
    assert device.run(job, layer) == (OK, True)
    again = device.line.sent - first
    assert again < first - job.arrays["weights"].nbytes
    device.line.model = device.model = UartWooflesModel(memory_bytes=1 << 16, seed=2)  # replaced between two runs
    assert device.run(job, layer) == (OK, True)
    assert device.line.sent - first - again == first


def test_constants_make_room_for_others(bench: MakeBench) -> None:
    convolution, dense = JOBS["conv_2d"], JOBS["fully_connected"]
    needed = -(-convolution.arrays["weights"].size // 4) * 4 + 3 * 4 * 3
    device = bench(store_bytes=needed)
    layers = {id(job): device.layer(job) for job in (convolution, dense)}
    for job in (convolution, dense, convolution, dense, dense):
        assert device.run(job, layers[id(job)]) == (OK, True)
    device = bench(store_bytes=needed - 1)
    assert device.run(convolution) == (MEMORY_ERROR, False)
    assert device.run(JOBS["add"]) == (OK, True)


def test_more_layers_than_places(bench: MakeBench) -> None:
    device = bench(store_bytes=STORE_BYTES)
    layers = [device.layer(JOBS["fully_connected"]) for _ in range(40)]
    for layer in (*layers, *layers):
        assert device.run(JOBS["fully_connected"], layer) == (OK, True)


def test_nobody_answers(bench: MakeBench) -> None:
    device = bench(model=Silence())
    assert device.activate() == TIMEOUT
    assert 3 * 50 <= device.line.waited_ms <= 3 * 70
    assert device.context.repeated == 2
    assert device.open() == STATE
    device.line.model = device.model
    assert device.run(JOBS["mul"]) == (OK, True)


@pytest.mark.parametrize("text", [b"\1", b"\0", b"\xff", b"\0\x05abcd", b"U" * 4000])
def test_babble_ends(bench: MakeBench, text: bytes) -> None:
    device = bench(model=Babble(text))
    assert device.activate() == TIMEOUT
    assert device.line.reads < 3 * 300
    device.line.model = device.model
    device.line = HostLine(device.model)  # discards the pending bytes
    assert device.run(JOBS["mul"]) == (OK, True)


def test_it_vanishes_while_it_is_active(bench: MakeBench) -> None:
    device = ready(bench())
    device.line.model = Silence()
    assert device.copy_to(0, b"abc") == TIMEOUT
    reads = device.line.reads
    assert device.copy_to(0, b"abc") == DEVICE  # until it is opened again
    assert device.execute(device.layer(JOBS["add"])) == DEVICE
    assert device.line.reads == reads
    assert device.close() == OK
    assert device.open() == TIMEOUT
    device.line.model = device.model
    assert device.open() == OK
    assert device.copy_to(0, b"abc") == OK
    assert device.copy_from(0, 3) == (OK, b"abc")


def test_what_it_has_lost_is_not_read(bench: MakeBench) -> None:
    device = ready(bench())
    assert device.copy_to(0, b"abc") == OK
    assert device.close() == OK
    device.line.model = UartWooflesModel(memory_bytes=1 << 16, seed=9)  # it was switched off and on
    assert device.open() == DEVICE
    assert device.context.refusal == ErrorCode.STATE
    assert device.open() == OK
    assert device.copy_from(0, 3) == (OK, bytes(3))


def test_a_memory_that_is_too_small(bench: MakeBench) -> None:
    device = bench(model=UartWooflesModel(memory_bytes=MEMORY_BYTES + STORE_BYTES - 1))
    assert device.activate() == UNAVAILABLE
    device.line.model = UartWooflesModel(memory_bytes=MEMORY_BYTES + STORE_BYTES)
    assert device.activate() == OK


def test_settings_that_make_no_sense(bench: MakeBench) -> None:
    assert bench(timeout_ms=0).activate() == ARGUMENT
    assert bench(attempts=0).activate() == ARGUMENT
    device = ready(bench())
    null = device.ffi.NULL
    assert device.lib.uart_woofles_execute(device.handle, null, 0, 0, 0) == ARGUMENT
    assert device.lib.uart_woofles_execute(null, device.layer(JOBS["add"]), 0, 0, 0) == ARGUMENT


def test_a_refused_command(bench: MakeBench) -> None:
    device = ready(bench())
    layer = device.layer(JOBS["add"])
    layer.command.count = 0
    assert device.execute(layer) == DEVICE
    assert device.context.refusal == ErrorCode.SHAPE
    assert device.close() == OK
    assert device.deactivate() == OK
    assert device.run(JOBS["add"]) == (OK, True)


def changed(**values: int | bytes) -> Callable[[Frame], Frame]:
    def change(frame: Frame) -> Frame:
        members = {name: getattr(frame, name) for name in ("version", "type", "sequence", "payload")}
        return Frame(**{**members, **values})

    return change


@pytest.mark.parametrize(
    ("kind", "change", "status"),
    [
        (MessageType.HELLO, changed(payload=bytes(12)), DEVICE),
        (MessageType.HELLO, changed(payload=bytes(11)), DEVICE),
        (MessageType.HELLO, changed(type=MessageType.ERROR, payload=b""), DEVICE),
        (MessageType.HELLO, changed(type=0xFF, payload=error_payload(ErrorCode.VERSION, "2")), UNAVAILABLE),
        (MessageType.HELLO, changed(version=2), DEVICE),
        (MessageType.HELLO, changed(type=MessageType.CHECK | RESPONSE), DEVICE),
        (MessageType.HELLO, changed(sequence=999), TIMEOUT),
        (MessageType.CHECK, changed(payload=bytes(4)), DEVICE),
        (MessageType.WRITE, changed(payload=b"x"), DEVICE),
        (MessageType.READ, changed(payload=b"x"), DEVICE),
        (MessageType.EXECUTE, changed(payload=bytes(8)), DEVICE),
        (MessageType.EXECUTE, changed(payload=b"\1\0\0\0\2\0\0\0"), DEVICE),
        (MessageType.EXECUTE, changed(payload=b"\2\0\0\0\1\0\0\0"), DEVICE),
    ],
)
def test_answers_that_do_not_fit(
    bench: MakeBench, kind: MessageType, change: Callable[[Frame], Frame], status: int
) -> None:
    device = bench()
    device.line.model = Altered(device.model, kind, change)
    assert device.run(JOBS["conv_2d"]) == (status, False)
    device.line.model = device.model
    assert device.run(JOBS["conv_2d"]) == (OK, True)


@pytest.mark.parametrize("status", [TIMEOUT, DEVICE])
def test_a_transport_that_fails(bench: MakeBench, status: int) -> None:
    device = bench()
    for name in ("write_status", "read_status"):
        setattr(device.line, name, status)
        assert device.activate() == status
        setattr(device.line, name, OK)
    assert device.run(JOBS["add"]) == (OK, True)


def faults(at: st.SearchStrategy[int]) -> st.SearchStrategy[LineFault]:
    return st.builds(
        LineFault,
        at=at,
        kind=st.sampled_from(LineFaultKind),
        to_device=st.booleans(),
        mask=st.integers(1, 255),
        count=st.integers(1, 12),
    )


def bear(bench: MakeBench, job: Job, line_faults: list[LineFault]) -> UartBench:
    """Run a job on a line with faults, and again on a good line."""
    device = bench()
    device.line.model = FaultyLine(device.model, line_faults)
    status, right = device.run(job)
    assert right if status == OK else status in {TIMEOUT, DEVICE, UNAVAILABLE}
    assert device.line.reads < 20_000
    device.line.model = device.model
    device.line = HostLine(device.model)
    assert device.run(job) == (OK, True)
    return device


@settings(max_examples=150)
@given(name=st.sampled_from(sorted(JOBS)), line_faults=st.lists(faults(st.integers(0, 700)), max_size=30))
def test_faults_of_the_line_are_borne(bench: MakeBench, name: str, line_faults: list[LineFault]) -> None:
    bear(bench, JOBS[name], line_faults)


@pytest.mark.parametrize("kind", LineFaultKind)
@pytest.mark.parametrize("to_device", [True, False])
def test_one_fault_at_any_byte_is_made_good(bench: MakeBench, kind: LineFaultKind, to_device: bool) -> None:
    for at in range(0, 420, 3):
        device = bench()
        fault = LineFault(at=at, kind=kind, to_device=to_device, mask=0x41, count=2)
        device.line.model = FaultyLine(device.model, [fault])
        assert device.run(JOBS["fully_connected"]) == (OK, True), fault


@settings(max_examples=100)
@given(st.binary(max_size=300))
def test_any_answer_is_borne(bench: MakeBench, noise: bytes) -> None:
    class Once(SerialModel):
        left = noise

        @override
        def receive(self, data: bytes) -> bytes:
            self.left, noise = b"", self.left
            return noise

    device = bench(model=Once())
    assert device.activate() == TIMEOUT
    device.line.model = device.model
    assert device.run(JOBS["add"]) == (OK, True)


def every_operation() -> None:
    """Run every operation, some of them with faults."""
    adapter = build_adapter("bare_metal", **DRIVER)
    for name, job in JOBS.items():
        assert UartBench(adapter).run(job) == (OK, True), name
    device = UartBench(adapter)
    line_faults = [
        LineFault(at=at, kind=kind, to_device=False)
        for at, kind in zip(range(5, 400, 40), cycle(LineFaultKind), strict=False)
    ]
    device.line.model = FaultyLine(device.model, line_faults)
    status, right = device.run(JOBS["conv_2d"])
    assert right == (status == OK)
    assert OUTPUT < MEMORY_BYTES


@pytest.mark.nightly
def test_without_undefined_behaviour() -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    require_sanitizers("address", "undefined")
    run_sanitized(every_operation)
