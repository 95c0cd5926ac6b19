# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import lacking_variable
from renode_install import renode_root

from ferrule.boards import (
    Dictionary,
    Interrupt,
    NewObject,
    Platform,
    Range,
    Reference,
    Registration,
    Script,
    read_platform,
)
from ferrule.errors import FerruleError
from ferrule.resources import root

WHOLE = """\
/* A platform that uses
   everything. */
cpu: CPU.CortexM @ sysbus
    cpuType: "cortex-m33"  // a comment
    nvic: nvic
    enableTrustZone: true

nvic: IRQControllers.NVIC @ sysbus new Bus.BusPointRegistration {
    address: 0xE000E000;
    cpu: cpu
}
    priorityMask: 0xF0
    -> cpu@0

ram: Antmicro.Renode.Peripherals.Memory.MappedMemory @ { sysbus 0x20000000; sysbus <0x30000000, +0x1000> }
    size: 0x1000

uart: UART.CMSDK_APB_UART @ sysbus <0x40004000, 0x40005000> { frequency: 25000000; TxInterrupt -> nvic@1 }
    RxInterrupt -> nvic@0 | nvic@40

timer: Timers.Timer @ sysbus new Bus.BusMultiRegistration { address: 0x40000000; size: 0x100; region: "control" }
    [0-2] -> nvic@[16-18]
    [Late, 5] -> nvic@[30, 20]
    3 -> gate#1@7
    factor: 1.5
    offset: -4
    unit: Unit.Milli
    names: ["a", "b \\"c\\"", '''d
e''']
    helper: new Some.Helper { depth: 2; inner: new Other {} }
    nothing: empty
    init:
        Enable true
        Tag <0x0,0x4> "X"
    reset: // a comment
        Disable

gate: Miscellaneous.Gate @ none

port: Miscellaneous.Port @ {
    timer 0x1_0;
    gate [1, 2];
    adc Alias.Three
}
    series: .L5

timer:
    factor: 2
    Late -> none

sysbus:
    init add:
        ApplySVD @file
"""


def write(folder: Path, text: str, name: str = "board.repl") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def parse(folder: Path, text: str) -> Platform:
    return read_platform(write(folder, text))


def test_reads_everything_of_the_grammar(tmp_path: Path) -> None:
    platform = parse(tmp_path, WHOLE)
    assert list(platform.entries) == ["cpu", "nvic", "ram", "uart", "timer", "gate", "port", "sysbus"]
    cpu = platform.entry("cpu")
    assert (cpu.type, cpu.text("cpuType"), cpu.properties["enableTrustZone"]) == ("CPU.CortexM", "cortex-m33", True)
    assert cpu.properties["nvic"] == Reference(name="nvic")
    assert cpu.registrations == (Registration(bus="sysbus"),)
    nvic = platform.entry("nvic")
    assert nvic.registrations == (
        Registration(bus="sysbus", point=0xE000E000, properties={"cpu": Reference(name="cpu")}),
    )
    assert nvic.interrupts == (Interrupt(source=None, target="cpu", index=0),)
    ram = platform.entry("ram")
    assert ram.type == "Memory.MappedMemory"
    assert [place.address for place in ram.registrations] == [0x20000000, 0x30000000]
    assert ram.registrations[1].point == Range(begin=0x30000000, size=0x1000)
    uart = platform.entry("uart")
    assert uart.registrations[0].point == Range(begin=0x40004000, size=0x1000)
    assert [(line.source, line.index) for line in uart.interrupts] == [
        ("TxInterrupt", 1),
        ("RxInterrupt", 0),
        ("RxInterrupt", 40),
    ]
    gate = platform.entry("gate")
    assert (gate.registrations, gate.properties) == ((Registration(bus="none"),), {})
    port = platform.entry("port")
    assert port.registrations == (
        Registration(bus="timer", point=0x10),
        Registration(bus="gate", point=(1, 2)),
        Registration(bus="adc", point=Reference(name="Alias.Three")),
    )
    assert port.properties == {"series": Reference(name=".L5")}
    assert platform.entry("sysbus").scripts == (Script(kind="init add", lines=("ApplySVD @file",)),)


def test_entries_of_one_name_merge_and_the_last_value_wins(tmp_path: Path) -> None:
    timer = parse(tmp_path, WHOLE).entry("timer")
    assert timer.registrations == (
        Registration(bus="sysbus", point=0x40000000, size_bytes=0x100, properties={"region": "control"}),
    )
    assert timer.properties == {
        "factor": 2,
        "offset": -4,
        "unit": Reference(name="Unit.Milli"),
        "names": ("a", 'b "c"', "d\ne"),
        "helper": NewObject(
            type="Some.Helper", properties={"depth": 2, "inner": NewObject(type="Other", properties={})}
        ),
        "nothing": None,
    }
    assert timer.interrupts == (
        Interrupt(source=0, target="nvic", index=16),
        Interrupt(source=1, target="nvic", index=17),
        Interrupt(source=2, target="nvic", index=18),
        Interrupt(source=5, target="nvic", index=20),
        Interrupt(source=3, target="gate", index=7, local=1),
    )
    assert timer.scripts == (
        Script(kind="init", lines=("Enable true", 'Tag <0x0,0x4> "X"')),
        Script(kind="reset", lines=("Disable",)),
    )


