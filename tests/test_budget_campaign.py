# SPDX-License-Identifier: Apache-2.0
"""Inputs that ask for more than they are: each ends with one error that names the place, before the memory is taken.

Each row has limits with which its input is refused, and the words of the error; with `enough`, it is not.
"""

from __future__ import annotations

import sys
import textwrap
import wave
import zipfile
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import ran
from needs import require_module
from onnx_models import load, model, node

from ferrule import formats
from ferrule._frozen import positional
from ferrule.budget import limits
from ferrule.documents import read_toml
from ferrule.errors import BudgetError
from ferrule.evaluation.data import DataSettings, open_data
from ferrule.evaluation.data.array_files import Arrays
from ferrule.evaluation.data.labels import class_names, read_lines
from ferrule.evaluation.metrics import Scored, confusion
from ferrule.evaluation.scoring import scores_of, widened
from ferrule.evaluation.sweep.axes import axes_of
from ferrule.evaluation.sweep.file import SweepFile
from ferrule.firmware.image import read_image
from ferrule.graph import DataType, TensorInfo
from ferrule.network import Network
from ferrule.network.samples import pattern, random_sample
from ferrule.report.reading import read_comparable

INPUT = TensorInfo("x", (1, 2), DataType.FLOAT32)
OUTPUT = TensorInfo("y", (1, 3), DataType.FLOAT32)


@positional
class Case:
    """An input, what is done with it, and the limits of both sides."""

    act: Callable[[], object]
    """Makes the input in the current folder and uses it."""
    _: KW_ONLY
    refused: dict[str, int]
    words: str
    enough: dict[str, int] | None = None
    """None if the whole would take too long, or is refused for another reason."""
    needs: tuple[str, ...] = field(default=())


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path = Path("data.npz")
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in members:
            made.writestr(name, data)
    return path


