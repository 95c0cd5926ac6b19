# SPDX-License-Identifier: Apache-2.0
"""The host's side of the link."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.errors import InputError
from ferrule.graph.tensor import Array, little_endian
from ferrule.link.channel import Channel
from ferrule.link.direct import DirectTensors
from ferrule.link.errors import FirmwareError, LinkError, LinkTimeoutError, ProtocolVersionError
from ferrule.link.frame import Frame, FrameReceiver
from ferrule.link.protocol import (
    MAX_PAYLOAD_BYTES,
    NO_CHOICE,
    PROFILE,
    PROTOCOL_VERSION,
    RESET,
    RESPONSE,
    TRACE,
    WRITE_HEADER_BYTES,
    BuildInfo,
    CounterSource,
    DeviceTrace,
    ErrorCode,
    Hello,
    LinkCall,
    LinkTensor,
    MessageType,
    ModelChoice,
    ModelInfo,
    RunResult,
    SelfTest,
    StackUse,
    decode_counters,
    decode_error,
    decode_model,
    decode_statistics,
    request,
    status_text,
)

_T = TypeVar("_T")
_READ_BYTES = 4096
_SEQUENCES = 1 << 16


@frozen
class LinkRun:
    """The results of one run on the board."""

    outputs: tuple[Array, ...]
    total: int
    """Count from call to return. With `profiled` it includes the callbacks between the operators; run again without
    profiling for a clean total."""
    counters: tuple[int, ...]
    """Count per operator, each below 2^32; empty unless `profiled`."""
    counter: CounterSource
    stack: StackUse
    profiled: bool
    calls: tuple[LinkCall, ...] = ()
    """The device calls, in order; empty unless the run was traced."""

    @property
    def unit(self) -> str:
        """The unit of `total` and `counters`."""
        return self.counter.unit

    @property
    def stack_used(self) -> int:
        """Bytes of stack that the run used."""
        return self.stack.run_bytes


class RunFailedError(LinkError):
    """The model's run returned an error: `status` is its code, and `failed_operator` the operator's index or None.

    `calls` has the device calls, if they were traced.
    """

    def __init__(
        self, message: str, *, status: int, failed_operator: int | None, calls: tuple[LinkCall, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.failed_operator = failed_operator
        self.calls = calls


class LinkSession(Closing):
    """Controls the model behind a channel, which the session owns; for use by one thread.

    A request without an answer is repeated up to `retries` times, at intervals of `timeout_s`. A run may take
    `run_timeout_s` from the moment the firmware reports its start. The first request, HELLO, is repeated for at least
    `start_timeout_s`, since a firmware may run its model once before it answers. These are seconds of the channel's
    clock.

    After `use_direct`, the inputs and outputs do not pass through the channel.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        timeout_s: float = 1.0,
        retries: int = 5,
        run_timeout_s: float = 60.0,
        start_timeout_s: float = 0.0,
    ) -> None:
        self._channel = channel
        self._timeout_s = timeout_s
        self._retries = retries
        self._run_timeout_s = run_timeout_s
        self._start_timeout_s = start_timeout_s
        self._receiver = FrameReceiver()
        self._frames: Iterator[Frame] = iter(())
        self._sequence = secrets.randbelow(_SEQUENCES)  # answers to an earlier session must not match
        self._run_sequence: int | None = None
        self._hello: Hello | None = None
        self._info: ModelInfo | None = None
        self._direct: DirectTensors | None = None

    @override
    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    @property
    def damaged_frames(self) -> int:
        """The number of damaged frames and pieces of noise dropped since the session began."""
        return self._receiver.damaged

    def use_direct(self, tensors: DirectTensors) -> None:
        """Access the chosen model's inputs and outputs in the memory of the emulated board, until another is chosen."""
        self._direct = tensors

    def hello(self) -> Hello:
        """Begin the session: request the firmware's identity and check the version of the protocol.

        Raises:
            ProtocolVersionError: the firmware uses another version.
            LinkTimeoutError: there is no answer.
        """
        hello = Hello.decode(self._ask(MessageType.HELLO))
        if hello.max_payload_bytes <= WRITE_HEADER_BYTES:
            raise LinkError(f"the firmware takes payloads of {hello.max_payload_bytes} bytes: too few for any data")
        self._info = None
        self._hello = hello
        return hello

    def model_info(self) -> ModelInfo:
        """Return the firmware's description of its model, which is requested only once."""
        if self._info is None:
            info, *counts = decode_model(self._ask(MessageType.MODEL_INFO))
            inputs, outputs = (
                tuple(LinkTensor.decode(self._ask(MessageType.TENSOR_INFO, is_output, index)) for index in range(count))
                for is_output, count in enumerate(counts)
            )
            self._info = replace(info, inputs=inputs, outputs=outputs)
        return self._info

    def build_info(self) -> BuildInfo | None:
        """Return the firmware's statement of its build; None if the firmware is too old to know it."""
        return self._ask_if_known(BuildInfo.decode, MessageType.BUILD_INFO)

    def self_test(self) -> SelfTest | None:
        """Return the result of the firmware's self-test at its start; None if it has none."""
        return self._ask_if_known(SelfTest.decode, MessageType.SELF_TEST)

    def statistics(self, device: int) -> dict[str, int]:
        """Return the counts of the driver of a device, by name, since the firmware began; each wraps at 2^32.

        `device` is its number in the devices struct. A firmware whose drivers have no counts, or that does not know the
        request, has none.
        """
        found: dict[str, int] = {}
        while True:
            more = self._ask_if_known(decode_statistics, MessageType.STATISTICS, device, len(found))
            if not more:
                return found
            if found.keys() & more.keys():
                raise LinkError(f"the firmware states counts of device {device} twice: {', '.join(more)}")
            found |= more

    def model_count(self) -> int:
        """Return the number of models in the firmware."""
        choice = self._ask_if_known(ModelChoice.decode, MessageType.CHOOSE_MODEL, NO_CHOICE)
        return 1 if choice is None else choice.count

    def choose_model(self, index: int) -> None:
        """Choose the model, by its number from 0, that all calls are about; at the start of a session it is the first.

        Raises:
            LinkError: the firmware has no model of that number.
        """
        count = self.model_count()
        if not 0 <= index < count:
            raise LinkError(f"the firmware has {count} model(s), numbered from 0, none has number {index}")
        if count > 1:
            ModelChoice.decode(self._ask(MessageType.CHOOSE_MODEL, index))
        self._info = None
        self._direct = None

    def run(
        self, inputs: Sequence[Array], *, profile: bool = False, trace: bool = False, reset: bool = False
    ) -> LinkRun:
        """Write the inputs, run the model once and read all results.

        With `trace` set, the device calls are included. With `reset` set, the run of a model with state begins with its
        initial state; otherwise with the one that the last run left.

        Raises:
            InputError: an input has the wrong dtype or shape, or there are too few or too many.
            RunFailedError: an operator failed.
            FirmwareError: a trace is requested, but no layer of the model runs on a device; or a reset, but the model
                has no state.
            LinkError: the link fails, or the run used the whole stack.
        """
        info = self.model_info()
        data = _as_bytes(info.inputs, inputs)
        if self._direct is not None:
            self._direct.write(data)
        else:
            for index, each in enumerate(data):
                self._write_input(index, each)
        flags = profile * PROFILE | trace * TRACE | reset * RESET
        result = RunResult.decode(self._ask(MessageType.RUN, flags))
        calls = self._read_calls() if trace else ()
        if result.status != 0:
            operator = result.failed_operator
            where = "outside the operators" if operator is None else f"in operator {operator}"
            message = f"the run failed {where} with status {status_text(result.status)}"
            raise RunFailedError(message, status=result.status, failed_operator=operator, calls=calls)
        stack = StackUse.decode(self._ask(MessageType.STACK))
        if 0 < stack.size_bytes <= stack.peak_bytes:  # size 0 means that the firmware does not know its stack
            raise LinkError(
                f"the run used all {stack.size_bytes} bytes of the stack and may have overwritten what lies below",
                hint="give the board more stack in its board.toml (placement.stack_bytes)",
            )
        return LinkRun(
            outputs=tuple(self._read_output(index, tensor) for index, tensor in enumerate(info.outputs)),
            total=result.total,
            counters=self._read_counters(info.operator_count) if profile else (),
            counter=info.counter,
            stack=stack,
            profiled=profile,
            calls=calls,
        )

    def _chunk_bytes(self) -> int:
        assert self._hello is not None  # callers already have the model info, which needs HELLO
        return min(self._hello.max_payload_bytes, MAX_PAYLOAD_BYTES)

    def _write_input(self, index: int, data: bytes) -> None:
        step = self._chunk_bytes() - WRITE_HEADER_BYTES
        for offset in range(0, len(data), step):
            self._ask(MessageType.WRITE_INPUT, index, offset, data=data[offset : offset + step])

    def _read_output(self, index: int, tensor: LinkTensor) -> Array:
        data = self._read_through_link(index, tensor) if self._direct is None else self._direct.read(index)
        return (
            np.frombuffer(bytearray(data), tensor.dtype.numpy.newbyteorder("<"))
            .astype(tensor.dtype.numpy, copy=False)
            .reshape(tensor.shape)
        )

    def _read_through_link(self, index: int, tensor: LinkTensor) -> bytes:
        step = self._chunk_bytes()
        data = bytearray()
        while len(data) < tensor.size_bytes:
            size = min(step, tensor.size_bytes - len(data))
            piece = self._ask(MessageType.READ_OUTPUT, index, len(data), size)
            if len(piece) != size:
                raise LinkError(f"{size} bytes of output '{tensor.name}' were requested, {len(piece)} arrived")
            data += piece
        return bytes(data)

    def _read_counters(self, count: int) -> tuple[int, ...]:
        counters: tuple[int, ...] = ()
        while len(counters) < count:
            more = decode_counters(self._ask(MessageType.READ_COUNTERS, len(counters)))
            if not more or len(counters) + len(more) > count:
                raise LinkError(f"counters {len(counters)} to {count - 1} were requested, {len(more)} arrived")
            counters += more
        return counters

    def _read_calls(self) -> tuple[LinkCall, ...]:
        calls: tuple[LinkCall, ...] = ()
        while True:
            more = DeviceTrace.decode(self._ask(MessageType.DEVICE_TRACE, len(calls)))
            if len(calls) + len(more.calls) > more.count or (not more.calls and len(calls) < more.count):
                raise LinkError(f"calls from {len(calls)} on were requested, {len(more.calls)} of {more.count} arrived")
            calls += more.calls
            if len(calls) == more.count:
                return calls

    def _ask_if_known(self, decode: Callable[[bytes], _T], kind: MessageType, *fields: int) -> _T | None:
        """Return the decoded response to a request; None from a firmware that does not know the request."""
        try:
            return decode(self._ask(kind, *fields))
        except FirmwareError as error:
            if error.code == ErrorCode.TYPE:
                return None
            raise

    def _next_sequence(self, kind: MessageType) -> int:
        self._sequence = (self._sequence + 1) % _SEQUENCES
        if kind is MessageType.RUN:
            if self._sequence == self._run_sequence:  # after a wrap-around the firmware would treat it as a repeat
                self._sequence = (self._sequence + 1) % _SEQUENCES
            self._run_sequence = self._sequence
        return self._sequence

    def _ask(self, kind: MessageType, *fields: int, data: bytes = b"") -> bytes:
        """Send a request with these fields and data, repeat it until its response arrives, and return its payload."""
        if self._hello is None and kind is not MessageType.HELLO:
            self.hello()
        clock, sequence = self._channel.clock, self._next_sequence(kind)
        payload = request(kind, *fields) + data
        sent = Frame(version=PROTOCOL_VERSION, type=kind, sequence=sequence, payload=payload).encode()
        wait_s, attempts, started_s = self._timeout_s, 0, None
        patience_s = clock() + (self._start_timeout_s if kind is MessageType.HELLO else 0.0)
        while True:
            self._channel.write(sent)
            attempts += 1
            deadline_s = clock() + wait_s
            while (frame := self._receive(sequence, deadline_s)) is not None:
                if kind is not MessageType.RUN or frame.type != MessageType.STARTED:
                    return _payload(frame, kind)
                started_s = started_s or clock()
            if started_s is None:
                if attempts > self._retries and clock() >= patience_s:
                    raise LinkTimeoutError(
                        f"the firmware did not answer {kind.name}: {attempts} attempts of {wait_s:g} s each",
                        hint="is the firmware running, its first run over, and the channel its link UART?",
                    )
                continue
            left_s = started_s + self._run_timeout_s - clock()
            if left_s <= 0:
                raise LinkTimeoutError(f"the run did not end within {self._run_timeout_s:g} s")
            wait_s = min(2 * wait_s, left_s)  # repeat ever more rarely: only a lost response requires it

    def _receive(self, sequence: int, deadline_s: float) -> Frame | None:
        """Return the next frame with this sequence number, or None at the deadline; polls at least once."""
        expired = False
        while True:
            for frame in self._frames:
                if frame.sequence == sequence:
                    return frame
            if expired:
                return None
            left_s = deadline_s - self._channel.clock()
            expired = left_s <= 0
            self._frames = self._receiver.feed(self._channel.read(_READ_BYTES, max(left_s, 0.0)))


