# SPDX-License-Identifier: Apache-2.0
"""The command queue of one loaded network, and the events of what it holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrule.backends.gpu_acc.opencl import DEVICE_OPTION, OpenClDevice, opencl_devices
from ferrule.backends.gpu_acc.profiling import Recorder
from ferrule.backends.tensor_handle import Event
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Shape

if TYPE_CHECKING:
    import pyopencl as cl

DEFAULT_INSTANCE = "GpuAcc"
"""The device instance that a backend without named ones has."""

Command = Callable[["cl.CommandQueue", "list[cl.Event]"], "cl.Event"]
"""Enqueues something that waits for the events, and returns its own."""


class GpuEvent:
    """The end of a command."""

    __slots__ = ("event", "session")

    def __init__(self, event: cl.Event, session: Session) -> None:
        self.event = event
        self.session = session

    def wait(self) -> None:
        """Return when the command is over; RuntimeError if it failed."""
        import pyopencl as cl

        try:
            self.event.wait()
        except cl.Error as error:
            raise RuntimeError(f"an OpenCL command failed on {self.session.device.title}: {error}") from error

    def done(self) -> bool:
        """Return whether it is over, also by a failure, without waiting."""
        return bool(self.event.command_execution_status <= 0)


class Session:
    """Runs the commands of one loaded network one after the other, in the order of submission, on one device.

    One thread at a time may submit.
    """

    def __init__(self, device: OpenClDevice, recorder: Recorder | None = None) -> None:
        self.device = device
        self._recorder = recorder
        self._queue: cl.CommandQueue | None = None

    @property
    def context(self) -> cl.Context:
        """What buffers and programs of the session belong to."""
        return self.device.context

    @property
    def queue(self) -> cl.CommandQueue:
        """The in-order queue."""
        import pyopencl as cl

        if self._queue is None:
            place = (self.context, self.device.device)
            measured = cl.command_queue_properties.PROFILING_ENABLE
            self._queue = cl.CommandQueue(*place, measured) if self._recorder else cl.CommandQueue(*place)
        return self._queue

    def check_instance(self, name: str) -> None:
        """Refuse a device instance other than the session's device: by the backend's name, or by a number at the end.

        All layers of a network run on one device. Two would have to share buffers, by which PoCL 3.0 gives wrong
        values where its devices are of two kinds (basic and pthread), also in a program without Ferrule.

        Raises:
            UnsupportedError: it means another device.
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
        """Enqueue a command that waits for events, those of other backends too, and return its own."""
        started_ns = time.perf_counter_ns()
        event = command(self.queue, self._waits(after))
        self.queue.flush()
        if self._recorder is not None:
            self._recorder.record(name, event, started_ns)
        return GpuEvent(event, self)

    def map(self, buffer: cl.Buffer, shape: Shape, dtype: np.dtype[Any], *, writing: bool) -> Array:
        """Return what a buffer holds when all commands so far are over; `unmap` gives it back."""
        import pyopencl as cl

        flags: Any = cl.map_flags.READ | cl.map_flags.WRITE if writing else cl.map_flags.READ
        array: Array
        array, _ = cl.enqueue_map_buffer(self.queue, buffer, flags, 0, shape or (1,), dtype, is_blocking=True)
        return array

    def unmap(self, array: Array) -> GpuEvent:
        """Give back what `map` returned; commands submitted from now on see what was written."""
        mapping: Any = array.base  # pyopencl's MemoryMap
        event = mapping.release(self.queue)
        self.queue.flush()
        return GpuEvent(event, self)

    def publish(self, buffer: cl.Buffer, size_bytes: int) -> GpuEvent:
        """Bring what was computed to where the process sees it, for a buffer in imported memory."""
        import pyopencl as cl

        array, _ = cl.enqueue_map_buffer(
            self.queue, buffer, cl.map_flags.READ, 0, (size_bytes,), np.dtype(np.uint8), is_blocking=False
        )
        return self.unmap(array)

    def finish(self) -> None:
        """Return when all commands so far are over."""
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
