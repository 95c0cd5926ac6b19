# SPDX-License-Identifier: Apache-2.0
"""A backend is added with its folder and removed with it; no other file changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from children import ran
from needs import require_module

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "custom_backend" / "my_custom"

RUN = """
import ferrule

network = ferrule.Network("sum")
for name in ("x", "y"):
    network.add_input(
        ferrule.TensorInfo(
            name=name, shape=(2, 3), dtype=ferrule.DataType.INT8, quantization=ferrule.Quantization.of(0.5)
        )
    )
total = network.add_add_layer("x", "y", quantization=ferrule.Quantization.of(1.0), name="total")
network.set_outputs([network.add_tanh_layer(total, name="tanh")])
report = ferrule.compile(network, backends=["MyCustom", "CpuAcc"]).run()
print(report.verdict, *(f"{layer.backend}:{layer.type}" for layer in report.layers))
"""


ORIGINS = """
import json
from ferrule.backends.registry import default_registry

registry = default_registry()
print(json.dumps({name: str(registry.origin(name)) for name in registry.ids()}))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package as in a checkout, with links to the folders around it."""
    leave_out = shutil.ignore_patterns("my_custom")  # not what is compiled, which takes seconds
    shutil.copytree(ROOT / "sdk", tmp_path / "sdk", ignore=leave_out)
    for name in ("include", "src_c", "boards", "tests/support"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def python(tree: Path, *arguments: str) -> str:
    environment = dict(os.environ, PYTHONPATH=str(tree / "sdk"), PYTHONDONTWRITEBYTECODE="1")
    environment.pop("FERRULE_BACKENDS", None)
    done = ran([sys.executable, *arguments], cwd=tree, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def listed(tree: Path) -> dict[str, str]:
    """Return the origin of each backend in the tree."""
    return dict(json.loads(python(tree, "-c", ORIGINS)))


def collected(tree: Path) -> list[str]:
    """Return the test modules that pytest finds in the added backend's folder."""
    out = python(tree, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "sdk/ferrule/backends")
    return sorted({line.partition("::")[0] for line in out.splitlines() if "::" in line and "my_custom" in line})


def contents(tree: Path) -> dict[str, str]:
    """Return a hash of every file of the package outside the added folder."""
    files = (path for path in (tree / "sdk").rglob("*") if path.is_file() and "my_custom" not in path.parts)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def put_in(tree: Path) -> Path:
    target = tree / "sdk" / "ferrule" / "backends" / "my_custom"
    shutil.copytree(FOLDER, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def test_listed_while_it_is_there(tree: Path) -> None:
    before, files = listed(tree), contents(tree)
    assert "MyCustom" not in before
    folder = put_in(tree)
    assert listed(tree) == before | {"MyCustom": "shipped: ferrule/backends/my_custom"}
    shutil.rmtree(folder)
    assert listed(tree) == before
    assert contents(tree) == files


@pytest.mark.nightly
def test_its_tests_are_collected(tree: Path) -> None:
    put_in(tree)
    tests = "sdk/ferrule/backends/my_custom/tests"
    assert collected(tree) == [f"{tests}/test_firmware.py", f"{tests}/test_host.py"]


def test_its_tests_pass_there(tree: Path) -> None:
    folder = put_in(tree)
    out = python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests" / "test_host.py"))
    assert " passed" in out


@pytest.mark.cc
@pytest.mark.emu
def test_it_is_in_firmware(tree: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    put_in(tree)
    assert python(tree, "-c", RUN).split() == ["exact", "MyCustom:PRE_COMPILED", "CpuAcc:TANH"]
