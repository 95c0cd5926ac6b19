# SPDX-License-Identifier: Apache-2.0
"""The OpenCL program, built once per device."""

from __future__ import annotations

import logging
import threading
import warnings
from functools import cache
from typing import TYPE_CHECKING

from ferrule.backends.gpu_acc.opencl import OpenClDevice
from ferrule.backends.gpu_acc.parameters import FOLDER, definitions
from ferrule.errors import FerruleError
from ferrule.reading import read_text

if TYPE_CHECKING:
    import pyopencl as cl

# the order matters: a source may use the functions of the sources before it
_SOURCES = (
    *("parameters", "fixed_point", "conv2d", "depthwise_conv2d", "elementwise", "pool2d", "table", "softmax"),
    *("quantize", "move", "unary", "binary", "cast", "reduce", "transpose_conv", "resize", "normalize", "gather"),
)
_OPTIONS = ["-cl-std=CL1.2"]
_LOCK = threading.Lock()
"""Threads that load networks at once would otherwise build one program each: `cache` does not keep them apart."""
_LOGGER = logging.getLogger(__name__)


def kernel(device: OpenClDevice, name: str) -> cl.Kernel:
    """Return a new kernel object for the caller; OpenCL stores the arguments in the kernel object.

    Raises:
        FerruleError: the device's compiler rejects the program.
    """
    import pyopencl as cl

    with _LOCK:
        return cl.Kernel(_program(device), name)


def source() -> str:
    """Return the program in OpenCL C."""
    return "\n".join([definitions(), *(read_text(FOLDER / f"{name}.cl") for name in _SOURCES)])


@cache
def _program(device: OpenClDevice) -> cl.Program:
    return build(device, source())


def build(device: OpenClDevice, text: str) -> cl.Program:
    """Return a program built for a device; what the device's compiler says goes to the debug log.

    Raises:
        FerruleError: the device's compiler rejects the program.
    """
    import pyopencl as cl

    try:
        with warnings.catch_warnings():  # some drivers always say something, which pyopencl turns into a warning
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program: cl.Program = cl.Program(device.context, text).build(options=_OPTIONS, devices=[device.device])
    except cl.Error as error:
        last = "\n".join(str(error).splitlines()[-20:])
        raise FerruleError(f"the kernels of GpuAcc cannot be built for {device.title}: {last}") from error
    said = str(program.get_build_info(device.device, cl.program_build_info.LOG)).strip()  # type: ignore[no-untyped-call]
    if said:
        _LOGGER.debug("the compiler of %s says: %s", device.title, said)
    return program
