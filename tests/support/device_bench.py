# SPDX-License-Identifier: Apache-2.0
"""A generated model with SoftNpu devices, compiled for the host with the real device API and injectable faults."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ferrule.codegen import Artifact, DeviceCall, Program
from ferrule.codegen.schedule import Call
from ferrule.graph import Array
from ferrule.resources import root

SUPPORT = Path(__file__).parent
HELD_C = root() / "src_c" / "device" / "held.c"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
NEVER = 2**32 - 1
FAULT = -77
GIVEN_BACK_BY = {Call.ACTIVATE: Call.DEACTIVATE, Call.OPEN: Call.CLOSE}
Traced = tuple[int, str, str, int]
"""Operator, device, call and status."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The result of a run."""

    status: int
    failed_operator: int | None
    trace: list[Traced]
    outputs: dict[str, Array] = field(default_factory=dict)


class Bench:
    """The compiled model, with its devices initialised and bound."""

    def __init__(self, artifact: Artifact, library: Path) -> None:
        import cffi

        self.artifact = artifact
        self.prefix = f"ferrule_{artifact.symbol}"
        self.ffi: Any = cffi.FFI()
        self.ffi.cdef(_declarations(artifact))
        self.library: Any = self.ffi.dlopen(str(library))
        assert self.library.bench_start() == 0
        self.handles = {use.name: getattr(self.library.bench_devices, use.name) for use in artifact.devices}

    def run(self, inputs: Mapping[str, Array], *, fail_at: int = NEVER, driver_fail_at: int = NEVER) -> Outcome:
        """Run once; call `fail_at` of the API, or call `driver_fail_at` of the drivers, returns FAULT."""
        bench = self.library.bench
        bench.calls = bench.driver_calls = bench.traced = 0
        bench.fail_at, bench.driver_fail_at, bench.fault = fail_at, driver_fail_at, FAULT
        given = getattr(self.library, f"{self.prefix}_default_inputs")
        for name, array in inputs.items():
            self.ffi.memmove(self.ffi.cast("int8_t *", getattr(given, name)), array.tobytes(), array.nbytes)
        info = self.ffi.new("struct ferrule_run_info *")
        info.on_device = self.library.bench_on_device
        status = self._call(info)
        failed = int(info.failed_operator)
        return Outcome(
            status=status,
            failed_operator=None if failed == NEVER else failed,
            trace=[self._traced(bench.trace[index]) for index in range(bench.traced)],
            outputs={} if status else self._outputs(),
        )

    def reset(self) -> int:
        """Write the initial state, and return the status."""
        memory = getattr(self.library, f"{self.prefix}_default_memory")
        return int(getattr(self.library, f"{self.prefix}_reset")(self.ffi.addressof(memory)))

    def activations(self) -> dict[str, int]:
        """Return the number of activations of each device."""
        return {name: int(self.library.bench_activations(handle)) for name, handle in self.handles.items()}

    def open_devices(self) -> set[str]:
        """Return the names of the open devices."""
        return {name for name, handle in self.handles.items() if self.library.bench_is_open(handle)}

    def _call(self, info: object) -> int:
        parts = [getattr(self.library, f"{self.prefix}_default_{part}") for part in ("inputs", "outputs", "memory")]
        pointers = [self.ffi.addressof(part) for part in (*parts, self.library.bench_devices)]
        return int(getattr(self.library, f"{self.prefix}_run")(*pointers, info))

    def _traced(self, call: Any) -> Traced:  # noqa: ANN401
        return int(call.index), self.artifact.devices[call.device].name, str(Call(call.call)), int(call.status)

    def _outputs(self) -> dict[str, Array]:
        pointers = getattr(self.library, f"{self.prefix}_default_outputs")
        return {
            info.name: np.frombuffer(
                bytes(self.ffi.buffer(getattr(pointers, f"output_{number}"), info.size_bytes)), info.dtype.numpy
            ).reshape(info.shape)
            for number, info in enumerate(self.artifact.graph.outputs)
        }


