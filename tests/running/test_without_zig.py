# SPDX-License-Identifier: Apache-2.0
"""The extra `emulate`: a firmware is built and emulated where ziglang cannot be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from children import ran
from needs import require_module, require_program

PROGRAM = """
import sys
from importlib.abc import MetaPathFinder

class NoZig(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ziglang":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return None

sys.meta_path.insert(0, NoZig())
from importlib import util
real = util.find_spec
util.find_spec = lambda name, package=None: None if name == "ziglang" else real(name, package)

import small_networks
import ferrule
from ferrule.errors import MissingToolError
from ferrule.firmware import probe_tools
from ferrule.network.samples import random_sample

network = small_networks.dense()
report = ferrule.compile(network, toolchain="arm-none-eabi-gcc").run(random_sample(network.inputs, 1))
print(report.verdict)
try:
    ferrule.compile(network)
except MissingToolError as error:
    print(error, "|", error.hint)
print(*(tool.remedy for tool in probe_tools(opencl=False) if not tool.found and tool.name == "ziglang"))
assert "ziglang" not in sys.modules
"""


@pytest.mark.emu
def test_a_firmware_is_built_and_run() -> None:
    for module in ("unicorn", "cffi"):
        require_module(module, "pip install 'ferrule[emulate]'")
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    require_program("cc", "apt-get install gcc libc6-dev")
    done = ran(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SUPPORT)!r})\n{PROGRAM}"],
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "exact",
        "the toolchain zig is not installed | pip install 'ferrule[run]', or use another compiler: "
        'toolchain="arm-none-eabi-gcc"',
        "pip install 'ferrule[run]'",
    ]


SUPPORT = Path(__file__).parents[1] / "support"