def test_includes_other_files(tmp_path: Path) -> None:
    (tmp_path / "chips").mkdir()
    write(tmp_path, "ram: Memory.MappedMemory @ sysbus 0x0\n    size: 16\n", "chips/chip.repl")
    write(tmp_path, 'using "./core.repl"\nusing "chips/chip.repl"\n', "chips/all.repl")
    write(tmp_path, "cpu: CPU.CortexM\n", "chips/core.repl")
    platform = parse(tmp_path, 'using "chips/all.repl"\nram:\n    size: 32\n')
    assert list(platform.entries) == ["cpu", "ram"]
    assert platform.entry("ram").integer("size") == 32
    assert platform.entry("ram").place.endswith("chip.repl:1")


def test_files_of_renode_include_from_its_root(tmp_path: Path) -> None:
    (tmp_path / "platforms" / "boards").mkdir(parents=True)
    (tmp_path / "platforms" / "cpus").mkdir()
    write(tmp_path, "cpu: CPU.CortexM\n", "platforms/cpus/chip.repl")
    board = write(tmp_path, 'using "platforms/cpus/chip.repl"\n', "platforms/boards/board.repl")
    with pytest.raises(FerruleError, match="there is no file"):
        read_platform(board)
    write(tmp_path, "", ".renode-root")
    assert list(read_platform(board).entries) == ["cpu"]


def test_dictionaries(tmp_path: Path) -> None:
    platform = parse(tmp_path, 'key: X\n    values: { "left": 0; "right": 3.3; 4: { } }\n    none: {}\n')
    nothing = Dictionary(items=())
    properties = platform.entry("key").properties
    assert properties["values"] == Dictionary(items=(("left", 0), ("right", 3.3), (4, nothing)))
    assert properties["none"] == nothing


WITHOUT_DWT = {"microbit", "stm32g0b1"}
"""The boards with an Armv6-M core."""
FRAGMENTS = {"leon3-externals.repl", "stm32f4_discovery-additional_gpios.repl", "zedboard-externals.repl"}
"""Fragments that add to entries of a platform already loaded; Renode cannot load them alone, either."""


def test_reads_what_renode_ships() -> None:
    root = renode_root()
    if root is None:
        lacking_variable("RENODE")
    cores = 0
    for file in sorted((root / "platforms").rglob("*.repl")):
        if file.name not in FRAGMENTS:
            cores += len(read_platform(file).of_type("CPU.CortexM"))
    assert cores > 30


def test_crlf_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "board.repl"
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    entries = read_platform(path).entries
    plain = parse(tmp_path, WHOLE).entries
    assert [entry.interrupts for entry in entries.values()] == [entry.interrupts for entry in plain.values()]
    assert [entry.scripts for entry in entries.values()] == [entry.scripts for entry in plain.values()]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("cpu CPU.CortexM\n", 1, "'cpu' is not understood before an entry"),
        ("cpu:\n    a: 1\n", 1, "'cpu' has no type"),
        ("\n    a: 1\n", 2, "found where an entry must begin"),
        ("a: X\nb: Y z: W\n", 2, "not understood after the registration"),
        ("a: X\na: X\n", 2, "declared a second time"),
        ("a: X\n    b: 0x1_\n", 2, "'0x1_' is not understood"),
        ("a: X\n    b: 0x1__2\n", 2, "'0x1__2' is not understood"),
        ("a: X\n    b: 1__2\n", 2, "'1__2' is not understood"),
        ('a: X @ sysbus 0x0 as "alias"\n', 1, "'as' is not understood"),
        ("a: X @ sysbus 1.5\n", 1, "an address on sysbus must be an integer"),
        ("a: X @ sysbus b\n", 1, "an address on sysbus must be an integer"),
        ("a: X @ sysbus true\n", 1, "an address on sysbus must be an integer"),
        ("a: X @ sysbus -1\n", 1, "out of range"),
        ("a: X @ sysbus <0x10, 0x10>\n", 1, "empty or out of bounds"),
        ("a: X @ sysbus <0x10 0x20>\n", 1, "expected ',' in a range"),
        ("a: X @ sysbus <0x10, +0x20\n", 2, "expected '>'"),
        ('a: X @ sysbus new P { address: "x" }\n', 1, "must be a number or a range"),
        ("a: X @ sysbus new P { address: 0; size: 0 }\n", 1, "the size 0 is out of range"),
        ("a: X @ { sysbus 0x0\n", 2, "expected ';' between two registrations"),
        ("a: X { b: 1\n", 2, "expected ';' between two attributes"),
        ("a: X\n    b: {\n", 2, "is not closed"),
        ("a: X\n    b: [1, 2\n", 3, "expected ',' between two values"),
        ("a: X\n    b: new P { c: 1\n", 3, "expected ';' between two properties"),
        ("a: X\n    b: 1 c: 2\n", 2, "'c' is not understood at the end of the line"),
        ('a: X\n    b: "open\n', 2, "this string is not closed"),
        ("a: X\n/* open\n", 2, "this comment is not closed"),
        ("a: X\n    b: $c\n", 2, "'$c' is not understood"),
        ("a: X\n\tb: 1\n", 2, "indented by a tab"),
        ("a: X\n    b: 0x\n", 2, "'0x' is not understood"),
        ("a: X\n    -> b@0\n", 1, "'a' interrupts 'b', which is not an entry"),
        ("a: X\n    -> a\n", 3, "expected '@' after 'a'"),
        ("a: X\n    [0-1] -> a@[1-3]\n", 2, "2 outputs are connected to 3 inputs"),
        ("a: X\n    [0-99999] -> a@[0-99999]\n", 2, "out of range"),
        ("a: X\n    0 a@1\n", 2, "expected '->'"),
        ("a: X\n    b: " + "[" * 100 + "\n", 2, "nested deeper"),
        ("a: X\n    b: " + "1" * 5000 + "\n", 2, "more than 40 characters"),
        ("a: X\n    b: 1 init:\n", 2, "not understood at the end"),
        ('a: X\n    b: { "c" }\n', 2, "after the key of a dictionary"),
        ("a: X\n    b: { 1: 2 3: 4 }\n", 2, "between two items of a dictionary"),
        ("a: X\n    b: { 1: 2;\n", 2, "is not closed"),
        ("a: X\n    b: " + "{1:" * 100 + "\n", 2, "nested deeper"),
        ('a: X\nusing "b.repl"\n', 2, "'using' must precede"),
        ('using "missing.repl"\n', 1, "there is no file 'missing.repl'"),
        ('using "board.repl"\n', 1, "includes itself"),
        ('using "other.repl" prefixed "p"\n', 1, "'prefixed' is not supported"),
    ],
)
def test_names_the_place_of_what_it_does_not_understand(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(FerruleError) as caught:
        read_platform(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="there is no platform description"):
        read_platform(tmp_path / "none.repl")
    binary = tmp_path / "binary.repl"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FerruleError, match="cannot read"):
        read_platform(binary)
    with pytest.raises(FerruleError, match="Is a directory"):
        read_platform(tmp_path)


