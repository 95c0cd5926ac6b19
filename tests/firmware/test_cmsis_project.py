# SPDX-License-Identifier: Apache-2.0
"""Generated projects for CMSIS: the files for CMSIS-Toolbox and for CMake, which must agree."""

from __future__ import annotations

import os
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import cmsis_project
import device_networks
import pytest
import small_networks
from formatting import check_formatted
from needs import require_module, require_variable

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.boards import Board, load_board
from ferrule.errors import FerruleError
from ferrule.firmware import Job, Project
from ferrule.firmware.platforms.cmsis_board import cmsis_board
from ferrule.firmware.platforms.cmsis_solution import COMPONENTS, solution_yaml
from ferrule.resources import root

BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
KINDS = ("csolution", "cproject", "clayer", "cdefault")
# Top-level keys of each kind of file and the keys allowed below ("YML Input Format" of Open-CMSIS-Pack).
KEYS = {
    "solution": {
        *("description", "created-by", "created-for", "cdefault", "compiler", "language-C", "packs"),
        *("target-types", "build-types", "projects"),
    },
    "project": {"description", "groups", "components", "layers", "output"},
    "layer": {"type", "description", "groups", "add-path", "define", "linker"},
    "default": {"misc"},
}


def project(folder: Path, network: Network | None = None, **options: Any) -> Project:  # noqa: ANN401 handed on
    return cmsis_project.write(folder, network or small_networks.dense(), **options)


def with_devices(folder: Path) -> Project:
    return project(folder, device_networks.crossing(), job=device_networks.job())


def with_interrupt(folder: Path, **binding: int) -> Project:
    device = Device(name="dog", backend=BackendId("Woofles"), binding={"use_interrupt": 1, **binding})
    return project(folder, job=Job(backends=("Woofles", "CpuAcc"), devices=(device,)))


def behind_usart(folder: Path) -> Project:
    device = Device(name="far", backend=BackendId("UartWoofles"), binding={"uart": "uart2", "baud": 9600})
    return project(folder, job=Job(backends=("UartWoofles", "CpuAcc"), devices=(device,)))


KINDS_OF_PROJECT = {
    "core": project,
    "devices": with_devices,
    "interrupt": with_interrupt,
    "usart": behind_usart,
}


def documents(folder: Path) -> dict[str, Any]:
    """Return the content of each YAML file, by name."""
    return {path.name: cmsis_project.read_yaml(path) for path in sorted(folder.glob("*.yml"))}


def kind_of(name: str) -> str:
    return name.removesuffix(".yml").rpartition(".")[2]


@pytest.mark.parametrize("board", BOARDS)
def test_the_files_have_what_they_may_have(board: str, tmp_path: Path) -> None:
    found = documents(project(tmp_path / "project", board=board).folder)
    assert sorted(found) == [
        *("cdefault.yml", "dense.clayer.yml", "dense.cproject.yml", "dense.csolution.yml", "platform.clayer.yml")
    ]
    for name, document in found.items():
        ((top, content),) = document.items()
        assert (
            top
            == {"csolution": "solution", "cproject": "project", "clayer": "layer", "cdefault": "default"}[kind_of(name)]
        )
        assert set(content) <= KEYS[top], name


def test_switches_are_words(tmp_path: Path) -> None:
    folder = project(tmp_path / "project").folder
    solution = documents(folder)["dense.csolution.yml"]["solution"]
    assert [each["debug"] for each in solution["build-types"]] == ["off", "on"]
    text = (folder / "dense.csolution.yml").read_text(encoding="utf-8")
    assert 'debug: "on"' in text  # quoted, so that a reader of YAML 1.1 keeps a string


@pytest.mark.parametrize(
    ("optimization", "word"), [("O3", "speed"), ("O2", "balanced"), ("Os", "size")], ids=["O3", "O2", "Os"]
)
def test_the_level_of_optimization(optimization: str, word: str, tmp_path: Path) -> None:
    folder = project(tmp_path / "project", optimization=optimization).folder
    release = documents(folder)["dense.csolution.yml"]["solution"]["build-types"][0]
    assert (release["type"], release["optimize"]) == ("Release", word)
    assert f"-{optimization}" in cmsis_project.cmake_lists(folder)["FERRULE_COMPILE_OPTIONS"]


