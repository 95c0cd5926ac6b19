# SPDX-License-Identifier: Apache-2.0
"""Projects for Zephyr, as far as they can be checked without Zephyr; tests/end_to_end/test_zephyr.py builds them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import device_networks
import pytest
import small_networks
from children import ran
from needs import lacking, require_module, require_program

import ferrule
from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import FieldValue, address_fields
from ferrule.boards import Board, board_names, load_board
from ferrule.codegen import Artifact, Program
from ferrule.dom import Identifier, Integer
from ferrule.errors import FerruleError
from ferrule.firmware import Job, Project, emit, write_project
from ferrule.firmware.platforms import PLATFORMS, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.zephyr_tools import ZEPHYR_BOARDS
from ferrule.resources import root

STAND_IN = Path(__file__).parents[1] / "support" / "zephyr_cmake"
BASE_DTS = """/dts-v1/;
/ {
	#address-cells = <1>;
	#size-cells = <1>;
	chosen { };
	nvic: interrupt-controller@e000e100 {
		reg = <0xe000e100 0xc00>;
		interrupt-controller;
		#interrupt-cells = <2>;
		#address-cells = <0>;
	};
	uart0: uart@40004000 { reg = <0x40004000 0x1000>; status = "okay"; };
	uart1: uart@40005000 { reg = <0x40005000 0x1000>; status = "disabled"; };
	uart2: uart@40006000 { reg = <0x40006000 0x1000>; };
};
"""
NPU = Device(name="NPU-one", backend=BackendId("Woofles"), binding={"base": 0x4008_0000, "interrupt": 28})


def woofles(*, interrupt: bool = True) -> Artifact:
    """Return `dense` on an accelerator with registers."""
    device = replace(NPU, binding={**NPU.binding, "use_interrupt": int(interrupt)})
    job = Job(backends=("CpuAcc",), hints={"y": "Woofles/NPU-one"}, devices=(device,))
    return emit(small_networks.dense(), job)


def behind_uart(**binding: str | int) -> Artifact:
    """Return `dense` on an accelerator behind a UART."""
    device = Device(name="far", backend=BackendId("UartWoofles"), binding=binding)
    job = Job(backends=("CpuAcc",), hints={"y": "UartWoofles/far"}, devices=(device,))
    return emit(small_networks.dense(), job)


def plain(network: Network | None = None, board: str = "mps2-an386") -> Artifact:
    return emit(network or small_networks.dense(), Job(board=board))


def files(artifact: Artifact, board: Board | str = "mps2-an386") -> ProjectFiles:
    described = load_board(board) if isinstance(board, str) else board
    request = ProjectRequest(
        program=Program(artifacts=(artifact,)), board=described, toolchain="zig", optimization="O2"
    )
    return PLATFORMS["zephyr"].files(request)


def every(found: ProjectFiles) -> dict[str, bytes]:
    return {**found.generated, **found.starters}


def written(artifact: Artifact, folder: Path, board: str = "mps2-an386") -> Project:
    return write_project(artifact, Job(board=board, optimization="O2", platform="zephyr", out=folder))


ARTIFACTS = {"plain": plain, "devices": device_networks.artifact, "registers": woofles, "uart": behind_uart}
NATIVE = {"plain", "devices"}
"""The kinds that native_sim can run."""


@pytest.mark.parametrize("kind", ARTIFACTS)
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505"])
def test_the_same_request_gives_the_same_bytes(kind: str, board: str) -> None:
    first, second = (every(files(ARTIFACTS[kind](), board)) for _ in range(2))
    assert first == second
    assert all(data.endswith(b"\n") for data in first.values())
    assert not [name for name, data in first.items() if str(root()).encode() in data]


def test_generating_again_changes_nothing_and_keeps_what_was_edited(tmp_path: Path) -> None:
    artifact = device_networks.artifact()
    written(artifact, tmp_path / "p")
    before = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()}
    assert written(artifact, tmp_path / "p").kept == ()
    assert {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()} == before
    for name in ("src/main.c", "prj.conf", "boards/mps2_an386.overlay"):
        path = tmp_path / "p" / name
        path.write_text(f"{path.read_text()}# mine\n")
    project = written(artifact, tmp_path / "p", "mps2-an385")
    assert (tmp_path / "p" / "prj.conf").read_text().endswith("# mine\n")
    assert {kept.name for kept in project.kept} >= {"boards/mps2_an386.overlay"}


def test_the_module_is_whole() -> None:
    """Everything of platforms/zephyr is copied, but no source that it replaces."""
    found = files(plain()).generated
    source = root() / "platforms" / "zephyr"
    for path in source.rglob("*"):
        if path.is_file():
            name = path.relative_to(source).as_posix()
            assert found[f"lib/platforms/zephyr/{name}"] == path.read_bytes()
    assert "lib/src_c/device/device.c" in found
    assert "lib/src_c/runtime/counter.c" not in found
    assert "lib/src_c/link/serve.c" not in found


def test_the_port_has_what_every_port_has() -> None:
    names = re.compile(r"^static inline .*?\b(ferrule_\w+)\(", re.MULTILINE)
    shared = names.findall((root() / "include" / "ferrule" / "port.h").read_text())
    header = root() / "platforms" / "zephyr" / "include" / "ferrule" / "platform" / "zephyr_port.h"
    assert len(shared) > 8
    shared.remove("ferrule_cache_maintain")  # the loop over the core's registers, which Zephyr's own functions have
    shared.remove("ferrule_port_sleep")  # threads wait in the kernel
    assert names.findall(header.read_text()) == shared
    assert "#define FERRULE_PORT_HAS_CACHE\n" in header.read_text()


def configured(project: Path, build: Path, *options: str) -> list[tuple[str, str]]:
    """Configure a project with a stand-in for Zephyr; return the build's entries as (kind, path or name)."""
    require_program("cmake", "apt-get install cmake")
    argv = ["cmake", "-S", str(project), "-B", str(build), f"-DZephyr_DIR={STAND_IN}", "-DCONFIG_FERRULE=y", *options]
    done = ran(argv, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    lines = (build / "record.txt").read_text().splitlines()
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


@pytest.mark.cc
@pytest.mark.parametrize("kind", ["plain", "devices", "uart"])
@pytest.mark.parametrize("polls", [True, False])
def test_cmake_compiles_each_source_once(kind: str, polls: bool, tmp_path: Path) -> None:
    artifact = ARTIFACTS[kind]()
    project = written(artifact, tmp_path / "project").folder
    options = [
        "-DCONFIG_FERRULE_LINK=y",
        "-DCONFIG_FERRULE_UART=y",
        f"-DCONFIG_FERRULE_MODEL_{artifact.symbol.upper()}=y",
    ]
    options += ["-DCONFIG_FERRULE_DEVICE=y"] if artifact.devices else []
    options += [f"-DCONFIG_FERRULE_UART_{'POLLING' if polls else 'INTERRUPT'}=y"]
    wanted = configured(project, tmp_path / "build", *options)
    assert [name for kind_, name in wanted if kind_ == "library"] == ["ferrule", f"ferrule_{artifact.symbol}"]
    sources = [Path(name).relative_to(project).as_posix() for kind_, name in wanted if kind_ == "source"]
    assert len(sources) == len(set(sources))
    assert all((project / name).is_file() for name in sources)
    here = {path.relative_to(project).as_posix() for path in project.rglob("*.c")}
    left_out = {"src/main.c", "lib/platforms/zephyr/src/accelerator.c"}
    left_out |= {f"lib/platforms/zephyr/src/uart_{'interrupt' if polls else 'polling'}.c"}
    if not artifact.devices:
        left_out |= {
            "lib/platforms/zephyr/src/zephyr.c",
            *(name for name in here if name.startswith("lib/src_c/device")),
        }
    assert set(sources) == here - left_out
    for kind_, name in wanted:
        if kind_ in {"include", "linker"}:
            assert Path(name).exists(), name


@pytest.mark.cc
@pytest.mark.parametrize("classes", [True, False])
def test_the_section_of_the_class_is_zephyrs_if_it_has_classes(classes: bool, tmp_path: Path) -> None:
    project = written(woofles(), tmp_path / "project").folder
    options = ["-DCONFIG_FERRULE_DEVICE=y", "-DCONFIG_FERRULE_ACCELERATOR=y"]
    options += ["-DSTAND_IN_DEVICE_H=#define DEVICE_API(_class, _name) x"] if classes else []
    entries = configured(project, tmp_path / "build", *options)
    assert any(kind == "syscalls" and (Path(name) / "ferrule").is_dir() for kind, name in entries) is classes
    assert any(kind == "linker" and Path(name).name == "accelerator.ld" for kind, name in entries) is not classes


@pytest.mark.cc
def test_cmake_compiles_nothing_where_ferrule_is_off(tmp_path: Path) -> None:
    project = written(plain(), tmp_path / "project").folder
    assert configured(project, tmp_path / "build", "-DCONFIG_FERRULE=n") == []


def device_tree(overlay: str) -> str:
    """Return the tree that dtc prints for an overlay on a small board."""
    require_program("dtc", "apt-get install device-tree-compiler")
    done = ran(["dtc", "-I", "dts", "-O", "dts", "-"], stdin=BASE_DTS + overlay)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ARTIFACTS)