PIECES = [
    *("cpu", "sysbus", "nvic", "X", "Bus.Point", "none", "empty", "new", "true", "using", "init", "as", "local"),
    *(":", "@", "<", ">", ",", "+", "{", "}", "[", "]", ";", "->", "|", "#", "-", "$", "*/", "/*", "//", '"', "'''"),
    *(
        "0",
        "1__2",
        "0x_",
        "0x1_0",
        ".Two",
        "3" * 50,
        "2.",
        "0x10",
        "+4",
        "-3",
        "1.5",
        "0-1",
        '"a"',
        "\n",
        "\n    ",
        "\n\t",
        "\n        ",
        " ",
        "    init:\n",
        "é",
    ),
]


def _whole_or_error(folder: Path, text: str) -> None:
    message, entries = "", {}
    try:
        entries = dict(parse(folder, text).entries)
    except FerruleError as error:
        message = str(error)
    assert not message or message.startswith(str(folder))
    assert all(name == entry.name for name, entry in entries.items())


@settings(max_examples=150)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_pieces_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    _whole_or_error(tmp_path_factory.getbasetemp(), " ".join(pieces))


@settings(max_examples=150)
@given(data=st.data())
def test_any_damage_to_a_whole_description_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = WHOLE
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 12)))
        text = text[:at] + data.draw(st.sampled_from(["", *PIECES])) + text[until:]
    _whole_or_error(tmp_path_factory.getbasetemp(), text)


@settings(max_examples=100)
@given(text=st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    _whole_or_error(tmp_path_factory.getbasetemp(), text)


@pytest.mark.parametrize("path", sorted((root() / "boards").glob("*/*.repl")), ids=lambda path: path.stem)
def test_reads_the_boards_of_this_repository(path: Path) -> None:
    platform = read_platform(path)
    assert [entry.name for entry in platform.of_type("CPU.CortexM")] == ["cpu"]
    if path.stem not in WITHOUT_DWT:
        assert platform.entry("nvic").integer("systickFrequency") == platform.entry("dwt").integer("frequency")


@pytest.mark.parametrize("name", ["x" * 5000, "/dev/zero", "a" * 200 + "/.."])
def test_impossible_paths_of_using_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.repl"
    path.write_text(f'using "{name}"\n', encoding="utf-8")
    with pytest.raises(FerruleError, match=f"{path}:1: there is no file"):
        read_platform(path)


def test_files_that_include_one_another_over_and_over_are_refused(tmp_path: Path) -> None:
    for number in range(40):
        text = f'using "{number + 1}.repl"\nusing "{number + 1}.repl"\n' if number < 39 else "// the end\n"
        (tmp_path / f"{number}.repl").write_text(text, encoding="utf-8")
    with pytest.raises(FerruleError, match="includes more than 256 files"):
        read_platform(tmp_path / "0.repl")


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(FerruleError, match="/dev/zero: it is a device, expected a regular file"):
        read_platform(Path("/dev/zero"))