@pytest.mark.parametrize(
    ("board", "device", "processor"),
    [
        ("mps2-an385", "ARM::ARMCM3", {"fpu": "off"}),
        ("mps2-an386", "ARM::ARMCM4", None),
        ("mps2-an500", "ARM::ARMCM7", None),
        ("mps2-an505", "ARM::ARMCM33", {"trustzone": "secure-only"}),
    ],
)
def test_the_target(board: str, device: str, processor: dict[str, str] | None, tmp_path: Path) -> None:
    solution = documents(project(tmp_path / "project", board=board).folder)["dense.csolution.yml"]["solution"]
    (target,) = solution["target-types"]
    assert (target["type"], target["device"], target.get("processor")) == (board, device, processor)


def test_the_compiler_is_gcc(tmp_path: Path) -> None:
    assert project(tmp_path / "one").notes == ()
    (note,) = project(tmp_path / "two", toolchain="zig").notes
    assert note == "it is built by arm-none-eabi-gcc, not by zig"
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    other = [name for name in files if (tmp_path / "one" / name).read_bytes() != (tmp_path / "two" / name).read_bytes()]
    assert [name.name for name in other] == ["ferrule-project.json"]


def test_patterns_of_names(tmp_path: Path) -> None:
    found = documents(project(tmp_path / "project").folder)
    solution = found["dense.csolution.yml"]["solution"]
    assert re.fullmatch(r"CMSIS-Toolbox@\d+\.\d+\.\d+", solution["created-for"])
    for pack in solution["packs"]:
        assert re.fullmatch(r"ARM::[\w-]+@\^\d+\.\d+\.\d+", pack["pack"])
    for each in (*solution["target-types"], *solution["build-types"]):
        assert re.fullmatch(r"[\w-]{1,32}", each["type"])
    components = [each["component"] for each in found["dense.cproject.yml"]["project"]["components"]]
    assert components == list(COMPONENTS)
    assert len({*components}) == len(components)


@pytest.mark.parametrize("make", KINDS_OF_PROJECT.values(), ids=KINDS_OF_PROJECT)
def test_cmake_builds_what_csolution_builds(make: Any, tmp_path: Path) -> None:  # noqa: ANN401 one of these
    folder = make(tmp_path / "project").folder
    name = next(folder.glob("*.csolution.yml")).name.removesuffix(".csolution.yml")
    found = documents(folder)
    (reference,) = found[f"{name}.csolution.yml"]["solution"]["projects"]
    assert reference["project"] == f"./{name}.cproject.yml"
    content = found[f"{name}.cproject.yml"]["project"]
    layers = [found[each["layer"].removeprefix("./")]["layer"] for each in content["layers"]]
    files = [file for each in (content, *layers) for file in cmsis_project.listed(each)]
    assert len(set(files)) == len(files)
    assert all((folder / file).is_file() for file in files)
    lists = cmsis_project.cmake_lists(folder)
    assert sorted(files) == sorted([*lists["FERRULE_SOURCES"], "main.c"])
    every = {path.relative_to(folder).as_posix() for path in folder.rglob("*.c")}
    assert set(files) == every  # the folder has no other C file
    paths = [path.removeprefix("./") for each in layers for path in each["add-path"]]
    assert sorted(paths) == sorted(set(lists["FERRULE_INCLUDE_DIRS"]) - {"cmake"})
    assert all((folder / path).is_dir() for path in paths)
    defines = [
        f"{key}={value}" for each in layers for define in each.get("define", []) for key, value in define.items()
    ]
    assert defines == [each for each in lists["FERRULE_DEFINITIONS"] if each != "_RTE_"]
    scripts = [script["script"] for each in layers for script in each.get("linker", [])]
    assert scripts == ["./firmware.ld"]
    assert lists["FERRULE_LINK_OPTIONS"][-1].endswith("/firmware.ld")


