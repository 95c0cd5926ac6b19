# SPDX-License-Identifier: Apache-2.0
"""Programs and modules of PyTorch: with a stand-in for torch in another Python, and with torch where there is one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx_models
import pytest
from click.testing import CliRunner
from needs import require_python

import ferrule
from ferrule import formats
from ferrule.cli.main import cli
from ferrule.errors import FerruleError, MissingToolError, ModelError
from ferrule.record import recording

SDK = Path(ferrule.__file__).parents[1]
STAND_IN = Path(__file__).with_name("stand_in_torch")


def program(path: Path, **facts: object) -> Path:
    """Write a file that looks like one of torch.export, which the stand-in reads: y = relu(x), and its facts."""
    made = onnx_models.model([onnx_models.node("Relu", "x", "relu")], {"x": ("float32", ("batch", 3))}, ["relu"])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "net/models/model.json", json.dumps({"outputs": ["relu"], "structure": 0, "nodes": [], **facts})
        )
        archive.writestr("net/model.onnx", made.SerializeToString())
    return path


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python of its own, in which torch is the stand-in."""
    monkeypatch.setenv("FERRULE_TORCH", shlex.quote(sys.executable))
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))


@pytest.mark.usefixtures("stand_in")
def test_a_program_is_read_by_every_command(tmp_path: Path) -> None:
    path = program(tmp_path / "net.pt2")
    network = formats.load(path)
    assert network.name == "net"
    assert [(info.name, info.shape) for info in network.inputs] == [("x", (1, 3))]
    assert [info.name for info in network.outputs] == ["output"]
    assert network.run([np.array([[-1, 0, 2]], np.float32)])[0].tolist() == [[0, 0, 2]]
    assert formats.load(path, shapes={"x": (2, 3)}).inputs[0].shape == (2, 3)
    done = CliRunner().invoke(cli, ["inspect", str(path)], catch_exceptions=False)
    assert (done.exit_code, "RELU" in done.output) == (0, True)


@pytest.mark.usefixtures("stand_in")
def test_what_a_program_depends_on_is_recorded(tmp_path: Path) -> None:
    path = program(tmp_path / "net.pt2")
    with recording() as read:
        formats.load(path)
    names = {each.path for each in read.reads()}
    assert str(path) in names
    assert any(name.endswith("torch-0.dist-info/METADATA") for name in names)
    assert "FERRULE_TORCH" in names


