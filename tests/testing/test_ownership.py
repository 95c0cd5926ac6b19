# SPDX-License-Identifier: Apache-2.0
"""The check of ownership on the host: it names each forbidden access, and raises no false alarm."""

from __future__ import annotations

import ctypes
import mmap
import random
import re
import subprocess
from functools import partial
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from gate import some_of
from mock_backends import SHAPE, chain, registry_of, sample
from trespassing import trespassing

from ferrule.backends.context import CreationOptions
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.shared.host_memory import address
from ferrule.errors import FerruleError, InputError, NothingComparedError
from ferrule.graph import DataType, TensorInfo
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.testing import OwnershipError, check_ownership
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.partners import PARTNERS
from ferrule.testing.backends.random_networks import random_network
from ferrule.testing.ownership import OwnershipReport, Reply, _result
from ferrule.testing.page_watch import Pages

HANGS_S = 1800.0
"""Long enough for a busy machine, where the compiler of the host's kernels takes minutes alone."""
pytestmark = pytest.mark.timeout(HANGS_S + 60)
FOUND = {
    "writes its input": ("layer2", r"wrote tensor 'layer1' in the memory of Trespasser, .*only read"),
    "reads elsewhere": ("layer1", r"accessed tensor 'layer0' in the memory of Honest, .*not its own"),
    "writes late": ("layer2", r"accessed tensor 'layer0' in the memory of Trespasser, .*not its own"),
    "reads its output": ("layer1", r"read bytes that were never written: .* tensor 'layer1'"),
    "leaves a byte": ("layer2", r"did not write byte 60 of tensor 'layer2'"),
    "reads behind its input": ("layer2", r"accessed memory behind tensor 'layer1' in the memory of Trespasser, "),
    "writes behind its output": ("layer2", r"accessed memory behind tensor 'layer2' in the memory of Trespasser, "),
    "writes before its output": ("layer2", r"byte 3 before tensor 'layer2' was written"),
    "writes a constant": ("layer2", r"wrote constant 'slopes', which it may only read"),
    "reads behind a constant": ("layer2", r"accessed memory behind constant 'slopes', "),
}
"""The faulty layer and what the error says of it, by the fault."""


class RequiringRef(CpuRef):
    """CpuRef with tensors in fallback memory."""

    fallback_memory_required: ClassVar[bool] = True


class RequiringAcc(CpuAcc):
    """CpuAcc with tensors in fallback memory."""

    fallback_memory_required: ClassVar[bool] = True


def four_layers(fault: str) -> OptimizedNetwork:
    """Return a chain whose two layers in the middle are on the faulty backend."""
    network = chain(2)
    slopes = network.add_constant(TensorInfo("slopes", SHAPE, DataType.FLOAT32), np.ones(SHAPE, "f4"))
    name = network.add_add_layer(network.layers[-1].outputs[0], slopes, name="layer2")
    network.set_outputs([network.add_leaky_relu_layer(name, 0.5, name="layer3")])
    owners = ("Honest", "Trespasser", "Trespasser", "Honest")
    hints = {layer.name: owner for layer, owner in zip(network.layers, owners, strict=True)}
    options = OptimizerOptions(simplify=False, import_enabled=True, hints=hints)
    return optimize(network, ["Honest"], trespassing(fault), options)


RARE = {"reads behind its input", "reads behind a constant"}
"""Faults like another one of the table."""


@pytest.mark.parametrize("fault", some_of(FOUND, set(FOUND) - RARE))
def test_each_fault_is_named(fault: str) -> None:
    layer, found = FOUND[fault]
    with pytest.raises(OwnershipError, match=rf"^layer '{layer}' .* on backend 'Trespasser', .*{found}"):
        check_ownership(four_layers(fault), [sample()], registry=partial(trespassing, fault), timeout_s=HANGS_S)


def check_random_network(seed: int, dtype: DataType, *, lent: bool) -> None:
    """Check a random network whose layers are on all kinds of backends; its tensors are on pages where possible."""
    dice = random.Random(seed)
    backends = (RequiringRef, RequiringAcc, *PARTNERS)
    network = random_network(3000 + seed, 12, dtype)
    hints = {layer.name: str(dice.choice(backends).id) for layer in network.layers}
    options = OptimizerOptions(simplify=False, import_enabled=True, export_enabled=lent, hints=hints)
    optimized = optimize(network, [CpuRef.id], registry_of(*backends), options)
    registry = partial(registry_of, *backends)
    report = check_ownership(optimized, random_inputs(network, seed), registry=registry, timeout_s=HANGS_S)
    mapped = {name for name, factory in optimized.factories.items() if str(factory).endswith("/Mapped")}
    assert set(report.unchecked) <= mapped
    assert set(report.checked) >= set(optimized.factories) - mapped


def test_no_false_alarm() -> None:
    check_random_network(1, DataType.INT8, lent=True)


@pytest.mark.parametrize(("at", "found"), [(-1, "byte 1 before"), (60, "byte 1 behind"), (63, "byte 4 behind")])
def test_bytes_beside_a_tensor_are_watched_up_to_the_page_behind_it(at: int, found: str) -> None:
    """A tensor's alignment may leave bytes between its end and the page's."""
    pages = Pages()
    memory = pages.of_tensor(TensorInfo("x", (15,), DataType.FLOAT32), 64)
    assert memory.array is not None
    assert address(memory.array) % mmap.PAGESIZE == mmap.PAGESIZE - 64
    memory.array[...] = 1
    assert pages.damage() == ""
    ctypes.memset(address(memory.array) + at, 0, 1)
    assert pages.damage() == f"{found} tensor 'x' was written"


@pytest.mark.nightly
@pytest.mark.parametrize("lent", [False, True], ids=["copied", "lent"])
@pytest.mark.parametrize("seed", range(12))
def test_no_false_alarm_in_random_networks(seed: int, *, lent: bool) -> None:
    check_random_network(seed, random.Random(seed).choice([DataType.INT8, DataType.INT16]), lent=lent)


def test_arguments_that_cannot_be_used() -> None:
    optimized = four_layers("")
    with pytest.raises(InputError, match="x"):
        check_ownership(optimized, [], registry=partial(trespassing, ""))
    with pytest.raises(FerruleError, match=r"child process: .*lambda") as caught:
        check_ownership(optimized, [sample()], registry=lambda: trespassing(""), options=CreationOptions())
    assert re.search("top-level function", str(caught.value.hint))


def test_a_check_of_no_tensor_is_no_success() -> None:
    reply = Reply(report=OwnershipReport(checked=(), unchecked=("x", "y")))
    done = subprocess.CompletedProcess(args=["check"], returncode=0, stdout=b"")
    with pytest.raises(NothingComparedError, match="has checked no tensor") as caught:
        _result(msgspec.json.encode(reply), done)
    assert caught.value.hint == "unchecked: x, y"
    some = Reply(report=OwnershipReport(checked=("x",), unchecked=()))
    assert _result(msgspec.json.encode(some), done) == some.report
