# SPDX-License-Identifier: Apache-2.0
"""An installed wheel is complete: C sources, headers, adapters and boards are part of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from children import ran
from needs import require_cc, require_module, require_program

ROOT = Path(__file__).parents[1]
SHIPPED = ("boards", "include", "platforms", "scripts", "src_c", "src_cpp")
BARE_METAL = "platforms/bare_metal"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a wheel of this tree was installed."""
    require_module("hatchling", "pip install 'ferrule[dev]'")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*install, str(folder / "site"), str(wheel)], check=True, timeout=120)
    return folder / "site"


@pytest.fixture(scope="module")
def found(installed: Path) -> Path:
    """The root folder that the installed ferrule.resources finds."""
    program = "import ferrule.resources; print(ferrule.resources.root())"
    done = ran(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=installed,
        check=True,
        timeout=60,
    )
    return Path(done.stdout.strip())


def test_the_package_finds_its_own(installed: Path, found: Path) -> None:
    assert installed in found.parents


@pytest.mark.parametrize("name", SHIPPED)
def test_every_file_of_the_tree_is_there(found: Path, name: str) -> None:
    argv = [require_program("git", "apt-get install git"), "-C", str(ROOT), "ls-files", name]
    listed = ran(argv, check=True, timeout=60).stdout.splitlines()
    there = [path for path in listed if (ROOT / path).is_file()]
    assert there
    assert [path for path in there if not (found / path).is_file()] == []


def test_the_templates_are_there(installed: Path) -> None:
    """The templates are those of projects, of generated code, of new backends and boards, and of pages."""
    package = ROOT / "sdk" / "ferrule"
    names = [path.relative_to(package) for form in ("*.j2", "*.html", "*.css") for path in package.rglob(form)]
    assert len({path.parts[0] for path in names}) > 1
    assert [name for name in names if not (installed / "ferrule" / name).is_file()] == []


@pytest.mark.cc
def test_the_device_api_is_compiled_from_it(found: Path, tmp_path: Path) -> None:
    argv = [
        *(*require_cc(), "-std=c11", "-Wall", "-Wextra", "-Werror", "-c"),
        *(f"-I{found / 'include'}", f"-I{found / BARE_METAL / 'include'}"),
        *(str(found / "src_c/device/device.c"), str(found / BARE_METAL / "src/bare_metal.c")),
    ]
    subprocess.run(argv, cwd=tmp_path, check=True, timeout=60)
