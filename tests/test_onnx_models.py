# SPDX-License-Identifier: Apache-2.0
"""ONNX models of the exporters that users have: read, and compared with onnxruntime."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import model_worker
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


@pytest.mark.nightly
@pytest.mark.cc
@pytest.mark.emu
def test_the_table_has_the_figures_of_boards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx

    onnx.save(graph("autoencoder"), tmp_path / "model.onnx")
    assert onnx_table.main(None, ["--models", str(tmp_path), "--board", "mps2-an386"]) == 0
    assert "mps2-an386 and numpy: 1 close" in capsys.readouterr().out


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