def npy(shape: tuple[int, ...], data: bytes = b"") -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(11 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


def data_of(path: str, **settings: Any) -> object:  # noqa: ANN401
    labels = settings.pop("labels", None)
    info = settings.pop("info", INPUT)
    return open_data(path, labels, [info], [OUTPUT], DataSettings(**settings), None)


def text_file(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def recording() -> str:
    Path("d").mkdir()
    with wave.open("d/long.wav", "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(20_000))
    return "d"


def image(width: int, height: int) -> str:
    from PIL import Image

    Path("d").mkdir()
    Image.new("L", (width, height)).save("d/a.png")
    return "d"


def one_sound() -> object:
    data: Any = open_data(
        recording(),
        None,
        [TensorInfo("x", (1, 10_000), DataType.INT16)],
        [OUTPUT],
        sound_settings(),
        None,
    )
    return data.take([0])


def sound_settings() -> DataSettings:
    from ferrule.running.data_settings import AudioSettings

    return DataSettings(audio=AudioSettings(features="raw"))


def one_image() -> object:
    info = TensorInfo("x", (1, 2, 2, 1), DataType.FLOAT32)
    data: Any = open_data(image(200, 100), None, [info], [OUTPUT], DataSettings(scale=1.0, resize="nearest"), None)
    return data.take([0])


def generated(body: str) -> object:
    return data_of(
        text_file("gen.py", f"import numpy as np\ndef samples():\n{textwrap.indent(body, '    ')}\n") + ":samples"
    )


def scored(labels: int) -> Scored:
    numbers = np.arange(labels)
    return Scored(scores=np.eye(labels, dtype=np.float32), labels=numbers)


def sweep(**options: Any) -> object:  # noqa: ANN401
    file = SweepFile(models=("m",), **options)
    main = {"model": tuple(f"m{i}" for i in range(1000)), "board": ("b",), "toolchain": ("t",), "engine": ("e",)}
    return axes_of(file, {**main, "backends": tuple(f"n{i}" for i in range(1000))}, lambda _: "e")


def number_of_class() -> TensorInfo:
    return TensorInfo("y", (1,), DataType.INT32)


CASES: dict[str, Case] = {
    "an array that unfolds": Case(
        lambda: Arrays(archive(("x.npy", npy((1 << 14, 4), bytes(1 << 18)))))["x"],
        refused={"bytes": 1 << 17},
        words="data.npz: array 'x' takes 262,144 bytes",
        enough={"bytes": 1 << 19},
    ),
    "several arrays that unfold": Case(
        lambda: [*Arrays(archive(*((f"{n}.npy", npy((256, 4), bytes(4096))) for n in "abc"))).values()],
        refused={"bytes": 12_000},
        words="array 'c' takes 4,096 bytes of memory beside 8,192",
        enough={"bytes": 13_000},
    ),
    "a header that lies": Case(
        lambda: Arrays(archive(("x.npy", npy((1 << 40, 4), bytes(64)))))["x"],
        refused={},
        words="array 'x' takes 17,592,186,044,416 bytes",
    ),
    "the directory of an archive": Case(
        lambda: Arrays(archive(*((f"{n}.npy", b"") for n in range(2000)))),
        refused={"bytes": 1 << 20},
        words="the directory of the archive takes",
        enough={"bytes": 1 << 22},
    ),
    "a line of a table": Case(
        lambda: data_of(text_file("t.csv", "a,b\n1," + " " * (3 << 20) + "\n")),
        refused={"bytes": 8 << 20},
        words="t.csv: a line of up to 3,145,728 characters takes 12,582,912 bytes",
    ),
    "rows of CSV": Case(
        lambda: data_of(text_file("t.csv", "a,b\n" + "1,2\n" * 100)),
        refused={"bytes": 2000},
        words="t.csv, line 85 takes 24 bytes",
        enough={"bytes": 2400},
    ),
    "texts of CSV": Case(
        lambda: data_of(text_file("t.csv", "a,b,c\n" + f"1,2,{'x' * 500}\n" * 3), labels="c"),
        refused={"bytes": 1500},
        words="t.csv, line 4 takes",
    ),
    "a list of labels": Case(
        lambda: read_lines(Path(text_file("l.txt", "1\n" * 100))),
        refused={"bytes": 6399},
        words="l.txt takes 6,400 bytes",
        enough={"bytes": 6400},
    ),
    "a list of classes": Case(
        lambda: class_names(DataSettings(classes=text_file("c.txt", "".join(f"{n}\n" for n in range(1000))))),
        refused={"bytes": 1 << 16},
        words="c.txt takes",
        enough={"bytes": 1 << 18},
    ),
    "a generator without end": Case(
        lambda: generated("while True:\n    yield np.zeros(2)"),
        refused={"bytes": 100},
        words="sample 12 takes 8 bytes",
    ),
    "labels of a generator": Case(
        lambda: generated("for _ in range(4):\n    yield np.zeros(2), np.zeros(1000)"),
        refused={"bytes": 20_000},
        words="sample 2 takes",
        enough={"bytes": 40_000},
    ),
    "an image": Case(
        one_image,
        refused={"bytes": 399_999},
        words="the image of 200x100 pixels takes 400,000 bytes",
        enough={"bytes": 400_000},
        needs=("PIL",),
    ),
    "a recording": Case(
        one_sound,
        refused={"bytes": 79_999},
        words="long.wav takes 80,000 bytes",
        enough={"bytes": 80_000},
    ),
    "a confusion matrix": Case(
        lambda: confusion(scored(100), ()),
        refused={"bytes": 319_999},
        words="the confusion matrix of 100 labels takes 320,000 bytes",
        enough={"bytes": 320_000},
    ),
    "scores of numbered classes": Case(
        lambda: scores_of(number_of_class(), np.full(100, 999, np.int32), 100),
        refused={"bytes": 1_199_999},
        words="a score for each of 1,000 classes and samples takes 1,200,000 bytes",
        enough={"bytes": 1_200_000},
    ),
    "a number of a class beyond 16 bits": Case(
        lambda: scores_of(number_of_class(), np.full(1, 99_999, np.int32), 1),
        refused={"bytes": 1_199_999},
        words="a score for each of 100,000 classes and samples takes 1,200,000 bytes",
        enough={"bytes": 1_200_000},
    ),
    "scores for all labels": Case(
        lambda: widened(np.zeros((100, 2), np.float32), number_of_class(), np.full(100, 999)),
        refused={"bytes": 1_199_999},
        words="a score for each of 1,000 classes",
        enough={"bytes": 1_200_000},
    ),
    "a product of axes": Case(sweep, refused={"bytes": 2_047_999_999}, words="a sweep of 1,000,000 runs takes"),
    "rows that each run is compared with": Case(
        lambda: sweep(exclude=tuple({"model": f"m{i}"} for i in range(1000))),
        refused={"bytes": 1 << 32},
        words="a sweep of 1,000,000 runs, compared with all rows of exclude and include, takes",
    ),
    "rows of include": Case(
        lambda: sweep(include=tuple({"model": ("m1", "m2")} for _ in range(1000))),
        refused={"bytes": 1 << 32},
        words="a sweep of 1,002,000 runs, compared",
    ),
    "TOML": Case(
        lambda: read_toml(Path(text_file("a.toml", "a = [[],[],[]]\n"))),
        refused={"bytes": 959},
        words="a.toml takes 960 bytes",
        enough={"bytes": 960},
    ),
    "rows of results": Case(
        lambda: read_comparable(Path(text_file("r.jsonl", "{}\n" * 1000)), print),
        refused={"bytes": 10_000},
        words="r.jsonl takes 36,000 bytes",
    ),
    "an ELF file": Case(
        lambda: read_image(Path(text_file("a.elf", "x" * 1000))), refused={"bytes": 999}, words="a.elf takes 1,000"
    ),
    "a model file": Case(
        lambda: formats.load(text_file("a.tflite", "x" * 1000)),
        refused={"bytes": 999},
        words="a.tflite takes 1,000",
    ),
    "a sample of zeros": Case(
        lambda: pattern(TensorInfo("x", (1, 1000), DataType.INT8)),
        refused={"bytes": 15_999},
        words="a sample of the input 'x' takes 16,000 bytes",
        enough={"bytes": 16_000},
    ),
    "a random sample": Case(
        lambda: random_sample([TensorInfo("x", (1, 1000), DataType.INT8)], 0),
        refused={"bytes": 15_999},
        words="a sample of the input 'x' takes 16,000 bytes",
        enough={"bytes": 16_000},
    ),
}


def onnx(op: str, shape: list[int], constants: dict[str, Any] | None = None, **attributes: Any) -> Any:  # noqa: ANN401
    """Return a network of one node, which reads x and constants."""
    names = " ".join(["x", *(constants or {})])
    return load(model([node(op, names, "y", **attributes)], {"x": ("float32", shape)}, ["y"], constants))


def run(network: Network, *inputs: Any) -> object:  # noqa: ANN401
    arrays = inputs or [np.zeros(info.shape, info.dtype.numpy) for info in network.inputs]
    return network.run(list(arrays))


def loop(trips: int) -> Network:
    """Return a loop that adds 1 to 100 numbers."""
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "one"], ["w"]), helper.make_node("Identity", ["c"], ["k"])],
        "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, [1, 100])],
        [value("k", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, [1, 100])],
    )
    constants = {"n": np.array(trips, np.int64), "t": np.array(True), "one": np.ones((1, 100), np.float32)}
    return load(model([node("Loop", "n t x", "y", body=body)], {"x": ("float32", [1, 100])}, ["y"], constants))


