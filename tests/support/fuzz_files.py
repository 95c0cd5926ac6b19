# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets: the files that users give to Ferrule."""

from __future__ import annotations

import random
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from call_models import call_models
from computed_parameters import models_with_computed_parameters
from fuzzing import Check, Target, refused
from import_check import check_import
from mutation import mutate, mutate_values
from run_time_models import models as run_time_models
from sample_networks import valid_samples
from stored_weights import models_with_stored_weights
from svd_files import CHIP
from text_mutation import json_text, mutate_text, mutate_tree, toml_text

from ferrule import resources
from ferrule.backends.manifest import MANIFEST_NAME as BACKEND_NAME
from ferrule.backends.manifest import SHIPPED_FOLDER
from ferrule.backends.manifest import read_manifest as read_backend
from ferrule.boards import load_board
from ferrule.boards.parser import read_platform
from ferrule.devices import SvdFile, c_header, svd_text
from ferrule.devices.svd.xml_tree import parse_xml
from ferrule.evaluation.sweep import read_plan
from ferrule.firmware import read_image
from ferrule.firmware.manifest import MANIFEST_NAME as PROJECT_NAME
from ferrule.firmware.manifest import Manifest, manifest_bytes, read_manifest
from ferrule.formats import load, to_tflite
from ferrule.formats.tflite.flexbuffer import FlexValue, read_map, write_map
from ferrule.running.configuration import read_configuration

_CONFIGURATION = """
[backends]
folders = ["own/npu"]
[devices.npu0]
backend = "CpuAcc"
binding = { base = 0x4002_0000, label = "npu" }
regions = ["ssram1"]
[devices.npu1]
backend = "CpuAcc"
activation_lead = 3
[data]
classes = ["yes", "no"]
scale = "1/255"
mean = [0.5, 0.25]
resize = "bilinear"
[data.audio]
longer = "pieces"
channels = 40
lower_hz = 125.0
"""


_SWEEP = """
models = ["dense.tflite", "d?nse.tflite"]
boards = ["mps2-an386", "microbit"]
samples = 2
[options]
goal = ["speed", "memory"]
input_rows = [false]
seed = [1, 2]
[backend_options.CpuAcc]
num_threads = [1]
[[exclude]]
board = "microbit"
seed = [1, 2]
[[include]]
engine = "qemu"
[[needs]]
match = { goal = "speed" }
resources = { BOARD = 1.5 }
lease = "lab"
load = ["loader", "{elf}"]
[lease.lab]
place = "nucleo"
environment = { LG = "x" }
"""


def _samples() -> list[bytes]:
    return [to_tflite(graph) for graph in valid_samples()]


def _tflite(models: Callable[[], list[bytes]]) -> Callable[[Path], Check]:
    """Return the preparation of a target that damages these files, mostly the numbers in them."""

    def prepare(folder: Path) -> Check:
        del folder
        seeds = models()

        def check(choice: random.Random) -> bool:
            base = choice.choice(seeds)
            data = mutate_values(base, choice) if choice.random() < 0.4 else mutate(base, seeds, choice)
            if choice.random() < 0.02:  # with a run and a round trip through the writer
                return check_import(data)
            with refused():
                load(data, name="fuzz")
                return True
            return False

        return check

    return prepare


def _custom_options(folder: Path) -> Check:
    del folder
    maps: tuple[dict[str, FlexValue], ...] = ({}, {"shift": 12}, {"a": 70000, "b": 0.5, "c": True, "d": "text"})
    seeds = [write_map(values) for values in maps]

    def check(choice: random.Random) -> bool:
        data = bytearray(choice.choice(seeds))
        for _ in range(choice.randrange(4)):  # mostly the root and the types, on which the rest depends
            place = choice.randrange(len(data)) if choice.random() < 0.5 else -choice.randint(1, min(8, len(data)))
            data[place] = choice.choice((choice.randrange(256), data[place] ^ 1 << choice.randrange(8)))
        if choice.random() < 0.2:
            del data[choice.randrange(len(data)) :][: choice.randrange(4)]
        with refused():
            values = read_map(bytes(data))
            assert read_map(write_map(values)).keys() == values.keys()
            return True
        return False

    return check


def _document(
    file: Path, texts: list[str], write: Callable[[dict[str, Any]], str], trees: list[dict[str, Any]],
    read: Callable[[], object],
) -> Check:  # fmt: skip
    """Return the check of a reader of documents: half of the inputs are changed trees, half are damaged texts."""

    def check(choice: random.Random) -> bool:
        if choice.random() < 0.5:
            data = write(mutate_tree(choice.choice(trees), choice)).encode("utf-8", "replace")
        else:
            data = mutate_text(choice.choice(texts), texts, choice)
        file.write_bytes(data)
        with refused():
            read()
            return True
        return False

    return check


def _toml(file: Path, texts: list[str], read: Callable[[], object]) -> Check:
    return _document(file, texts, toml_text, [tomllib.loads(text) for text in texts], read)


def _board(folder: Path) -> Check:
    boards = sorted(path for path in (resources.root() / "boards").iterdir() if (path / "board.toml").is_file())
    for board in boards:
        for description in board.glob("*.repl"):
            shutil.copy(description, folder)
    texts = [(board / "board.toml").read_text(encoding="utf-8") for board in boards]
    return _toml(folder / "board.toml", texts, lambda: load_board(folder))