def test_the_options_are_the_same_too(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", optimization="O2").folder
    (misc,) = documents(folder)["cdefault.yml"]["default"]["misc"]
    lists = cmsis_project.cmake_lists(folder)
    assert ["-std=c11", *misc["C"], "-O2"] == lists["FERRULE_COMPILE_OPTIONS"]
    assert misc["Link"] == lists["FERRULE_LINK_OPTIONS"][:-1]
    assert "-ffp-contract=off" in misc["C"]


def test_the_models_layer_needs_nothing_of_the_platform(tmp_path: Path) -> None:
    layer = documents(with_devices(tmp_path / "project").folder)["crossing.clayer.yml"]["layer"]
    files = list(cmsis_project.listed(layer))
    assert not [name for name in files if "cmsis" in name or "link" in Path(name).parts or name.startswith("board/")]
    assert "lib/src_c/device/held.c" in files  # the executor calls it
    assert any(name.startswith("lib/backends/soft_npu/") for name in files)


def test_counter_that_takes_systick_is_left_out(tmp_path: Path) -> None:
    folder = project(tmp_path / "project").folder
    assert not (folder / "lib/src_c/runtime/counter.c").exists()
    assert (folder / "lib/platforms/cmsis/src/cmsis_counter.c").is_file()


def test_the_program_begins_at_the_reset_handler(tmp_path: Path) -> None:
    folder = project(tmp_path / "project").folder
    assert "ENTRY(Reset_Handler)\n" in (folder / "firmware.ld").read_text(encoding="utf-8")


def test_devices_are_made_and_bound(tmp_path: Path) -> None:
    folder = with_devices(tmp_path / "project").folder
    text = (folder / "devices.c").read_text(encoding="utf-8")
    for name in ("npu0", "npu1"):
        assert f"ferrule_device_bind(&{name}_device, &soft_npu_driver, &{name}_context)" in text
    assert "ferrule_crossing_devices_start()" in (folder / "main.c").read_text(encoding="utf-8")
    assert not (project(tmp_path / "other").folder / "devices.c").exists()


def test_interrupts_of_devices_reach_their_drivers(tmp_path: Path) -> None:
    folder = with_interrupt(tmp_path / "project", interrupt=28).folder
    startup = (folder / "board" / "startup.c").read_text(encoding="utf-8")
    assert "    [44] = {.handler = Interrupt28_Handler},\n" in startup
    assert "ferrule_vectors" not in startup.replace(".ferrule_vectors", "")
    devices = (folder / "devices.c").read_text(encoding="utf-8")
    assert "    if (!woofles_interrupt(&dog_context)) {\n        NVIC_DisableIRQ((IRQn_Type)28);" in devices
    assert "NVIC_EnableIRQ((IRQn_Type)28);" in devices
    assert "    Interrupt28_IRQn = 28,\n" in (folder / "cmake" / "device.h").read_text(encoding="utf-8")


def test_a_device_behind_a_usart(tmp_path: Path) -> None:
    text = (behind_usart(tmp_path / "project").folder / "devices.c").read_text(encoding="utf-8")
    assert "extern ARM_DRIVER_USART Driver_USART2;\nFERRULE_CMSIS_USART(far_usart, &Driver_USART2, 9600u);\n" in text
    words = " ".join(text.split())
    bound = "ferrule_device_bind_usart(&far_device, &far_usart, &uart_woofles_driver, &far_context);"
    assert f"far_transport = ferrule_cmsis_usart_transport(&far_usart); status = {bound}" in words


def test_a_usart_without_a_driver() -> None:
    board = load_board("mps2-an386")
    other = replace(board.link_uart, name="uart9", type="UART.PL011")
    with pytest.raises(FerruleError, match=r"no CMSIS-Driver for UART 'uart9' of class UART\.PL011"):
        cmsis_board(board).usart(other)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (0, "interrupt 0 is used by both uart0 and dog"),
        (240, "device 'dog' has interrupt 240, which does not exist: mps2-an386 has 0 to 31"),
    ],
)
def test_interrupts_that_cannot_be(line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=message):
        with_interrupt(tmp_path / "project", interrupt=line)


@pytest.mark.parametrize("name", ["on", "null", "a b: c #d", 'quo"te', "comment */ end", "größe", "1", "- x", "*ref"])
def test_any_name_of_a_model_will_do(name: str, tmp_path: Path) -> None:
    network = Network(name)
    network.add_input(small_networks.int8_input("x", 1, 8))
    network.add_relu_layer("x", name="y")
    network.set_outputs(["y"])
    folder = project(tmp_path / "project", network).folder
    found = documents(folder)
    (solution,) = [value["solution"] for key, value in found.items() if key.endswith(".csolution.yml")]
    assert isinstance(solution["description"], str)
    assert (folder / solution["projects"][0]["project"]).is_file()
    assert (folder / "main.c").read_text(encoding="utf-8").count("*/") == 6  # comments end in the right place


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = with_devices(tmp_path / "one").folder, with_devices(tmp_path / "two").folder
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert [name for name in names if (one / name).read_bytes() != (two / name).read_bytes()] == []


def test_no_path_of_this_machine_is_in_it(tmp_path: Path) -> None:
    folder = project(tmp_path / "project").folder
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [place for place in (tmp_path, root(), Path.home()) if str(place).encode() in data], path


