# SPDX-License-Identifier: Apache-2.0
"""The OpenCL devices of this machine, and the choice of a device."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ferrule._frozen import frozen
from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.gpu_acc.trial import try_platform

if TYPE_CHECKING:
    import pyopencl as cl

WORK_GROUP = 64
"""Work items in a work-group of every kernel; a device must support at least this size."""
DEVICE_OPTION = "device"
"""The option of the backend and of a model: a device's number, or a part of the device's or its platform's name."""
_REMEDY = "pip install 'ferrule[gpu]' brings pyopencl and PoCL, which runs OpenCL on the processor"
_NEWER = (
    "install a newer driver; for a processor that PoCL from PyPI does not know: apt-get install pocl-opencl-icd, "
    "and set OCL_ICD_VENDORS=/etc/OpenCL/vendors; PoCL links kernels by the program ld: apt-get install binutils"
)


DMA_BUF_EXTENSIONS = ("cl_khr_external_memory_dma_buf", "cl_arm_import_memory")
"""The extensions of OpenCL that import a dma-buf by its file descriptor."""


@frozen(eq=False)
class OpenClDevice:
    """A device that can run the kernels."""

    number: int
    """Position among the usable devices of all platforms, counted from 0."""
    name: str
    platform: str
    is_gpu: bool
    has_float64: bool
    device: cl.Device
    context: cl.Context
    """A context of this device alone: in a context of several devices, PoCL 3.0 computes wrong values even if only one
    device is used."""

    @property
    def title(self) -> str:
        """Number, name and platform of the device, for messages."""
        return f"{self.number}: {self.name} ({self.platform})"


@cache
def opencl_devices() -> tuple[OpenClDevice, ...]:
    """Return the usable devices, in the order of the platforms; the search runs once per process.

    Each platform is first tried in a child process.

    Raises:
        BackendUnavailableError: no device is usable, or pyopencl is missing.
    """
    try:
        import pyopencl as cl
    except ImportError as error:
        raise BackendUnavailableError(f"pyopencl cannot be imported ({error})", hint=_REMEDY) from error
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise BackendUnavailableError(f"there is no OpenCL platform ({error})", hint=_REMEDY) from error
    found: list[OpenClDevice] = []
    obstacles: list[str] = []
    for index, platform in enumerate(platforms):
        trial = try_platform(index, WORK_GROUP)
        if trial.death:  # this process must not use such a platform
            obstacles.append(f"{platform.name.strip()} ({platform.version.partition('  ')[0].strip()}) {trial.death}")
            continue
        for device, obstacle in zip(_devices_of(platform), trial.obstacles, strict=True):
            if obstacle:
                obstacles.append(f"{device.name.strip()} ({platform.name.strip()}) {obstacle}")
            else:
                found.append(_describe(device, len(found)))
    if not found:
        names = ", ".join(platform.name for platform in platforms) or "none"
        raise BackendUnavailableError(
            f"no OpenCL device can be used: {'; '.join(obstacles) or f'the platforms ({names}) have none'}",
            hint=_NEWER if obstacles else _REMEDY,
        )
    return tuple(found)


def unavailable_reason() -> str:
    """Return the reason why no device is usable; "" if there is one."""
    try:
        opencl_devices()
    except BackendUnavailableError as error:
        return str(error)
    return ""


def dma_buf_refusal() -> str:
    """Return the reason why GpuAcc does not import a dma-buf by its file descriptor, with the extension that would."""
    devices = [] if unavailable_reason() else opencl_devices()
    found = [(name, each) for each in devices for name in DMA_BUF_EXTENSIONS if name in each.device.extensions.split()]
    if found:
        name, device = found[0]
        why = f"Ferrule does not use {name}, which device {device.title} has"
    else:
        why = f"no OpenCL device here has {' or '.join(DMA_BUF_EXTENSIONS)}"
    return f"a dma-buf is imported as its mapping only, since {why}"


def choose_device(wanted: object = None) -> OpenClDevice:
    """Return the device with the number or the part of a name in `wanted`; for None, the first GPU or the first device.

    Raises:
        BackendUnavailableError: there is no such device; the hint lists the usable devices.
    """
    devices = opencl_devices()
    if wanted is None:
        return next((device for device in devices if device.is_gpu), devices[0])
    text = str(wanted)
    for device in devices:
        if device.number == int(text) if text.isdecimal() else text.casefold() in device.title.casefold():
            return device
    known = "; ".join(device.title for device in devices)
    raise BackendUnavailableError(f"there is no OpenCL device '{text}'", hint=f"known: {known}")


def chosen(options: Mapping[str, object]) -> object:
    """Return the value of the option `device`; None if it is not set or empty."""
    wanted = options.get(DEVICE_OPTION)
    return None if wanted == "" else wanted


def _devices_of(platform: cl.Platform) -> list[cl.Device]:
    import pyopencl as cl

    try:
        return list(platform.get_devices())
    except cl.Error:  # a platform without devices
        return []


def _describe(device: cl.Device, number: int) -> OpenClDevice:
    import pyopencl as cl

    return OpenClDevice(
        number=number,
        name=device.name.strip(),
        platform=device.platform.name.strip(),
        is_gpu=bool(device.type & cl.device_type.GPU),
        has_float64="cl_khr_fp64" in device.extensions.split(),
        device=device,
        context=cl.Context([device]),
    )
