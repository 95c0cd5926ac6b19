# SPDX-License-Identifier: Apache-2.0
"""`ferrule backends`, and the options --backends, --hint, --device, --backend-option and --config of other commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from imported import forget

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.backends.dynamic import Reason
from ferrule.backends.shared.allocators import DmaBufAllocator
from ferrule.formats import to_tflite
from ferrule.report.backend_listing import BackendListing
from ferrule.report.inspection import Inspection
from ferrule.report.inspection_parts import FinalPart

Ferrule = Callable[..., Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_backend"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without a ferrule.toml."""
    monkeypatch.chdir(tmp_path)


def listing(ferrule: Ferrule, *arguments: object) -> BackendListing:
    outcome = ferrule("backends", "--json", *arguments)
    assert outcome.code == 0, outcome.err
    return msgspec.json.decode(outcome.out, type=BackendListing)


def test_shipped_backends(ferrule: Ferrule) -> None:
    found = {backend.id: backend for backend in listing(ferrule).backends}
    cpu, reference = found["CpuAcc"], found["CpuRef"]
    assert (cpu.origin, cpu.place, cpu.reason) == ("shipped", "ferrule/backends/cpu_acc", "")
    assert (cpu.host, cpu.firmware, cpu.devices) == (True, True, ("CpuAcc",))
    assert (reference.host, reference.firmware) == (True, False)
    assert reference.capabilities == {
        "HasFp16": True,
        "RoundingRules": "onnx onnx-columns onnx-float onnx-uint8 single tflm",
    }


def test_handles_are_listed(ferrule: Ferrule) -> None:
    found = {backend.id: backend for backend in listing(ferrule, "CpuRef", "Woofles").backends}
    (host,), (woofles,) = found["CpuRef"].handles, found["Woofles"].handles
    assert (host.factory, host.maps, host.imports, host.exports) == ("Ferrule/Host", True, {"malloc": 1}, ("malloc",))
    assert (woofles.imports, woofles.capabilities) == ({"dma-buf": 1}, ("FALLBACK_IMPORT_MEMORY_REQUIRED",))
    lines = ferrule("backends", "--memory", "CpuRef", "Woofles").out.splitlines()
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]
    assert rows == [
        ["CpuRef", "Ferrule/Host", "yes", "malloc", "malloc", ""],
        ["Woofles", "Ferrule/Woofles", "yes", "dma-buf", "no", "fallback import memory required"],
    ]
    (told,) = [line for line in lines if line.startswith("dma-bufs of this machine: ")]
    assert DmaBufAllocator().name in told
    assert "dma-bufs" not in ferrule("backends", "--memory", "CpuRef").out


def test_options_are_listed(ferrule: Ferrule) -> None:
    found = {backend.id: backend for backend in listing(ferrule, "--config", EXAMPLE / "ferrule.toml").backends}
    assert found["CpuRef"].options == ()
    assert [(o.name, o.type, o.default, o.host, o.firmware) for o in found["CpuAcc"].options or ()] == [
        ("num_threads", "int", 0, True, False),
        ("instructions", "str", "auto", True, False),
    ]
    table = ferrule("backends", "--config", EXAMPLE / "ferrule.toml").out
    (row,) = [line for line in table.splitlines() if line.startswith("│ MyCustom.programs")]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells[1:5] == ["bool", "true", "true or false", "host and firmware"]


def test_the_table(ferrule: Ferrule) -> None:
    outcome = ferrule("backends", "--config", EXAMPLE / "ferrule.toml")
    assert outcome.code == 0
    (row,) = [line for line in outcome.out.splitlines() if line.startswith("│ MyCustom ")]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells[2:] == ["host, firmware", "adder0", "MaxElements=65536, RoundingRules=tflm onnx onnx-uint8"]


def test_a_configuration_in_the_current_folder(ferrule: Ferrule, tmp_path: Path) -> None:
    (tmp_path / "ferrule.toml").write_text(f'[backends]\nfolders = ["{EXAMPLE / "my_custom"}"]\n')
    (custom,) = listing(ferrule, "MyCustom").backends
    assert (custom.origin, custom.place, custom.reason) == ("folder", str(EXAMPLE / "my_custom"), "")
    assert custom.devices == ("MyCustom",)
    outcome = ferrule("backends", "MyCustum")
    assert (outcome.code, "did you mean MyCustom" in outcome.err) == (2, True)


