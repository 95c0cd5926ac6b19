# SPDX-License-Identifier: Apache-2.0
"""The fakes' headers compared with the real ones, where these are installed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from children import ran
from fake_signatures import HEADERS, real_include_dirs, signature_check
from needs import require_cc, require_module, require_variable
from zephyr_tree import zephyr_tree

from ferrule import resources
from ferrule.errors import FerruleError
from ferrule.testing.compilation import FAKES

pytestmark = pytest.mark.cc
BUILD_TIMEOUT_S = 900
SHOW = ("-std=gnu11", "-Wall", "-Werror")
APPLICATION = """
cmake_minimum_required(VERSION 3.20)
find_package(Zephyr REQUIRED HINTS $ENV{{ZEPHYR_BASE}})
project(signatures)
target_sources(app PRIVATE main.c signatures.c {sources})
target_include_directories(app PRIVATE {includes})
target_compile_definitions(app PRIVATE
    CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS=1000 CONFIG_FERRULE_UART_RX_BYTES=64 CONFIG_FERRULE_UART_TX_BYTES=64)
"""
CONFIGURATION = """
CONFIG_SERIAL=y
CONFIG_RING_BUFFER=y
CONFIG_PM_DEVICE=y
CONFIG_PM_DEVICE_RUNTIME=y
CONFIG_OBJ_CORE=y
CONFIG_COMPILER_WARNINGS_AS_ERRORS=y
"""


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()


def compiled(text: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "signatures.c").write_text(text)
    argv = [*require_cc(), *SHOW, *options, "-c", "-o", str(folder / "signatures.o"), str(folder / "signatures.c")]
    return ran(argv, timeout=60)


@pytest.mark.parametrize("platform", HEADERS)
def test_the_fakes_agree_with_themselves(platform: str, tmp_path: Path) -> None:
    text = signature_check(platform)
    assert re.findall(r"(?i)\bfake_\w+", text) == [], "real headers have no such names"
    done = compiled(text, tmp_path, f"-I{FAKES / platform}", f"-I{FAKES / 'host'}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("header", "old", "new", "what"),
    [
        (
            "cmsis_os2.h",
            "osMutexAcquire(osMutexId_t mutex_id, uint32_t",
            "osMutexAcquire(osMutexId_t mutex_id, int",
            "osMutexAcquire",
        ),
        ("cmsis_os2.h", "osErrorISR = -6", "osErrorISR = -9", "osErrorISR"),
        ("cmsis_os2.h", "osDelay(", "osWait(", "osDelay"),
        ("Driver_USART.h", "(*Send)(const void", "(*Send)(void", "((ARM_DRIVER_USART *)0)->"),
        ("Driver_USART.h", "int32_t (*Uninitialize)(void);", "", "((ARM_DRIVER_USART *)0)->"),
        ("Driver_USART.h", "uint32_t rx_break : 1;", "uint32_t a_break : 1;", "rx_break"),
    ],
)
def test_a_difference_is_seen(header: str, old: str, new: str, what: str, tmp_path: Path) -> None:
    """Modified copies of the fakes' headers stand in for real headers that differ."""
    for name in ("Driver_Common.h", *HEADERS["cmsis"]):
        text = (FAKES / "cmsis" / name).read_text()
        if name == header:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)
    done = compiled(signature_check("cmsis"), tmp_path, f"-I{tmp_path}")
    assert done.returncode != 0
    assert what in done.stderr


def test_a_real_function_may_leave_a_struct_alone(tmp_path: Path) -> None:
    """As ring_buf_is_empty() does since Zephyr 4: a program that compiles with the fake compiles with it, too."""
    header = tmp_path / "zephyr" / "sys" / "ring_buffer.h"
    header.parent.mkdir(parents=True)
    text = (FAKES / "zephyr" / "zephyr" / "sys" / "ring_buffer.h").read_text()
    old = "bool ring_buf_is_empty(struct ring_buf *buf)"
    assert old in text
    includes = [f"-I{folder}" for folder in (tmp_path, FAKES / "zephyr", FAKES / "host")]
    for new, accepted in (
        ("bool ring_buf_is_empty(const struct ring_buf *buf)", True),
        ("bool ring_buf_is_empty(const struct ring_buf **buf)", False),
        ("int ring_buf_is_empty(const struct ring_buf *buf)", False),
    ):
        header.write_text(text.replace(old, new))
        done = compiled(signature_check("zephyr"), tmp_path, *includes)
        assert (done.returncode == 0) is accepted, done.stderr
        assert accepted or "ring_buf_is_empty" in done.stderr


def test_platforms_without_fakes_are_refused() -> None:
    with pytest.raises(FerruleError, match="no platform 'threadx' with fakes"):
        signature_check("threadx")


def test_against_cmsis(tmp_path: Path) -> None:
    real = require_variable("CMSIS_PATH")
    includes = [f"-I{folder}" for folder in real_include_dirs(real)]
    done = compiled(signature_check("cmsis"), tmp_path, *includes)
    assert done.returncode == 0, done.stderr
    adapter = resources.root() / "platforms" / "cmsis"
    options = [*includes, f"-I{adapter / 'include'}", f"-I{resources.root() / 'include'}"]
    for with_kernel in (0, 1):
        for source in sorted((adapter / "src").glob("*.c")):
            if source.name == "cmsis_counter.c" and not with_kernel:
                continue
            port = f'-DFERRULE_PORT_H="{FAKES / "host" / "ferrule_fake_port.h"}"'
            definitions = [port, f"-DFERRULE_CMSIS_RTOS2={with_kernel}"]
            argv = [*require_cc(), *SHOW, *options, *definitions, "-fsyntax-only", str(source)]
            done = ran(argv, timeout=60)
            assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1700)
def test_against_zephyr(tmp_path: Path) -> None:
    tree = zephyr_tree()
    root = resources.root()
    adapter = root / "platforms" / "zephyr"
    elsewhere = {"accelerator.c", "uart_polling.c"}  # these need a devicetree, and another configuration
    sources = [path for path in sorted((adapter / "src").glob("*.c")) if path.name not in elsewhere]
    sources += [root / "src_c" / "device" / "device.c"]
    application = APPLICATION.format(
        sources=" ".join(map(str, sources)), includes=f"{root / 'include'} {adapter / 'include'}"
    )
    (tmp_path / "CMakeLists.txt").write_text(application)
    (tmp_path / "prj.conf").write_text(CONFIGURATION)
    (tmp_path / "main.c").write_text("int main(void)\n{\n    return 0;\n}\n")
    (tmp_path / "signatures.c").write_text(signature_check("zephyr"))
    build = tmp_path / "build"
    (_, configure), (_, compile_all) = tree.source.steps(tmp_path, build, tree.native_board, "-DCMAKE_BUILD_TYPE=")
    for argv in (configure, (*compile_all, "--target", "app")):
        done = ran(argv, timeout=BUILD_TIMEOUT_S)
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
