# SPDX-License-Identifier: Apache-2.0
"""The program in the RFC's first form, as users write it, runs a generated model on SoftNpu, Woofles and the core."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import cmsis_project
import pytest
from needs import require_cc, require_module, require_program
from rfc_main import BASE, ELSEWHERE, FOLDER, rfc_job, rfc_network, rfc_result, rfc_run, write_rfc_main
from zephyr_tree import TEST_TIMEOUT_S, zephyr_tree

import ferrule
from ferrule.backends.woofles.model import WooflesModel
from ferrule.boards import load_board
from ferrule.firmware import build_project, emit
from ferrule.testing import Adapter, build_adapter
from ferrule.testing.fakes import Fakes

pytestmark = pytest.mark.cc
SOFT_NODE = """
/ {
	soft_npu: soft-npu {
		compatible = "ferrule,soft-device";
		status = "okay";
	};
};
"""


def host(folder: Path, base: int) -> Adapter[Fakes]:
    """Compile the program and the model for this host, with the model of Woofles at BASE."""
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    artifact = emit(rfc_network(), rfc_job(base))
    for name, text in artifact.files.items():
        (folder / name).write_text(text)
    write_rfc_main("host", folder / "main.c")
    parts = [part for part in artifact.contributions if part.name != "src_c/device"]
    held = next(part for part in artifact.contributions if part.name == "src_c/device").part("held")
    linked = [folder / name for name in artifact.files if name.endswith(".c") and "_link" not in name]
    machine = build_adapter(
        "bare_metal",
        sources=[folder / "main.c", *linked, *(path for part in (*parts, held) for path in part.source_paths)],
        headers=["first_host.h", "ferrule_mynetwork_weights.h", "tvmgen_mynetwork.h"],
        include_dirs=[folder, FOLDER, *(path for part in artifact.contributions for path in part.include_paths)],
    )
    machine.attach(BASE, WooflesModel())
    shared = ["default_sram", *(f"y_{name}" for name in ("weights", "bias", "multipliers", "shifts"))]
    for value in (
        *(machine.address(f"ferrule_mynetwork_{name}") for name in shared),
        machine.lib.tvmgen_mynetwork_woofles_context(),
    ):
        machine.share(value)
    return machine


def test_on_the_host(tmp_path: Path) -> None:
    machine = host(tmp_path, ELSEWHERE)
    result = machine.ffi.cast("int8_t (*)[8]", machine.lib.first_result())
    machine.share(result)
    machine.lib.first_infer()
    assert bytes(machine.ffi.buffer(result)) == rfc_result()


@pytest.mark.emu
def test_on_bare_metal(tmp_path: Path, arm_gcc: str) -> None:
    """The driver gets the address that the program binds."""
    board = load_board("mps2-an386")
    project = ferrule.generate(rfc_network(), replace(rfc_job(ELSEWHERE), board=board, out=tmp_path / "project"))
    write_rfc_main("bare_metal", project.folder / "main.c")
    assert rfc_run(board, build_project(project).path) == rfc_result()


@pytest.mark.emu
@pytest.mark.nightly
def test_on_bare_metal_with_an_interrupt(tmp_path: Path, arm_gcc: str) -> None:
    """The program has the handler, so it is built without the project's devices.c."""
    board, line = load_board("mps2-an386"), 28
    job = rfc_job(interrupt=line, use_interrupt=1)
    folder = ferrule.generate(rfc_network(), replace(job, board=board, out=tmp_path / "project")).folder
    write_rfc_main("bare_metal", folder / "main.c", interrupt=line)
    makefile = (
        (folder / "Makefile")
        .read_text()
        .replace("SOURCES = main.c $(FERRULE_SOURCES)", "SOURCES = main.c $(filter-out devices.c,$(FERRULE_SOURCES))")
    )
    (folder / "Makefile").write_text(makefile)
    make = require_program("make", "apt-get install make")
    subprocess.run([make, "-C", str(folder)], capture_output=True, check=True, timeout=120)
    assert rfc_run(board, folder / "build" / "firmware.elf", interrupt=line) == rfc_result()


@pytest.mark.emu
@pytest.mark.slow
@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_on_zephyr(tmp_path: Path) -> None:
    """The driver gets the address in the devicetree, not that of the generated C."""
    tree = zephyr_tree()
    board = load_board(tree.mps2_board().replace("/", "-").replace("_", "-"))
    job = replace(rfc_job(), board=board, platform="zephyr", out=tmp_path / "project")
    project = ferrule.generate(rfc_network(), job)
    write_rfc_main("zephyr", project.folder / "src" / "main.c")
    for overlay in (project.folder / "boards").glob("*.overlay"):
        with overlay.open("a", encoding="utf-8") as file:
            file.write(SOFT_NODE)
    (project.folder / "model" / "tvmgen_mynetwork.c").write_text(
        (project.folder / "model" / "tvmgen_mynetwork.c").read_text().replace(f"{BASE}U", f"{ELSEWHERE}U")
    )
    elf = tree.build(project.folder, tmp_path / "build", tree.mps2_board())
    assert rfc_run(board, elf, link="uart1") == rfc_result()


@pytest.mark.emu
@pytest.mark.slow
def test_on_rtx5(tmp_path: Path) -> None:
    """An access struct has no address: that of the generated code is used."""
    cmsis_project.packs()
    project = cmsis_project.write(tmp_path / "project", rfc_network(), job=rfc_job())
    write_rfc_main("cmsis", project.folder / "main.c")
    assert rfc_run(load_board("mps2-an386"), cmsis_project.build(project.folder)) == rfc_result()
