# SPDX-License-Identifier: Apache-2.0
"""Models made by onnx.helper with random weights, in float32 and quantised by onnxruntime's quantize_static.

.venv/bin/python tests/exporters/from_onnxruntime.py FOLDER [WORD ...]

It needs what the tests need: `pip install '.[onnx,oracle]'`. With WORDs, only models with all of them in their names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import onnx
from onnx_graphs import GRAPHS, samples_of, small_cnn
from onnx_storage import FORMS, SMALL_FORMS, Form, quantised, store

_EXPORTER = "onnxruntime quantize_static"


def main(arguments: Sequence[str]) -> None:
    """Write the models to a folder."""
    folder, words = Path(arguments[0]), arguments[1:]
    for kind, graph in GRAPHS.items():
        for name, form in FORMS.items():
            _write(folder, f"{kind}-{name}", graph(), form, words)
        _write(folder, f"{kind}-float", graph(), None, words)
    for index, (name, form) in enumerate(SMALL_FORMS.items()):
        clip = index % 2 == 1
        _write(folder, f"cnn-{name}{'-clip' * clip}", small_cnn(clip=clip), form, words)
    for opset in (13, 17):
        _write(folder, f"cnn-opset{opset}-qdq", small_cnn(opset=opset), Form(), words)


def _write(folder: Path, name: str, model: onnx.ModelProto, form: Form | None, words: Sequence[str]) -> None:
    if not all(word in name for word in words):
        return
    made = model if form is None else quantised(model, samples_of(model, 16, seed=1), form)
    store(
        folder,
        name,
        made,
        samples_of(model, 8),
        exporter="onnx.helper" if form is None else _EXPORTER,
        form="float32" if form is None else form.description,
        note="random weights",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
