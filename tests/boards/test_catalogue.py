# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.boards import MemoryKind, board_names, load_board, read_platform
from ferrule.boards.description import Setup
from ferrule.errors import FerruleError
from ferrule.resources import root

STACK = 'stack = "ssram23"'
SHIPPED = sorted(path.parent.name for path in (root() / "boards").glob("*/board.toml"))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of a shipped board, ready for changes; its platform description includes no other file."""
    shipped, folder = root() / "boards", tmp_path / "boards" / "mine"
    shutil.copytree(shipped / "mps2-an386", folder)
    shared = (shipped / "mps2" / "mps2.repl").read_text(encoding="utf-8")
    own = (folder / "mps2-an386.repl").read_text(encoding="utf-8")
    flat = shared.replace("cortex-m3", "cortex-m4") + "\n" + own[own.index("psram") :]
    (folder / "mps2-an386.repl").write_text(flat, encoding="utf-8")
    return folder


def change(folder: Path, old: str, new: str, name: str = "board.toml") -> None:
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "core", "fpu", "dsp", "code", "data", "uart", "clock_hz", "instructions_per_tick"),
    [
        ("mps2-an385", "cortex-m3", "none", False, 0x0000_0000, 0x2000_0000, 0x4000_4000, 25_000_000, 40),
        ("mps2-an386", "cortex-m4", "fpv4-sp-d16", True, 0x0000_0000, 0x2000_0000, 0x4000_4000, 25_000_000, 40),
        ("mps2-an500", "cortex-m7", "fpv5-d16", True, 0x0000_0000, 0x2000_0000, 0x4000_4000, 25_000_000, 40),
        ("mps2-an505", "cortex-m33", "fpv5-sp-d16", True, 0x1000_0000, 0x3800_0000, 0x5020_0000, 20_000_000, 50),
    ],
)
def test_loads_the_shipped_mps2_boards(
    name: str,
    core: str,
    fpu: str,
    dsp: bool,
    code: int,
    data: int,
    uart: int,
    clock_hz: int,
    instructions_per_tick: int,
) -> None:
    board = load_board(name)
    assert (board.name, board.cpu.type, board.cpu.fpu, board.cpu.dsp) == (name, core, fpu, dsp)
    assert board.memory(board.placement.code).address == code
    assert board.memory(board.placement.code).size_bytes == 4 << 20
    assert board.memory(board.placement.data).address == data
    assert board.memory(board.placement.data).kind is MemoryKind.RAM
    assert (board.link_uart.address, board.link_uart.type) == (uart, "UART.CMSDK_APB_UART")
    assert board.clock_hz == clock_hz
    assert board.clock_hz == read_platform(board.platform).entry("nvic").integer("systickFrequency")
    assert board.qemu is not None
    assert (board.qemu.name, board.qemu.instructions_per_tick) == (name, instructions_per_tick)
    assert board.qemu.serial[board.link_uart.name] == 0
    first = 0xB000_0000 if name == "mps2-an500" else 0xA000_0000  # an500 has its Ethernet at 0xA000_0000
    assert [each.address for each in board.expansions] == [first + 0x10000 * index for index in range(4)]
    assert board.peripherals_of("IRQControllers.NVIC")[0].address == 0xE000_E000


def test_the_mps3_an547() -> None:
    board = load_board("mps3-an547")
    assert (board.cpu.type, board.cpu.fpu, board.cpu.dsp, board.cpu.mve) == ("cortex-m55", "fpv5-d16", True, True)
    assert board.memory("itcm").aliases == (0,)
    assert (board.placement.code, board.placement.weights, board.placement.workspace) == ("itcm", "sram", "isram")
    assert (board.link_uart.address, board.uart_clock_hz(board.link_uart)) == (0x5930_3000, 25_000_000)
    assert board.qemu is not None
    assert board.qemu.instructions_per_tick == 31.25


def test_the_nrf52840dk() -> None:
    board = load_board("nrf52840dk")
    assert (board.cpu.type, board.cpu.fpu, board.clock_hz) == ("cortex-m4", "fpv4-sp-d16", 64_000_000)
    assert {memory.name: (memory.address, memory.size_bytes) for memory in board.memories} == {
        "flash": (0, 1 << 20),
        "ram": (0x2000_0000, 256 << 10),
    }
    assert (board.link_uart.address, board.link_uart.size_bytes) == (0x4000_2000, 0x1000)
    assert board.qemu is None
    used = board.setup_for(["uart0"])
    assert [each.address for each in used][-2:] == [0x4000_250C, 0x4000_2514]  # the registers of the UART's own setup
    assert used[0].uart is None
    assert not {each.address for each in board.setup_for(["uart1"])[1:]} & {each.address for each in used}


def test_a_uart_without_a_clock_of_its_own_has_the_cores() -> None:
    board = load_board("stm32f4_discovery")
    assert board.uart_clock_hz(board.link_uart) == 16_000_000


def test_the_stm32f4_discovery() -> None:
    board = load_board("stm32f4_discovery")
    assert (board.cpu.type, board.cpu.fpu, board.cpu.dsp, board.cpu.mve) == ("cortex-m4", "fpv4-sp-d16", True, False)
    assert {memory.name: (memory.address, memory.size_bytes, memory.aliases) for memory in board.memories} == {
        "flash": (0x0800_0000, 1 << 20, (0,)),
        "sram": (0x2000_0000, 128 << 10, ()),
        "ccm": (0x1000_0000, 64 << 10, ()),
    }
    assert (board.link_uart.address, board.link_uart.size_bytes) == (0x4000_4400, 0x400)
    assert board.setup[0] == Setup(
        uart="usart2", address=0x4002_3830, clear=0, set=1, why="RCC_AHB1ENR: clock of port A (RM0090, 7.3.10)"
    )
    assert [len(board.setup_for(names)) for names in ((), ("usart2",), ("usart2", "usart3"))] == [0, 5, 10]
    assert board.qemu is not None
    assert board.qemu.lacks == ("ccm",)
    assert board.qemu.serial["usart2"] == 1
    assert board.qemu.instructions_per_tick == 1000 / 168  # QEMU's clock, which differs from the chip's


def test_the_microbit() -> None:
    board = load_board("microbit")
    assert (board.cpu.type, board.cpu.fpu, board.cpu.interrupts) == ("cortex-m0", "none", 26)
    assert {memory.name: memory.size_bytes for memory in board.memories} == {"flash": 256 << 10, "ram": 16 << 10}
    assert board.link_uart.uart_class == "UART.NRF52840_UART without EasyDMA"
    assert load_board("nrf52840dk").link_uart.uart_class == "UART.NRF52840_UART"
    assert board.qemu is not None
    assert board.qemu.instructions_per_tick == 62.5


def test_the_stm32g0b1() -> None:
    board = load_board("stm32g0b1")
    assert (board.cpu.type, board.cpu.fpu, board.cpu.interrupts) == ("cortex-m0plus", "none", 31)
    assert board.cpu.features.baseline
    assert {memory.name: (memory.address, memory.size_bytes) for memory in board.memories} == {
        "flash": (0x0800_0000, 512 << 10),
        "sram": (0x2000_0000, 144 << 10),
    }
    assert (board.link_uart.address, board.uart_clock_hz(board.link_uart)) == (0x4000_4400, 64_000_000)
    assert [len(board.setup_for(names)) for names in ((), ("usart2",), ("usart2", "usart1"))] == [4, 9, 14]


def test_the_nucleo_l4r5zi() -> None:
    board = load_board("nucleo_l4r5zi")
    assert (board.cpu.type, board.cpu.fpu, board.cpu.interrupts) == ("cortex-m4", "fpv4-sp-d16", 95)
    assert board.clock_hz == read_platform(board.platform).entry("nvic").integer("systickFrequency") == 120_000_000
    assert {memory.name: (memory.address, memory.size_bytes) for memory in board.memories} == {
        "flash": (0x0800_0000, 2 << 20),
        "sram": (0x2000_0000, 640 << 10),
    }
    assert board.qemu is None
    assert board.link_uart.address == 0x4000_8000
    assert board.uart_clock_hz(board.link_uart) == 256 * 16_000_000  # of the low-power UART, as its divider counts
    used = board.setup_for(["lpuart1"])
    assert [each.address for each in used if each.wait] == [0x4002_1000, 0x4002_1000, 0x4002_1008]
    assert (used[-1].address, used[-1].uart) == (0x4002_1008, None)  # HCLK is divided until all else is done
    assert board.timing is not None
    assert board.timing.memory("flash").wait_states == 5
    assert board.energy is not None
    assert board.energy.running.at(board.clock_hz) == (13_200, 13_200)


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "mps3-an547"])
def test_every_shipped_board_with_a_model_of_cycles_states_its_timing(name: str) -> None:
    board = load_board(name)
    assert board.timing is not None
    assert board.timing.source


def test_the_default_stack_has_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.boards.catalogue.DEFAULT_STACK_BYTES", 1 << 30)
    with pytest.raises(FerruleError, match=r"placement.stack_bytes is 1073741824 by default, 'ssram23' holds 4194304"):
        load_board("mps2-an386")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0x40023830", "0x40023832", r"setup\[0\]: address is 0x40023832, which is not a multiple of 4"),
        ("0x40023830", "0x40024000", r"setup\[0\]: the platform description has no peripheral or tag at 0x40024000"),
        ("0x40023830", "0x100000000", r"\$.setup\[0\].address"),
        ("set = 0x0000_0001", "set = -1", r"\$.setup\[0\].set"),
        ('why = "RCC_AHB1ENR', 'why = "a\\nRCC_AHB1ENR', r"setup\[0\].why contains the character U\+000A"),
        ('uart = "usart2"', 'uart = "usart9"', r"setup\[0\].uart: there is no UART 'usart9'"),
        ('lacks = ["ccm"]', 'lacks = ["cmc"]', "qemu.lacks: there is no memory or peripheral 'cmc'"),
        ('lacks = ["ccm"]', 'lacks = ["sram"]', r"qemu.lacks: 'sram' holds parts of the firmware"),
        ('lacks = ["ccm"]', 'lacks = ["usart3"]', "qemu.lacks: 'usart3' is in qemu.serial"),
        ("clock_hz = 168_000_000", "clock_hz = 0", r"\$.qemu.clock_hz"),
        ("0xA0000000", "0x40023000", r"expansions\[0\]: at 0x40023000 is 'rcc'"),
        ("dsp = true", "dsp = true\nmve = true", "cpu.mve is true, which a cortex-m4 cannot be"),
    ],
)
def test_refuses_a_wrong_setup_or_machine(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(root() / "boards" / "stm32f4_discovery", folder)
    change(folder, old, new)
    with pytest.raises(FerruleError, match=message):
        load_board(folder)


def test_lists_the_boards() -> None:
    assert board_names() == SHIPPED


def test_an_unknown_board_lists_the_near_ones() -> None:
    with pytest.raises(FerruleError, match="there is no board 'mps2-an368'") as caught:
        load_board("mps2-an368")
    assert caught.value.hint is not None
    assert "mps2-an386" in caught.value.hint


def test_a_folder_of_boards_can_be_added(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("FERRULE_BOARDS", os.pathsep.join([str(tmp_path / "empty"), str(copy.parent)]))
    assert board_names() == sorted(["mine", *SHIPPED])
    assert load_board("mine").folder == copy
    assert load_board("mps2-an386").folder == root() / "boards" / "mps2-an386"


def test_a_board_can_be_given_by_its_folder(copy: Path) -> None:
    assert load_board(copy).name == "mine"
    assert load_board(str(copy)).name == "mine"
    with pytest.raises(FerruleError, match="there is no board in"):
        load_board(copy / "deeper")


def test_a_search_folder_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_BOARDS", str(tmp_path / "none"))
    with pytest.raises(FerruleError, match=r"FERRULE_BOARDS names .*none, which is not a folder"):
        board_names()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clock_hz", "clock", "unknown field `clock`"),
        (STACK, f"{STACK}\nstack_bytes = -8", r"\$.placement.stack_bytes"),
        (STACK, f"{STACK}\nstack_bytes = 1001", "not a multiple of 8"),
        (STACK, f"{STACK}\nstack_bytes = 4194312", "'ssram23' holds 4194304"),
        ("title = ", "title = " + "[" * 9999 + " #", "nested too deep"),
        ('platform = "mps2-an386.repl"', 'platform = "a\\u0000b"', r"platform contains the character U\+0000"),
        (STACK, f'{STACK}\nstack_bytes = "16 K"', r"Expected `int \| null`, got `str` - at `\$.placement.stack_bytes`"),
        ('kind = "flash"', 'kind = "rom"', r"at `\$.memories"),
        ('kind = "flash"', 'kind = "flash"\nkinds = 1', "unknown field `kinds`"),
        ('kind = "flash"', 'kind = "flash"\ncacheable = true', "needs line_bytes"),
        ("[memories.psram]", "[memories.sram]", "there is no memory 'sram'"),
        ('[memories.psram]\nkind = "ram"', "", "memories.psram is missing"),
        ('code = "ssram1"', 'code = "ssram2"', "placement.code: there is no memory 'ssram2'"),
        ('code = "ssram1"', 'code = "psram"', "placement.code: 'psram' is ram, but flash is needed"),
        ('stack = "ssram23"', 'stack = "ssram1"', "placement.stack: 'ssram1' is flash, but ram is needed"),
        ('link = "uart0"', 'link = "uart9"', "uarts.link: there is no UART 'uart9'"),
        ('console = "uart0"', 'console = "dwt"', "uarts.console: there is no UART 'dwt'"),
        ("{ uart0 = 0", "{ usart = 0", "qemu.serial: there is no UART 'usart'"),
        ("0xA0010000", "0xA0000800", r"expansions\[1\]: address is 0xa0000800, expected a multiple of 0x1000"),
        ("0xA0010000", "0x100000000", r"expansions\[1\]: address is 0x100000000"),
        ("0xA0010000", "0x3FFF5000", r"expansions\[1\]: at 0x3fff5000 is 'uart0'"),
        ("0xA0010000", "0xA0000000", r"expansions\[1\]: at 0xa0000000 is 'expansions\[0\]'"),
        ("0xA0010000", "0xA000F000", r"expansions\[1\]: at 0xa000f000 is 'expansions\[0\]'"),
        ("size_bytes = 0x10000", "size_bytes = 0x1800", r"expansions\[0\]: size_bytes is 0x1800, expected a multiple"),
        ("size_bytes = 0x10000", "size_bytes = 0", r"expansions"),
        (
            "interrupt = 29",
            "interrupt = 240",
            r"expansions\[1\]: interrupt 240 does not exist: a cortex-m4 has 0 to 239",
        ),
        ("interrupts = 32", "interrupts = 241", "cpu.interrupts is 241, a cortex-m4 has at most 240"),
        ("interrupts = 32", "interrupts = 20", r"cpu.interrupts is 20, but 'uart4' has interrupt 21"),
        ("interrupt = 29", "interrupt = 0", r"expansions\[1\]: interrupt 0 is used by 'uart0'"),
        ("interrupt = 29", "interrupt = 28", r"expansions\[1\]: interrupt 28 is used by 'expansions\[0\]'"),
        ("interrupt = 29", "interrupt = -1", r"expansions\[1\]"),
        ('fpu = "fpv4-sp-d16"', 'fpu = "vfp"', "cpu.fpu is 'vfp'"),
        ('fpu = "fpv4-sp-d16"', 'fpu = "fpv5-d16"', "a cortex-m4 has no fpv5-d16"),
        ('kind = "ram"', 'kind = "ram"\ncacheable = true\nline_bytes = 32', "a cortex-m4 has no data cache"),
        ("dsp = true", "dsp = false", "cpu.dsp is false, which a cortex-m4 cannot be"),
        ("platform = ", "platform = 3 #", r"at `\$.platform`"),
        ('platform = "mps2-an386.repl"', 'platform = "other.repl"', "there is no platform description"),
        ("title = ", "title ", "Expected '='"),
        ("[qemu]", "[flags]\nzig = [3]\n\n[qemu]", r"at `\$.flags"),
        ("[qemu]", '[flags]\nzigg = ["-O1"]\n\n[qemu]', r"unknown field `zigg` - at `\$.flags`"),
    ],
)
def test_refuses_a_wrong_description(copy: Path, old: str, new: str, message: str) -> None:
    change(copy, old, new)
    with pytest.raises(FerruleError, match=message) as caught:
        load_board(copy)
    assert str(copy) in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('cpuType: "cortex-m4"', 'cpuType: "cortex-a9"', "repl:5: core 'cortex-a9' is not supported"),
        ('cpuType: "cortex-m4"', "cpuType: 4", "repl:5: 'cpuType' of 'cpu' must be a string"),
        ('    cpuType: "cortex-m4"\n', "", "repl:5: 'cpu' has no cpuType"),
        ("cpu: CPU.CortexM", "cpu: CPU.Cortex", "0 entries of type CPU.CortexM"),
        ("size: 0x00400000", "size: 0x50000000", "'ssram1' and 'ssram23' overlap at 0x20000000"),
        ("size: 0x00400000", "size: true", "'size' of 'ssram1' must be an integer"),
        ("    size: 0x00400000\n", "", "the size of 'ssram1' is not known"),
        ("sysbus 0x21000000", "sysbus 0xff800000", "'psram' does not fit into 32 bits"),
        ("sysbus 0x21000000", "sysbus <0x21000000, +0x10>", "the sizes given for 'psram' differ"),
        ("psram: Memory.MappedMemory @ sysbus 0x21000000", "psram: Memory.MappedMemory @ other", "not registered"),
        ("uart4: UART.CMSDK_APB_UART", "uart4: UART.Unheard", "the size of 'uart4' is not known"),
    ],
)
def test_refuses_a_platform_that_is_no_board(copy: Path, old: str, new: str, message: str) -> None:
    change(copy, old, new, "mps2-an386.repl")
    with pytest.raises(FerruleError, match=message) as caught:
        load_board(copy)
    assert str(copy) in str(caught.value)


def test_further_registrations_are_aliases(copy: Path) -> None:
    change(copy, "@ sysbus 0x21000000", "@ { sysbus 0x21000000; sysbus 0x60000000 }", "mps2-an386.repl")
    assert load_board(copy).memory("psram").aliases == (0x6000_0000,)


def test_names_of_parts_are_looked_up() -> None:
    board = load_board("mps2-an386")
    assert 0x2000_0000 in board.memory("ssram23")
    assert 0x2040_0000 not in board.memory("ssram23")
    assert 0x4000_4FFF in board.peripheral("uart0")
    with pytest.raises(FerruleError, match="there is no memory 'ssram' on board mps2-an386"):
        board.memory("ssram")
    with pytest.raises(FerruleError, match="there is no peripheral 'uart' on board mps2-an386"):
        board.peripheral("uart")


BOARD_TOML = (root() / "boards" / "mps2-an500" / "board.toml").read_text(encoding="utf-8")
PIECES = [
    "",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    '"',
    "'",
    ".",
    ",",
    "#",
    "\n",
    "-",
    "0",
    "9" * 30,
    "1.5",
    "inf",
    "true",
    "ram",
    "cpu",
]


@settings(max_examples=150)
@given(data=st.data())
def test_any_damage_to_a_description_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    if not folder.exists():
        shutil.copytree(root() / "boards" / "mps2-an500", folder)
    text = BOARD_TOML
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 15)))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[until:]
    (folder / "board.toml").write_text(text, encoding="utf-8")
    name, message = "", ""
    try:
        name = load_board(folder).name
    except FerruleError as error:
        message = str(error)
    assert (name == "damaged") != bool(message)


def test_a_copied_board_finds_what_it_shares_among_the_shipped_ones(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(root() / "boards" / "mps2-an500", folder)
    board = load_board(folder)
    assert board.memory("psram").address == 0x6000_0000
    platform, shared = (file for file in board.files if file.suffix == ".repl")
    assert board.path_among_boards(platform) == Path("mine", "mps2-an500.repl")
    assert board.path_for_renode(platform) == Path("mps2-an500.repl")
    assert board.path_among_boards(shared) == board.path_for_renode(shared) == Path("mps2", "mps2.repl")
