# SPDX-License-Identifier: Apache-2.0
"""From a network to a report."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_networks

import ferrule
from ferrule.emulation import EngineError, EngineOptions
from ferrule.errors import FerruleError, InputError, MissingToolError, NothingComparedError
from ferrule.firmware import BuildError, StackBound, ZigToolchain, build_project
from ferrule.firmware.platforms import bare_metal
from ferrule.graph import DataType, TensorInfo
from ferrule.link import LinkSession
from ferrule.progress import Step
from ferrule.report.assembly import EngineRun
from ferrule.running import run, session

pytestmark = [pytest.mark.cc, pytest.mark.emu]

Build = Callable[[ferrule.Network], ferrule.Firmware]


def test_compile_and_run(any_toolchain: str, tmp_path: Path) -> None:
    network = small_networks.dense()
    firmware = ferrule.compile(network, toolchain=any_toolchain, out=tmp_path / "project", optimization="O2")
    assert firmware.elf == tmp_path / "project" / "build" / "firmware.elf"
    x = np.array([[-128, 127, 0, 3, 5, -7]], np.int8)
    report = firmware.run([x])
    assert report.verdict is ferrule.Verdict.EXACT
    assert report.outputs[0].tolist() == network.run([x])[0].tolist()
    document = report.document
    assert (document.input, document.engine, document.build.board) == ("arrays", "unicorn", "mps2-an386")
    assert (document.build.toolchain, document.build.optimization) == (any_toolchain, "O2")
    assert document.build.toolchain_version == firmware.toolchain_version
    assert [(layer.type, layer.backend, layer.macs) for layer in report.layers] == [("FULLY_CONNECTED", "CpuAcc", 24)]
    assert 0 < report.layers[0].count < report.count.per_inference < 20_000
    assert report.layers[0].share == 1.0
    assert document.count.resolution == 1
    assert report.memory.flash.total == firmware.image.flash_bytes
    assert report.memory.ram.total == firmware.image.ram_bytes
    assert 0 < report.memory.ram.stack_used < report.memory.ram.stack_reserved
    flash, ram = report.memory.flash, report.memory.ram
    assert ram.stack_bound_reason == ""
    assert ram.stack_used <= ram.stack_bound == firmware.image.stack.size_bytes <= 1.5 * ram.stack_used
    assert document.build.flags.endswith("-O2")
    assert document.build.sources
    assert document.build.build_s is not None
    assert flash.total == flash.code + flash.constants + flash.weights
    assert ram.total == ram.workspace + ram.stack_reserved + ram.link + ram.fault_stack + ram.other
    assert 1_024 < ram.link < 1_400  # the buffer of the largest frame, and what is beside it
    assert (ram.fault_stack, ram.other < 200) == (256, True)


def test_real_numbers_go_in_and_out(built: Build) -> None:
    network = small_networks.dense()
    real = np.linspace(-3, 3, 18).reshape(3, 6)
    report = built(network).run([real], real=True)
    assert report.verdict is ferrule.Verdict.EXACT
    assert report.outputs[0].tobytes() == network.run([real], real=True)[0].tobytes()
    with pytest.raises(InputError, match="'x' is float64") as caught:
        built(network).run([real])
    assert "real=True" in str(caught.value.hint)


def test_a_run_above_the_bound_is_an_error(built: Build) -> None:
    firmware = built(small_networks.dense())
    wrong = replace(firmware.image, stack=StackBound(size_bytes=8))
    with pytest.raises(FerruleError, match=r"used \d+ B of stack, and the bound from the call graph is 8 B"):
        replace(firmware, image=wrong).run()
    unbounded = replace(firmware.image, stack=StackBound(reason="recursion: f → f"))
    ram = replace(firmware, image=unbounded).run().memory.ram
    assert (ram.stack_bound, ram.stack_bound_reason) == (None, "recursion: f → f")


def test_several_inputs_and_outputs(built: Build) -> None:
    network = small_networks.two_by_two()
    left = np.arange(-9, 9, dtype=np.int8).reshape(3, 2, 3)
    right = np.array([[[1, -2, 3]], [[100, -100, 0]], [[-128, 127, 5]]], np.int8)
    report = built(network).run({"right": right, "left": left})
    assert report.verdict is ferrule.Verdict.EXACT
    assert [output.shape for output in report.outputs] == [(3, 2, 3), (3, 2, 3)]
    assert len(report.samples) == 3
    for index in range(3):
        wanted = network.run([left[index : index + 1], right[index : index + 1]])
        for output, reference in zip(report.outputs, wanted, strict=True):
            assert output[index : index + 1].tolist() == reference.tolist()


@pytest.mark.parametrize("engine", ["unicorn", "qemu"])
def test_the_link_gives_the_same_outputs(built: Build, monkeypatch: pytest.MonkeyPatch, qemu: str, engine: str) -> None:
    firmware = built(small_networks.two_by_two())
    written: list[int] = []
    send = LinkSession._write_input
    monkeypatch.setattr(
        LinkSession, "_write_input", lambda self, index, data: (written.append(index), send(self, index, data))
    )
    direct = firmware.run(engine=engine)
    assert not written
    linked = firmware.run(engine=engine, options=EngineOptions(through_link=True))
    assert written
    assert direct.verdict is linked.verdict is ferrule.Verdict.EXACT
    for one, other in zip(direct.outputs, linked.outputs, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("accesses", [0, 1])
def test_a_check_of_ownership_without_an_access_is_no_success(
    built: Build, monkeypatch: pytest.MonkeyPatch, accesses: int
) -> None:
    execute = run._execute

    def unwatched(*arguments: Any, **options: Any) -> EngineRun:  # noqa: ANN401 those of _execute
        done = execute(*arguments, **options)
        assert done.ownership is not None
        assert done.ownership.accesses > 1
        return replace(done, ownership=replace(done.ownership, accesses=accesses))

    monkeypatch.setattr(run, "_execute", unwatched)
    firmware = built(small_networks.dense())
    if accesses:
        assert firmware.run(check_ownership=True).verdict is ferrule.Verdict.EXACT
    else:
        with pytest.raises(NothingComparedError, match="has seen no access to check"):
            firmware.run(check_ownership=True)


def test_a_network_without_layers(built: Build) -> None:
    """The output is the input, and a constant."""
    network = ferrule.Network("same")
    network.add_input(TensorInfo("x", (1, 4), DataType.FLOAT32))
    network.set_outputs(["x", network.add_constant_array("k", np.array([np.nan, np.inf, 1], np.float32))])
    x = np.array([[1, -2, np.inf, 0]], np.float32)
    report = built(network).run([x])
    assert report.verdict is ferrule.Verdict.EXACT
    assert report.outputs[0].tobytes() == x.tobytes()
    assert report.layers == ()


def test_a_batch_is_one_sample(built: Build) -> None:
    network = small_networks.dense(batch=3)
    x = np.arange(36, dtype=np.int8).reshape(6, 6)
    report = built(network).run([x])
    assert len(report.samples) == 2
    assert report.outputs[0].tolist() == np.concatenate([*network.run([x[:3]]), *network.run([x[3:]])]).tolist()


def test_scalars(built: Build) -> None:
    report = built(small_networks.scalar()).run([np.int8(4), np.int8(-4)])
    assert report.verdict is ferrule.Verdict.EXACT
    assert (report.outputs[0].shape, report.outputs[0].item()) == ((), 4)


def test_floats_are_exact(built: Build) -> None:
    report = built(small_networks.float_dense()).run()
    assert report.document.input == "pattern"
    assert report.verdict is ferrule.Verdict.EXACT
    assert report.samples[0].max_difference == 0


def test_a_reference_that_differs_is_told(built: Build) -> None:
    firmware = replace(built(small_networks.dense()), network=small_networks.dense(seed=9))
    x = np.zeros((4, 6), np.int8)
    x[2] = 100
    report = firmware.run([x])
    assert report.verdict is ferrule.Verdict.DIFFERENT
    for sample, output in zip(report.samples, report.outputs[0], strict=True):
        reference = firmware.network.run([x[sample.index : sample.index + 1]])[0][0]
        gap = np.abs(output.astype(int) - reference.astype(int)).max()
        assert sample.max_difference == gap
        assert (sample.verdict is ferrule.Verdict.DIFFERENT) == (gap > 0)


def test_one_sample_that_differs_is_told(built: Build) -> None:
    """The network differs from the firmware's only for inputs that reach the firmware's clamp."""
    network = small_networks.two_by_two()
    other = ferrule.Network(network.name)
    for info in network.inputs:
        other.add_input(info)
    other.add_add_layer("left", "right", quantization=small_networks.SCALE, name="sum")
    other.add_minimum_layer("left", "right", name="largest")
    other.set_outputs(["sum", "largest"])
    left = np.full((3, 2, 3), 5, np.int8)
    right = np.full((3, 1, 3), 5, np.int8)
    right[1] = 6
    report = replace(built(network), network=other).run([left, right])
    assert [str(sample.verdict) for sample in report.samples] == ["exact", "different", "exact"]
    assert [sample.max_difference for sample in report.samples] == [0.0, 1.0, 0.0]
    assert report.verdict is ferrule.Verdict.DIFFERENT


def test_wrong_inputs_are_refused_before_anything_runs(built: Build) -> None:
    steps: list[Step] = []
    with pytest.raises(InputError, match="'x' is int16"):
        built(small_networks.dense()).run([np.zeros((1, 6), np.int16)], progress=steps.append)
    assert steps == []


def test_another_firmware_is_recognised(built: Build) -> None:
    firmware, other = built(small_networks.dense()), built(small_networks.dense(batch=3))
    with pytest.raises(FerruleError, match="was generated from another model"):
        replace(firmware, artifact=other.artifact).run()


def test_progress_tells_every_phase(zig: str, tmp_path: Path) -> None:
    steps: list[Step] = []
    firmware = ferrule.compile(small_networks.dense(), toolchain=zig, out=tmp_path / "project", progress=steps.append)
    firmware.run([np.zeros((2, 6), np.int8)], progress=steps.append)
    assert [str(step) for step in steps if step.begins] == [
        "generating C for mps2-an386",
        "building with zig",
        "running on mps2-an386 by unicorn",
        "comparing with the numpy reference",
    ]
    assert str(steps[-2]) == "running on mps2-an386 by unicorn: 2 of 2"
    objects = len(firmware.project.manifest.sources) + 1
    assert sum(step.phase == "building with zig" for step in steps) == 1 + objects


def test_without_a_folder_nothing_stays(zig: str, temporary: Path) -> None:
    firmware = ferrule.compile(small_networks.dense(), toolchain=zig)
    folder = firmware.project.folder
    assert folder.is_relative_to(temporary)
    assert firmware.elf.is_file()
    firmware.run()
    del firmware
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_a_failure_leaves_nothing(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in ({"board": "mps2-an38"}, {"toolchain": "gcc"}, {"backends": ["CpuAc"]}, {"optimization": "O9"}):
        with pytest.raises(FerruleError, match="there is no"):
            ferrule.compile(small_networks.dense(), **arguments)  # type: ignore[arg-type]
    monkeypatch.setattr(ZigToolchain, "find", lambda _: None)
    with pytest.raises(MissingToolError) as caught:
        ferrule.compile(small_networks.dense())
    assert caught.value.hint == "pip install 'ferrule[run]', or use another compiler: toolchain=\"arm-none-eabi-gcc\""
    assert list(temporary.iterdir()) == []


def test_a_failed_build_leaves_nothing(zig: str, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = bare_metal.rendered

    def broken(values: Mapping[str, object], templates: Mapping[str, str]) -> dict[str, bytes]:
        return {name: text + b"#error stop" * (name == "main.c") for name, text in rendered(values, templates).items()}

    monkeypatch.setattr(bare_metal, "rendered", broken)
    with pytest.raises(BuildError, match="stop"):
        ferrule.compile(small_networks.dense(), toolchain=zig)
    assert list(temporary.iterdir()) == []


def test_engines_that_cannot_run(built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    firmware = built(small_networks.dense())
    with pytest.raises(FerruleError, match="no engine 'unicor'"):
        firmware.run(engine="unicor")
    with monkeypatch.context() as patched:
        patched.setattr("ferrule.emulation.unicorn.engine.find_spec", lambda _: None)
        with pytest.raises(MissingToolError, match="unicorn is missing"):
            firmware.run()
    boardless = replace(firmware, board=replace(firmware.board, qemu=None))
    monkeypatch.setattr("ferrule.emulation.qemu.engine.QemuEngine.missing", lambda _: None)
    with pytest.raises(FerruleError, match="engine qemu cannot run board mps2-an386"):
        boardless.run(engine="qemu")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("for (;;) {}", r"did not answer HELLO: 6 attempts of 0\.1 s each"),
        ("*(volatile unsigned *)0x70000000 = 1;", "0x7000_?0000|write|bus"),
        ('__asm volatile("udf #1");', "undefined"),
    ],
)
def test_a_firmware_that_hangs_or_faults(
    zig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, reason: str
) -> None:
    monkeypatch.setattr(session, "LinkSession", partial(LinkSession, timeout_s=0.1))
    firmware = ferrule.compile(small_networks.dense(), toolchain=zig, out=tmp_path / "project")
    source = tmp_path / "project" / "model" / "ferrule_dense.c"
    text = source.read_text(encoding="utf-8")
    head, brace, body = text.partition("\n{\n")
    assert "ferrule_dense_run(" in head
    source.write_text(f"{head}{brace}    {statement}\n{body}", encoding="utf-8")
    broken = replace(firmware, image=build_project(firmware.project, optimization="Os"))
    with pytest.raises(EngineError, match=reason) as caught:
        broken.run(timeout_s=0.5)
    report = caught.value.report
    assert report is not None
    assert report.symbol.startswith("ferrule_dense_run")
    assert report.registers["pc"] == report.pc
    assert "\n" in str(caught.value)


def test_both_engines_agree(built: Build, qemu: str) -> None:
    firmware = built(small_networks.two_by_two())
    by_qemu, by_unicorn = firmware.run(engine="qemu"), firmware.run()
    assert by_qemu.verdict is by_unicorn.verdict is ferrule.Verdict.EXACT
    assert [output.tolist() for output in by_qemu.outputs] == [output.tolist() for output in by_unicorn.outputs]
    assert by_qemu.document.count.resolution == 40
    assert math.isclose(by_qemu.count.per_inference, by_unicorn.count.per_inference, abs_tol=3 * 40)


def test_generated_bytes_do_not_depend_on_the_day(zig: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        ferrule.compile(small_networks.dense(), toolchain=zig, out=tmp_path / name)
    manifests = [(tmp_path / name / "ferrule-project.json").read_bytes() for name in ("one", "two")]
    assert manifests[0] == manifests[1]
