# SPDX-License-Identifier: Apache-2.0
"""All interleavings of two runs of generated models over two devices, at the calls of the platform."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from device_bench import HELD_C
from fake_device import FOLDER, WARNINGS
from needs import require_module
from small_networks import SCALE, int8_input

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.backends.contribution import merged
from ferrule.codegen import Artifact, Program
from ferrule.codegen.schedule import Call
from ferrule.firmware import Job, emit
from ferrule.link.protocol import Status

pytestmark = pytest.mark.cc
NPUS = tuple(Device(name=f"npu{index}", backend=BackendId("SoftNpu")) for index in range(2))
POOL = tuple(replace(npu, pool=True) for npu in NPUS)
PROGRAM = """
#include "explorer.h"
#include "ferrule_first.h"
#include "ferrule_second.h"
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

int32_t explorer_run(uint32_t thread, ferrule_device_t *first, ferrule_device_t *second)
{
    const struct ferrule_first_devices straight = {.npu0 = first, .npu1 = second};
    const struct ferrule_second_devices crossed = {.npu0 = second, .npu1 = first};

    return thread == 0 ? ferrule_first_run(&ferrule_first_default_inputs, &ferrule_first_default_outputs,
                                           &ferrule_first_default_memory, &straight, NULL)
                       : ferrule_second_run(&ferrule_second_default_inputs, &ferrule_second_default_outputs,
                                            &ferrule_second_default_memory, &crossed, NULL);
}
"""
BY_ADDRESS = "return (uintptr_t)held->handles[device];"
BY_NUMBER = "return held->handles[device] != NULL ? device + 1u : 0u;"


def model(name: str, devices: tuple[Device, ...] = NPUS) -> Artifact:
    """Return a model that keeps a tensor in npu0 while npu1 works, or runs all layers on one of a pool."""
    network = Network(name)
    network.add_input(int8_input("x", 1, 4))
    network.add_relu_layer("x", name="a")
    network.add_relu6_layer("a", name="b")
    network.add_add_layer("a", "b", quantization=SCALE, name="y")
    network.set_outputs(["y"])
    hints = {"a": "SoftNpu/npu0", "b": "SoftNpu/npu1", "y": "SoftNpu/npu0"}
    return emit(network, Job(backends=("CpuAcc",), hints=hints, devices=devices))


def search(
    folder: Path,
    cc: tuple[str, ...],
    devices: tuple[Device, ...] = NPUS,
    *,
    held: Callable[[str], str] = str,
    executor: Callable[[str], str] = str,
    macros: tuple[str, ...] = (),
) -> Any:  # noqa: ANN401
    """Explore all interleavings of two models, of which the second one has the given devices, in the other order.

    `held` and `executor` change the texts of held.c and of the second executor; `macros` are those of explorer.c.
    """
    require_module("cffi", "pip install 'ferrule[run]'")
    from cffi import FFI

    models = model("first"), model("second", devices)
    files = {name: text for each in models for name, text in each.files.items()}
    files["ferrule_second.c"] = executor(files["ferrule_second.c"])
    contexts = "\n".join(Program(artifacts=(models[0],)).device_c(use.name) for use in models[0].devices)
    files |= {"program.c": PROGRAM.replace("@CONTEXTS@", contexts), "held.c": held(HELD_C.read_text())}
    for name, text in files.items():
        (folder / name).write_text(text)
    parts = merged(part for each in models for part in each.contributions)
    common = (path for part in parts for path in part.source_paths if path.name != "held.c")
    own = (folder / name for name in files if name.endswith(".c") and not name.endswith("_link.c"))
    identities = "ferrule_first_identity.c", "ferrule_second_identity.c"
    sources = [*(path for path in own if path.name not in identities), FOLDER / "explorer.c", *common]
    includes = (folder, FOLDER, *(path for part in parts for path in part.include_paths))
    flags = ("-std=gnu11", "-O1", "-g", "-shared", "-fPIC", *WARNINGS, *(f"-I{path}" for path in includes), *macros)
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
    calls = [call.call for call in model("first").device_calls]
    assert calls[:4] == [Call.ACTIVATE, Call.ACTIVATE, Call.OPEN, Call.OPEN]


def test_no_interleaving_of_two_runs_has_to_wait_for_a_time_out(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    found = search(tmp_path, host_cc)
    assert (found.status, found.deadlocks, found.failures, found.violations) == (0, 0, 0, 0)
    assert found.states > 2000


def test_a_dropped_order_is_found(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    def by_number(text: str) -> str:
        assert text.count(BY_ADDRESS) == 1
        return text.replace(BY_ADDRESS, BY_NUMBER)

    found = search(tmp_path, host_cc, held=by_number)
    assert found.deadlocks > 0
    assert (found.status, found.violations) == (Status.TIMEOUT, 0)


def test_a_deactivation_while_another_device_is_open_is_found(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    def earlier(text: str) -> str:
        deactivated, closed = (checked(f"ferrule_held_{call}(held, DEVICE_NPU1)") for call in ("deactivate", "close"))
        assert (text.count(deactivated), text.count(closed)) == (1, 1)
        return text.replace(deactivated, "").replace(closed, closed + deactivated)

    found = search(tmp_path, host_cc, executor=earlier, macros=("-DEXPLORER_FIRST_IS_URGENT",))
    assert found.deadlocks > 0
    assert (found.status, found.violations) == (Status.TIMEOUT, 0)


def test_a_pool_waits_for_a_set_of_its_members(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    found = search(tmp_path, host_cc, POOL)
    assert (found.status, found.deadlocks, found.failures, found.violations) == (0, 0, 0, 0)


def checked(call: str) -> str:
    """Return the statements of an executor that make a call and return its error."""
    return f"    status = {call};\n    if (status != FERRULE_OK) {{\n        return status;\n    }}\n"