def test_code_of_the_current_folder_runs_only_where_it_is_named(ferrule: Ferrule, tmp_path: Path) -> None:
    (tmp_path / "ferrule.toml").write_text('[backends]\nfolders = ["traced"]\n')
    (tmp_path / "traced").mkdir()
    (tmp_path / "traced" / "backend.toml").write_text('id = "Traced"\nfactory = "traced:make"\n')
    (tmp_path / "traced" / "__init__.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'trace')!r})")
    (row,) = [backend for backend in listing(ferrule).backends if backend.id == "Traced"]
    assert row.reason.startswith("not tried: it is code of ferrule.toml in this folder")
    assert row.origin == "folder"
    assert "not tried" in ferrule("backends").out
    assert ferrule("backends", "CpuRef").code == 0
    assert not (tmp_path / "trace").exists()
    (row,) = listing(ferrule, "Traced").backends
    assert "cannot be imported" in row.reason
    assert (tmp_path / "trace").exists()
    forget("traced")


def test_a_broken_folder_is_a_row(ferrule: Ferrule, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "backend.toml").write_text("id = 1")
    (tmp_path / "ferrule.toml").write_text('[backends]\nfolders = ["broken"]\n')
    rows = {backend.id: backend for backend in listing(ferrule).backends}
    assert "backend.toml" in rows["broken"].reason
    assert rows["CpuAcc"].reason == ""
    outcome = ferrule("backends")
    assert outcome.code == 0
    assert "not usable" in outcome.out


def test_refused_files_have_a_code(ferrule: Ferrule, tmp_path: Path) -> None:
    folder = tmp_path / "dynamic"
    folder.mkdir()
    (folder / "Arm_Empty_backend.so").write_bytes(b"")
    (folder / "Arm_Text_backend.so").write_text("not an object")
    (folder / "Arm_Loop_backend.so").symlink_to("Arm_Loop_backend.so")
    (folder / "Arm_Gone_backend.so").symlink_to("nothing")
    (folder / "unrelated.txt").write_text("")
    found = listing(ferrule, "--dynamic-path", folder)
    codes = {Path(row.path).name: row.code for row in found.refused}
    assert codes == {
        "Arm_Empty_backend.so": Reason.NOT_LOADABLE,
        "Arm_Text_backend.so": Reason.NOT_LOADABLE,
        "Arm_Loop_backend.so": Reason.LINK_LOOP,
        "Arm_Gone_backend.so": Reason.BROKEN_LINK,
    }
    assert all(row.message for row in found.refused)
    assert {"CpuAcc", "CpuRef"} <= {backend.id for backend in found.backends}
    table = ferrule("backends", "--dynamic-path", folder)
    assert (table.code, table.err) == (0, "")
    assert "link-loop" in table.out


def test_a_path_that_is_none(ferrule: Ferrule, tmp_path: Path) -> None:
    (row,) = listing(ferrule, "--dynamic-path", tmp_path / "none").refused
    assert (row.code, row.canonical, row.backend) == (Reason.PATH_MISSING, None, None)


# ---- inspect


