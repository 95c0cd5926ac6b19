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
from needs import require_cc, require_program

from ferrule.firmware import Job, write_project
from ferrule.resources import root

DOCUMENT = Path(__file__).parents[2] / "docs" / "platforms.md"
EXAMPLE = Path(__file__).parents[2] / "examples" / "platform_template"
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


@pytest.mark.parametrize("name", ["include/ferrule/platform/freertos.h", "src/freertos.c"])
def test_the_steps_make_the_example(documented: Path, name: str) -> None:
    assert (documented / name).read_text(encoding="utf-8") == (EXAMPLE / name).read_text(encoding="utf-8")


@pytest.mark.cc
def test_the_ported_platform_passes_its_tests(documented: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", documented / "tests")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        "-k",
        "task",
        "tests",
    ]
    done = subprocess.run(argv, cwd=documented, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


MAIN = """
#include <stdio.h>
#include <string.h>
#include "devices.h"
#include "task.h"

int main(void)
{
    fake_be(1);
    int32_t status = devices_start();
    fread((void *)(uintptr_t)ferrule_crossing_default_inputs.x, 1, 144, stdin);
    if (status == 0) {
        status = ferrule_crossing_run(&ferrule_crossing_default_inputs, &ferrule_crossing_default_outputs,
                                      &ferrule_crossing_default_memory, &devices, NULL);
    }
    fwrite(ferrule_crossing_default_outputs.h, 1, 144, stdout);
    fwrite(ferrule_crossing_default_outputs.late, 1, 5, stdout);
    return status == 0 ? 0 : 1;
}
"""


@pytest.mark.cc
def test_a_model_runs_on_the_ported_platform(documented: Path) -> None:
    """The port is combined with the parts of a project that the page's table names."""
    project = write_project(device_networks.artifact(), Job(out=documented / "project")).folder
    pattern = (project / "devices.c").read_text(encoding="utf-8")
    assert pattern.count("_device, NULL, NULL, ") == 2
    mine = pattern.replace("bare_metal.h", "freertos.h").replace("_device, NULL, NULL, ", "_device, ")
    (documented / "devices.c").write_text(mine, encoding="utf-8")
    (documented / "main.c").write_text(MAIN, encoding="utf-8")
    fake = EXAMPLE / "tests" / "fake"
    library = project / "lib"
    backends = sorted((library / "backends").iterdir())
    folders = (library / "src_c" / "device", library / "src_c" / "kernels", *backends)
    sources = [path for folder in folders for path in sorted(folder.rglob("*.c"))]
    sources += [path for path in sorted((project / "model").glob("*.c")) if not path.name.endswith("_link.c")]
    own_includes = (project, project / "model", library / "include", library / "src_c" / "kernels" / "include")
    includes = (documented / "include", fake, *own_includes, *(folder / "include" for folder in backends))
    argv = [
        *(*require_cc(), "-std=c11", "-pthread", "-ffp-contract=off"),
        *(f"-I{folder}" for folder in includes),
        *("-o", "crossing", "main.c", "devices.c", "src/freertos.c", str(fake / "freertos.c"), *map(str, sources)),
    ]
    subprocess.run(argv, cwd=documented, check=True, timeout=60)
    x = device_networks.sample()
    done = subprocess.run([documented / "crossing"], input=x.tobytes(), capture_output=True, check=True, timeout=60)
    assert done.stdout == b"".join(output.tobytes() for output in device_networks.crossing().run([x]))


def test_every_status_is_explained() -> None:
    named = set(re.findall(r"FERRULE_ERR_\w+", (root() / "include/ferrule/status.h").read_text(encoding="utf-8")))
    table = DOCUMENT.read_text(encoding="utf-8").split("## Status codes")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(FERRULE_ERR_\w+)`", table, re.MULTILINE)) == named
