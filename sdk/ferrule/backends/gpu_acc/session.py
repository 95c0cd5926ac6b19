# SPDX-License-Identifier: Apache-2.0
"""The command queue of one loaded network, and the events of its commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.gpu_acc.opencl import DEVICE_OPTION, OpenClDevice, opencl_devices
from ferrule.backends.gpu_acc.profiling import Recorder
from ferrule.backends.tensor_handle import Event
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, Shape

if TYPE_CHECKING:
    import pyopencl as cl

DEFAULT_INSTANCE = "GpuAcc"
"""The name of the device instance when the user declares none."""

Command = Callable[["cl.CommandQueue", "list[cl.Event]"], "cl.Event"]
"""Enqueues a command that waits for the given events, and returns the command's own event."""


@frozen(eq=False)
class DeviceMemory:
    """The place of a tensor: a buffer, and the offset of the tensor's first byte in it.

    Tensors of one buffer share bytes, so sub-buffers would overlap. NVIDIA's driver 580 crashes when it releases
    overlapping sub-buffers that kernels used or that were mapped or copied; so there are none, and every command,
    a kernel too, gets the buffer and the offset.
    """

    buffer: cl.Buffer
    offset: int = 0


class GpuEvent:
    """The completion of a command."""

    __slots__ = ("_then", "event", "session")

    def __init__(self, event: cl.Event, session: Session) -> None:
        self.event = event
        self.session = session
        self._then: Callable[[], None] | None = None

    def followed_by(self, then: Callable[[], None]) -> GpuEvent:
        """Return the event, which now also calls `then` when it has been waited for."""
        before = self._then

        def both() -> None:
            if before is not None:
                before()
            then()

        self._then = both
        return self

    def followed_as(self, earlier: GpuEvent) -> GpuEvent:
        """Return the event, which is now followed by what follows an earlier event of the queue."""
        then, earlier._then = earlier._then, None
        return self if then is None else self.followed_by(then)

    def wait(self) -> None:
        """Wait until the command is complete; RuntimeError if it failed. What follows it is called in any case."""
        import pyopencl as cl

        try:
            self.event.wait()
        except cl.Error as error:
            raise RuntimeError(f"an OpenCL command failed on {self.session.device.title}: {error}") from error
        finally:
            then, self._then = self._then, None
            if then is not None:
                then()

    def done(self) -> bool:
        """Return whether the command has completed or failed, without waiting."""
        return bool(self.event.command_execution_status <= 0)


class Session:
    """Runs the commands of one loaded network on one device, one after the other in the order of submission.

    Only one thread at a time may submit commands.
    """

    def __init__(self, device: OpenClDevice, recorder: Recorder | None = None) -> None:
        self.device = device
        self._recorder = recorder
        self._queue: cl.CommandQueue | None = None

    @property
    def context(self) -> cl.Context:
        """The OpenCL context of the session's buffers and programs."""
        return self.device.context

    @property
    def queue(self) -> cl.CommandQueue:
        """The in-order command queue, created on first use."""
        import pyopencl as cl

        if self._queue is None:
            place = (self.context, self.device.device)
            measured = cl.command_queue_properties.PROFILING_ENABLE
            self._queue = cl.CommandQueue(*place, measured) if self._recorder else cl.CommandQueue(*place)
        return self._queue

    def check_instance(self, name: str) -> None:
        """Check that the device instance `name` denotes the session's device.

        The backend's name denotes the session's device, and a name that ends in a number denotes the device of that
        number. All layers of a network run on one device. Two devices would need to share buffers, and PoCL 3.0 then
        computes wrong values if its devices are of two kinds (basic and pthread), also in programs without Ferrule.

        Raises:
            UnsupportedError: the name does not denote the session's device.
        """
        digits = name[len(name.rstrip("0123456789")) :]
        if name in {"", DEFAULT_INSTANCE} or (digits and int(digits) == self.device.number):
            return
        known = "; ".join(device.title for device in opencl_devices())
        raise UnsupportedError(
            f"device instance '{name}' is not {self.device.title}, where all layers of this network run",
            hint=f"call it {DEFAULT_INSTANCE}, and choose by GpuAcc's option '{DEVICE_OPTION}' among: {known}",
        )

    def submit(self, command: Command, *, name: str, after: Sequence[Event | None] = ()) -> GpuEvent:
        """Enqueue a command that runs after the events in `after`, of any backend; return the command's event."""
        started_ns = time.perf_counter_ns()
        event = command(self.queue, self._waits(after))
        self.queue.flush()
        if self._recorder is not None:
            self._recorder.record(name, event, started_ns)
        return GpuEvent(event, self)

    def map(self, memory: DeviceMemory, shape: Shape, dtype: np.dtype[Any], *, writing: bool) -> Array:
        """Wait for all submitted commands and return the contents of a place; `unmap` must release the array."""
        import pyopencl as cl

        flags: Any = cl.map_flags.READ | cl.map_flags.WRITE if writing else cl.map_flags.READ
        array: Array
        array, _ = cl.enqueue_map_buffer(
            self.queue, memory.buffer, flags, memory.offset, shape or (1,), dtype, is_blocking=True
        )
        return array

    def unmap(self, array: Array) -> GpuEvent:
        """Release an array that `map` returned; commands submitted later see the data written to it."""
        mapping: Any = array.base  # pyopencl's MemoryMap
        event = mapping.release(self.queue)
        self.queue.flush()
        return GpuEvent(event, self)

    def host_buffer(self, memory: Array) -> cl.Buffer:
        """Return a buffer that uses memory of the process; FerruleError if the device does not accept the memory."""
        import pyopencl as cl

        access = cl.mem_flags.READ_WRITE if memory.flags.writeable else cl.mem_flags.READ_ONLY
        try:
            return cl.Buffer(self.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=memory.reshape(-1))
        except cl.Error as error:
            raise FerruleError(
                f"{self.device.title} does not accept {memory.nbytes} B of host memory: {error}"
            ) from error

    def map_host(self, buffer: cl.Buffer, offset: int, memory: Array, *, writing: bool) -> tuple[Array, GpuEvent]:
        """Let the process access `memory`, at an offset of a host buffer, when the event returned is complete.

        `unmap_host` takes the array returned; until then no command may use the part.
        """
        import pyopencl as cl

        flags: Any = cl.map_flags.READ | cl.map_flags.WRITE if writing else cl.map_flags.READ
        mapping, event = cl.enqueue_map_buffer(
            self.queue, buffer, flags, offset, memory.shape, memory.dtype, is_blocking=False
        )
        self.queue.flush()
        return mapping, GpuEvent(event, self)

    def unmap_host(self, mapping: Array) -> None:
        """Let commands that are submitted later use the memory."""
        self.unmap(mapping)

    def return_host(self, mapping: Array) -> None:
        """End the mapping of memory that no later command uses; the process keeps what it contains."""
        self.unmap(mapping)

    def finish(self) -> None:
        """Wait until all submitted commands are complete."""
        if self._queue is not None:
            self._queue.finish()

    def _waits(self, after: Sequence[Event | None]) -> list[cl.Event]:
        waits = []
        for event in after:
            if isinstance(event, GpuEvent):
                if event.session is self:
                    continue  # the queue is in order
                if event.session.context == self.context:
                    waits.append(event.event)
                    continue
            if event is not None:
                event.wait()
        return waits
