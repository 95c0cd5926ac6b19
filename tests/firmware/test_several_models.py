# SPDX-License-Identifier: Apache-2.0
"""Projects with several models: names, devices, library and identities."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import device_networks
import pytest
from children import ran
from device_networks import HINTS, NPU0, NPU1
from needs import lacking, require_program
from small_networks import dense, int8_input, two_by_two

from ferrule import Network
from ferrule.backends import Device
from ferrule.boards import load_board
from ferrule.codegen import Program
from ferrule.errors import FerruleError
from ferrule.firmware import (
    PLATFORMS,
    Job,
    ProjectFiles,
    ProjectRequest,
    divide_all,
    emit,
    emit_program,
    write_project,
)
from ferrule.firmware.identification import project_files
from ferrule.firmware.sbom import sbom

STAND_IN = Path(__file__).parents[1] / "support" / "zephyr_cmake"
ALL = sorted(PLATFORMS)
TOGETHER = Job(hints={**HINTS, "sum": "SoftNpu/npu1", "largest": "SoftNpu/npu0"}, devices=(NPU0, NPU1))


def files(program: Program, platform: str) -> ProjectFiles:
    request = ProjectRequest(program=program, board=load_board("mps2-an386"), toolchain="zig", optimization="O2")
    return PLATFORMS[platform].files(request)


def text_of(found: ProjectFiles, name: str) -> str:
    return {**found.generated, **found.starters}[name].decode()


def sharing() -> Program:
    """Return `crossing` and a network that uses its devices in the other order."""
    return emit_program([device_networks.crossing(), two_by_two()], TOGETHER)


def test_a_project_has_all_models_and_the_library_once() -> None:
    program = emit_program([dense(), two_by_two()])
    assert (program.symbol, program.name) == ("dense_two_by_two", "dense and two by two")
    found = files(program, "bare-metal")
    assert {"model/ferrule_dense.c", "model/ferrule_two_by_two.c"} <= set(found.code.sources)
    assert len(set(found.code.sources)) == len(found.code.sources)
    alone = [set(files(Program(artifacts=(each,)), "bare-metal").code.sources) for each in program.artifacts]
    assert set(found.code.sources) == alone[0] | alone[1]
    assert found.code.defines == {"FERRULE_LINK_MODELS": "1"}


@pytest.mark.parametrize("platform", ALL)
def test_each_device_is_made_once(platform: str) -> None:
    program = sharing()
    assert [(use.name, use.index) for use in program.devices] == [("npu0", 0), ("npu1", 1)]
    assert [use.name for use in program.artifacts[1].devices] == ["npu1", "npu0"]
    found = files(program, platform)
    c = text_of(found, "zephyr/devices.c" if platform == "zephyr" else "devices.c")
    for name in ("npu0", "npu1"):
        assert c.count(f"static ferrule_device_t {name}_device;") == 1
        assert c.count(f".{name} = &{name}_device") == 2
    assert "int32_t ferrule_crossing_two_by_two_devices_start(void)\n" in c
    main = text_of(found, "src/main.c" if platform == "zephyr" else "main.c")
    for symbol in ("crossing", "two_by_two"):
        assert f"const struct ferrule_{symbol}_devices ferrule_{symbol}_default_devices = {{" in c
        assert f"ferrule_{symbol}_link_use(&ferrule_{symbol}_default_devices);" in main
    assert "ferrule_link_offer(" in main


@pytest.mark.parametrize("platform", ALL)
def test_the_program_is_as_the_formatter_has_it(platform: str) -> None:
    program = shutil.which("clang-format", path=str(Path(sys.executable).parent))
    if program is None:
        lacking("clang-format", "pip install -e '.[dev]'")
        return
    found = files(sharing(), platform)
    style = Path(__file__).parents[2] / ".clang-format"
    names = [name for name in (*found.generated, *found.starters) if Path(name).name in {"main.c", "devices.c"}]
    assert len(names) == 2
    for name in names:
        c = text_of(found, name)
        argv = [program, f"--style=file:{style}"]
        assert subprocess.run(argv, input=c.encode(), capture_output=True, check=True).stdout.decode() == c, name


def test_each_model_has_an_identity_with_the_sources_of_the_project() -> None:
    program = emit_program([dense(), two_by_two()])
    identities, found = project_files(program, Job())
    assert len({each.sources for each in identities}) == 1
    for artifact, identity in zip(program.artifacts, identities, strict=True):
        alone = emit(dense() if artifact.symbol == "dense" else two_by_two())
        assert (identity.model, identity.plan) == (alone.identity.model, alone.identity.plan)
        assert f"ferrule_{artifact.symbol}_identity = {{" in text_of(
            found, f"model/ferrule_{artifact.symbol}_identity.c"
        )
    bill = json.loads(sbom(program, identities, found.contributions, found.generated, found.starters, {}, None))
    assert [part["bom-ref"] for part in bill["components"][:2]] == ["model/dense", "model/two_by_two"]
    assert bill["dependencies"][0]["dependsOn"][:2] == ["model/dense", "model/two_by_two"]


def test_models_of_one_name_are_refused() -> None:
    with pytest.raises(FerruleError, match="'dense' and 'dense' both have the C identifier dense") as caught:
        emit_program([dense(), dense(seed=2)])
    assert caught.value.hint is not None
    assert "ferrule.load(file, name)" in caught.value.hint


def named(name: str) -> Network:
    network = Network(name)
    network.add_input(int8_input("x", 1, 6))
    network.add_relu_layer("x", name="y")
    network.set_outputs(["y"])
    return network


@pytest.mark.parametrize("name", ["dense_weights", "dense_link"])
def test_models_whose_c_names_clash_are_refused(name: str) -> None:
    with pytest.raises(FerruleError, match=f"may also be one of model '{name}', whose names start with ferrule_{name}"):
        emit_program([dense(), named(name)])
    assert emit_program([dense(), named("dense_small")]).symbol == "dense_dense_small"


def test_many_models_have_a_short_symbol() -> None:
    program = emit_program([named(f"model_number_{index}") for index in range(4)])
    assert program.symbol == "model_number_0_and_3_more"


def test_a_hint_is_for_the_models_that_have_its_layer() -> None:
    networks = [dense(), named("other")]
    first, second = divide_all(networks, Job(hints={"y": "SoftNpu"}))
    assert {first.assignment["y"].backend, second.assignment["y"].backend} == {"SoftNpu"}
    first, second = divide_all([dense(), two_by_two()], Job(hints={"sum": "SoftNpu"}))
    assert {each.backend for each in first.assignment.values()} == {"CpuAcc"}
    assert second.assignment["sum"].backend == "SoftNpu"
    with pytest.raises(FerruleError, match="the layer 'z', which none of the 2 models has"):
        divide_all(networks, Job(hints={"z": "SoftNpu"}))


def test_a_device_has_one_place_for_all_models() -> None:
    """Each model uses one of two devices; the second gets the second socket, although its model uses no other."""
    devices = tuple(Device(name=name, backend=device_networks.NPU0.backend) for name in ("npu0", "npu1"))
    job = Job(hints={"y": "SoftNpu/npu1", "sum": "SoftNpu/npu0"}, devices=devices)
    program = emit_program([dense(), two_by_two()], job)
    assert [(use.device.name, use.index) for use in program.devices] == [("npu1", 0), ("npu0", 1)]


def test_models_that_disagree_on_a_device_are_refused() -> None:
    job = Job(hints={"y": "SoftNpu/npu0"}, devices=(NPU0,))
    one = emit(dense(), job)
    other = emit(named("other"), replace(job, devices=(replace(NPU0, binding={"memory_bytes": 2048}),)))
    with pytest.raises(FerruleError, match="device 'npu0' is not the same for all models"):
        Program(artifacts=(one, other))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two projects for Zephyr, the first of which is an application with both of them as modules."""
    found = []
    for network in (dense(), two_by_two()):
        job = Job(platform="zephyr", out=tmp_path / network.name.replace(" ", "_"))
        found.append(write_project(emit(network, job), job).folder)
    first, second = found
    lists = first / "CMakeLists.txt"
    own = "EXTRA_ZEPHYR_MODULES ${CMAKE_CURRENT_SOURCE_DIR}"
    assert lists.read_text().count(own) == 1
    lists.write_text(lists.read_text().replace(own, f"{own} {second}"))
    return first, second


