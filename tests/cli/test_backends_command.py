# SPDX-License-Identifier: Apache-2.0
"""`ferrule backends`, and --backends, --hint, --device and --config of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ferrule.backends.dynamic import Reason
from ferrule.report.backend_listing import BackendListing
from ferrule.report.inspection import Inspection

Ferrule = Callable[..., Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_backend"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder without a ferrule.toml."""
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
    assert reference.capabilities["ExternallyManagedMemory"] is True


def test_the_table(ferrule: Ferrule) -> None:
    outcome = ferrule("backends", "--config", EXAMPLE / "ferrule.toml")
    assert outcome.code == 0
    (row,) = [line for line in outcome.out.splitlines() if line.startswith("│ MyCustom")]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells[2:] == ["host, firmware", "adder0", "MaxElements=65536"]


def test_a_configuration_in_the_current_folder(ferrule: Ferrule, tmp_path: Path) -> None:
    (tmp_path / "ferrule.toml").write_text(f'[backends]\nfolders = ["{EXAMPLE / "my_custom"}"]\n')
    (custom,) = [backend for backend in listing(ferrule).backends if backend.id == "MyCustom"]
    assert (custom.origin, custom.place) == ("folder", str(EXAMPLE / "my_custom"))
    assert custom.devices == ("MyCustom",)


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


def test_nobody_takes_it(ferrule: Ferrule, two_by_two: Path) -> None:
    outcome = ferrule("inspect", two_by_two, "--backends", "MyCustom", "--config", EXAMPLE / "ferrule.toml")
    assert outcome.code == 0
    assert "nobody" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--backends", "CpuAc"], "there is no backend 'CpuAc'"),
        (["--backends", "CpuAcc", "--hint", "nothing=CpuAcc"], "nothing"),
        (["--backends", "CpuAcc", "--hint", "add_0"], "--hint add_0: expected layer=Backend"),
        (["--backends", "CpuAcc", "--hint", "a=X", "--hint", "a=Y"], "layer 'a' has a hint already"),
        (["--backends", "CpuAcc", "--device", "1=CpuAcc"], "'1' is no device name"),
        (["--hint", "add_0=CpuAcc"], "of no use without --backends"),
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


def test_generate_takes_a_configuration(ferrule: Ferrule, two_by_two: Path, tmp_path: Path) -> None:
    arguments = ("--backends", "MyCustom,CpuAcc", "--config", EXAMPLE / "ferrule.toml", "--out", tmp_path / "project")
    assert ferrule("generate", two_by_two, *arguments).code == 0
    assert (tmp_path / "project" / "ferrule-project.json").is_file()