def wire(number: int, data: bytes) -> bytes:
    """Return a field with a length in protobuf's encoding."""
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def onnx_file(graph: bytes) -> object:
    return formats.load(b"\x08\x09" + wire(8, b"\x10\x11") + wire(7, graph))


def image_network(op: str, **attributes: Any) -> Network:  # noqa: ANN401
    constants = {"w": np.ones((1, 1, 16, 16), np.float32)} if op == "Conv" else None
    return onnx(op, [1, 1, 64, 64], constants, **attributes)  # type: ignore[no-any-return]


def resized() -> Network:
    sizes = {"s": np.array([1, 1, 1024, 1024], np.int64)}
    return load(model([node("Resize", "x - - s", "y", mode="nearest")], {"x": ("float32", [1, 1, 2, 2])}, ["y"], sizes))


CASES |= {
    "empty nodes": Case(
        lambda: onnx_file(bytes([10, 0]) * 600_000),
        refused={"bytes": 100 << 20},
        words="the file's fields, such as nodes and attributes, takes",
    ),
    "empty values": Case(
        lambda: onnx_file(bytes([106, 0]) * 600_000), refused={"bytes": 100 << 20}, words="the file's fields"
    ),
    "numbers of an attribute": Case(
        lambda: onnx_file(wire(1, wire(5, wire(8, bytes(2_000_000))))),
        refused={"bytes": 70 << 20},
        words="the file's fields",
    ),
    "strings of an attribute": Case(
        lambda: onnx_file(wire(1, wire(5, bytes([74, 0]) * 600_000))),
        refused={"bytes": 100 << 20},
        words="the file's fields",
    ),
    "elements of a tensor": Case(
        lambda: onnx_file(wire(5, wire(7, bytes(2_000_000)))),
        refused={"bytes": 30 << 20},
        words="the file's fields",
    ),
    "graphs in graphs": Case(
        lambda: onnx_file(wire(1, wire(5, wire(6, bytes([10, 0]) * 600_000)))),
        refused={"bytes": 100 << 20},
        words="the file's fields",
    ),
    "a constant that is filled": Case(
        lambda: load(model([node("ConstantOfShape", "s", "y")], {}, ["y"], {"s": [1000, 1000]})),
        refused={"bytes": 7_999_999},
        words="a constant of the shape [1000, 1000] takes 8,000,000 bytes",
    ),
    "constants that double": Case(
        lambda: load(
            model(
                [node("Concat", f"a{i} a{i}", f"a{i + 1}", axis=0) for i in range(16)] + [node("Add", "x a16", "y")],
                {"x": ("float32", [1])},
                ["y"],
                {"a0": np.ones(1, np.float32)},
            )
        ),
        refused={"elements": 100_000},
        words="computing the constants up to here takes",
        enough={"elements": 1_000_000},
    ),
    "a mask": Case(
        lambda: onnx("Trilu", [100, 100]),
        refused={"bytes": 319_999},
        words="the mask takes 320,000 bytes",
        enough={"bytes": 400_000},
    ),
    "masks": Case(
        lambda: load(
            model(
                [node("Trilu", "x" if not i else f"t{i - 1}", f"t{i}", upper=i % 2) for i in range(20)],
                {"x": ("float32", [100, 100])},
                ["t19"],
            )
        ),
        refused={"bytes": 400_000},
        words="of memory beside",
        enough={"bytes": 1_000_000},
    ),
    "layers": Case(
        lambda: load(
            model(
                [node("Erf", "x" if not i else f"t{i - 1}", f"t{i}") for i in range(10)],
                {"x": ("float32", [1, 4])},
                ["t9"],
            )
        ),
        refused={"bytes": 100_000},
        words="the network up to",
        enough={"bytes": 1_000_000},
    ),
    "a product of matrices": Case(
        lambda: run(
            load(model([node("MatMul", "x z", "y")], {"x": ("float32", [30, 40]), "z": ("float32", [40, 50])}, ["y"]))
        ),
        refused={"multiplications": 59_999},
        words="BATCH_MATMUL takes 60,000 multiplications",
        enough={"multiplications": 60_000},
    ),
    "the patches of a convolution": Case(
        lambda: run(image_network("Conv")),
        refused={"bytes": 4_000_000},
        words="CONV_2D takes 4,",
        enough={"bytes": 8_000_000},
    ),
    "the windows of a pool": Case(
        lambda: run(image_network("MaxPool", kernel_shape=[32, 32])),
        refused={"elements": 1_000_000},
        words="MAX_POOL_2D takes 1,",
        enough={"elements": 1_200_000},
    ),
    "a tensor that is repeated": Case(
        lambda: run(onnx("Expand", [1, 1], {"s": [1000, 1000]})),
        refused={"bytes": 10_000_000},
        words="BROADCAST_TO takes 12,",
        enough={"bytes": 13_000_000},
    ),
    "a tensor that is tiled": Case(
        lambda: run(onnx("Tile", [1, 4], {"s": [1, 100_000]})),
        refused={"elements": 400_003},
        words="TILE takes 400,004",
    ),
    "a tensor that is padded": Case(
        lambda: run(onnx("Pad", [1, 4], {"s": [0, 16_000, 0, 0]})), refused={"bytes": 100_000}, words="PAD"
    ),
    "an image that is resized": Case(
        lambda: run(resized()),
        refused={"bytes": 12_000_000},
        words="RESIZE_NEAREST_NEIGHBOR takes",
    ),
    "iterations": Case(
        lambda: run(loop(1000)),
        refused={"elements": 100_000},
        words="a run up to iteration",
        enough={"elements": 1_000_000},
    ),
}