def test_inspect_tells_who_takes_each_layer(ferrule: Ferrule, two_by_two: Path) -> None:
    arguments = ("inspect", two_by_two, "--backends", "MyCustom,CpuAcc", "--config", EXAMPLE / "ferrule.toml")
    outcome = ferrule(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    division = msgspec.json.decode(outcome.out, type=Inspection).division
    assert division is not None
    assert [(part.id, part.host, part.firmware) for part in division.backends] == [
        ("MyCustom", True, True),
        ("CpuAcc", True, True),
    ]
    add, largest = division.layers
    assert (add.backend, add.device) == ("CpuAcc", "CpuAcc")
    assert [(refusal.backend, refusal.reason) for refusal in add.refusals] == [
        ("MyCustom", "tensor 'right' has shape [1, 1, 3], expected [1, 2, 3]: the device does not broadcast")
    ]
    assert [refusal.reason for refusal in largest.refusals] == ["the device adds, it has no MAXIMUM"]
    table = ferrule(*arguments)
    assert "MyCustom: the device adds, it has no MAXIMUM" in table.out
    assert "MyCustom: 0 layers, runs on host and firmware" in table.out


def test_inspect_with_hints_and_devices(ferrule: Ferrule, two_by_two: Path) -> None:
    outcome = ferrule(
        *(
            "inspect",
            two_by_two,
            "--json",
            "--backends",
            "CpuRef",
            "--device",
            "cpu0=CpuAcc",
            "--device",
            "cpu1=CpuAcc",
        ),
        *("--hint", "add_0=CpuAcc/cpu1"),
    )
    division = msgspec.json.decode(outcome.out, type=Inspection).division
    assert division is not None
    assert [(part.backend, part.device) for part in division.layers] == [("CpuAcc", "cpu1"), ("CpuRef", "CpuRef")]


def test_a_backend_that_cannot_be_made_takes_nothing(ferrule: Ferrule, two_by_two: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "backend.toml").write_text('id = "Broken"\nfactory = "no_such_module:Broken"\n')
    (tmp_path / "ferrule.toml").write_text('[backends]\nfolders = ["broken"]\n')
    outcome = ferrule("inspect", two_by_two, "--json", "--backends", "Broken,CpuAcc")
    division = msgspec.json.decode(outcome.out, type=Inspection).division
    assert division is not None
    assert [(part.host, part.firmware) for part in division.backends] == [(False, False), (True, True)]
    for part in division.layers:
        assert part.backend == "CpuAcc"
        assert "No module named 'no_such_module'" in part.refusals[0].reason


def finals(ferrule: Ferrule, *arguments: object) -> dict[str, FinalPart]:
    outcome = ferrule("inspect", *arguments, "--config", EXAMPLE / "ferrule.toml", "--json")
    assert outcome.code == 0, outcome.err
    division = msgspec.json.decode(outcome.out, type=Inspection).division
    assert division is not None
    return {final.face: final for final in division.finals}


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """A model file: two consecutive additions, a RELU that fuses with the second one, and a MAXIMUM."""
    network = Network("sums")
    for name in ("a", "b"):
        network.add_input(TensorInfo(name, (1, 4), DataType.INT8, quantization=Quantization.of(0.1)))
    first = network.add_add_layer("a", "b", quantization=Quantization.of(0.1), name="first")
    second = network.add_add_layer(first, "b", quantization=Quantization.of(0.1), name="second")
    rectified = network.add_relu_layer(second, name="rectified")
    network.set_outputs([network.add_maximum_layer(rectified, "a", name="largest")])
    path = tmp_path / "sums.tflite"
    path.write_bytes(to_tflite(network))
    return path


def test_inspect_tells_who_finally_runs_what(ferrule: Ferrule, sums: Path) -> None:
    found = finals(ferrule, sums, "--backends", "MyCustom,CpuAcc")
    assert list(found) == ["host", "firmware"]
    program, *rest = found["firmware"].layers
    assert (program.type, program.backend, program.device) == ("PRE_COMPILED", "MyCustom", "adder0")
    assert program.replaces == ("add_0", "add_1")
    assert program.label
    assert [(layer.layer, layer.backend, layer.replaces) for layer in rest] == [("maximum_3", "CpuAcc", ())]
    assert found["firmware"].gone == ("relu_2",)
    assert "MEM_COPY" in {layer.type for layer in found["host"].layers}
    assert "MEM_COPY" not in {layer.type for layer in found["firmware"].layers}
    table = ferrule("inspect", sums, "--backends", "MyCustom,CpuAcc", "--config", EXAMPLE / "ferrule.toml").out
    (row,) = [line for line in table[table.index("in firmware") :].splitlines() if "PRE_COMPILED" in line]
    assert "MyCustom/adder0" in row
    assert "add_0, add_1" in row
    assert "fused, folded or deleted: relu_2" in table


def test_inspect_explains_the_crossings(ferrule: Ferrule, sums: Path) -> None:
    arguments = (sums, "--backends", "MyCustom,CpuRef", "--json")
    copied = finals(ferrule, *arguments)["host"].crossings
    imported = finals(ferrule, *arguments, "--import")["host"].crossings
    told = finals(ferrule, *arguments, "--import", "--fallback", "CpuRef=copy")["host"].crossings
    assert [part.strategy for part in copied] == ["copy"] * len(imported)
    assert {part.reason for part in copied} == {"import_enabled is off"}
    assert [part.strategy for part in imported] == ["export"] * len(copied)
    assert {part.reason for part in told} == {"the fallback of CpuRef is 'copy'"}
    assert {(part.source, part.target, part.size_bytes) for part in copied} >= {("MyCustom", "CpuRef", 4)}
    config = ("--config", EXAMPLE / "ferrule.toml")
    table = ferrule("inspect", sums, "--backends", "MyCustom,CpuRef", *config).out
    assert "what passes from one backend to another" in table
    assert "import_enabled is off" in table


def test_inspect_says_what_dma_bufs_are_on_this_machine(ferrule: Ferrule, sums: Path) -> None:
    network = Network("adder")
    x = network.add_input(TensorInfo("x", (1, 4), DataType.INT8, quantization=Quantization.of(0.1)))
    added = network.add_add_layer(x, x, quantization=Quantization.of(0.1))
    network.set_outputs([network.add_maximum_layer(added, x)])
    sums.write_bytes(to_tflite(network))
    arguments = (sums, "--backends", "Woofles,CpuRef")
    host = finals(ferrule, *arguments, "--json", "--import")["host"]
    written = [part for part in host.crossings if part.source]
    assert [(part.strategy, part.memory) for part in written] == [("fallback import", "malloc and dma-buf")]
    assert host.dma_bufs.startswith(DmaBufAllocator().name)
    assert f"dma-bufs of this machine: {DmaBufAllocator().name}" in ferrule("inspect", *arguments, "--import").out
    assert finals(ferrule, *arguments, "--json")["host"].dma_bufs == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--fallback", "CpuRef=move"], "--fallback CpuRef=move: expected Backend=import or Backend=copy"),
        (["--fallback", "CpuRef=copy", "--fallback", "CpuRef=copy"], "the fallback of backend 'CpuRef' is given twice"),
        (["--fallback", "Nobody=copy"], "Nobody"),
    ],
)
def test_a_wrong_fallback_is_refused(ferrule: Ferrule, sums: Path, given: list[str], message: str) -> None:
    outcome = ferrule("inspect", sums, "--backends", "CpuRef", *given)
    assert message in outcome.err + outcome.out


