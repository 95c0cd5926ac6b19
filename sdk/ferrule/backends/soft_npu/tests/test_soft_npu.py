# SPDX-License-Identifier: Apache-2.0
"""SoftNpu: supported layers, bindings, and the driver on the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from device_bench import Bench, build_bench
from device_networks import artifact, sample
from needs import require_cc, require_module
from small_networks import dense, float_dense, int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import DeviceTarget
from ferrule.backends.manifest import read_manifest
from ferrule.backends.registry import default_registry
from ferrule.backends.soft_npu import SoftNpu
from ferrule.backends.soft_npu.firmware import DEFAULT_MEMORY_BYTES, SoftNpuTarget
from ferrule.backends.target import Face, default_target
from ferrule.errors import FerruleError
from ferrule.memory import ArenaOverflowError

TARGET = default_target(BackendId("SoftNpu"), Face.FIRMWARE)

FOLDER = Path(__file__).parents[1]
SOFT_NPU = BackendId("SoftNpu")


def device(**binding: str | int) -> Device:
    return Device(name="npu0", backend=SOFT_NPU, binding=binding)


def test_it_is_registered_and_has_a_firmware_face_only() -> None:
    backend = default_registry().create("SoftNpu")
    assert isinstance(backend, SoftNpu)
    assert not backend.has_host_face()
    assert isinstance(backend.firmware_target(), DeviceTarget)
    assert [path.name for part in read_manifest(FOLDER).contributions() for path in part.source_paths] == ["soft_npu.c"]


def test_it_takes_what_the_kernels_take() -> None:
    support = SoftNpu().layer_support()
    for network in (dense(), float_dense()):
        for layer in network.layers:
            assert support.supports(network, layer, TARGET)
    network = ferrule.Network("constants")
    network.add_input(int8_input("x", 1, 4))
    network.add_constant(int8_input("k", 1, 4), np.zeros((1, 4), np.int8))
    network.add_maximum_layer("k", "k", name="y")
    network.add_maximum_layer("x", "k", name="z")
    network.set_outputs(["y", "z"])
    assert support.supports(network, network.layer("y"), TARGET).reason == "all of its inputs are constants"
    assert support.supports(network, network.layer("z"), TARGET)


def test_the_binding() -> None:
    driver = SoftNpuTarget().driver(device())
    assert (driver.memory_bytes, driver.activation_lead) == (DEFAULT_MEMORY_BYTES, 0)
    driver = SoftNpuTarget().driver(device(memory_bytes=100, activation_lead=3))
    assert (driver.memory_bytes, driver.activation_lead) == (100, 3)


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ({"base": 0x40000000}, "device 'npu0': SoftNpu has no 'base'"),
        (
            {"memory_bytes": "64k"},
            "device 'npu0': memory_bytes is '64k', expected a whole number from 16 to 2147483647",
        ),
        ({"memory_bytes": 15}, "memory_bytes is 15"),
        ({"memory_bytes": 1 << 31}, "memory_bytes is 2147483648"),
        ({"memory_bytes": True}, "memory_bytes is True"),
        ({"activation_lead": -1}, "activation_lead is -1, expected a whole number from 0 to 2147483647"),
    ],
)
def test_bindings_that_make_no_sense(binding: dict[str, str | int], message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        SoftNpuTarget().driver(device(**binding))


def test_a_memory_that_is_too_small_is_told() -> None:
    with pytest.raises(ArenaOverflowError, match="region 'device npu0' holds 160 B"):
        artifact(devices=(device(memory_bytes=160), Device(name="npu1", backend=SOFT_NPU)))


def test_it_cannot_run_on_the_host() -> None:
    from ferrule.optimizer import optimize

    with pytest.raises(FerruleError, match="no host face"):
        optimize(dense(), ["SoftNpu"], default_registry())


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    require_module("cffi", "pip install ferrule[run]")
    cc = require_cc()
    return build_bench(artifact(), tmp_path_factory.mktemp("soft_npu"), cc)


@pytest.mark.cc
def test_its_memory_has_bounds(bench: Bench) -> None:
    library, ffi, handle = bench.library, bench.ffi, bench.handles["npu1"]
    data = ffi.new("uint8_t[]", bytes(range(16)))
    assert library.ferrule_device_activate(handle) == library.ferrule_device_open(handle) == 0
    assert library.ferrule_device_copy_to(handle, 2032, data, 16) == 0
    back = ffi.new("uint8_t[16]")
    assert library.ferrule_device_copy_from(handle, back, 2032, 16) == 0
    assert bytes(back) == bytes(range(16))
    for offset, size in ((2033, 16), (2048, 1), (2**32 - 1, 16), (0, 2049)):
        assert library.ferrule_device_copy_to(handle, offset, data, size) == -1
        assert library.ferrule_device_copy_from(handle, back, offset, size) == -1
    assert library.ferrule_device_close(handle) == library.ferrule_device_deactivate(handle) == 0


@pytest.mark.cc
def test_its_memory_is_lost_without_power(bench: Bench) -> None:
    library, ffi, handle = bench.library, bench.ffi, bench.handles["npu1"]
    data = ffi.new("uint8_t[]", bytes(range(16)))
    for expected in (bytes(range(16)), bytes([0xA5] * 16)):
        assert library.ferrule_device_activate(handle) == library.ferrule_device_open(handle) == 0
        if expected[0] == 0:
            assert library.ferrule_device_copy_to(handle, 0, data, 16) == 0
        assert library.ferrule_device_copy_from(handle, data, 0, 16) == 0
        assert bytes(data)[:16] == expected
        assert library.ferrule_device_close(handle) == library.ferrule_device_deactivate(handle) == 0


@pytest.mark.cc
def test_it_executes_on_an_open_device_only(bench: Bench) -> None:
    library, ffi, handle = bench.library, bench.ffi, bench.handles["npu0"]
    ran: list[int] = []
    program = ffi.callback("void(uint8_t *)", lambda memory: ran.append(memory[0]))
    assert library.soft_npu_execute(handle, program) == -7  # FERRULE_ERR_STATE
    assert library.soft_npu_execute(ffi.NULL, program) == -1
    assert library.ferrule_device_activate(handle) == library.ferrule_device_open(handle) == 0
    assert library.soft_npu_execute(handle, ffi.NULL) == -1
    assert ran == []
    assert library.soft_npu_execute(handle, program) == 0
    assert len(ran) == 1
    assert library.ferrule_device_close(handle) == library.ferrule_device_deactivate(handle) == 0
    assert bench.run({"x": sample()}).status == 0