@pytest.mark.parametrize(
    ("structure", "names"),
    [
        ({"scores": 0, "features": 1}, ["scores", "features"]),
        ({"features": 1, "scores": 0}, ["scores", "features"]),
        ([0, 1], ["output_0", "output_1"]),
        ({"deep": [0, 1]}, ["output_0", "output_1"]),
        ({"x": 0, "other": 1}, ["first", "second"]),  # the input's name
    ],
)
def test_the_names_of_outputs(structure: object, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done = ran_with_stand_in(
        "from ferrule.formats.pytorch.exporter import _name_outputs as name; from torch import onnx; import json, sys; "
        "made = onnx.made({'outputs': ['first', 'second'], 'inputs': ['x'], 'nodes': [], "
        "'structure': json.loads(sys.argv[1])}); name(made); "
        "print(json.dumps([value.name for value in made.model.graph.outputs]))",
        json.dumps(structure),
    )
    assert json.loads(done) == names


def ran_with_stand_in(code: str, *words: str) -> str:
    """Return what a program prints in a Python in which torch is the stand-in."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(STAND_IN), str(SDK)))}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.usefixtures("stand_in")
def test_a_program_that_cannot_be_exported(tmp_path: Path) -> None:
    path = program(tmp_path / "net.pt2", nodes=["dropout"])
    with pytest.raises(ModelError) as raised:
        formats.load(path)
    begins = "net.pt2: PyTorch cannot export the program"
    mode = "dropout is in the mode of training: call module.eval() before torch.export.export"
    assert str(raised.value) == f"{begins}: ValueError: {mode}"
    with pytest.raises(ModelError) as raised:
        formats.load(program(path, fails="no function for x\nand more"))
    assert str(raised.value) == f"{begins}: DispatchError: no function for x"


@pytest.mark.usefixtures("stand_in")
def test_only_a_path_with_the_suffix_is_code(tmp_path: Path) -> None:
    path = program(tmp_path / "net.pt2")
    with pytest.raises(ModelError, match=r"^model: it is a program of torch.export \(.pt2\), expected") as raised:
        formats.load(path.read_bytes())
    assert raised.value.hint == "give the path of its file"
    for name in ("net.onnx", "net.tflite", "net.zip"):
        other = path.with_name(name)
        other.write_bytes(path.read_bytes())
        with pytest.raises(ModelError, match="it is a program of torch") as raised:
            formats.load(other)
        assert raised.value.hint == "give it a name that ends in .pt2"
    done = CliRunner().invoke(cli, ["inspect", "-"], input=path.read_bytes())
    assert isinstance(done.exception, ModelError)


def test_python_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """-S: a Python without its packages."""
    path = program(tmp_path / "net.pt2")
    python = f"{shlex.quote(sys.executable)} -S"
    monkeypatch.setenv("FERRULE_TORCH", python)
    with pytest.raises(MissingToolError, match=r"^net\.pt2: .* package torch .* does not have it") as raised:
        formats.load(path)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith(f"{python} -m pip install torch onnxscript onnx; or set FERRULE_TORCH to ")
    monkeypatch.setenv("FERRULE_TORCH", "no-such-python")
    with pytest.raises(MissingToolError, match=r"^net\.pt2: FERRULE_TORCH names no-such-python, and there is no such"):
        formats.load(path)


def test_options_that_programs_do_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused before PyTorch is asked."""
    monkeypatch.setenv("FERRULE_TORCH", "no-such-python")
    path = program(tmp_path / "net.pt2")
    for options, words in (({"rounding": "tflm"}, "rounding"), ({"signature": "train"}, "signature")):
        with pytest.raises(FerruleError, match=f"net.pt2: the {words} '"):
            formats.load(path, **options)  # type: ignore[arg-type]


def test_a_module_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.formats.pytorch.exporter.lacking", lambda: "onnxscript")
    with pytest.raises(MissingToolError, match="the Python package onnxscript is not installed") as raised:
        ferrule.from_torch(object(), np.zeros((1, 3), np.float32))
    assert raised.value.hint == "pip install torch onnxscript onnx"


def test_what_is_no_module() -> None:
    printed = ran_with_stand_in(
        "import ferrule, torch\n"
        "for given in ((3, 1), (torch.nn.Module(),), (torch.export.ExportedProgram({}), 1)):\n"
        "    try: ferrule.from_torch(*given)\n"
        "    except ferrule.FerruleError as error: print(error, '/', error.hint)"
    )
    assert printed.splitlines() == [
        "the module is of type int, expected a torch.nn.Module or a torch.export.ExportedProgram / None",
        "the module Module is given without an example of its inputs / give one input, a tuple of all, or a dict of "
        "them by name; a batch of one sample suits a board",
        "an example is given, and an exported program has its inputs' shapes / leave the example out",
    ]


REAL = """
import sys
import numpy as np
import torch
from torch import nn

sys.path.append(sys.argv[1])  # behind those of this Python
import ferrule


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5)
        self.head = nn.Linear(4, 3)

    def forward(self, image, scale):
        features = self.drop(self.norm(self.conv(image)).relu().mean((2, 3))) * scale
        return {"scores": self.head(features).softmax(-1), "features": features}


torch.manual_seed(1)
net = Net()
for _ in range(3):
    net(torch.randn(4, 1, 8, 8), torch.ones(1))
net.norm.eval()
image, scale = torch.randn(1, 1, 8, 8), torch.tensor([1.5])
modes = [each.training for each in net.modules()]
networks = [
    ferrule.from_torch(net, (image, scale)),
    ferrule.from_torch(net, {"scale": scale.numpy(), "image": image.numpy()}, "other"),
]
assert [each.training for each in net.modules()] == modes
net.eval()
wanted = net(image, scale)
captured = torch.export.export(
    net, (torch.zeros(2, 1, 8, 8), scale), dynamic_shapes={"image": {0: torch.export.Dim("batch")}, "scale": None}
)
torch.export.save(captured, "net.pt2")
networks.append(ferrule.from_torch(captured))
for network, name in zip(networks, ("Net", "other", "model"), strict=True):
    assert network.name == name
    assert [info.name for info in network.outputs] == ["scores", "features"]
    given = {"image": image.numpy(), "scale": scale.numpy()}
    assert {info.name: info.shape for info in network.inputs} == {name: each.shape for name, each in given.items()}
    outputs = network.run([given[info.name] for info in network.inputs])
    for found, expected in zip(outputs, wanted.values(), strict=True):
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-6)
torch.export.save(torch.export.export(net.train(), (image.repeat(2, 1, 1, 1), scale)), "training.pt2")
for module, example in ((net, (image, scale, scale)), (torch.export.load("training.pt2"), None)):
    try:
        ferrule.from_torch(module, example)
    except ferrule.FerruleError as error:
        print(error)
"""


@pytest.mark.nightly
def test_real_modules_and_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = require_python("FERRULE_TORCH")
    packages = next(path for path in map(Path, sys.path) if (path / "jinja2").is_dir())
    done = subprocess.run(
        [python, "-c", REAL, str(packages)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(SDK)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    first, second = done.stdout.splitlines()
    assert first == "PyTorch cannot export the module Net: TypeError: too many positional arguments"
    assert second.endswith("is in the mode of training: call module.eval() before torch.export.export")
    assert "torchvision" not in done.stderr
    monkeypatch.chdir(tmp_path)
    network = formats.load("net.pt2")
    assert {info.name: info.shape for info in network.inputs} == {"image": (1, 1, 8, 8), "scale": (1,)}
    with pytest.raises(ModelError, match=r"^training.pt2: .* is in the mode of training"):
        formats.load("training.pt2")
