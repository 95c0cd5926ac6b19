# SPDX-License-Identifier: Apache-2.0
"""Every backend that a page develops passes the families of tests, as a reader who copies it would run them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import children
import pytest
from children import ran
from gate import some_of
from needs import require_module
from pages import HEADER_SCRIPT, ROOT, blocks, pages, write_backend

MANIFEST = re.compile(r"(\w+)/backend\.toml")
BACKEND = re.compile(r"^class \w+\((?:Backend|HostMemoryBackend|CompilingBackend)\):", re.MULTILINE)
BOTH = "BackendFamily, FirmwareFamily"
FIRMWARE_ONLY = "LayerSupportFamily, FirmwareFamily"


def manifests(page: Path) -> list[str]:
    """Return the folders of the backends that a page develops."""
    return [found[1] for block in blocks(page) if (found := MANIFEST.fullmatch(block.caption))]


def own_families(page: Path, package: str) -> set[str]:
    """Return the families in the tests of a page's backend, which the test of the page runs."""
    tests = [block.text for block in blocks(page) if block.caption.startswith(f"{package}/tests/")]
    return {name for text in tests for name in re.findall(r"class \w+\((\w+Family)\):", text)}


DOCUMENTED = [(page, package) for page in pages() for package in manifests(page)]
FAMILIES = {"tern": FIRMWARE_ONLY, "yap": FIRMWARE_ONLY}
"""By folder of a backend whose page has no tests of families: those for its faces."""
RUN_HERE = [(page, package) for page, package in DOCUMENTED if package in FAMILIES]
MODULE = """
from pathlib import Path

import pytest

from ferrule.testing.backends import Subject, {families}

{classes}
"""
CLASS = """
class Test{family}({family}):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls):
        return Subject.of_folder("{id}", Path(__file__).parent / "{package}")
"""


def test_each_documented_backend_has_families() -> None:
    for page, package in DOCUMENTED:
        assert package in FAMILIES or own_families(page, package) == set(BOTH.split(", ")), package
    assert len(RUN_HERE) == len(FAMILIES)
    for page in pages():
        classes = [block for block in blocks(page) if block.caption and BACKEND.search(block.text)]
        assert not classes or manifests(page), f"{classes[0].place}: a backend without a backend.toml on its page"


def write_files(page: Path, package: str, folder: Path) -> None:
    """Write the files of a page's backend, and the header that the page makes for it."""
    write_backend(page, package, folder)
    if (folder / HEADER_SCRIPT).exists():
        run(folder, HEADER_SCRIPT)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = children.environment(folder, FERRULE_BACKENDS="")
    return ran([sys.executable, *arguments], cwd=folder, env=environment)


def run_families(page: Path, package: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the families of a page's backend, whose files are in a folder, with further options for pytest."""
    backend_id = tomllib.loads((folder / package / "backend.toml").read_text(encoding="utf-8"))["id"]
    families = FAMILIES[package]
    classes = [CLASS.format(family=family, id=backend_id, package=package) for family in families.split(", ")]
    module = MODULE.format(families=families, classes="\n".join(classes))
    (folder / "test_families_of_the_page.py").write_text(module, encoding="utf-8")
    common = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib")
    return run(folder, "-m", "pytest", *common, *options, "test_families_of_the_page.py")


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("page", "package"),
    some_of(RUN_HERE, [each for each in RUN_HERE if each[1] == "yap"]),
    ids=[package for _, package in RUN_HERE],
)
def test_it_passes_its_families(page: Path, package: str, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    write_files(page, package, tmp_path)
    done = run_families(page, package, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


@pytest.mark.cc
@pytest.mark.emu
def test_the_families_find_weights_with_a_zero_point(tmp_path: Path) -> None:
    """What the page's NPU refuses is no formality: without the refusal, its results are wrong."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    page = ROOT / "docs" / "compile_only_npu.md"
    write_files(page, "tern", tmp_path)
    path = tmp_path / "tern" / "backend.py"
    text = path.read_text(encoding="utf-8")
    check = " or any(weights.quantization.zero_points)"
    assert check in text
    path.write_text(text.replace(check, ""), encoding="utf-8")
    done = run_families(page, "tern", tmp_path, "-k", "FirmwareFamily and test_layers_on_a_board and int8")
    assert done.returncode == 1
    assert re.search(r"AssertionError: fully_connected_int8_\d+_offset with .*, on the board", done.stdout), done.stdout