def test_overlays_choose_the_links_uart(kind: str) -> None:
    found = files(ARTIFACTS[kind]())
    overlays = {name: data.decode() for name, data in found.starters.items() if name.endswith(".overlay")}
    native = {"boards/native_sim.overlay", "boards/native_sim_64.overlay"} if kind in NATIVE else set()
    assert set(overlays) == {"boards/mps2_an386.overlay", "boards/mps2_an385.overlay", *native}
    for overlay in overlays.values():
        text = device_tree(overlay)
        assert f'ferrule,link-uart = "/uart@{"40006000" if kind == "uart" else "40005000"}";' in text
        assert text.count("disabled") == 0
        assert ("ferrule,mmio-accelerator" in text) is (kind == "registers")


def test_an_accelerator_has_a_node() -> None:
    found = files(woofles())
    text = device_tree(found.starters["boards/mps2_an386.overlay"].decode())
    node = text[text.index("accelerator@40080000 {") :]
    assert "reg = <0x40080000 0x1000>;" in node
    assert "interrupts = <0x1c 0x03>;" in node
    devices = found.generated["zephyr/devices.c"].decode()
    assert ".base = DT_REG_ADDR(DT_NODELABEL(ferrule_device0))," in devices
    assert "0x40080000" not in devices
    assert "BUILD_ASSERT" not in devices
    assert "ferrule_device_bind(&npu_one_device, DEVICE_DT_GET(DT_NODELABEL(ferrule_device0))," in devices
    assert "irq_enable(DT_IRQN(DT_NODELABEL(ferrule_device0)));" in devices
    handler = devices[devices.index("static void on_npu_one_interrupt(const void *unused)") :]
    handler = " ".join(handler[: handler.index("\n}")].split())
    assert "if (!woofles_interrupt(&npu_one_context)) { irq_disable(DT_IRQN(DT_NODELABEL(ferrule_device0)));" in handler
    assert any("NPU-one" in note for note in found.notes)
    polled = files(woofles(interrupt=False))
    assert b"IRQ_CONNECT" not in polled.generated["zephyr/devices.c"]
    assert b"interrupts" not in polled.starters["boards/mps2_an386.overlay"]


