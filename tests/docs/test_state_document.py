# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/state.md: the Python one runs, and the C one runs natively with the model that it is for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from needs import require_module
from pages import ROOT, blocks

import ferrule

MAIN = """
#include "smooth.h"

int main(void)
{
    float y[4];
    int32_t status = smooth(0, false, &y[0]) == -7 ? 0 : 1; /* before the first reset */
    status |= smooth(0, true, &y[0]) | smooth(0, false, &y[1]) | smooth(0, true, &y[2]);
    return status != 0 || y[0] != 4 || y[1] != 2 || y[2] != 4;
}
"""


@pytest.mark.cc
@pytest.mark.emu
def test_the_programs_of_the_page(host_cc: tuple[str, ...], tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    files = {block.caption: block.text for block in blocks(ROOT / "docs" / "state.md") if block.caption}
    assert set(files) == {"smooth.py", "smooth.c", "smooth.h"}
    names: dict[str, object] = {}
    exec(compile(files["smooth.py"], "smooth.py", "exec"), names)  # noqa: S102 it is the page's
    network = names["network"]
    assert isinstance(network, ferrule.Network)
    library = ferrule.generate(network, board="mps2-an385", platform="library", out=tmp_path / "library").folder
    for name in ("smooth.c", "smooth.h"):
        (tmp_path / name).write_text(files[name])
    (tmp_path / "main.c").write_text(MAIN)
    sources = [str(library / name) for name in (library / "sources.txt").read_text().split()]
    includes = [f"-I{library / name}" for name in (library / "include_dirs.txt").read_text().split()]
    program = tmp_path / "program"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", f"-I{tmp_path}", *includes]
    own = [str(tmp_path / "main.c"), str(tmp_path / "smooth.c")]
    subprocess.run([*host_cc, *flags, *own, *sources, "-o", str(program)], check=True)
    assert subprocess.run([str(program)], check=False).returncode == 0