def _repl(folder: Path) -> Check:
    texts: list[str] = []
    for path in sorted((resources.root() / "boards").rglob("*.repl")):
        entries = path.read_text(encoding="utf-8").split("\n\n")
        texts += ["\n\n".join(entries[first : first + 4]) + "\n" for first in range(0, len(entries), 3)]
    texts.append(
        'using "other.repl"\n\nx: Python.PythonPeripheral @ sysbus 0x10\n    size: 0x4\n    init:\n        a\n'
    )
    file = folder / "x.repl"
    (folder / "other.repl").write_text(texts[0], encoding="utf-8")

    def check(choice: random.Random) -> bool:
        file.write_bytes(mutate_text(choice.choice(texts), texts, choice))
        with refused():
            read_platform(file)
            return True
        return False

    return check


def _project(folder: Path) -> Check:
    manifest = Manifest(
        ferrule_version="1",
        platform="bare_metal",
        model="m",
        digest="00",
        board="board",
        toolchain="zig",
        optimization="O2",
        sources=("src/a.c",),
        include_dirs=("include",),
        defines={"X": "1"},
        files={"src/a.c": "00"},
        starters=("main.c",),
    )
    import json

    text = manifest_bytes(manifest).decode()
    return _document(folder / PROJECT_NAME, [text], json_text, [json.loads(text)], lambda: read_manifest(folder))


def _configuration(folder: Path) -> Check:
    file = folder / "ferrule.toml"
    return _toml(file, [_CONFIGURATION], lambda: read_configuration(file).with_devices(["npu0=CpuRef"]))


def _sweep(folder: Path) -> Check:
    (folder / "dense.tflite").write_bytes(_samples()[0])
    return _toml(folder / "sweep.toml", [_SWEEP], lambda: read_plan(folder / "sweep.toml"))


def _backend(folder: Path) -> Check:
    texts = [path.read_text(encoding="utf-8") for path in sorted(SHIPPED_FOLDER.glob(f"*/{BACKEND_NAME}"))]
    return _toml(folder / BACKEND_NAME, texts, lambda: read_backend(folder))


def _elf(folder: Path) -> Check:
    seeds = [small_elf()]
    file = folder / "firmware.elf"

    def check(choice: random.Random) -> bool:
        file.write_bytes(mutate(seeds[0], seeds, choice))
        with refused():
            read_image(file)
            return True
        return False

    return check


def small_elf() -> bytes:
    """Return a firmware of one segment, with a section, two symbols and the tables for them."""
    import struct

    names = b"\0.text\0.symtab\0.strtab\0"
    strings = b"\0main\0data\0"
    symbols = bytes(16) + struct.pack("<IIIBBH", 1, 0x101, 4, 2, 0, 1) + struct.pack("<IIIBBH", 6, 0x104, 4, 1, 0, 1)
    code = bytes(range(8))
    parts = {"text": code, "symbols": symbols, "strings": strings, "names": names}
    at, offsets = 52 + 32, {}
    for name, part in parts.items():
        offsets[name] = at
        at += len(part)
    header = struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0x101, 52, at, 0x5000000, 52, 32, 1, 40, 4, 3)
    segment = struct.pack("<IIIIIIII", 1, offsets["text"], 0x100, 0x100, 8, 8, 5, 4)
    sections = (
        bytes(40)
        + struct.pack("<IIIIIIIIII", 1, 1, 6, 0x100, offsets["text"], len(code), 0, 0, 4, 0)
        + struct.pack("<IIIIIIIIII", 7, 2, 0, 0, offsets["symbols"], len(symbols), 3, 1, 4, 16)
        + struct.pack("<IIIIIIIIII", 15, 3, 0, 0, offsets["strings"], len(strings + names), 0, 0, 1, 0)
    )
    return b"\x7fELF\x01\x01\x01" + bytes(9) + header + segment + b"".join(parts.values()) + sections


def _svd(folder: Path) -> Check:
    del folder
    path = Path("chip.svd")

    def check(choice: random.Random) -> bool:
        data = mutate_text(CHIP, [CHIP], choice)
        with refused():
            file = SvdFile(path, parse_xml(data, path))
            for name in file.names[:8]:
                found = file.peripheral(name, prefer=choice.choice([(), ("*",), ("*",), ("*",)]))
                c_header(found.table)
                svd_text([found], device="chip")
            return True
        return False

    return check


TARGETS = (
    Target(name="tflite", share=0.05, prepare=_tflite(_samples)),
    Target(name="tflite-calls", share=0.03, prepare=_tflite(call_models)),
    Target(name="tflite-weights", share=0.02, prepare=_tflite(models_with_stored_weights)),
    Target(name="tflite-run-time", share=0.03, prepare=_tflite(run_time_models)),
    Target(name="tflite-folding", share=0.03, prepare=_tflite(models_with_computed_parameters)),
    Target(name="board", share=0.03, rate=900, prepare=_board),
    Target(name="repl", share=0.05, prepare=_repl),
    Target(name="custom-options", share=0.03, rate=20000, prepare=_custom_options),
    Target(name="project", share=0.04, rate=6000, prepare=_project),
    Target(name="configuration", share=0.03, prepare=_configuration),
    Target(name="sweep", share=0.02, rate=700, prepare=_sweep),
    Target(name="backend", share=0.04, prepare=_backend),
    Target(name="svd", share=0.02, rate=300, prepare=_svd),
    Target(name="elf", share=0.03, rate=700, prepare=_elf),
)
