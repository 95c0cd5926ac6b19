# SPDX-License-Identifier: Apache-2.0
"""Serves what is behind a serial line over a port: the model of a device, or a UART of an emulated board."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import WiredTarget
from ferrule.backends.guarded import guarded
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.devices import SerialModel
from ferrule.devices.hosting import HostedSerialModel, created
from ferrule.errors import FerruleError
from ferrule.link import DEFAULT_BAUD, Channel, ListeningChannel, SerialChannel

LISTEN = "listen://"
POLL_S = 0.02
"""Longest wait for a byte before the model is polled for bytes to send."""
CHUNK_BYTES = 4096
RUN_S = 0.02
"""Longest run of the firmware between two looks at the port."""
WAIT_S = 0.05
"""Longest wait for the port while the firmware waits for input."""
DEVICE = "accelerator"


def serial_model(backend: str | None = None, binding: Mapping[str, str | int] | None = None) -> tuple[str, SerialModel]:
    """Return the name of a backend whose devices are behind serial lines, and a new model of such a device.

    `backend` may be None if there is only one such backend.

    Raises:
        FerruleError: the backend's devices are not behind serial lines, or the binding is invalid.
    """
    source = default_registry()
    names = [backend] if backend else _wired(source)
    if len(names) != 1:
        raise FerruleError("name the backend whose device is served: --backend", hint=_known(names))
    (name,) = names
    target = guarded(source.create(name)).firmware_target()
    if not isinstance(target, WiredTarget):
        raise FerruleError(f"devices of {name} are not behind a serial line", hint=_known(_wired(source)))
    driver = target.driver(Device(name=DEVICE, backend=BackendId(name), binding=binding or {}))
    if driver.wire is None or driver.wire.model is None:
        raise FerruleError(f"{name} has no model of its devices")
    return name, created(partial(driver.wire.model, None), SerialModel, name=name)  # type: ignore[type-abstract]


def open_port(url: str, *, baud: int = DEFAULT_BAUD) -> Channel:
    """Return the channel of a port: a device name, a pyserial URL, or `listen://host:port`."""
    return ListeningChannel(url) if url.startswith(LISTEN) else SerialChannel(url, baud=baud)


def serve(model: SerialModel, channel: Channel, *, until: Callable[[], bool] = lambda: False) -> None:
    """Carry bytes between a channel and a model until `until`, called about 50 times a second, returns True.

    Raises:
        LinkError: the port failed.
        DeviceFaultError: the model broke its contract.
    """
    hosted = HostedSerialModel(model, name=type(model).__name__)
    while not until():
        answer = hosted.receive(channel.read(CHUNK_BYTES, POLL_S))
        if answer:
            channel.write(answer)


def bridge(uart: Channel, port: Channel, *, until: Callable[[], bool] = lambda: False) -> None:
    """Carry bytes both ways until `until`, called at least 10 times a second, returns True.

    A firmware in the engine unicorn runs meanwhile; while it waits for input, nothing does.

    Raises:
        EngineError: the firmware faulted.
        LinkError: the port failed.
    """
    idle = False
    while not until():
        received = port.read(CHUNK_BYTES, WAIT_S if idle else 0.0)
        if received:
            uart.write(received)
        asked = time.monotonic()
        sent = uart.read(CHUNK_BYTES, RUN_S)
        idle = not sent and time.monotonic() < asked + RUN_S
        if sent:
            port.write(sent)


def _wired(registry: BackendRegistry) -> list[str]:
    return [name for name in registry.ids() if _is_wired(name, registry)]


def _known(names: Sequence[str]) -> str:
    return f"backends with such devices: {', '.join(names) or 'none'}"


def _is_wired(name: str, registry: BackendRegistry) -> bool:
    try:
        return isinstance(guarded(registry.create(name)).firmware_target(), WiredTarget)
    except FerruleError:  # a backend that is not usable here is no candidate; selecting it by name reports why
        return False