def planned(calls: Sequence[DeviceCall]) -> list[Traced]:
    """Return the trace of a run of this schedule without a fault."""
    return [(call.operator, call.device, str(call.call), 0) for call in calls]


def check_idle(bench: Bench) -> None:
    """Check that no device is open or active."""
    assert bench.open_devices() == set()
    assert set(bench.activations().values()) == {0}


def expected_trace(calls: Sequence[DeviceCall], position: int) -> list[Traced]:
    """Return the calls up to the failing one, followed by the calls that release held devices, last acquired first."""
    held: list[tuple[str, Call]] = []
    for call in calls[:position]:
        if call.call in GIVEN_BACK_BY:
            held.append((call.device, GIVEN_BACK_BY[call.call]))
        elif (call.device, call.call) in held:
            held.remove((call.device, call.call))
    failing = calls[position]
    if (failing.device, failing.call) in held:
        held.remove((failing.device, failing.call))
    operator = failing.operator
    return [
        *planned(calls[:position]),
        (operator, failing.device, str(failing.call), FAULT),
        *((operator, device, str(call), 0) for device, call in reversed(held)),
    ]


def build_bench(
    artifact: Artifact, folder: Path, cc: Sequence[str], *, held_c: Path = HELD_C, flags: Sequence[str] = ()
) -> Bench:
    """Compile a model whose input names are C identifiers."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in artifact.files.items():
        (folder / name).write_text(text)
    (folder / "bench_devices.c").write_text(_devices_c(artifact))
    prefix = f"ferrule_{artifact.symbol}"
    includes = (
        *(folder, SUPPORT, root() / "platforms/bare_metal/include"),
        *(path for part in artifact.contributions for path in part.include_paths),
    )
    common = (*cc, "-std=c11", "-O1", "-g", "-fPIC", *WARNINGS, *flags, *(f"-I{path}" for path in includes))
    sources = (
        *(folder / f"{prefix}_weights.c", folder / "bench_devices.c", SUPPORT / "device_bench.c"),
        *(path for part in artifact.contributions for path in part.source_paths if path.name != "held.c"),
        root() / "platforms/bare_metal/src/bare_metal.c",
    )
    executor = folder / "executor.o"
    commands = [
        (*common, "-Dsoft_npu_execute=bench_execute", "-c", folder / f"{prefix}.c", "-o", executor),
        (*common, f'-DHELD_C="{held_c}"', "-shared", *sources, executor, "-o", folder / "bench.so"),
    ]
    for command in commands:
        subprocess.run([str(each) for each in command], check=True, timeout=120)
    return Bench(artifact, folder / "bench.so")


def _devices_c(artifact: Artifact) -> str:
    """Return the C that a program needs for its devices, with SoftNpu's fault hook installed."""
    prefix = f"ferrule_{artifact.symbol}"
    parts = ['#include "device_bench.h"', '#include "ferrule/platform/bare_metal.h"', f'#include "{prefix}.h"']
    parts += [f'#include "{use.driver.header}"' for use in artifact.devices]
    parts.append("int32_t bench_driver_fault(void *context, enum soft_npu_call call, uint32_t number);")
    parts.append("int32_t bench_start(void);")
    parts.append(f"extern struct {prefix}_devices bench_devices;")
    parts += [Program(artifacts=(artifact,)).device_c(use.name) for use in artifact.devices]
    # in an array, so that a run opens the devices in the order of their numbers
    parts.append(f"static ferrule_device_t bench_handles[{len(artifact.devices)}];")
    members = ", ".join(f".{use.name} = &bench_handles[{use.index}]" for use in artifact.devices)
    parts.append(f"struct {prefix}_devices bench_devices = {{{members}}};")
    parts.append("int32_t bench_start(void)\n{\n    int32_t status = FERRULE_OK;")
    for use in artifact.devices:
        device, context = f"&bench_handles[{use.index}]", f"&{use.name}_context"
        parts.append(f"    {use.name}_context.fault = bench_driver_fault;")
        parts.append(f"    status = status ? status : ferrule_device_init({device});")
        bind = f"ferrule_device_bind({device}, NULL, NULL, &{use.driver.driver}, {context})"
        parts.append(f"    status = status ? status : {bind};")
    parts.append("    return status;\n}")
    return "\n".join(["#include <stddef.h>", *parts]) + "\n"


