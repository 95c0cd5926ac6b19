# SPDX-License-Identifier: Apache-2.0
"""All interleavings of two runs of generated models over two devices, at the calls of the platform."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from device_bench import HELD_C
from fake_device import FOLDER, WARNINGS
from needs import require_module
from small_networks import SCALE, int8_input

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.codegen import Artifact
from ferrule.codegen.schedule import Call
from ferrule.firmware import Job, emit
from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc
NPUS = tuple(Device(name=f"npu{index}", backend=BackendId("SoftNpu")) for index in range(2))
PROGRAM = """
#include "explorer.h"
#include "ferrule_pair.h"
#include "soft_npu/soft_npu.h"

@CONTEXTS@
const struct ferrule_driver *explorer_driver(void)
{
    return &soft_npu_driver;
}

void *explorer_context(uint32_t device)
{
    struct soft_npu *context = device == 0 ? &npu0_context : &npu1_context;

    context->active = false;
    return context;
}

/* The threads have the devices in opposite orders, as two models may. */
int32_t explorer_run(uint32_t thread, ferrule_device_t *first, ferrule_device_t *second)
{
    static const int8_t x[4] = {1, 2, 3, 4};
    static _Alignas(16) uint8_t sram[EXPLORER_THREADS][(FERRULE_PAIR_SRAM_BYTES + 15) & ~15];
    static int8_t y[EXPLORER_THREADS][4];
    const struct ferrule_pair_inputs inputs = {x};
    const struct ferrule_pair_outputs outputs = {y[thread]};
    const struct ferrule_pair_memory memory = {sram[thread], FERRULE_PAIR_SRAM_BYTES};
    const struct ferrule_pair_devices straight = {first, second}, crossed = {second, first};

    return ferrule_pair_run(&inputs, &outputs, &memory, thread == 0 ? &straight : &crossed, NULL);
}
"""
BY_ADDRESS = "return (uintptr_t)held->handles[device];"
BY_NUMBER = "return held->handles[device] != NULL ? device + 1u : 0u;"


def pair() -> Artifact:
    """Return a model that keeps a tensor in npu0 while npu1 works."""
    network = Network("pair")
    network.add_input(int8_input("x", 1, 4))
    network.add_relu_layer("x", name="a")
    network.add_relu_layer("a", name="b")
    network.add_add_layer("a", "b", quantization=SCALE, name="y")
    network.set_outputs(["y"])
    hints = {"a": "SoftNpu/npu0", "b": "SoftNpu/npu1", "y": "SoftNpu/npu0"}
    return emit(network, Job(backends=("CpuAcc",), hints=hints, devices=NPUS))


def search(
    folder: Path,
    cc: tuple[str, ...],
    model: Artifact,
    *,
    held: Callable[[str], str] = str,
    executor: Callable[[str], str] = str,
) -> Any:  # noqa: ANN401
    """Explore all interleavings; `held` and `executor` change the texts of held.c and of the executor."""
    require_module("cffi", "pip install 'ferrule[run]'")
    from cffi import FFI

    for name, text in model.files.items():
        (folder / name).write_text(executor(text) if name == "ferrule_pair.c" else text)
    contexts = "\n".join(model.device_c(use.name) for use in model.devices)
    (folder / "program.c").write_text(PROGRAM.replace("@CONTEXTS@", contexts))
    (folder / "held.c").write_text(held(HELD_C.read_text()))
    parts = (path for part in model.contributions for path in part.source_paths)
    sources = [
        *(folder / name for name in ("ferrule_pair.c", "ferrule_pair_weights.c", "program.c", "held.c")),
        *(FOLDER / "explorer.c", *(path for path in parts if path.name != "held.c")),
    ]
    includes = (folder, FOLDER, *(path for part in model.contributions for path in part.include_paths))
    flags = ("-std=gnu11", "-O1", "-g", "-shared", "-fPIC", *WARNINGS, *(f"-I{path}" for path in includes))
    target = folder / "explorer.so"
    subprocess.run([*cc, *flags, *map(str, sources), "-o", str(target)], check=True, timeout=120)
    ffi = FFI()
    ffi.cdef("""
        struct explorer_result {
            uint32_t executions; uint32_t states; uint32_t deadlocks; uint32_t failures; uint32_t violations;
            int32_t status;
        };
        struct explorer_result explorer_search(void);
    """)
    return ffi.dlopen(str(target)).explorer_search()


def test_the_model_holds_both_devices_at_once() -> None:
    calls = [call.call for call in pair().device_calls]
    assert calls[:4] == [Call.ACTIVATE, Call.ACTIVATE, Call.OPEN, Call.OPEN]


def test_no_interleaving_of_two_runs_has_to_wait_for_a_time_out(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    found = search(tmp_path, host_cc, pair())
    assert (found.status, found.deadlocks, found.failures, found.violations) == (0, 0, 0, 0)
    assert found.states > 2000


def test_a_dropped_order_is_found(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    def by_number(text: str) -> str:
        assert text.count(BY_ADDRESS) == 1
        return text.replace(BY_ADDRESS, BY_NUMBER)

    found = search(tmp_path, host_cc, pair(), held=by_number)
    assert found.deadlocks > 0
    assert (found.status, found.violations) == (Status.TIMEOUT, 0)


def test_a_deactivation_while_another_device_is_open_is_found(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    def earlier(text: str) -> str:
        deactivated, closed = (checked(f"ferrule_held_{call}(held, DEVICE_NPU1)") for call in ("deactivate", "close"))
        assert (text.count(deactivated), text.count(closed)) == (1, 1)
        return text.replace(deactivated, "").replace(closed, closed + deactivated)

    found = search(tmp_path, host_cc, pair(), executor=earlier)
    assert found.deadlocks > 0
    assert (found.status, found.violations) == (Status.TIMEOUT, 0)


def checked(call: str) -> str:
    """Return the statements of an executor that make a call and return its error."""
    return f"    status = {call};\n    if (status != FERRULE_OK) {{\n        return status;\n    }}\n"