def test_inspect_hands_options_to_the_backends(ferrule: Ferrule, sums: Path) -> None:
    options = ("--backend-option", "MyCustom.programs=false", "--backend-option", "CpuAcc.num_threads=2")
    found = finals(ferrule, sums, "--backends", "MyCustom,CpuAcc", *options)
    assert [(layer.layer, layer.backend) for layer in found["firmware"].layers[:2]] == [
        ("add_0", "MyCustom"),
        ("add_1", "MyCustom"),
    ]
    assert found["firmware"].messages == ("option 'num_threads' of backend CpuAcc has no effect in firmware",)
    assert found["host"].messages == ()


def test_inspect_says_where_it_cannot_run(ferrule: Ferrule, sums: Path) -> None:
    found = finals(ferrule, sums, "--backends", "CpuRef")
    assert found["host"].problem == ""
    assert "CpuRef: it has no firmware face" in found["firmware"].problem
    assert found["firmware"].layers == ()
    assert "it cannot run in firmware: " in ferrule("inspect", sums, "--backends", "CpuRef").out


def test_no_backend_supports_it(ferrule: Ferrule, two_by_two: Path) -> None:
    outcome = ferrule("inspect", two_by_two, "--backends", "MyCustom", "--config", EXAMPLE / "ferrule.toml")
    assert outcome.code == 0
    assert "no backend" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--backends", "CpuAc"], "there is no backend 'CpuAc'"),
        (["--backends", "CpuAcc", "--hint", "nothing=CpuAcc"], "nothing"),
        (["--backends", "CpuAcc", "--hint", "add_0"], "--hint add_0: expected layer=Backend"),
        (["--backends", "CpuAcc", "--hint", "a=X", "--hint", "a=Y"], "the hint of layer 'a' is given twice"),
        (["--backends", "CpuAcc", "--device", "1=CpuAcc"], "'1' is not a device name"),
        (["--hint", "nothing=CpuAcc"], "nothing"),
        (["--backend-option", "CpuAcc.threads=1"], "backend CpuAcc has no option 'threads'"),
        (["--import"], "only valid with --backends"),
        (["--dynamic-path", "/nowhere"], "only valid with --backends"),
        (["--backends", "CpuAcc", "--backend-option", "num_threads=1"], "expected Backend.name=value"),
        (["--backends", "CpuAcc", "--backend-option", "CpuAcc.=1"], "expected Backend.name=value"),
        (["--backends", "CpuAcc", "--backend-option", "CpuAcc.num_threads"], "expected Backend.name=value"),
        (["--backends", "CpuAcc", "--backend-option", "CpuAc.num_threads=1"], "there is no backend 'CpuAc'"),
        (["--backends", "CpuAcc", "--backend-option", "CpuAcc.threads=1"], "backend CpuAcc has no option 'threads'"),
        (["--backends", "CpuRef", "--backend-option", "CpuRef.threads=1"], "options of CpuRef: none"),
        (
            ["--backends", "CpuAcc", "--backend-option", "CpuAcc.instructions=sse"],
            "option 'instructions' of backend CpuAcc is 'sse', expected one of auto, portable, amx, avx512, avx2, neon",
        ),
        (
            [*("--backends", "CpuAcc"), *("--backend-option", "CpuAcc.num_threads=1") * 2],
            "option 'num_threads' of backend CpuAcc is given twice",
        ),
        (["--backends", "CpuAcc", "--config", "no.toml"], "no.toml: No such file"),
    ],
)
def test_what_is_wrong_is_told(ferrule: Ferrule, two_by_two: Path, arguments: list[str], reason: str) -> None:
    outcome = ferrule("inspect", two_by_two, *arguments)
    assert outcome.code == 2
    assert reason in outcome.err