def configured(application: Path, build: Path) -> subprocess.CompletedProcess[str]:
    require_program("cmake", "apt-get install cmake")
    symbols = ("FERRULE", "FERRULE_LINK", "FERRULE_UART", "FERRULE_MODEL_DENSE", "FERRULE_MODEL_TWO_BY_TWO")
    options = (f"-DZephyr_DIR={STAND_IN}", *(f"-DCONFIG_{symbol}=y" for symbol in symbols))
    argv = ["cmake", "-S", str(application), "-B", str(build), *options]
    return ran(argv, timeout=120)


@pytest.mark.cc
def test_two_zephyr_modules_share_their_library(folders: tuple[Path, Path], tmp_path: Path) -> None:
    done = configured(folders[0], tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "build" / "record.txt").read_text().splitlines()
    entries = [line.split(" ", 1) for line in lines]
    assert [name for kind, name in entries if kind == "library"] == ["ferrule", "ferrule_dense", "ferrule_two_by_two"]
    sources = [Path(name) for kind, name in entries if kind == "source"]
    places = [next(path.relative_to(each) for each in folders if path.is_relative_to(each)) for path in sources]
    assert len(set(places)) == len(places)
    names = {path.name for path in places}
    assert {"fully_connected_octet_s8.c", "sum_s8.c", "ferrule_dense.c", "ferrule_two_by_two.c"} <= names
    assert sorted(Path(name).name for kind, name in entries if kind == "linker") == ["accelerator.ld", "weights.ld"]


@pytest.mark.cc
def test_zephyr_modules_of_two_versions_are_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with (folders[1] / "lib" / "include" / "ferrule" / "link.h").open("a") as header:
        header.write("/* another version */\n")
    done = configured(folders[0], tmp_path / "build")
    assert done.returncode != 0
    message = " ".join(done.stderr.split())
    assert f"{folders[0]}/lib/include/ferrule/link.h and {folders[1]}/lib/include/ferrule/link.h differ" in message


def test_a_library_has_one_model() -> None:
    with pytest.raises(FerruleError, match="a library has one model, 2 are given") as caught:
        project_files(emit_program([dense(), two_by_two()]), Job(platform="library"))
    assert caught.value.hint == "generate a library for each: one program can have several"


def test_kconfig_of_the_library_is_read_once() -> None:
    kconfig = text_of(files(emit_program([dense()]), "zephyr"), "zephyr/Kconfig")
    assert 'orsource "../lib/platforms/zephyr/Kconfig$(FERRULE_KCONFIG)"\nFERRULE_KCONFIG := .read\n' in kconfig