def test_a_driver_without_its_address_as_a_number() -> None:
    """What the devicetree cannot replace is compared with it when the project is built."""
    artifact = woofles()
    (use,) = artifact.devices
    fields = (("use_interrupt", True), ("size", 0x1000), ("base", Identifier("NPU_BASE")))
    driver = replace(use.driver, context_fields=fields)
    other = replace(artifact, devices=(replace(use, driver=driver),))
    devices = files(other).generated["zephyr/devices.c"].decode()
    assert "BUILD_ASSERT(DT_REG_ADDR(DT_NODELABEL(ferrule_device0)) == 0x40080000U," in devices
    assert ".base = NPU_BASE," in devices
    numbers: tuple[tuple[str, FieldValue], ...] = (("a", 1), ("b", True), ("c", Integer(1)), ("d", 2), ("e", 1.0))
    assert address_fields(replace(driver, base=1, context_fields=numbers)) == ("a", "c")
    assert address_fields(replace(driver, base=0, context_fields=(("a", 0),))) == ()


def test_a_device_behind_a_uart() -> None:
    found = files(behind_uart(baud=9600))
    text = device_tree(found.starters["boards/mps2_an386.overlay"].decode())
    assert 'ferrule,device0-uart = "/uart@40005000";' in text  # the link gets the next UART
    assert "current-speed = <0x2580>;" in text
    words = " ".join(found.generated["zephyr/devices.c"].decode().split())
    uart = "FAR_UART"
    assert f"#define {uart} DEVICE_DT_GET(DT_CHOSEN(ferrule_device0_uart))" in words
    assert f"ferrule_zephyr_uart_transport(&far_uart, {uart}, &far_transport);" in words
    assert f"ferrule_device_bind(&far_device, {uart}, &uart_woofles_driver, &far_context);" in words
    assert b"select FERRULE_UART" in found.generated["zephyr/Kconfig"]
    assert any("far" in note for note in found.notes)
    elsewhere = device_tree(files(behind_uart(uart="uart2")).starters["boards/mps2_an386.overlay"].decode())
    assert 'ferrule,link-uart = "/uart@40005000";' in elsewhere
    assert 'ferrule,device0-uart = "/uart@40006000";' in elsewhere