# ---- run and generate


@pytest.mark.cc
@pytest.mark.emu
def test_run_shows_devices(ferrule: Ferrule, dense: Path, zig: None) -> None:
    outcome = ferrule("run", dense, "-q", "--json", "-", "--device", "core0=CpuAcc")
    (layer,) = msgspec.json.decode(outcome.out)["layers"]
    assert (layer["backend"], layer["device"]) == ("CpuAcc", "core0")
    assert "CpuAcc/core0" in ferrule("run", dense, "--device", "core0=CpuAcc").out
    plain = ferrule("run", dense)
    assert "CpuAcc" in plain.out
    assert "CpuAcc/" not in plain.out


@pytest.mark.cc
@pytest.mark.emu
def test_run_warns_of_what_it_leaves_out(ferrule: Ferrule, dense: Path, zig: None) -> None:
    outcome = ferrule("run", dense, "--backends", "CpuRef,CpuAcc")
    assert outcome.code == 0
    assert "warning: backend CpuRef is left out: it has no firmware face" in outcome.err


@pytest.mark.cc
@pytest.mark.emu
def test_run_takes_options(ferrule: Ferrule, sums: Path, zig: None) -> None:
    arguments = ("run", sums, "--backends", "MyCustom,CpuAcc", "--config", EXAMPLE / "ferrule.toml", "-q")
    outcome = ferrule(*arguments, "--json", "-", "--backend-option", "MyCustom.programs=false")
    assert outcome.code == 0, outcome.err
    assert [layer["type"] for layer in msgspec.json.decode(outcome.out)["layers"]] == ["ADD", "ADD", "MAXIMUM"]
    warned = ferrule(*arguments, "--backend-option", "CpuAcc.instructions=portable")
    assert warned.err == "warning: option 'instructions' of backend CpuAcc has no effect in firmware\n"


def test_generate_takes_a_configuration(ferrule: Ferrule, two_by_two: Path, tmp_path: Path) -> None:
    arguments = ("--backends", "MyCustom,CpuAcc", "--config", EXAMPLE / "ferrule.toml", "--out", tmp_path / "project")
    assert ferrule("generate", two_by_two, *arguments).code == 0
    assert (tmp_path / "project" / "ferrule-project.json").is_file()


def test_generate_takes_options(ferrule: Ferrule, sums: Path, tmp_path: Path) -> None:
    arguments = ("--backends", "MyCustom,CpuAcc", "--config", EXAMPLE / "ferrule.toml")
    for value in ("true", "false"):
        option = ("--backend-option", f"MyCustom.programs={value}")
        assert ferrule("generate", sums, *arguments, *option, "--out", tmp_path / value).code == 0
    first, second = ((tmp_path / value / "model" / "ferrule_sums.c").read_text() for value in ("true", "false"))
    assert first != second


@pytest.mark.parametrize("command", ["generate", "inspect", "run"])
def test_no_fallback(ferrule: Ferrule, sums: Path, tmp_path: Path, command: str) -> None:
    arguments = ["--backends", "MyCustom,CpuAcc", "--config", EXAMPLE / "ferrule.toml", "--no-fallback"]
    arguments += ["--out", tmp_path / "project"] if command == "generate" else []
    outcome = ferrule(command, sums, *arguments)
    assert outcome.code == 2
    assert "(MAXIMUM) cannot run on its first backend; MyCustom: " in outcome.err
    assert "without --no-fallback" in outcome.err or command == "inspect"
    assert not (tmp_path / "project").exists()
