# SPDX-License-Identifier: Apache-2.0
"""ONNX models of the exporters that users have: read, and compared with onnxruntime."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import model_worker
import numpy as np
import onnx_table
import pytest
from gate import some_of
from needs import require_module, require_python

if TYPE_CHECKING:
    import onnx

EXPORTERS = Path(__file__).parent / "exporters"
SMALL: dict[str, tuple[object, ...]] = {
    "small_cnn": (8,),
    "ds_cnn": (8, 1, (13, 6)),
    "residual": (8, (4, 6)),
    "autoencoder": (12, 6, 2),
    "squeeze_and_excitation": (8, 8),
    "u_net": (8, 2),
    "sound": (64, 4),
    "keyword_transformer": (4, 8, 16, 1),
    "vision_transformer": (16, 8, 16, 1),
}
"""The functions of `onnx_graphs` and sizes that are quick to run."""
FORMS = ("qdq-s8", "qop-u8", "qdq-s8-tensor", "qdq-s8-symmetric", "qdq-u8", "qdq-u8u8-tensor", "qdq-u8u8-channel",
         "qdq-s8-asymmetric", "qdq-weights-dequantised", "qdq-dedicated", "qdq-bias-float", "qop-s8", "qop-s8-tensor",
         "qop-u8u8")  # fmt: skip
"""The forms of `onnx_storage` that Ferrule reads."""


@pytest.fixture(autouse=True)
def _installed() -> None:
    require_module("onnx", "pip install 'ferrule[onnx]'")
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")


def compared(model: onnx.ModelProto, folder: Path) -> dict[str, Any]:
    """Return the comparison of the numpy kernels with onnxruntime on two random inputs."""
    import onnx

    path = folder / "model.onnx"
    onnx.save(model, path)
    model_worker.onnxruntime(path, folder, 2, 60)
    return model_worker.counted(path, folder, 0, 60)


def graph(kind: str, form: str = "") -> onnx.ModelProto:
    """Return a small graph, quantised if a form is given."""
    import onnx_graphs
    import onnx_storage

    model = getattr(onnx_graphs, kind)(*SMALL[kind])
    if not form:
        return model
    return onnx_storage.quantised(model, onnx_graphs.samples_of(model, 4, seed=1), onnx_storage.FORMS[form])


@pytest.mark.parametrize("kind", [kind for kind in SMALL if not kind.endswith("transformer")])
def test_float32_graphs(kind: str, tmp_path: Path) -> None:
    """The error function of GELU, in transformers, is off by 5e-7 at most, which no bound has."""
    found = compared(graph(kind), tmp_path)
    assert found["verdict"] in {"exact", "close"}, found


@pytest.mark.parametrize("form", FORMS)
def test_convolutions_and_products_equal_onnxruntime_in_every_form(form: str, tmp_path: Path) -> None:
    import onnx_graphs
    import onnx_storage

    model = onnx_graphs.small_cnn(8, clip=FORMS.index(form) % 2 == 1, pool="MaxPool")
    forms = onnx_storage.FORMS | onnx_storage.SMALL_FORMS
    made = onnx_storage.quantised(model, onnx_graphs.samples_of(model, 4, seed=1), forms[form])
    assert compared(made, tmp_path) == {"verdict": "exact", "steps": 2}


ROWS = [(kind, form) for kind in SMALL for form in ("qdq-s8", "qop-u8") if (kind, form) != ("u_net", "qop-u8")]
"""quantize_static keeps a Resize in QOperator form between integers, where it computes with the integers."""


@pytest.mark.parametrize(("kind", "form"), some_of(ROWS, ROWS[::2]))
def test_quantised_graphs(kind: str, form: str, tmp_path: Path) -> None:
    """Only pools, Resize and activations by tables may differ, of which onnxruntime computes some in float32."""
    found = compared(graph(kind, form), tmp_path)
    assert found["verdict"] in {"exact", "close", "counted"}, found


def test_the_table_names_what_differs_and_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps run in this process, which saves seconds."""
    import onnx_graphs
    import onnx_storage

    model = graph("autoencoder")
    samples = onnx_graphs.samples_of(model, 2)
    onnx_storage.store(tmp_path, "small", model, samples, exporter="onnx.helper", form="float32")
    model.opset_import[0].version = 99
    (tmp_path / "old.onnx").write_bytes(model.SerializeToString())
    arguments = ["--models", str(tmp_path), "--jobs", "1"]

    def step(kind: str, number: int, *, path: Path, folder: str, limit_s: float) -> dict[str, Any]:
        return model_worker.STEPS[kind](path, Path(folder), number, limit_s)

    monkeypatch.setattr(onnx_table, "step", step)
    assert onnx_table.main(None, arguments) == 0
    printed = capsys.readouterr().out
    assert "| small | onnx.helper | float32 |" in printed
    assert "2 models; numpy and onnxruntime: 1 close, 1 refused" in printed
    monkeypatch.setattr(onnx_table, "step", lambda *_, **__: {"loads": True, "verdict": "differs"})
    assert onnx_table.main(None, arguments) == 1
    assert onnx_table.main(None, [*arguments, "no such model"]) == 1