@pytest.mark.parametrize(
    ("uart", "message"), [("uart0", "no UART 'uart0' on board mps2-an386 for device 'far'"), ("uart7", "uart7")]
)
def test_uarts_that_cannot_lead_to_a_device(uart: str, message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        files(behind_uart(uart=uart))


def test_soft_devices_need_no_node() -> None:
    found = files(device_networks.artifact())
    devices = found.generated["zephyr/devices.c"].decode()
    for name in ("npu0", "npu1"):
        assert f"ferrule_device_bind_soft(&{name}_device, &soft_npu_driver, &{name}_context)" in devices
        assert f".{name} = &{name}_device," in devices
    assert found.notes == ()
    assert b"ferrule_crossing_link_use(&ferrule_crossing_default_devices)" in found.starters["src/main.c"]


BINDINGS = root() / "platforms" / "zephyr" / "dts" / "bindings"


def test_bindings_have_a_registered_prefix() -> None:
    require_module("ruamel.yaml", "pip install -e '.[dev]'")
    from ruamel.yaml import YAML

    prefixes = [
        line.split("\t")[0]
        for line in (BINDINGS / "vendor-prefixes.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert prefixes == ["ferrule"]
    found = sorted(BINDINGS.rglob("*.yaml"))
    assert len(found) == 2
    for path in found:
        binding = YAML(typ="safe").load(path)
        assert binding["compatible"] == path.stem
        assert path.stem.split(",")[0] in prefixes
        macro = binding["compatible"].replace(",", "_").replace("-", "_")
        assert f"DT_HAS_{macro.upper()}_ENABLED" in (BINDINGS.parents[1] / "Kconfig").read_text()
        assert f"DT_FOREACH_STATUS_OKAY({macro}," in (BINDINGS.parents[1] / "src" / "accelerator.c").read_text()


ASSIGNMENT = re.compile(r'CONFIG_(\w+)=(y|n|\d+|"[^"]*")')
DEFINITION = re.compile(r"^(?:menu)?config (\w+)$", re.MULTILINE)


@pytest.mark.parametrize("kind", ARTIFACTS)
def test_configuration_sets_what_there_is(kind: str) -> None:
    artifact = ARTIFACTS[kind]()
    found = every(files(artifact))
    defined = set()
    for name, data in found.items():
        if name.rpartition("/")[2] == "Kconfig":
            defined |= set(DEFINITION.findall(data.decode()))
            defined |= {
                f"{module}_LOG_LEVEL" for module in re.findall(r"^module = (\w+)$", data.decode(), re.MULTILINE)
            }
    assert f"FERRULE_MODEL_{artifact.symbol.upper()}" in defined
    for name, data in found.items():
        if name.endswith(".conf"):
            for line in data.decode().splitlines():
                if line and not line.startswith("#"):
                    match = ASSIGNMENT.fullmatch(line)
                    assert match is not None, line
                    assert not match[1].startswith("FERRULE") or match[1] in defined
    used = set()
    for name, data in found.items():
        if name.startswith("lib/platforms/zephyr") and name.endswith((".c", ".h", "CMakeLists.txt")):
            used |= set(re.findall(rb"CONFIG_(FERRULE\w+)", data))
    assert {each.decode() for each in used} <= defined
    assert "select FERRULE_DEVICE" in found["zephyr/Kconfig"].decode() or not artifact.devices


def test_only_what_every_board_has_is_set_outright() -> None:
    """Options that a board may lack have conditional defaults: setting an unknown option outright is a warning."""
    found = files(plain()).starters
    kconfig = found["Kconfig"].decode()
    for symbol, condition in (("FPU", "CPU_HAS_FPU"), ("FPU_SHARING", "FPU"), ("SHELL_STACK_SIZE", "SHELL")):
        assert f"config {symbol}\n\tdepends on {condition}\n\tdefault " in kconfig
    assert "\tdefault y if !ARCH_POSIX\n\nconfig FPU_SHARING" in kconfig, "native_sim does not link with it in 3.5"
    allowed = {"FERRULE", "MAIN_STACK_SIZE", "CONSOLE", "UART_CONSOLE", "SHELL", "LOG"}
    for name, data in found.items():
        if name.endswith(".conf"):
            assert set(re.findall(r"^CONFIG_(\w+)=", data.decode(), re.MULTILINE)) <= allowed


def test_with_one_uart_shell_and_log_are_off() -> None:
    board = load_board("mps2-an386")
    others = tuple(each for each in board.peripherals if not each.type.startswith("UART.") or each == board.link_uart)
    found = files(plain(), replace(board, peripherals=others))
    for name in ("prj.conf", "one_uart.conf"):
        lines = found.starters[name].decode().splitlines()
        for symbol in ("CONSOLE", "UART_CONSOLE", "SHELL", "LOG"):
            assert f"CONFIG_{symbol}=n" in lines
    assert any("one UART" in note for note in found.notes)
    both = files(plain()).starters["prj.conf"].decode().splitlines()
    assert "CONFIG_SHELL=y" in both
    assert "CONFIG_LOG=y" in both


def test_a_device_that_nobody_uses_sleeps() -> None:
    """Runtime power management is on if there is a node that it can manage."""
    for kind, artifact in ARTIFACTS.items():
        found = files(artifact()).starters
        settings = found["prj.conf"].decode().splitlines()
        managed = {"CONFIG_PM_DEVICE=y", "CONFIG_PM_DEVICE_RUNTIME=y"} <= {*settings}
        overlay = found["boards/mps2_an386.overlay"].decode()
        assert managed is ("zephyr,pm-device-runtime-auto;" in overlay) is (kind == "registers")


@pytest.mark.parametrize("board", board_names())
def test_each_board_has_its_names(board: str) -> None:
    """A project for each of Ferrule's boards has the overlays, the manifest and the commands for it."""
    require_module("ruamel.yaml", "pip install -e '.[dev]'")
    from ruamel.yaml import YAML

    found = files(plain(tiny(), board), board)
    west = YAML(typ="safe").load(found.starters["west.yml"])
    modules = west["manifest"]["projects"][0]["import"]["name-allowlist"]
    if board not in ZEPHYR_BOARDS:
        page = (Path(__file__).parents[2] / "docs" / "zephyr.md").read_text(encoding="utf-8")
        unknown = re.findall(r"Zephyr has no board for ([^.]*)\.", page)
        assert any(board in re.split(r", | and ", each) for each in unknown), "a name in ZEPHYR_BOARDS, or a sentence"
        return
    known = ZEPHYR_BOARDS[board]
    assert modules == ["cmsis", "cmsis_6", *known.modules]
    readme = found.starters["README.md"].decode()
    for name, _ in known.older:
        assert f"west build -b {name} ." in readme
    assert f"west build -b {known.name} ." in readme
    for stem in known.stems:
        assert f"&{known.link} {{" in found.starters[f"boards/{stem}.overlay"].decode()
    assert known.link in {peripheral.name for peripheral in load_board(board).peripherals}
    single = known.link == load_board(board).console_uart.name
    assert single is any("one UART" in note for note in found.notes)


def tiny() -> Network:
    """A network that fits the smallest board."""
    network = Network("tiny")
    network.add_input(small_networks.int8_input("x", 1, 6))
    network.add_relu_layer("x", name="y")
    network.set_outputs(["y"])
    return network


def made_for_zephyr(folder: Path, backend: str, **binding: str | int) -> Project:
    """Write a project with `dense` on a device, which the platform may put into software."""
    device = Device(name="npu", backend=BackendId(backend), binding=binding)
    return ferrule.generate(
        small_networks.dense(),
        board="mps2-an386",
        hints={"y": f"{backend}/npu"},
        devices=(device,),
        platform="zephyr",
        out=folder,
    )


@pytest.mark.parametrize("backend", ["Woofles", "UartWoofles"])
def test_native_sim_has_the_device_in_software(backend: str, tmp_path: Path) -> None:
    """Its layers run on a device of the same name, behind the same functions, which the application calls."""
    require_module("ruamel.yaml", "pip install -e '.[dev]'")
    from ruamel.yaml import YAML

    project = made_for_zephyr(tmp_path, backend)
    assert project.notes == ("native_sim has npu in software: native/",)
    own, native = ((tmp_path / folder / "devices.c").read_text() for folder in ("zephyr", "native"))
    for text, driver in ((own, backend.lower().replace("uartw", "uart_w")), (native, "soft_npu")):
        assert f"&{driver}_driver, &npu_context" in " ".join(text.split())
        assert "int32_t ferrule_dense_devices_start(void)" in text
        assert "const struct ferrule_dense_devices ferrule_dense_default_devices = {" in text
    assert (tmp_path / "boards" / "native_sim.overlay").is_file()
    tests = YAML(typ="safe").load(tmp_path / "sample.yaml")["tests"]
    assert (tests["ferrule.dense"]["platform_allow"], tests["ferrule.dense"]["build_only"]) == (["mps2/an386"], True)
    software = tests["ferrule.dense.native"]
    assert (software["platform_allow"], software["harness"]) == (["native_sim/native/64"], "console")
    assert "build_only" not in software


@pytest.mark.cc
@pytest.mark.parametrize("posix", [True, False])
def test_cmake_compiles_one_of_the_two_models(posix: bool, tmp_path: Path) -> None:
    project = made_for_zephyr(tmp_path / "project", "Woofles").folder
    options = [
        "-DCONFIG_FERRULE_DEVICE=y",
        "-DCONFIG_FERRULE_MODEL_DENSE=y",
        f"-DCONFIG_ARCH_POSIX={'y' if posix else 'n'}",
    ]
    entries = configured(project, tmp_path / "build", *options)
    sources = [Path(name).relative_to(project).as_posix() for kind, name in entries if kind == "source"]
    assert len(sources) == len(set(sources))
    assert all((project / name).is_file() for name in sources)
    expected = {
        True: {"native/model/ferrule_dense.c", "native/devices.c", "lib/backends/soft_npu/src/soft_npu.c"},
        False: {"model/ferrule_dense.c", "zephyr/devices.c", "lib/backends/woofles/src/woofles.c"},
    }
    assert expected[posix] <= {*sources}
    assert not expected[not posix] & {*sources}
    includes = {Path(name).relative_to(project).as_posix() for kind, name in entries if kind == "include"}
    assert {"native/model", "model"} & includes == {"native/model" if posix else "model"}


def test_what_cannot_be_in_software_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no silent loss: the note has the reason, and there is no overlay."""
    monkeypatch.setattr("ferrule.firmware.placement._SOFT", BackendId("NoSuch"))
    project = made_for_zephyr(tmp_path, "Woofles")
    (note,) = project.notes
    assert note.startswith("there is no overlay for native_sim, which lacks npu: ")
    assert "NoSuch" in note
    assert not (tmp_path / "native").exists()
    assert not (tmp_path / "boards" / "native_sim.overlay").exists()


def test_a_uart_without_pins_gets_them() -> None:
    artifact = emit(
        small_networks.dense(),
        Job(
            board="stm32f4_discovery",
            backends=("CpuAcc",),
            hints={"y": "UartWoofles/far"},
            devices=(Device(name="far", backend=BackendId("UartWoofles")),),
        ),
    )
    overlay = files(artifact, "stm32f4_discovery").starters["boards/stm32f4_disco.overlay"].decode()
    uart = overlay[overlay.index("&usart3 {") :]
    assert "pinctrl-0 = <&usart3_tx_pd8 &usart3_rx_pd9>;" in uart
    assert "pinctrl" not in overlay[: overlay.index("&usart3 {")]  # Zephyr's description has those of usart1


def test_a_board_that_zephyr_lacks_is_told() -> None:
    found = files(plain(board="mps2-an505"), "mps2-an505")
    assert [note for note in found.notes if "mps2-an505" in note and "ferrule,link-uart" in note]
    assert "boards/native_sim.overlay" in found.starters


ODD_NAME = 'it\'s "50 %s": #1 */ $x ${y} \\ ü'


def test_an_odd_name_stays_text() -> None:
    require_module("ruamel.yaml", "pip install -e '.[dev]'")
    from ruamel.yaml import YAML

    network = Network(ODD_NAME)
    network.add_input(small_networks.int8_input("x", 1, 6))
    network.add_relu_layer("x", name="y")
    network.set_outputs(["y"])
    artifact = plain(network)
    found = every(files(artifact))
    yaml = {name: YAML(typ="safe").load(data) for name, data in found.items() if name.endswith((".yml", ".yaml"))}
    assert yaml["sample.yaml"]["sample"]["name"] == ODD_NAME
    assert yaml["zephyr/module.yml"]["name"] == f"ferrule_{artifact.symbol}"
    assert yaml["west.yml"]["manifest"]["self"]["path"] == artifact.symbol
    assert yaml["west.yml"]["manifest"]["projects"][0]["revision"] == "v4.1.0"  # the first with this board
    main = found["src/main.c"].decode()
    comment = main[main.index("/* Made by") :]
    assert comment.index("*/") > comment.index("command `ferrule`")
    assert ODD_NAME.encode() not in found["CMakeLists.txt"] + found["Kconfig"] + found["zephyr/Kconfig"]


def test_twister_knows_where_it_runs() -> None:
    require_module("ruamel.yaml", "pip install -e '.[dev]'")
    from ruamel.yaml import YAML

    for kind, platforms in (
        ("plain", ["native_sim/native/64", "mps2/an386"]),
        ("devices", ["native_sim/native/64", "mps2/an386"]),
        ("registers", ["mps2/an386"]),
        ("uart", ["mps2/an386"]),
    ):
        sample = YAML(typ="safe").load(files(ARTIFACTS[kind]()).starters["sample.yaml"])
        [test] = sample["tests"].values()
        assert test["platform_allow"] == platforms
        if kind in NATIVE:
            assert "build_only" not in test
            assert re.search(test["harness_config"]["regex"][0], "<inf> app: dense ran in 12 us")
        else:  # twister's emulators do not have the device, so the program would report that it failed
            assert test["build_only"] is True
            assert "harness" not in test


def test_the_module_has_zephyrs_style(tmp_path: Path) -> None:
    """The formatter, as `make lint-c` calls it, applies the module's own style, which differs from the repository's."""
    program = require_program("clang-format", "pip install -e '.[dev]'")
    module = root() / "platforms" / "zephyr"
    sources = sorted(path for path in module.rglob("*") if path.suffix in {".c", ".h"})
    assert len(sources) > 10
    argv = [str(program), "--dry-run", "-Werror"]
    done = ran([*argv, *map(str, sources)])
    assert (done.returncode, done.stderr) == (0, "")
    style = f"--style=file:{root() / '.clang-format'}"
    assert subprocess.run([*argv, style, str(sources[0])], capture_output=True, check=False).returncode != 0
    spaced = tmp_path / "spaced.c"
    shutil.copy(module / ".clang-format", tmp_path)
    spaced.write_text("int f(void)\n{\n    return 0;\n}\n")
    assert subprocess.run([*argv, str(spaced)], capture_output=True, check=False).returncode != 0
    assert not [path for path in sources if re.search(r"^ {2}", path.read_text(), re.MULTILINE)]


@pytest.mark.parametrize("kind", ARTIFACTS)
def test_c_is_as_the_formatter_has_it(kind: str) -> None:
    program = shutil.which("clang-format", path=str(Path(sys.executable).parent))
    if program is None:
        lacking("clang-format", "pip install -e '.[dev]'")
        return
    found = every(files(ARTIFACTS[kind]()))
    style = Path(__file__).parents[2] / ".clang-format"
    for name in ("src/main.c", "zephyr/devices.c", "zephyr/ferrule_crossing_devices.h"):
        if name in found:
            done = subprocess.run(
                [program, f"--style=file:{style}"],
                input=found[name],
                capture_output=True,
                check=True,
            )
            assert done.stdout.decode() == found[name].decode(), name
