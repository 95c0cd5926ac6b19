# SPDX-License-Identifier: Apache-2.0
"""Executors of models with devices, and of operators that may fail: the generated C, and what they refuse."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from children import ran
from device_bench import WARNINGS
from device_networks import HINTS, NPU0, POOL, artifact
from needs import require_module, require_program
from small_networks import int8_input

from ferrule import Network
from ferrule.architectures import CORTEX_M
from ferrule.backends import BackendId, Device
from ferrule.backends.device import default_device
from ferrule.backends.firmware import (
    DeviceDriver,
    DeviceTarget,
    FirmwareTarget,
    LoweredOp,
    LoweringContext,
)
from ferrule.backends.target import Face, Target, default_target
from ferrule.codegen import Artifact, CppWriter, CWriter, Plan, Program, Writer, generate
from ferrule.codegen.c_writer import C_WRITER
from ferrule.dom import Assign, Call, Dereference, Identifier, Integer
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.firmware import ziglang_program
from ferrule.graph import Layer, LayerType
from ferrule.operators.transfer import MemCopyDescriptor
from ferrule.resources import root

UNIT = BackendId("Unit")
UNIT0 = Device(name="unit0", backend=UNIT)


class CoreTarget:
    """Calls a function of the core, which may fail."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        arguments = (context.input_pointer(0), context.output_pointer())
        return LoweredOp(kernel="core", status=Call(Identifier("core_run"), arguments), headers=("unit.h",))


class UnitTarget:
    """Has devices that work on the core's memory; with `tells`, its operators return a status."""

    def __init__(self, *, tells: bool = True, memory_bytes: int = 0) -> None:
        self._tells = tells
        self._memory_bytes = memory_bytes

    def lower(self, context: LoweringContext) -> LoweredOp:
        if not self._tells:
            written = Assign(Dereference(context.output_pointer()), Dereference(context.input_pointer(0)))
            return LoweredOp(kernel="unit", statements=(written,), headers=("unit.h",))
        arguments = (context.resource_handle, context.input_pointer(0), context.output_pointer())
        return LoweredOp(kernel="unit", status=Call(Identifier("unit_run"), arguments), headers=("unit.h",))

    def driver(self, device: Device) -> DeviceDriver:
        del device
        return DeviceDriver(driver="unit_driver", header="unit.h", context="unit", memory_bytes=self._memory_bytes)