def test_a_list_names_its_files_by_their_contents_and_gives_shapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boards are stand-ins: the first has no room, so that the model runs on the second and not on the third."""
    from onnx import TensorProto, helper

    open_shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "T"]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "open", open_shape[:1], open_shape[1:])
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    (tmp_path / "any.onnx").write_bytes(content)
    source = "[[source]]\nrepository = 'owner/name'\ncommit = 'c'\nlicence = 'MIT'\n"
    digests = hashlib.sha256(content).hexdigest(), "0" * 64
    models = [f"[[source.model]]\npath = '{index}.onnx'\nsha256 = '{each}'\n" for index, each in enumerate(digests)]
    listed = tmp_path / "list.toml"
    listed.write_text(source + models[0] + "shapes = { x = [2, 3] }\n" + models[1], encoding="utf-8")
    asked: list[str] = []

    def step(kind: str, number: int, *more: str, path: Path, folder: str, limit_s: float) -> dict[str, Any]:
        if kind == "board":
            asked.extend(more)
            return {"verdict": "too big" if more == ("small",) else "exact"}
        return model_worker.STEPS[kind](path, Path(folder), number, limit_s)

    monkeypatch.setattr(onnx_table, "step", step)
    boards = [word for board in ("small", "large", "larger") for word in ("--board", board)]
    arguments = ["--models", str(tmp_path), "--list", str(listed), "--jobs", "1", "--first-fit", *boards]
    assert onnx_table.main(None, arguments) == 1  # since one is missing
    printed = capsys.readouterr().out
    assert "| owner/name: 0.onnx |" in printed
    assert "1 models; numpy and onnxruntime: 1 exact" in printed
    assert f"missing: owner/name: 1.onnx at c, SHA-256 {'0' * 64}" in printed
    assert asked == ["small", "large"]
    assert onnx_table.main(None, [*arguments, "name: 0"]) == 0


def test_a_scalar_is_an_input_like_others(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    shapes = {"x": [2, 3], "limit": [], "y": [2, 3]}
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "limit"], ["y"])], "scalar", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    assert compared(model, tmp_path) == {"verdict": "exact", "steps": 2}


def test_floats_beyond_the_bound_are_near_or_differ() -> None:
    wanted = [np.array([[1, 1e-6, np.inf]], np.float32)]
    for off, near in ((9e-5, True), (2e-3, False)):
        assert model_worker._near_float(wanted[0] + np.float32(off), wanted[0]) is near
    assert not model_worker._near_float(np.array([1]), np.array([2]))
    assert not model_worker._near_float(wanted[0], np.array([1.0]))


@pytest.mark.nightly
@pytest.mark.cc
@pytest.mark.emu
def test_the_table_has_the_figures_of_boards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx

    onnx.save(graph("autoencoder"), tmp_path / "model.onnx")
    assert onnx_table.main(None, ["--models", str(tmp_path), "--board", "mps2-an386"]) == 0
    printed = capsys.readouterr().out  # numpy's sums have an order of the processor's own
    assert any(f"mps2-an386 and numpy: 1 {verdict}" in printed for verdict in ("close", "exact"))


@pytest.mark.parametrize(
    ("script", "word"),
    [
        *(("from_torch.py", each) for each in ("digits", "net_v2-0.1", "net_v3", "sound", "u_net")),
        *(("from_keras.py", each) for each in ("cnn", "autoencoder", "segmentation", "sound")),
        ("from_brevitas.py", ""),
    ],
)
def test_the_exporters_of_frameworks(script: str, word: str, tmp_path: Path) -> None:
    python = require_python("FERRULE_KERAS" if "keras" in script else "FERRULE_TORCH")
    words = [python, str(EXPORTERS / script), str(tmp_path / "models"), *([word] if word else [])]
    subprocess.run(words, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    paths = sorted((tmp_path / "models").glob("*.onnx"))
    assert paths
    for path in paths:
        model_worker.onnxruntime(path, tmp_path, 2, 60)
        found = model_worker.counted(path, tmp_path, 0, 60)
        assert found["verdict"] in {"exact", "close", "counted"}, (path.name, found)