def _declarations(artifact: Artifact) -> str:
    prefix = f"ferrule_{artifact.symbol}"
    header = (SUPPORT / "device_bench.h").read_text().replace("[BENCH_CALLS]", "[128]")
    inputs = "".join(f"const int8_t *{info.name};" for info in artifact.graph.inputs)
    outputs = "".join(f"int8_t *output_{number};" for number, _ in enumerate(artifact.graph.outputs))
    devices = "".join(f"struct ferrule_device *{use.name};" for use in artifact.devices)
    state = "uint8_t *state; size_t state_bytes;" if artifact.state_bytes else ""
    reset = f"int32_t {prefix}_reset(const struct {prefix}_memory *);" if artifact.state_bytes else ""
    return (
        "\n".join(line for line in header.splitlines() if not line.startswith("#"))
        + f"""
        struct ferrule_stop {{
            volatile bool requested; bool has_deadline; uint32_t deadline_us; struct ferrule_device *volatile waiting;
        }};
        struct ferrule_run_info {{
            uint32_t failed_operator; void (*on_operator)(void *, uint32_t); void *context;
            void (*on_device)(void *, uint32_t, uint32_t, uint32_t, int32_t); void *device_context;
            int32_t (*stop_at)(void *, uint32_t); struct ferrule_stop stop;
        }};
        void ferrule_run_cancel(struct ferrule_run_info *);
        uint32_t ferrule_platform_now_us(void);
        struct {prefix}_inputs {{ {inputs} }};
        struct {prefix}_outputs {{ {outputs} }};
        struct {prefix}_memory {{ uint8_t *sram; size_t sram_bytes; {state} }};
        struct {prefix}_devices {{ {devices} }};
        extern struct {prefix}_inputs {prefix}_default_inputs;
        extern struct {prefix}_outputs {prefix}_default_outputs;
        extern struct {prefix}_memory {prefix}_default_memory;
        extern struct {prefix}_devices bench_devices;
        int32_t {prefix}_run(const struct {prefix}_inputs *, const struct {prefix}_outputs *,
                             const struct {prefix}_memory *, const struct {prefix}_devices *,
                             struct ferrule_run_info *);
        int32_t {prefix}_run_until(const struct {prefix}_inputs *, const struct {prefix}_outputs *,
                                   const struct {prefix}_memory *, const struct {prefix}_devices *,
                                   struct ferrule_run_info *, uint32_t);
        {reset}
        int32_t bench_start(void);
        void bench_on_device(void *, uint32_t, uint32_t, uint32_t, int32_t);
        uint32_t bench_activations(const struct ferrule_device *);
        bool bench_is_open(const struct ferrule_device *);
        int32_t ferrule_device_activate(struct ferrule_device *);
        int32_t ferrule_device_deactivate(struct ferrule_device *);
        int32_t ferrule_device_open(struct ferrule_device *);
        int32_t ferrule_device_close(struct ferrule_device *);
        int32_t ferrule_device_copy_to(struct ferrule_device *, uint32_t, const void *, size_t);
        int32_t ferrule_device_copy_from(struct ferrule_device *, void *, uint32_t, size_t);
        int32_t soft_npu_execute(void *, void (*program)(uint8_t *));
        struct ferrule_held_entry {{ uint32_t device; uint32_t call; }};
        struct ferrule_held {{
            struct ferrule_device *const *handles; struct ferrule_held_entry *entries;
            uint32_t capacity; uint32_t count; uint32_t index; struct ferrule_run_info *info;
            struct ferrule_stop *stop; struct ferrule_stop own;
        }};
        int32_t ferrule_held_activate(struct ferrule_held *, uint32_t);
        int32_t ferrule_held_open(struct ferrule_held *, uint32_t);
        int32_t ferrule_held_end(struct ferrule_held *, int32_t);
    """
    )
