# SPDX-License-Identifier: Apache-2.0
"""`ferrule registers`, and `ferrule new model`: registers in, out and as a working model."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from children import ran
from imported import forget
from needs import lacking
from svd_files import CHIP

from ferrule.backends.woofles.headers import FOLDER as WOOFLES_HEADERS
from ferrule.backends.woofles.registers import TABLE
from ferrule.devices import read_rdl, read_svd
from ferrule.errors import FerruleError

Ferrule = Callable[..., Any]

RDL = """
enum mode_e { SLOW = 2'd0 { desc = "slow one"; }; FAST = 2'd2; };
addrmap dma {
  desc = "Moves
     data";
  reg { field { sw=rw; hw=r; encode=mode_e; } MODE[1:0] = 2'd2; field { sw=rw; hw=r; } EN[4:4] = 0;
        field { sw=rw; hw=r; singlepulse; } GO[5:5] = 0; } CTRL @ 0x0;
  reg { field { sw=rw; hw=w; onwrite=woclr; } DONE[0:0]=0; field { sw=r; hw=w; onread=rclr; } CNT[15:8]=0;
        field {sw=w; onwrite=wot; hw=r;} T[16:16]=0; } IRQ @ 0x4;
  regfile { reg { field { sw=rw; hw=r; } A[31:0] = 0; } ADDR; } CH[2] @ 0x10 += 0x10;
  reg { regwidth=16; field { sw=rw; hw=r; } V[15:0] = 5; } VEC[4] @ 0x80 += 4;
};
"""


@pytest.fixture
def chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "chip.svd"
    path.write_text(CHIP, encoding="utf-8")
    return path


def test_the_registers_of_a_backend(ferrule: Ferrule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = ferrule("registers", "Woofles", "--svd", "w.svd", "--header", "w.h", "--markdown", "w.md")
    assert (outcome.code, outcome.err) == (0, "")
    assert "w.svd: 1 peripherals, 12 registers, 9 fields" in outcome.out
    assert (tmp_path / "w.h").read_bytes() == (WOOFLES_HEADERS / "registers.h").read_bytes()
    assert "| 0x018 | QUEUE_LENGTH |" in (tmp_path / "w.md").read_text(encoding="utf-8")
    found = read_svd(tmp_path / "w.svd").peripheral("Woofles")
    assert (found.table.registers, found.base) == (TABLE.registers, 0xA000_0000)
    assert [each.number for each in found.interrupts] == [28]


def test_devices_of_a_configuration(ferrule: Ferrule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ferrule.toml").write_text(
        'board = "mps3-an547"\n[devices.a]\nbackend = "Woofles"\n'
        '[devices.b]\nbackend = "Woofles"\nbinding = { base = 0x5000_0000 }\n',
        encoding="utf-8",
    )
    assert ferrule("registers", "Woofles", "--svd", "w.svd").code == 0
    file = read_svd(tmp_path / "w.svd")
    assert [(name, file.peripheral(name).base) for name in file.names] == [("a", 0x5A00_0000), ("b", 0x5000_0000)]
    assert ferrule("registers", "Woofles", "--header", "w.h").code == 0  # both have the same registers
    outcome = ferrule("registers", "Woofles", "--peripheral", "c")
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, "error: there is no device 'c' of Woofles")


def test_a_file_is_listed(ferrule: Ferrule, chip: Path) -> None:
    outcome = ferrule("registers", chip)
    assert outcome.code == 0
    assert "TIMER1" in outcome.out
    assert "0x40001000" in outcome.out
    assert "registers overlap" in outcome.out
    outcome = ferrule("registers", chip, "--peripheral", "BOTH", "--prefer", "*_OUT")
    assert outcome.code == 0
    assert "MODE_OUT" in outcome.out
    assert "MODE_IN" not in outcome.out
    assert outcome.err == "note: BOTH.MODE_IN: left out, since it overlaps MODE_OUT\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Woofle"], "there is no backend 'Woofle', and it is no file *.svd, *.xml or *.rdl"),
        (["Woofles", "--prefer", "A"], "--prefer is only valid with an SVD file"),
        (["CpuAcc"], "device 'CpuAcc' of backend CpuAcc has no registers on the bus of mps2-an386"),
        (["none.svd"], "none.svd cannot be read: No such file or directory"),
        (["chip.svd", "--peripheral", "TIMER9"], "there is no peripheral 'TIMER9' in chip.svd"),
        (["chip.svd", "--header", "a.h", "--prefer", "*"], "--header writes the registers of one peripheral, not of 4"),
        (["chip.svd", "--svd", "a.svd"], "registers overlap or have the same name: MODE_OUT and MODE_IN"),
        (["chip.svd", "--svd", "none/a.svd"], "--svd none/a.svd: there is no folder"),
    ],
)
def test_refusals_leave_no_file(ferrule: Ferrule, chip: Path, arguments: list[str], message: str) -> None:
    outcome = ferrule("registers", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert list(chip.parent.iterdir()) == [chip]


@pytest.mark.parametrize("run", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["model", "tests"])
def test_a_model_passes_its_own_tests(
    ferrule: Ferrule, chip: Path, monkeypatch: pytest.MonkeyPatch, *, run: bool
) -> None:
    outcome = ferrule("new", "model", "--svd", chip, "--peripheral", "TIMER0")
    assert outcome.code == 0, outcome.err
    assert "timer0: 12 registers; test them with: pytest timer0" in outcome.out
    model = (chip.parent / "timer0" / "model.py").read_text(encoding="utf-8")
    assert "# - IRQ.C: a write has the effect oneToToggle, which the model must implement" in model
    assert ferrule("new", "model", "--svd", chip, "--peripheral", "TIMER0").code == 2
    if run:
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:ferrule", "timer0"]
        done = ran(argv, cwd=chip.parent)
        assert "3 passed" in done.stdout, done.stdout + done.stderr
        return
    monkeypatch.syspath_prepend(chip.parent)
    names: dict[str, Any] = {}
    exec(model, names)  # noqa: S102 our own
    forget("timer0")
    timer = names["Timer0Model"]()
    timer.write(0, 4, 1)
    assert timer.field("CTRL", "EN") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected one of --svd and --rdl"),
        (["--svd", "chip.svd"], "chip.svd has 4 peripherals"),
        (["--svd", "chip.svd", "--peripheral", "BOTH"], "registers overlap"),
        (["numpy", "--svd", "chip.svd", "--peripheral", "OTHER"], "the Python package 'numpy', a name that is in use"),
        (["../up", "--svd", "chip.svd", "--peripheral", "OTHER"], "model '../up' is not a valid name"),
        (["class", "--svd", "chip.svd", "--peripheral", "OTHER"], "the Python package 'class', a name that is in use"),
    ],
)
def test_refused_models(ferrule: Ferrule, chip: Path, arguments: list[str], message: str) -> None:
    outcome = ferrule("new", "model", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert list(chip.parent.iterdir()) == [chip]


@pytest.fixture
def rdl(tmp_path: Path) -> Path:
    if find_spec("systemrdl") is None:
        lacking("the Python module systemrdl", "pip install 'ferrule[rdl]'")
    path = tmp_path / "dma.rdl"
    path.write_text(RDL, encoding="utf-8")
    return path


def test_systemrdl(ferrule: Ferrule, rdl: Path) -> None:
    file = read_rdl(rdl)
    assert file.names == ("dma",)
    found = file.peripheral("dma")
    assert found.notes == ("IRQ.T: a write has the effect wot, which the model must implement",)
    assert found.table.doc == "Moves data"
    assert [(each.name, each.offset, each.size_bits, each.reset) for each in found.table.registers] == [
        ("CTRL", 0, 32, 2),
        ("IRQ", 4, 32, 0),
        ("CH0_ADDR", 0x10, 32, 0),
        ("CH1_ADDR", 0x20, 32, 0),
        ("VEC%s", 0x80, 16, 5),
    ]
    assert [(each.name, each.value, each.doc) for each in found.table.register("CTRL").field("MODE").values] == [
        ("SLOW", 0, "slow one"),
        ("FAST", 2, ""),
    ]
    assert [(str(each.access), each.read_clears) for each in found.table.register("IRQ").fields] == [
        ("w1c", False),
        ("ro", True),
        ("wo", False),
    ]
    assert [each.pulses for each in found.table.register("CTRL").fields] == [False, False, True]
    out = rdl.parent / "dma.svd"
    assert ferrule("registers", rdl, "--svd", out).code == 0
    rdl.write_text(RDL.replace("singlepulse;", ""), encoding="utf-8")  # SVD has no word for it
    assert read_svd(out).peripheral("dma").table == read_rdl(rdl).peripheral("dma").table


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("counter", "the hardware counts"),
        ("intr", "an interrupt's cause"),
        ("swwe", "a signal permits its writes"),
        ("swwel", "a signal forbids its writes"),
    ],
)
def test_what_a_table_cannot_say_is_a_note(rdl: Path, words: str, said: str) -> None:
    rdl.write_text(f"addrmap x {{ reg {{ field {{ sw=rw; hw=rw; {words}; }} F[0:0] = 0; }} R; }};", encoding="utf-8")
    (note,) = read_rdl(rdl).peripheral("x").notes
    assert note.startswith(f"R.F: {said}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("addrmap x { reg { field {} F[3:0] = 0 } R; };", r"bad\.rdl:1: missing ';' at '}'"),
        ("addrmap x { reg { field {} F = <% print 1 %>; } R; };", r"bad\.rdl has Perl in <% %>, which is not run"),
        ('`include "perl.rdl"', "'print' trapped by operation mask"),
        ("", "elaborate|top-level|root"),
        (
            "addrmap x { reg { field { sw=r; hw=w; singlepulse; } F[0:0] = 0; } R; };",
            r"singlepulse|R\.F has the property singlepulse, but software cannot write it",
        ),
        (None, r"bad\.rdl cannot be read: No such file"),
    ],
)
def test_refused_systemrdl(rdl: Path, text: str | None, message: str) -> None:
    (rdl.parent / "perl.rdl").write_text("addrmap x { reg { field {} F = <% print 1 %>; } R; };", encoding="utf-8")
    bad = rdl.parent / "bad.rdl"
    if text is not None:
        bad.write_text(text, encoding="utf-8")
    with pytest.raises(FerruleError, match=message):
        read_rdl(bad)


def test_without_the_compiler(ferrule: Ferrule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.devices.rdl.find_spec", lambda _name: None)
    outcome = ferrule("registers", tmp_path / "a.rdl")
    assert outcome.code == 2
    assert outcome.err == (
        "error: the Python package systemrdl-compiler is missing\nhint: pip install 'ferrule[rdl]'\n"
    )


def test_each_reading_leaves_the_streams_of_its_time(rdl: Path) -> None:
    """The compiler's first import keeps the streams that it wraps, and a later caller may have others."""
    for _ in range(2):
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            read_rdl(rdl)
            assert sys.stdout is out
            assert sys.stderr is err
        out.close()
        err.close()


@pytest.mark.nightly
def test_the_streams_stay_as_they_are(rdl: Path) -> None:
    """The compiler's import wraps standard output, which a terminal and a pipe would notice."""
    program = (
        "import sys; from pathlib import Path; from ferrule.devices import read_rdl\n"
        "before = sys.stdout, sys.stderr\n"
        f"read_rdl(Path({json.dumps(str(rdl))}))\n"
        "assert before == (sys.stdout, sys.stderr)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
