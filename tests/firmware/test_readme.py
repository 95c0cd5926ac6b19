# SPDX-License-Identifier: Apache-2.0
"""The README of a generated project explains how to run it."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_networks
from needs import require_module

from ferrule import generate
from ferrule.firmware import Job, build_project, load_project
from ferrule.link import LinkSession, SerialChannel

PLATFORMS = ("bare-metal", "cmsis")


def readme(folder: Path, platform: str, job: Job) -> str:
    project = generate(
        small_networks.dense(),
        replace(
            job,
            toolchain="zig" if platform == "bare-metal" else "arm-none-eabi-gcc",
            platform=platform,
            out=folder,
        ),
    )
    return (project.folder / "README.md").read_text(encoding="utf-8")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(argv: list[str], folder: Path, port: int) -> Iterator[None]:
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL) as process:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert process.poll() is None
                    time.sleep(0.05)
            yield
        finally:
            process.kill()


@pytest.mark.cc
@pytest.mark.emu
def test_qemu_runs_it_as_the_readme_says(qemu: str, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    text = readme(tmp_path / "project", "bare-metal", Job())
    build_project(load_project(tmp_path / "project"))
    (command,) = re.findall(r"^    (qemu-system-arm .*)$", text, re.MULTILINE)
    (named,) = re.findall(r"socket://127\.0\.0\.1:(\d+)$", text, re.MULTILINE)
    port = free_port()
    argv = [qemu, *shlex.split(command.replace(named, str(port)))[1:]]
    network = small_networks.dense()
    x = np.random.default_rng(0).integers(-128, 128, network.inputs[0].shape).astype(np.int8)
    with (
        running(argv, tmp_path / "project", port),
        LinkSession(SerialChannel(f"socket://127.0.0.1:{port}"), timeout_s=30) as session,
    ):
        assert session.run([x]).outputs[0].tobytes() == network.run([x])[0].tobytes()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_qemu_is_not_offered_without_the_models_devices(platform: str, tmp_path: Path) -> None:
    assert "qemu-system-arm -M mps2-an386 " in readme(tmp_path / "core", platform, Job())
    job = Job(backends=("Woofles", "CpuAcc"))
    assert "qemu-system-arm" not in readme(tmp_path / "accelerator", platform, job)