class ConstantTarget(UnitTarget):
    """Writes its output without reading an input."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        written = Assign(Dereference(context.output_pointer()), Integer(1))
        return LoweredOp(kernel="unit", statements=(written,), headers=("unit.h",))


HEADER = """
#include <stdint.h>
#include <string.h>
#include "ferrule/driver.h"
struct unit {
    int32_t none;
};
__attribute__((weak)) const struct ferrule_driver unit_driver = {.name = "unit", .is_passive = true};
static inline int32_t core_run(const int8_t *input, int8_t *output)
{
    output[0] = input[0];
    return input[0] == 3 ? -99 : 0;
}
static inline int32_t unit_run(void *handle, const int8_t *input, int8_t *output)
{
    output[0] = input[0];
    return handle != NULL ? 0 : -98;
}
"""


def chain(layers: int = 2) -> Network:
    network = Network("chain")
    network.add_input(int8_input("x", 1, 4))
    tensor = "x"
    for index in range(layers):
        tensor = network.add_tanh_layer(tensor, name=f"l{index}")
    network.set_outputs([tensor])
    return network


def emit(
    network: Network,
    targets: Mapping[str, FirmwareTarget],
    devices: Mapping[str, Device] | None = None,
    writer: Writer = C_WRITER,
) -> Artifact:
    return generate(
        Plan(
            graph=network,
            firmware=targets,
            targets={
                name: Target(face=Face.FIRMWARE, device=(devices or {}).get(name, default_device(UNIT)))
                for name in targets
            },
            workspace_bytes=1 << 16,
            writer=writer,
        )
    )


def compile_c(model: Artifact, folder: Path, *command: str) -> list[str]:
    """Compile all generated C files, and return the object files."""
    (folder / "unit.h").write_text(HEADER)
    includes = (
        folder,
        *(path for part in model.contributions for path in part.include_paths),
    )
    objects = []
    for name, text in model.files.items():
        (folder / name).write_text(text)
    for name in model.files:
        if name.endswith(".c"):
            objects.append(str(folder / f"{name}.o"))
            flags = ("-std=c11", "-fPIC", *WARNINGS, *(f"-I{path}" for path in includes))
            subprocess.run([*command, *flags, "-c", str(folder / name), "-o", objects[-1]], check=True, timeout=120)
    return objects


@pytest.mark.cc
@pytest.mark.parametrize("devices", [(), POOL])
def test_no_warning_from_gcc(tmp_path: Path, host_cc: tuple[str, ...], devices: tuple[Device, ...]) -> None:
    compile_c(artifact(devices) if devices else artifact(), tmp_path, *host_cc)


@pytest.mark.cc
@pytest.mark.parametrize("target", ["native", "thumb-freestanding-eabihf"])
def test_no_warning_from_clang(tmp_path: Path, target: str) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    machine = (
        ()
        if target == "native"
        else (
            "-target",
            target,
            "-mcpu=cortex_m4",
            *(f"-I{path}" for path in CORTEX_M.startup.include_paths),
        )
    )
    compile_c(artifact(), tmp_path, str(ziglang_program()), "cc", *machine)


@pytest.mark.cc
def test_generated_c_is_formatted(tmp_path: Path) -> None:
    program = require_program("clang-format", "pip install -e '.[dev]'")
    for name, text in artifact().files.items():
        path = tmp_path / name
        path.write_text(text)
        style = f"--style=file:{root() / '.clang-format'}"
        done = ran([program, style, "--dry-run", "-Werror", str(path)])
        assert done.returncode == 0, done.stderr


class OtherSuffixes(CWriter):
    """C in files with other names."""

    header_suffix = ".hh"
    source_suffix = ".cc"


def test_the_writer_decides_the_language() -> None:
    """All of C that the generator itself knows are the names of C's library and of Ferrule's headers."""
    targets = {"l0": UnitTarget(), "l1": CoreTarget()}
    model = emit(chain(), targets, {"l0": UNIT0})
    other = emit(chain(), targets, {"l0": UNIT0}, OtherSuffixes())
    assert {name.replace(".cc", ".c").replace(".hh", ".h") for name in other.files} == set(model.files)
    sources = Program(artifacts=(other,)).sources
    assert sources == tuple(name.replace(".c", ".cc") for name in Program(artifacts=(model,)).sources)
    assert len(sources) == 5
    included = {name for text in other.files.values() for name in re.findall(r'#include "(\w+\.\w+)"', text)}
    assert included <= {*other.files, "unit.h"}
    assert Program(artifacts=(other,)).device_c("unit0") == Program(artifacts=(model,)).device_c("unit0")
    with pytest.raises(UnsupportedError, match=r"C\+\+14 has no designated initialisers"):
        emit(chain(), targets, {"l0": UNIT0}, CppWriter())


def test_the_interface() -> None:
    header = artifact().files["ferrule_crossing.h"]
    assert "struct ferrule_crossing_devices {" in header
    assert "    struct ferrule_device *npu0;" in header
    assert "const struct ferrule_crossing_devices *devices,\n" in header
    assert "FERRULE_CROSSING_DEVICE_NPU1 = 1," in header
    assert "FERRULE_CROSSING_DEVICES = 2," in header


def test_a_model_on_the_core_knows_nothing_of_devices() -> None:
    for text in artifact(hints={}, devices=(NPU0,)).files.values():
        assert "device" not in text
        assert "held" not in text


def test_the_artifact_says_what_a_program_needs() -> None:
    model = artifact()
    assert [(use.name, use.index, use.lead, use.has_memory) for use in model.devices] == [
        ("npu0", 0, 0, True),
        ("npu1", 1, 2, True),
    ]
    parts = {part.name: part.sources for part in model.contributions}
    assert parts["src_c/device"] == ("command.c", "device.c", "held.c")
    assert parts["backends/soft_npu"] == ("src/soft_npu.c",)
    assert Program(artifacts=(model,)).device_c("npu0").splitlines()[-4:] == [
        "static struct soft_npu npu0_context = {",
        "    .memory = npu0_memory,",
        "    .bytes = 4096,",
        "};",
    ]
    assert model.device_calls == tuple(call for record in model.operators for call in record.device_calls)


def test_a_devices_own_lead_overrides_its_drivers() -> None:
    model = artifact(devices=(NPU0, replace(NPU0, name="npu1", activation_lead=5)))
    assert model.devices[1].lead == 5


def test_devices_that_are_open_at_once_are_a_set() -> None:
    text = artifact().files["ferrule_crossing.c"]
    assert "static const uint32_t opened_before_0[2] = {\n    DEVICE_NPU0,\n    DEVICE_NPU1,\n};" in text
    assert "ferrule_held_open_set(held, opened_before_0, 2)" in text
    assert "    if (devices->npu0 == devices->npu1) {\n        return FERRULE_ERR_ARGUMENT;\n" in text
    assert "two members of `devices` are the same" in " ".join(artifact().files["ferrule_crossing.h"].split())


def test_a_pool() -> None:
    model = artifact(POOL)
    text = model.files["ferrule_crossing.c"]
    assert [(use.name, use.index, use.pool) for use in model.devices] == [
        ("npu0", 0, ("npu0", "npu1")),
        ("npu1", 1, ("npu0", "npu1")),
    ]
    assert {record.device for record in model.operators if record.device_calls} == {"npu0"}
    assert [str(call) for call in model.device_calls[:3]] == ["0 npu0 activate", "0 npu1 activate", "0 npu0 open"]
    assert [str(call).split(" ", 1)[1] for call in model.device_calls[-2:]] == ["npu1 deactivate", "npu0 deactivate"]
    assert "uint32_t npu0_chosen = DEVICE_NPU0;" in text
    assert "ferrule_held_open_pools(held, NULL, 0, pools_before_0, 1)" in text
    assert "soft_npu_execute(held->handles[npu0_chosen], " in text
    assert "    if (devices->npu0 == devices->npu1) {\n        return FERRULE_ERR_ARGUMENT;\n" in text
    assert "Device npu1 (SoftNpu, of its pool)." in model.files["ferrule_crossing.h"]


def test_a_pool_and_a_device_that_are_open_at_once() -> None:
    third = Device(name="far", backend=BackendId("SoftNpu"), binding={"memory_bytes": 4096})
    model = artifact((*POOL, third), {name: hint.replace("npu1", "far") for name, hint in HINTS.items()})
    text = model.files["ferrule_crossing.c"]
    assert [use.name for use in model.devices] == ["npu0", "npu1", "far"]
    assert "static const uint32_t opened_before_0[1] = {\n    DEVICE_FAR,\n};" in text
    assert "{{DEVICE_NPU0, 2, &npu0_chosen}}" in text
    assert "ferrule_held_open_pools(held, opened_before_0, 1, pools_before_0, 1)" in text


def test_the_members_of_a_pool_are_alike() -> None:
    other = replace(POOL[1], binding={"memory_bytes": 2048})
    with pytest.raises(
        FerruleError, match="'npu0' and 'npu1' are in one pool, expected the same memory_bytes, found 4096"
    ):
        artifact((POOL[0], other))


@pytest.mark.cc
def test_the_link_refuses_to_run_before_it_has_devices(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    import cffi

    model = emit(chain(), {"l0": UnitTarget(), "l1": CoreTarget()}, {"l0": UNIT0})
    objects = compile_c(model, tmp_path, *host_cc)
    (tmp_path / "stubs.c").write_text(
        '#include "ferrule/device.h"\nint32_t ferrule_device_close(ferrule_device_t *dev) { (void)dev; return 0; }\n'
        "struct ferrule_place;\nint32_t ferrule_device_open_in_turn(ferrule_device_t *dev, uint32_t t, "
        "struct ferrule_stop *s, struct ferrule_place *p)"
        " { (void)dev; (void)t; (void)s; (void)p; return 0; }\n"
        "void ferrule_device_leave(ferrule_device_t *dev, struct ferrule_place *p) { (void)dev; (void)p; }\n"
        "uint32_t ferrule_device_users(ferrule_device_t *dev, uint32_t *t) { (void)dev; (void)t; return 0; }\n"
        "int32_t ferrule_device_finish(ferrule_device_t *dev, uint32_t t)"
        " { (void)dev; (void)t; return 0; }\n"
        "int32_t ferrule_device_recover(ferrule_device_t *dev) { (void)dev; return 0; }\n"
        "bool ferrule_device_is_lost(const ferrule_device_t *dev) { (void)dev; return false; }\n"
        "void ferrule_stop_begin(struct ferrule_stop *stop, const uint32_t *end) { (void)stop; (void)end; }\n"
        "void ferrule_stop_set_deadline(struct ferrule_stop *stop, const uint32_t *end) { (void)stop; (void)end; }\n"
        "void ferrule_stop_request(struct ferrule_stop *stop) { (void)stop; }\n"
        "int32_t ferrule_stop_status(const struct ferrule_stop *stop) { (void)stop; return 0; }\n"
        "uint32_t ferrule_platform_now_us(void) { return 0; }\n"
        "int32_t ferrule_device_submit_copy_to(ferrule_device_t *d, uint32_t o, const void *s, size_t n)"
        " { (void)d; (void)o; (void)s; (void)n; return 0; }\n"
        "int32_t ferrule_device_submit_copy_from(ferrule_device_t *d, void *s, uint32_t o, size_t n)"
        " { (void)d; (void)o; (void)s; (void)n; return 0; }\n"
        "uint32_t ferrule_platform_open_timeout_us(void) { return 0; }\n"
        "int32_t ferrule_device_activate(ferrule_device_t *dev) { (void)dev; return 0; }\n"
        "int32_t ferrule_device_deactivate(ferrule_device_t *dev) { (void)dev; return 0; }\n"
        "int32_t ferrule_device_set_driver(ferrule_device_t *d, const struct ferrule_driver *r, void *c, uintptr_t *b)"
        " { (void)d; (void)r; (void)c; (void)b; return 0; }\n"
        "int32_t ferrule_device_copy_to(ferrule_device_t *d, uint32_t o, const void *s, size_t n)"
        " { (void)d; (void)o; (void)s; (void)n; return 0; }\n"
        "int32_t ferrule_device_copy_from(ferrule_device_t *d, void *s, uint32_t o, size_t n)"
        " { (void)d; (void)o; (void)s; (void)n; return 0; }\n"
        '#include "ferrule/link.h"\n#include "ferrule_chain_link.h"\n'
        "int32_t call(struct ferrule_run_info *info) { return ferrule_chain_link_model.run(info); }\n"
        "uint32_t room(void) { return ferrule_chain_link_model.call_count; }\n"
    )
    sources = (tmp_path / "stubs.c", root() / "src_c/device/held.c")
    command = [*host_cc, "-shared", "-fPIC", f"-I{tmp_path}", f"-I{root() / 'include'}", *map(str, sources), *objects]
    subprocess.run([*command, "-o", str(tmp_path / "model.so")], check=True, timeout=120)
    ffi = cffi.FFI()
    ffi.cdef("""
        struct ferrule_run_info { uint32_t failed_operator; void (*on_operator)(void *, uint32_t); void *context;
            void (*on_device)(void *, uint32_t, uint32_t, uint32_t, int32_t); void *device_context;
                int32_t (*stop_at)(void *, uint32_t);
                struct { bool requested, has_deadline; uint32_t deadline_us; void *waiting; } stop; };
        struct ferrule_chain_devices { void *unit0; };
        struct ferrule_chain_inputs { int8_t *x; };
        extern struct ferrule_chain_inputs ferrule_chain_default_inputs;
        void ferrule_chain_link_use(const struct ferrule_chain_devices *);
        int32_t call(struct ferrule_run_info *info);
        uint32_t room(void);
    """)
    library = ffi.dlopen(str(tmp_path / "model.so"))
    assert library.call(ffi.NULL) == -7  # FERRULE_ERR_STATE
    unit = ffi.new("char[1]")
    devices = ffi.new("struct ferrule_chain_devices *", {"unit0": unit})
    library.ferrule_chain_link_use(devices)
    assert library.call(ffi.NULL) == 0
    assert library.room() == len(model.device_calls) == 5
    info = ffi.new("struct ferrule_run_info *")
    library.ferrule_chain_default_inputs.x[0] = 3
    assert library.call(info) == -99  # an operator on the core fails, in an executor that holds devices
    assert info.failed_operator == 1


@pytest.mark.cc
def test_an_operator_on_the_core_may_fail(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    import cffi

    model = emit(chain(3), dict.fromkeys(("l0", "l1", "l2"), CoreTarget()))
    assert "@return or the error of the operator that failed" in model.files["ferrule_chain.h"]
    objects = compile_c(model, tmp_path, *host_cc)
    subprocess.run([*host_cc, "-shared", *objects, "-o", str(tmp_path / "model.so")], check=True, timeout=120)
    ffi = cffi.FFI()
    ffi.cdef("""
        struct ferrule_run_info { uint32_t failed_operator; void (*on_operator)(void *, uint32_t); void *context;
            void (*on_device)(void *, uint32_t, uint32_t, uint32_t, int32_t); void *device_context; };
        struct inputs { int8_t *x; }; struct outputs { int8_t *y; };
        struct memory { uint8_t *sram; size_t sram_bytes; };
        extern struct inputs ferrule_chain_default_inputs;
        extern struct outputs ferrule_chain_default_outputs;
        extern struct memory ferrule_chain_default_memory;
        int32_t ferrule_chain_run(struct inputs *, struct outputs *, struct memory *, struct ferrule_run_info *);
    """)
    library = ffi.dlopen(str(tmp_path / "model.so"))
    parts = [ffi.addressof(getattr(library, f"ferrule_chain_default_{p}")) for p in ("inputs", "outputs", "memory")]
    info = ffi.new("struct ferrule_run_info *")
    for value, status, failed in ((2, 0, 2**32 - 1), (3, -99, 0)):
        library.ferrule_chain_default_inputs.x[0] = value
        assert library.ferrule_chain_run(*parts, info) == status
        assert info.failed_operator == failed
    library.ferrule_chain_default_inputs.x[0] = 3
    assert library.ferrule_chain_run(*parts, ffi.NULL) == -99


@pytest.mark.cc
def test_operators_without_a_status_cannot_fail_and_are_traced(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    model = emit(chain(), {"l0": UnitTarget(tells=False), "l1": CoreTarget()}, {"l0": UNIT0})
    compile_c(model, tmp_path, *host_cc)
    assert "ferrule_held_ran(held, DEVICE_UNIT0, FERRULE_OK);" in model.files["ferrule_chain.c"]


@pytest.mark.cc
def test_nothing_is_passed_that_nobody_reads(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    network = chain(1)
    network.add_input(int8_input("unread", 1, 4))
    compile_c(emit(network, {"l0": UnitTarget()}, {"l0": UNIT0}), tmp_path, *host_cc)
    lonely = Network("lonely")
    lonely.add_input(int8_input("x", 1, 4))
    lonely.add_constant(int8_input("k", 1, 4), np.zeros((1, 4), np.int8))
    lonely.add_tanh_layer("k", name="y")
    lonely.set_outputs(["y"])
    compile_c(emit(lonely, {"y": ConstantTarget()}, {"y": UNIT0}), tmp_path, *host_cc)


def test_a_tensor_in_a_devices_memory_is_out_of_reach() -> None:
    target = UnitTarget(memory_bytes=64)
    with pytest.raises(FerruleError, match="layer 'l0' reads tensor 'x' in the core's memory, which it does not reach"):
        emit(chain(), dict.fromkeys(("l0", "l1"), target), dict.fromkeys(("l0", "l1"), UNIT0))
    network = Network("copied")
    network.add_input(int8_input("x", 1, 4))
    copy = Layer("in", LayerType.MEM_COPY, MemCopyDescriptor(), inputs=("x",), outputs=("in",))
    network.add_layer(copy, [replace(int8_input("in", 1, 4))])
    network.add_tanh_layer("in", name="y")
    network.set_outputs(["y"])
    with pytest.raises(FerruleError, match="output 'y' of the model lies in the memory of device unit0"):
        emit(network, {"in": target, "y": target}, {"in": UNIT0, "y": UNIT0})
    with pytest.raises(FerruleError, match="layer 'y' reads tensor 'in' in the memory of device unit0"):
        emit(network, {"in": target, "y": CoreTarget()}, {"in": UNIT0})


def test_pointers_and_offsets_do_not_mix() -> None:
    network = chain(1)
    context = LoweringContext(
        graph=network,
        layer=network.layers[0],
        target=default_target(UNIT, Face.FIRMWARE),
        prefix="x",
        pointers={"l0": Identifier("l0")},
        offsets={"x": Identifier("X_OFFSET")},
    )
    assert context.device_offset("x") == Identifier("X_OFFSET")
    with pytest.raises(UnsupportedError, match="tensor 'x' lies in the device's own memory"):
        context.input_pointer(0)
    with pytest.raises(UnsupportedError, match="tensor 'l0' lies in the core's memory"):
        context.device_offset("l0")
    assert isinstance(UnitTarget(), DeviceTarget)
    assert not isinstance(CoreTarget(), DeviceTarget)
