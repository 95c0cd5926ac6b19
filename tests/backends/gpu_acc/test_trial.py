# SPDX-License-Identifier: Apache-2.0
"""OpenCL platforms that harm the process trying them; a stand-in for pyopencl imitates them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import children
import pytest
from children import ran
from gate import every
from gpu_face import require_opencl

STAND_IN = """
import os, sys, time, warnings

class Error(Exception):
    pass

class CompilerWarning(UserWarning):
    pass

class device_type:
    GPU = 4

class program_build_info:
    LOG = 0

class mem_flags:
    READ_WRITE = 1

class Device:
    def __init__(self, platform):
        self.platform, self.name, self.type, self.extensions = platform, f"chip of {platform.name}", 2, ""
        self.available = self.compiler_available = True
        self.max_work_group_size = 64

class Platform:
    version = "OpenCL 3.0"
    def __init__(self, name):
        self.name = name
    def get_devices(self):
        if self.name == "empty":
            raise Error("no devices")
        return [Device(self)]

class Context:
    def __init__(self, devices):
        self.device = devices[0]

class Program:
    def __init__(self, context, source):
        self.name = context.device.platform.name
    def build(self, cache_dir):
        if self.name == "unknown":
            raise Error("build")
        if self.name == "talking":
            warnings.warn("Non-empty compiler output encountered", CompilerWarning)
    def get_build_info(self, device, what):
        return "unknown processor\\nand more"
    def trial(self, queue, size, group, buffer):
        if self.name == "dying":
            print("first words", "no linker here", "the end", sep="\\n", file=sys.stderr, flush=True)
            os.abort()
        if self.name == "refusing":
            raise Error("out of resources")
        if self.name == "leaving":
            sys.exit(3)

def get_platforms():
    return [Platform(name) for name in os.environ["PLATFORMS"].split()]

def CommandQueue(context):
    return context

def Buffer(context, flags, size):
    return context

def enqueue_copy(context, numbers, buffer):
    numbers[:] = range(1 if context.device.platform.name != "wrong" else 7, len(numbers) + 7)[: len(numbers)]

Context.finish = lambda self: None
"""
ASK = """
from ferrule.backends.gpu_acc import opencl
print(opencl.unavailable_reason())
print(*(device.title for device in opencl.opencl_devices()), sep="; ")
"""


def ask(folder: Path, platforms: str) -> list[str]:
    """Return why no device can be used, then the usable devices, as reported by a process with these platforms."""
    (folder / "pyopencl.py").write_text(STAND_IN, encoding="utf-8")
    own = children.environment(folder, PLATFORMS=platforms)
    argv = [sys.executable, "-c", ASK]
    done = ran(argv, env=own, timeout=300)
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("platform", "reason"),
    every(
        2,
        [
            ("dying", "dying (OpenCL 3.0) ended a trial process with SIGABRT: first words; no linker here; the end"),
            ("leaving", "leaving (OpenCL 3.0) ended a trial process with exit code 3: it says nothing"),
            ("unknown", "chip of unknown (unknown) builds no kernel: unknown processor"),
            ("refusing", "chip of refusing (refusing) runs no kernel: out of resources"),
            ("wrong", "chip of wrong (wrong) computes wrong values"),
            ("empty", "the platforms (empty) have none"),
        ],
    ),
)
def test_a_platform_that_cannot_be_used_is_named(tmp_path: Path, platform: str, reason: str) -> None:
    assert ask(tmp_path, platform) == [f"no OpenCL device can be used: {reason}"]


def test_what_a_compiler_says_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    assert ask(tmp_path, "talking") == ["", "0: chip of talking (talking)"]


def test_the_others_are_used(tmp_path: Path) -> None:
    assert ask(tmp_path, "dying good unknown better") == [
        "",
        "0: chip of good (good); 1: chip of better (better)",
    ]


def test_without_a_linker_no_process_dies(tmp_path: Path) -> None:
    """PoCL ends the process if there is no linker on PATH; other drivers may not need a linker."""
    require_opencl()
    environment = os.environ | {"PATH": str(tmp_path), "FERRULE_CACHE": str(tmp_path)}
    program = "from ferrule.backends.gpu_acc import opencl; print(opencl.unavailable_reason())"
    argv = [sys.executable, "-c", program]
    done = ran(argv, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "\n" or "ended a trial process with SIGABRT" in done.stdout