def test_what_is_the_users_stays(tmp_path: Path) -> None:
    folder = project(tmp_path / "project").folder
    mine = ("main.c", "CMakeLists.txt", "README.md", "dense.csolution.yml", "dense.cproject.yml")
    for name in mine:
        (folder / name).write_text("mine", encoding="utf-8")
    again = project(folder)
    assert {each.name for each in again.kept} == {*mine}
    assert all((folder / name).read_text(encoding="utf-8") == "mine" for name in mine)
    (folder / "platform.clayer.yml").write_text("mine", encoding="utf-8")
    with pytest.raises(FerruleError, match=r"changed by hand.*platform\.clayer\.yml"):
        project(folder)


@pytest.mark.parametrize("make", KINDS_OF_PROJECT.values(), ids=KINDS_OF_PROJECT)
def test_generated_c_is_formatted(make: Any, tmp_path: Path) -> None:  # noqa: ANN401 one of these
    folder = make(tmp_path / "project").folder
    files = [path for path in folder.rglob("*.[ch]") if path.relative_to(folder).parts[0] not in {"lib", "model"}]
    assert len(files) >= 6
    check_formatted(files)


# ---- boards


def own_board(folder: Path, name: str = "mine", **changes: str) -> Path:
    """Return a copy of mps2-an386, with texts in its platform description replaced: old text = new text."""
    board, shared = folder / "boards" / name, folder / "boards" / "mps2"
    shutil.copytree(root() / "boards" / "mps2-an386", board)
    shutil.copytree(root() / "boards" / "mps2", shared)
    path = shared / "mps2.repl"
    text = path.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return board


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("a board", {}, "cannot be a target type"),
        ("b" * 33, {}, "cannot be a target type"),
        ("mine", {"UART.CMSDK_APB_UART": "UART.PL011"}, "no CMSIS-Driver for its link UART 'uart0'"),
        ("mine", {"RxInterrupt": "Interrupt"}, "UART 'uart0' has no RxInterrupt"),
        ("mine", {"TxInterrupt": "Interrupt"}, "UART 'uart0' has no TxInterrupt"),
    ],
)
def test_boards_that_cannot_be(name: str, changes: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=message) as caught:
        cmsis_board(load_board(own_board(tmp_path, name, **changes)))
    assert caught.value.hint


def test_registers_that_the_board_needs_are_set_up(tmp_path: Path) -> None:
    board = own_board(tmp_path)
    with (board / "board.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[setup]]\naddress = 0x40009010\nclear = 0xFF\nset = 0x20\nwhy = "speed of uart4"\n')
    text = (project(tmp_path / "project", board=board).folder / "board" / "system.c").read_text(encoding="utf-8")
    assert "    /* speed of uart4 */\n    {0x40009010U, 0x000000ffU, 0x00000020U},\n" in text
    assert text.index("SCB->CPACR") < text.rindex("set_up_registers();")
    check_formatted(list((tmp_path / "project" / "board").glob("*.c")))
    with (board / "board.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[setup]]\naddress = 0x40009014\nset = 0x1\nwait = 0x2\nwhy = "ready"\n')
    waiting = project(tmp_path / "waiting", board=board).folder / "board" / "system.c"
    rows = waiting.read_text(encoding="utf-8")
    assert "    {0x40009010U, 0x000000ffU, 0x00000020U, 0x00000000U},\n" in rows
    assert "    {0x40009014U, 0x00000000U, 0x00000001U, 0x00000002U},\n" in rows
    assert "(*at & each->wait) != each->wait" in rows
    check_formatted([waiting])
    other = project(tmp_path / "other").folder / "board" / "system.c"
    assert "set_up_registers" not in other.read_text(encoding="utf-8")


def test_a_board_whose_uart_has_no_driver() -> None:
    with pytest.raises(
        FerruleError, match="board stm32f4_discovery: there is no CMSIS-Driver for its link UART 'usart2'"
    ):
        cmsis_board(load_board("stm32f4_discovery"))


def changed_core(board: str, **changes: Any) -> Board:  # noqa: ANN401 fields of Cpu
    found = load_board(board)
    return replace(found, cpu=replace(found.cpu, **changes))


def test_a_core_that_cannot_be() -> None:
    with pytest.raises(FerruleError, match="its core cortex-m0 is not supported") as caught:
        cmsis_board(changed_core("mps2-an386", type="cortex-m0"))
    assert "cortex-m33" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("board", "changes", "processor"),
    [
        ("mps2-an500", {"fpu": "fpv5-sp-d16"}, {"fpu": "sp"}),
        ("mps2-an386", {"fpu": "none"}, {"fpu": "off"}),
        ("mps2-an505", {"fpu": "none", "dsp": False}, {"trustzone": "secure-only", "fpu": "off", "dsp": "off"}),
    ],
)
def test_a_core_with_less(board: str, changes: dict[str, Any], processor: dict[str, str], tmp_path: Path) -> None:
    described = changed_core(board, **changes)
    (tmp_path / "solution.yml").write_text(solution_yaml("x", described, cmsis_board(described), "O2"))
    (target,) = cmsis_project.read_yaml(tmp_path / "solution.yml")["solution"]["target-types"]
    assert target["processor"] == processor


def test_what_cmsis_knows_of_a_board() -> None:
    board = cmsis_board(load_board("mps2-an505"))
    assert board.core.header == "core_cm33.h"
    assert [(usart.index, usart.name) for usart in board.usarts] == [(n, f"uart{n}") for n in range(5)]
    assert (board.link_usart, board.vector_count) == (0, 42)
    assert [vector.number for vector in board.vectors] == [*range(32, 42)]


# ---- compared with the originals, where they are installed


def schemas() -> Path:
    """Return the folder of the official schemas, or skip the test."""
    if os.environ.get("CMSIS_TOOLBOX") and not os.environ.get("CMSIS_SCHEMAS"):
        return require_variable("CMSIS_TOOLBOX") / "etc"
    return require_variable("CMSIS_SCHEMAS")


def complaints(document: Any, kind: str) -> list[str]:  # noqa: ANN401 whatever stands there
    """Return the errors that the official schema for this kind of file reports."""
    require_module("jsonschema", "pip install -e '.[dev]'")
    import json

    from jsonschema import Draft7Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    folder = schemas()

    def retrieve(uri: str) -> Resource[Any]:
        text = (folder / uri.rpartition("/")[2]).read_text(encoding="utf-8")
        return Resource(contents=json.loads(text), specification=DRAFT7)

    schema = json.loads((folder / f"{kind}.schema.json").read_text(encoding="utf-8"))
    registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]
    return [error.message for error in Draft7Validator(schema, registry=registry).iter_errors(document)]


