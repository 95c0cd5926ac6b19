# SPDX-License-Identifier: Apache-2.0
"""LateNpu: CpuAcc's kernels on devices that go on beside the core, which do their work at random times, on the host."""

from __future__ import annotations

import random
import re
import struct
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from mock_backends import registry_of

from ferrule import Network
from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends import Backend, BackendId, Device, LayerSupport
from ferrule.backends.contribution import Contribution
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.firmware import DeviceDriver, LoweredOp, LoweringContext
from ferrule.backends.soft_npu.backend import SoftNpuSupport
from ferrule.backends.soft_npu.firmware import SoftNpuTarget
from ferrule.codegen import Artifact, Program
from ferrule.dom import Call, Identifier
from ferrule.firmware import Job, emit
from ferrule.graph import Array, TensorInfo
from ferrule.resources import root

SUPPORT = Path(__file__).parent
LATE = BackendId("LateNpu")
DEPTHS = {"late0": 1, "late1": 2, "late2": 4}
NO_FAULT = 2**32 - 1
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


class LateTarget(SoftNpuTarget):
    """Lowers layers to programs, with random estimates of their time."""

    @override
    def lower(self, context: LoweringContext) -> LoweredOp:
        op = super().lower(context)
        if not isinstance(op.status, Call):
            return op
        start, execute = (Call(Identifier(f"late_npu_{name}"), op.status.arguments) for name in ("start", "execute"))
        dice = random.Random(zlib.crc32(context.layer.name.encode()))
        cycles = dice.choice((None, 10, 1000, 20000))
        return replace(op, status=execute, start=start, cycles=cycles, headers=(*op.headers[:-1], "late_npu.h"))

    @override
    def driver(self, device: Device) -> DeviceDriver:
        depth = DEPTHS[device.name]
        driver = super().driver(device)
        return replace(
            driver,
            driver="late_npu_driver",
            header="late_npu.h",
            context="late_npu",
            context_fields=(driver.context_fields[0], ("depth", depth)),
            contributions=(
                Contribution(name="late_npu", folder=SUPPORT, sources=("late_npu.c",), include_dirs=(".",)),
            ),
            depth=depth,
            copies_beside=True,
        )


class LateNpu(Backend):
    """Devices with their own memories."""

    id = LATE

    @override
    def layer_support(self) -> LayerSupport:
        return SoftNpuSupport()

    @override
    def firmware_target(self) -> LateTarget:
        return LateTarget()


def divided(network: Network, seed: int, *, overlap: str = "on") -> Artifact:
    """Return a network's C, divided at random between the core and three devices, one of which runs a layer."""
    dice = random.Random(seed)
    devices = [Device(name=name, backend=LATE) for name in DEPTHS]
    registry = registry_of(LateNpu, CpuAcc)
    while True:
        runners = {layer.name: dice.choice((None, *DEPTHS)) for layer in network.layers}
        hints = {layer: f"{LATE}/{runner}" for layer, runner in runners.items() if runner is not None}
        job = Job(backends=("CpuAcc",), hints=hints, devices=devices, registry=registry, overlap=overlap)
        artifact = emit(network, job)
        if artifact.devices:
            return artifact


@frozen
class Result:
    """What a run returned."""

    status: int
    failed_operator: int
    driver_calls: int
    outputs: list[Array]


