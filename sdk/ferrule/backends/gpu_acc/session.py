# SPDX-License-Identifier: Apache-2.0
"""The command queues of one loaded network, and the events of what they hold."""

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
    """Runs the commands of one loaded network one after the other, in the order of submission.

    Each device instance has an in-order queue; what is submitted to another queue than the last command waits for
    that command. One thread at a time may submit.
    """

    def __init__(self, device: OpenClDevice, recorder: Recorder | None = None) -> None:
        self.device = device
        self._recorder = recorder
        self._queues: dict[int, cl.CommandQueue] = {}
        self._last: tuple[cl.CommandQueue, cl.Event] | None = None

    @property
    def context(self) -> cl.Context:
        """What buffers and programs of the session belong to."""
        return self.device.context

    @property
    def alignment_bytes(self) -> int:
        """What parts of buffers must be aligned to on every device of the platform."""
        return max(device.alignment_bytes for device in self._peers())

    def instance(self, name: str) -> OpenClDevice:
        """Return the session's device if an instance means it: by the backend's name, or by its number at the end.

        Raises:
            UnsupportedError: it means another device; results across two devices are not proved.
        """
        digits = name[len(name.rstrip("0123456789")) :]
        if name in {"", DEFAULT_INSTANCE} or (digits and int(digits) == self.device.number):
            return self.device
        known = "; ".join(device.title for device in opencl_devices())
        raise UnsupportedError(
            f"device instance '{name}' is not {self.device.title}, where all layers of this network run",
            hint=f"call it {DEFAULT_INSTANCE}, and choose by GpuAcc's option '{DEVICE_OPTION}' among: {known}",
        )

    def submit(
        self, command: Command, *, name: str, after: Sequence[Event | None] = (), device: OpenClDevice | None = None
    ) -> GpuEvent:
        """Enqueue a command that waits for events, those of other backends too, and return its own."""
        queue = self.queue(device or self.device)
        started_ns = time.perf_counter_ns()
        event = command(queue, self._waits(queue, after))
        queue.flush()
        self._last = (queue, event)
        if self._recorder is not None:
            self._recorder.record(name, event, started_ns)
        return GpuEvent(event, self)

    def map(self, buffer: cl.Buffer, shape: Shape, dtype: np.dtype[Any], *, writing: bool) -> Array:
        """Return what a buffer holds when all commands so far are over; `unmap` gives it back."""
        import pyopencl as cl

        flags: Any = cl.map_flags.READ | cl.map_flags.WRITE if writing else cl.map_flags.READ
        queue = self.queue(self.device)
        array: Array
        array, _ = cl.enqueue_map_buffer(
            queue, buffer, flags, 0, shape or (1,), dtype, wait_for=self._waits(queue, ()), is_blocking=True
        )
        return array

    def unmap(self, array: Array) -> None:
        """Give back what `map` returned; commands submitted from now on see what was written."""
        queue = self.queue(self.device)
        mapping: Any = array.base  # pyopencl's MemoryMap
        event = mapping.release(queue, wait_for=self._waits(queue, ()))
        queue.flush()
        self._last = (queue, event)

    def publish(self, buffer: cl.Buffer, size_bytes: int) -> GpuEvent:
        """Bring what was computed to where the process sees it, for a buffer in imported memory."""
        import pyopencl as cl

        queue = self.queue(self.device)
        array, _ = cl.enqueue_map_buffer(
            queue,
            buffer,
            cl.map_flags.READ,
            0,
            (size_bytes,),
            np.dtype(np.uint8),
            wait_for=self._waits(queue, ()),
            is_blocking=False,
        )
        self.unmap(array)
        assert self._last is not None
        return GpuEvent(self._last[1], self)

    def queue(self, device: OpenClDevice) -> cl.CommandQueue:
        """Return the queue of a device."""
        import pyopencl as cl

        found = self._queues.get(device.number)
        if found is None:
            found = (
                cl.CommandQueue(self.context, device.device)
                if self._recorder is None
                else cl.CommandQueue(
                    self.context, device.device, properties=cl.command_queue_properties.PROFILING_ENABLE
                )
            )
            self._queues[device.number] = found
        return found

    def _peers(self) -> list[OpenClDevice]:
        """Return the devices that share the session's buffers."""
        return [device for device in opencl_devices() if device.context == self.context]

    def _waits(self, queue: cl.CommandQueue, after: Sequence[Event | None]) -> list[cl.Event]:
        waits = []
        if self._last is not None and self._last[0] is not queue:
            waits.append(self._last[1])
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
