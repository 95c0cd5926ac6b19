# SPDX-License-Identifier: Apache-2.0
"""Follows docs/platforms.md from beginning to end."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import device_networks
import pytest
import small_networks
from children import ran
from needs import require_cc, require_program

from ferrule import Network
from ferrule.firmware import Job, emit, write_project
from ferrule.resources import root
from ferrule.testing.compilation import FAKES

DOCUMENT = Path(__file__).parents[2] / "docs" / "platforms.md"
ADAPTER = root() / "platforms" / "freertos"
FILE = re.compile(r"```\{code-block\} \w+\n:caption: (\S+)\n(.*?)```", re.DOTALL)
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


@pytest.fixture
def documented(tmp_path: Path) -> Path:
    """A folder with the page's files; parts of the same file are joined in order."""
    for name, contents in FILE.findall(DOCUMENT.read_text(encoding="utf-8")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(contents)
    shutil.copy(ADAPTER / "src" / "freertos_ports.h", tmp_path / "src")  # the page names it without showing it
    return tmp_path


@pytest.mark.cc
def test_the_program_runs(documented: Path) -> None:
    bare_metal = root() / "platforms" / "bare_metal"
    argv = [
        *(*require_cc(), *STRICT),
        *(f"-I{root() / 'include'}", f"-I{bare_metal / 'include'}", "-o", "use", "use.c"),
        *(str(root() / "src_c/device/device.c"), str(bare_metal / "src/bare_metal.c")),
    ]
    subprocess.run(argv, cwd=documented, check=True, timeout=60)
    subprocess.run([documented / "use"], check=True, timeout=60)


@pytest.mark.cc
@pytest.mark.parametrize("file", ["clock.c", "deadline.c"])
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m33"])
def test_the_samples_compile(documented: Path, core: str, file: str) -> None:
    compiler = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    includes = (f"-I{root() / 'include'}", f"-I{root() / 'platforms' / 'bare_metal' / 'include'}")
    argv = [compiler, f"-mcpu={core}", "-mthumb", *STRICT, *includes, "-c", file]
    subprocess.run(argv, cwd=documented, check=True, timeout=60)


@pytest.mark.cc
def test_the_first_form_compiles(documented: Path) -> None:
    network = Network("mynetwork")
    for name in ("x", "y"):
        network.add_input(small_networks.int8_input(name, 1, 4))
    network.add_add_layer("x", "y", quantization=small_networks.SCALE, name="sum")
    network.set_outputs(["sum"])
    artifact = emit(network, Job(backends=("Woofles",)))
    for name, text in artifact.files.items():
        (documented / name).write_text(text, encoding="utf-8")
    folders = (
        root() / "platforms/bare_metal/include",
        *(f for each in artifact.contributions for f in each.include_paths),
    )
    argv = [*require_cc(), *STRICT, *(f"-I{each}" for each in folders), "-c", "infer.c"]
    subprocess.run(argv, cwd=documented, check=True, timeout=60)


@pytest.mark.parametrize("name", ["include/ferrule/platform/freertos.h", "src/freertos.c"])
def test_the_steps_make_the_adapter(documented: Path, name: str) -> None:
    assert (documented / name).read_text(encoding="utf-8") == (ADAPTER / name).read_text(encoding="utf-8")


@pytest.mark.cc
def test_the_ported_platform_passes_its_tests(documented: Path) -> None:
    options = ("-p", "no:cacheprovider", "--import-mode=importlib")
    argv = [sys.executable, "-m", "pytest", "-q", *options, "test_adapter.py"]
    done = ran(argv, cwd=documented, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.cc
def test_a_model_runs_on_the_ported_platform(documented: Path) -> None:
    """The port is combined with a library and the fakes of its kernel."""
    library = write_project(device_networks.artifact(), Job(platform="library", out=documented / "model")).folder
    fakes = [FAKES / "host", FAKES / "freertos"]
    listed = {
        name: (library / f"{name}.txt").read_text(encoding="utf-8").split() for name in ("sources", "include_dirs")
    }
    includes = (documented / "include", *fakes, *(library / folder for folder in listed["include_dirs"]))
    argv = [
        *(*require_cc(), *STRICT, "-pthread", "-D_GNU_SOURCE", "-ffp-contract=off"),
        *(f"-I{folder}" for folder in includes),
        *("-o", "crossing", "main.c", "src/freertos.c"),
        *(str(source) for folder in fakes for source in sorted(folder.glob("*.c"))),
        *(str(library / source) for source in listed["sources"]),
    ]
    subprocess.run(argv, cwd=documented, check=True, timeout=60)
    x = device_networks.sample()
    done = subprocess.run([documented / "crossing"], input=x.tobytes(), capture_output=True, check=True, timeout=60)
    assert done.stdout == b"".join(output.tobytes() for output in device_networks.crossing().run([x]))


def test_every_status_is_explained() -> None:
    named = set(re.findall(r"FERRULE_ERR_\w+", (root() / "include/ferrule/status.h").read_text(encoding="utf-8")))
    table = DOCUMENT.read_text(encoding="utf-8").split("## Status codes")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(FERRULE_ERR_\w+)`", table, re.MULTILINE)) == named
