# SPDX-License-Identifier: Apache-2.0
"""A script that tries an OpenCL platform in a separate process; it imports nothing from Ferrule.

Arguments: the platform's index, and the number of work items that a work-group must support. The last line of output is
a JSON list with one string per device: the reason why the device cannot run the kernels, "" if it can. A driver that
kills the process kills only this one.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE = "__kernel void trial(__global int *out) { out[get_global_id(0)] = (int)get_global_id(0) + 1; }"


def main() -> None:
    """Try every device of the platform and print the results."""
    forbid_core_dumps()
    warnings.simplefilter("ignore", cl.CompilerWarning)  # pyopencl warns of what a compiler says
    index, work_group = int(sys.argv[1]), int(sys.argv[2])
    print(json.dumps([obstacle(device, work_group) for device in devices_of(index)]))  # noqa: T201


def forbid_core_dumps() -> None:
    """Prevent core dumps, since a crash of this process is an expected result."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def devices_of(index: int) -> Sequence[cl.Device]:
    """Return the devices of a platform; there may be none."""
    try:
        return cl.get_platforms()[index].get_devices()
    except cl.Error:
        return ()


def obstacle(device: cl.Device, work_group: int) -> str:
    """Return the reason why a device cannot run the kernels; "" if it can."""
    if not device.available or not device.compiler_available:
        return "is not available, or has no compiler"
    if device.max_work_group_size < work_group:
        return f"takes work-groups of {device.max_work_group_size}, expected at least {work_group}"
    context = cl.Context([device])
    program = cl.Program(context, SOURCE)
    try:
        program.build(cache_dir=False)  # type: ignore[arg-type]  # False: no cache, which its types leave out
    except cl.Error:  # a compiler may exist without support for this processor
        log = str(program.get_build_info(device, cl.program_build_info.LOG)).strip()  # type: ignore[no-untyped-call]
        return f"builds no kernel: {log.splitlines()[0] if log else 'its compiler says nothing'}"
    return run(context, program, work_group)


def run(context: cl.Context, program: cl.Program, work_group: int) -> str:
    """Run the kernel once, since some drivers link it only then; return the fault, "" if there is none."""
    numbers = np.zeros(work_group, np.int32)
    try:
        queue = cl.CommandQueue(context)
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, numbers.nbytes)
        program.trial(queue, numbers.shape, numbers.shape, buffer)
        cl.enqueue_copy(queue, numbers, buffer)
        queue.finish()
    except cl.Error as error:
        return f"runs no kernel: {error}"
    return "" if (numbers == np.arange(1, work_group + 1)).all() else "computes wrong values"


if __name__ == "__main__":
    main()