def _payload(frame: Frame, kind: MessageType) -> bytes:
    if frame.version != PROTOCOL_VERSION:
        raise ProtocolVersionError(
            f"the firmware speaks version {frame.version} of the link protocol, this host version {PROTOCOL_VERSION}",
            hint="build the firmware again with this version of ferrule",
        )
    if frame.type == MessageType.ERROR:
        code, text = decode_error(frame.payload)
        name = ErrorCode(code).name if code in set(ErrorCode) else "unknown"
        raise FirmwareError(f"the firmware refused {kind.name}: {text} (error {code}, {name})", code=code)
    if frame.type != kind | RESPONSE:
        raise LinkError(f"the response to {kind.name} has type 0x{frame.type:02x}, expected 0x{kind | RESPONSE:02x}")
    return frame.payload


def _as_bytes(tensors: Sequence[LinkTensor], inputs: Sequence[Array]) -> list[bytes]:
    """Check all inputs before any is sent, and return their bytes in the board's byte order."""
    if len(inputs) != len(tensors):
        raise InputError(f"the model takes {len(tensors)} inputs, {len(inputs)} were given")
    for tensor, array in zip(tensors, inputs, strict=True):
        if array.dtype != tensor.dtype.numpy or array.shape != tensor.shape:
            raise InputError(
                f"input '{tensor.name}' is {tensor.dtype} of shape {list(tensor.shape)}, "
                f"given is {array.dtype} of shape {list(array.shape)}"
            )
    return [little_endian(array) for array in inputs]