def check(case: Case) -> None:
    """Try both sides of a case."""
    for module in case.needs:
        require_module(module, f"pip install {module}")
    with limits(**case.refused), pytest.raises(BudgetError) as caught:
        case.act()
    assert case.words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "ferrule.limits(" in str(caught.value.hint)


@pytest.mark.parametrize("name", CASES)
def test_too_much_is_one_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(CASES[name])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.enough is not None])
def test_what_the_budget_allows_is_done(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    for module in case.needs:
        require_module(module, f"pip install {module}")
    with limits(**(case.enough or {})):
        case.act()


def test_arrays_that_are_not_asked_for_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = archive(*((f"{n}.npy", npy((1, 2), bytes(8))) for n in range(1000)), method=zipfile.ZIP_STORED)
    before = len(list(Path("/proc/self/fd").iterdir()))
    arrays = Arrays(path)
    assert len(arrays) == 1000
    assert arrays["7"].shape == (1, 2)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
    with limits(bytes=100_000_000):
        assert arrays["8"].tolist() == [[0, 0]]


def test_a_matrix_has_only_the_labels_that_occur() -> None:
    """60,000 classes, of which four occur: a table of all pairs would have 3.6e9 cells."""
    scores = np.zeros((3, 60_000), np.float32)
    scores[1, 9] = 1
    part = confusion(Scored(scores=scores, labels=np.array([1, 5, 9])), ())
    assert part.labels == ("0", "1", "5", "9")
    assert part.counts == ((0, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 1), (1, 0, 0, 0))


LOADING = """
import re, resource, sys
from ferrule.errors import FerruleError
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from ferrule.evaluation.data.array_files import Arrays
from pathlib import Path
try:
    Arrays(Path(sys.argv[1]))["x"]
except FerruleError as error:
    print(error)
status = Path("/proc/self/status").read_text()  # getrusage's peak is also that of the process that started this one
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) >> 10)
"""


def test_the_memory_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of 100 KB that states and has more than the default limit, as far as it is unpacked."""
    monkeypatch.chdir(tmp_path)
    path = archive(("x.npy", npy(((1 << 28) + 1, 1), bytes(1 << 26))))
    assert path.stat().st_size < 100_000
    done = ran([sys.executable, "-c", LOADING, str(path)], check=True, timeout=600)
    error, peak = done.stdout.splitlines()
    assert error.startswith("data.npz: array 'x' takes 1,073,741,828 bytes of memory, and the limit is 1,073,741,824")
    assert int(peak) < 300
