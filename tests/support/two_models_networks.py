# SPDX-License-Identifier: Apache-2.0
"""Two models that share two devices, and the files that the programs of tests/platforms/two_models include."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from small_networks import SCALE, int8_input

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.codegen import Artifact, Program
from ferrule.firmware import Job, emit

JOB = Job(
    backends=("CpuAcc",),
    hints={"a": "SoftNpu/npu0", "b": "SoftNpu/npu1", "y": "SoftNpu/npu0"},
    devices=tuple(Device(name=f"npu{index}", backend=BackendId("SoftNpu")) for index in range(2)),
)


def network(name: str) -> Network:
    """Return a network that keeps a tensor in npu0 while npu1 works."""
    found = Network(name)
    found.add_input(int8_input("x", 1, 16))
    found.add_relu_layer("x", name="a")
    found.add_add_layer("a", "x", quantization=SCALE, name="b")
    found.add_add_layer("a", "b", quantization=SCALE, name="y")
    found.set_outputs(["y"])
    return found


def write_second(folder: Path) -> None:
    """Write the second model, and expected.h."""
    for name, text in emit(network("second"), JOB).files.items():
        if not name.endswith("_link.c"):
            (folder / name).write_text(text)
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */", "#include <stdint.h>"]
    for seed, name in enumerate(("first", "second")):
        x = np.random.default_rng(seed).integers(-128, 128, (1, 16)).astype(np.int8)
        for letter, values in (("x", x), ("y", network(name).run([x])[0])):
            lines.append(f"static const int8_t {name}_{letter}[16] = {{{', '.join(map(str, values.flat))}}};")
    (folder / "expected.h").write_text("\n".join(lines) + "\n")


def write_first(folder: Path, model: Artifact) -> None:
    """Write the first model, and contexts.h with the contexts of its devices."""
    for name, text in model.files.items():
        (folder / name).write_text(text)
    contexts = "\n".join(Program(artifacts=(model,)).device_c(use.name) for use in model.devices)
    (folder / "contexts.h").write_text(f"/* SPDX-License-Identifier: Apache-2.0 */\n{contexts}")