class LateProgram:
    """A generated model as a program of this machine."""

    def __init__(self, artifact: Artifact, folder: Path, cc: Sequence[str]) -> None:
        self.artifact = artifact
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in artifact.files.items():
            (folder / name).write_text(text)
        prefix = f"ferrule_{artifact.symbol}"
        (folder / "main.c").write_text(self._main(prefix))
        parts = artifact.contributions
        includes = (
            folder,
            root() / "platforms/bare_metal/include",
            *(path for part in parts for path in part.include_paths),
        )
        sources = (
            *(folder / name for name in (f"{prefix}.c", f"{prefix}_weights.c", "main.c")),
            *(path for part in parts for path in part.source_paths),
            root() / "platforms/bare_metal/src/bare_metal.c",
        )
        self._program = folder / "program"
        flags = ("-std=c11", "-O1", "-g", *_WARNINGS, *(f"-I{path}" for path in includes))
        command = [*cc, *flags, *map(str, sources), "-lm", "-o", str(self._program)]
        subprocess.run(command, check=True, timeout=120)

    def run(self, inputs: Sequence[Array], *, seed: int = 0, faults: Sequence[int] = (NO_FAULT,)) -> list[Result]:
        """Run once for each fault: the number of the driver's call that fails, or NO_FAULT."""
        data = b"".join(array.tobytes() for array in inputs)
        given = b"".join(struct.pack("<II", seed + number, fault) + data for number, fault in enumerate(faults))
        done = subprocess.run([self._program], input=given, capture_output=True, check=True, timeout=60)
        infos = self.artifact.graph.outputs
        size = 12 + sum(info.size_bytes for info in infos)
        assert len(done.stdout) == size * len(faults), done.stderr
        results = []
        for start in range(0, len(done.stdout), size):
            status, failed, calls = struct.unpack_from("<iII", done.stdout, start)
            at, outputs = start + 12, []
            for info in infos:
                part = done.stdout[at : at + info.size_bytes]
                outputs.append(np.frombuffer(part, info.dtype.numpy).reshape(info.shape))
                at += info.size_bytes
            results.append(Result(status=status, failed_operator=failed, driver_calls=calls, outputs=outputs))
        return results

    def _main(self, prefix: str) -> str:
        model = self.artifact
        devices = [use.name for use in model.devices]
        inputs = [f"(void *)(uintptr_t)i->{name}, {info.size_bytes}u" for name, info in _members(model, "inputs")]
        outputs = [f"o->{name}, {info.size_bytes}u" for name, info in _members(model, "outputs")]
        return "\n".join(
            [
                "#include <stdio.h>",
                "#include <stdlib.h>",
                '#include "ferrule/platform/bare_metal.h"',
                f'#include "{prefix}.h"',
                '#include "late_npu.h"',
                *(Program(artifacts=(model,)).device_c(name) for name in devices),
                f"static ferrule_device_t handles[{max(len(devices), 1)}];",
                "static void must(int fine, int code) { if (!fine) { exit(code); } }",
                "int main(void) {",
                f"const struct {prefix}_inputs *i = &{prefix}_default_inputs;",
                f"const struct {prefix}_outputs *o = &{prefix}_default_outputs;",
                f"const struct {prefix}_devices devices = {{",
                *(f".{name} = &handles[{number}]," for number, name in enumerate(devices)),
                "};",
                *(
                    f"must(ferrule_device_init(&handles[{number}]) == 0 && ferrule_device_bind(&handles[{number}], "
                    f"NULL, NULL, &late_npu_driver, &{name}_context) == 0, 2);"
                    for number, name in enumerate(devices)
                ),
                "uint32_t given[2];",
                "while (fread(given, 4, 2, stdin) == 2) {",
                "late_npu_dice = given[0]; late_npu_fault_at = given[1]; late_npu_calls = 0;",
                *(f"must(fread({each}, 1, stdin) == 1, 3);" for each in inputs),
                "struct ferrule_run_info info = {0};",
                f"const int32_t status = {prefix}_run(i, o, &{prefix}_default_memory, &devices, &info);",
                "const uint32_t words[3] = {(uint32_t)status, info.failed_operator, late_npu_calls};",
                "must(fwrite(words, 4, 3, stdout) == 3, 4);",
                *(f"must(fwrite({each}, 1, stdout) == 1, 4);" for each in outputs),
                *(
                    f"must(!{name}_context.active && {name}_context.count == 0 && "
                    f"ferrule_device_open(&handles[{number}]) == FERRULE_ERR_STATE, 5);"
                    for number, name in enumerate(devices)
                ),
                "}",
                "return 0;",
                "}",
                "",
            ]
        )


def _members(model: Artifact, struct_name: str) -> list[tuple[str, TensorInfo]]:
    """Return the members of the model's struct of inputs or outputs, with their tensors."""
    header = model.files[f"ferrule_{model.symbol}.h"]
    body = header.split(f"struct ferrule_{model.symbol}_{struct_name} {{", 1)[1].split("};", 1)[0]
    infos = model.graph.inputs if struct_name == "inputs" else model.graph.outputs
    return list(zip(re.findall(r"\*(\w+);", body), infos, strict=True))
