# SPDX-License-Identifier: Apache-2.0
"""Programs of generated classes run, and the OpenCL side on NEON refuses what would be wrong on a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from acl_programs import build_many, run_one, run_stepwise
from children import ran
from gate import every
from needs import require_acl

from ferrule import DataType, Network, TensorInfo
from ferrule.acl.comparison import bounded_reference, compare_tensors, overall
from ferrule.acl.program import VALIDATE, ProgramError, TraceProgram
from ferrule.codegen.acl import AclArtifact, generate_class
from ferrule.network.samples import pattern
from ferrule.operators.activation import Activation
from ferrule.report.document import Verdict


def network() -> Network:
    """Return a network with odd extents, asymmetric padding, an addition and a reshape that moves elements."""
    rng = np.random.default_rng(1)
    made = Network("small")
    made.add_input(TensorInfo("in/put", dtype=DataType.FLOAT32, shape=(1, 8, 6, 3)))
    weights = rng.standard_normal((4, 3, 2, 3)).astype(np.float32)
    image = made.add_conv2d_layer("in/put", weights, strides=(2, 1), padding="same", name="image")
    total = made.add_add_layer(image, image, activation=Activation.RELU, name="total")
    flat = made.add_reshape_layer(total, (1, 4 * 6 * 4), name="flat")
    dense = rng.standard_normal((5, 4 * 6 * 4)).astype(np.float32)
    made.set_outputs([made.add_fully_connected_layer(flat, dense, np.ones(5, np.float32), name="out")])
    return made


Mutation = Callable[[str], str]


def without_first(pattern_: str) -> Mutation:
    return lambda text: re.sub(pattern_, "", text, count=1)


ACTIVATION = "arm_compute::ActivationLayerInfo"
MUTATIONS: dict[str, tuple[Mutation, str]] = {
    "AllocatesFirst": (
        lambda text: text.replace("    /* image: CONV_2D */", "    _in_put.allocator()->allocate();", 1),
        "configure() after allocate()",
    ),
    "SwappedPads": (
        lambda text: re.sub(r"(PadStrideInfo\(1U, 2U, )0U, 1U, 0U, 1U", r"\g<1>0U, 0U, 1U, 1U", text),
        "validate()",
    ),
    "WrongWeights": (
        lambda text: text.replace("TensorShape(2U, 3U, 3U, 4U)", "TensorShape(2U, 3U, 4U, 3U)"),
        "validate()",
    ),
    "FusedAddition": (
        lambda text: re.sub(
            r"(ConvertPolicy::SATURATE)\)", rf"\1, {ACTIVATION}({ACTIVATION}::ActivationFunction::RELU))", text
        ),
        "validate()",
    ),
    "Unmapped": (without_first(r"    _\w+\.map\(\);\n"), "not mapped"),
    "Mapped": (without_first(r"    _\w+\.unmap\(\);\n"), "while a tensor is mapped"),
    "NotSynchronised": (
        without_first(r"    arm_compute::CLScheduler::get\(\)\.sync\(\);\n"),
        "without CLScheduler::sync()",
    ),
}
"""Faults of a class by its name: how its source is changed, and what the error says."""


def mutant(name: str) -> AclArtifact:
    """Return the class with a fault."""
    made = generate_class(network(), target="arm-gpu-c++", name=name)
    source = made.files[f"{name}.cpp"].decode()
    changed = MUTATIONS[name][0](source)
    assert changed != source, f"the mutation {name} changes nothing"
    return replace(made, files={**made.files, f"{name}.cpp": changed.encode()})


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> TraceProgram:
    require_acl()
    right = generate_class(network(), target="arm-gpu-c++", name="Right")
    neon = generate_class(network(), target="arm-cpu-c++", name="Neon")
    return build_many([right, neon, *map(mutant, MUTATIONS)], tmp_path_factory.mktemp("classes"))


def inputs() -> dict[str, np.ndarray]:
    return {info.name: pattern(info) for info in network().inputs}


@pytest.mark.parametrize("name", ["Right", "Neon"])
def test_all_tensors_equal_the_reference(program: TraceProgram, name: str) -> None:
    comparisons = run_stepwise(program, name, network(), inputs())
    assert [each.tensor for each in comparisons] == ["image", "total", "flat", "out"]
    assert overall(comparisons) is not Verdict.DIFFERENT, comparisons


def test_a_run_without_replacements_goes_on_with_its_own_tensors(program: TraceProgram) -> None:
    expected = bounded_reference(network(), program.records["Right"], inputs(), stepwise=False)
    chained = run_one(program, "Right", inputs())
    assert overall(compare_tensors(network(), program.records["Right"], chained, expected)) is not Verdict.DIFFERENT
    unobserved = program.run("Right", inputs(), observed=False)
    assert list(unobserved) == ["out"]
    assert np.array_equal(unobserved["out"], chained["out"])
    twice = run_one(program, "Right", inputs(), stepwise={"image": 2 * expected["image"].values})
    assert np.array_equal(twice["total"], 2 * expected["total"].values)  # a doubled value is never rounded


@pytest.mark.parametrize("name", every(2, MUTATIONS))
def test_a_fault_is_noticed(program: TraceProgram, name: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(MUTATIONS[name][1])):
        program.run(name, inputs(), observed=False)


@pytest.mark.nightly
def test_the_opencl_side_itself_refuses_wrong_arguments(tmp_path: Path) -> None:
    require_acl()
    right = generate_class(network(), target="arm-gpu-c++", name="Right")
    wrong = ("SwappedPads", "WrongWeights")
    program = build_many([right, *map(mutant, wrong)], tmp_path, prelude=VALIDATE)
    program.run("Right", inputs(), observed=False)
    for name in wrong:
        with pytest.raises(ProgramError, match="error: cl_validate: "):
            program.run(name, inputs(), observed=False)


def write(path: Path, **datasets: np.ndarray) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, array in datasets.items():
            file[name] = array


IMAGE = np.zeros((1, 3, 8, 6), "<f4")


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ({"in_put": IMAGE[0]}, "of rank 3 [3, 8, 6], expected 4 [1, 3, 8, 6]"),
        ({"in_put": IMAGE.transpose(0, 2, 3, 1)}, "of shape [1, 8, 6, 3], expected [1, 3, 8, 6]"),
        ({"in_put": IMAGE.astype("<f8")}, "float, 64 bits, little endian, expected float, 32 bits, little endian"),
        ({"in_put": IMAGE.astype(">f4")}, "big endian, expected float, 32 bits, little endian"),
        ({"in_put": IMAGE.astype("u1")}, "unsigned integer, 8 bits, expected float"),
        ({"other": IMAGE}, "has no dataset 'in_put'"),
        (None, "expected an HDF5 file"),
    ],
    ids=["rank", "shape", "float64", "big-endian", "uint8", "name", "no-hdf5"],
)
def test_a_bad_dataset_is_refused(
    program: TraceProgram, tmp_path: Path, datasets: dict[str, np.ndarray] | None, message: str
) -> None:
    source, target = tmp_path / "input.h5", tmp_path / "record.h5"
    if datasets is None:
        source.write_text("not HDF5")
    else:
        write(source, **datasets)
    command = [*program.toolchain.launcher, program.path, "Right", program.folder / "Right.par", source, target]
    done = ran(command)
    assert done.returncode == 1
    assert str(source) in done.stderr
    assert message in done.stderr
    assert not target.exists()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "expected"),
        (lambda data: data + b"\0", "more than"),
        (lambda data: bytes([data[0] ^ 1]) + data[1:], "CRC-32"),
        (None, "cannot be opened"),
    ],
    ids=["short", "long", "damaged", "missing"],
)
def test_a_bad_parameter_file_is_refused(
    program: TraceProgram, tmp_path: Path, damage: Callable[[bytes], bytes] | None, message: str
) -> None:
    path = tmp_path / "bad.par"
    if damage is not None:
        path.write_bytes(damage((program.folder / "Right.par").read_bytes()))
    with pytest.raises(ProgramError, match=message) as error:
        program.run("Right", inputs(), parameters=path)
    assert str(path) in str(error.value)