@pytest.mark.parametrize("board", BOARDS)
def test_the_official_schemas_agree(board: str, tmp_path: Path) -> None:
    schemas()
    found = documents(project(tmp_path / "project", board=board).folder)
    assert {kind_of(name) for name in found} == {*KINDS}
    for name, document in found.items():
        assert complaints(document, kind_of(name)) == [], name


def test_the_official_schemas_take_the_models_layer_for_mlops(tmp_path: Path) -> None:
    schemas()
    solution = documents(project(tmp_path / "project").folder)["dense.csolution.yml"]
    solution["solution"]["mlops"] = {"model": {"name": "dense", "clayer": "./dense.clayer.yml"}}
    assert complaints(solution, "csolution") == []
    solution["solution"]["build-types"][1]["debug"] = True  # as a reader of YAML 1.1 would parse it
    assert complaints(solution, "csolution") != []


def test_the_components_have_these_files(tmp_path: Path) -> None:
    """CMake's source list for the components equals the files in the packs' descriptions, for GCC and this core."""
    paths = cmsis_project.packs()
    for board, handlers in (("mps2-an386", "ARMv7-M"), ("mps2-an505", "ARMv8-MML")):
        folder = project(tmp_path / board, board=board).folder
        wanted = set()
        for variable, description in (("CMSIS_PATH", "ARM.CMSIS.pdsc"), ("CMSIS_RTX_PATH", "ARM.CMSIS-RTX.pdsc")):
            tree = ET.parse(Path(paths[variable]) / description)  # noqa: S314 a file of the user's own
            for component in tree.getroot().iter("component"):
                if identity(component) in COMPONENTS and "NS" not in component.get("condition", ""):
                    wanted |= {f"${{{variable}}}/{name}" for name in sources_of(component, handlers)}
        assert set(cmsis_project.cmake_lists(folder)["CMSIS_SOURCES"]) == wanted


def identity(component: ET.Element) -> str:
    parts = [component.get("Cclass"), component.get("Cgroup"), component.get("Csub")]
    variant = component.get("Cvariant")
    return "ARM::" + ":".join(part for part in parts if part) + (f"&{variant}" if variant else "")


def sources_of(component: ET.Element, core: str) -> set[str]:
    """Return the files to compile: those for any core, and those for GNU's assembler and this core."""
    return {
        str(file.get("name"))
        for file in component.iter("file")
        if str(file.get("category")).startswith("source")
        and file.get("attr") != "template"
        and file.get("condition") in {None, f"GNUASM {core}"}
    }
