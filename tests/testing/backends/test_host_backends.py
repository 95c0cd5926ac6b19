# SPDX-License-Identifier: Apache-2.0
"""The families on every available host backend: shipped ones, shared objects, the example folder."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from gpu_face import require_opencl
from needs import require_cc, require_module, require_program

from ferrule.testing.backends import BackendFamily, Subject

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="session")
def shared_objects(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the built backends of examples/dynamic_backend."""
    make = require_program("make", "apt-get install make")
    build = tmp_path_factory.mktemp("shared_objects")
    flags = "-O1 -g -fsanitize=undefined -fsanitize-undefined-trap-on-error"
    command = [make, "-s", f"CC={shlex.join(host_cc)}", f"BUILD={build}", f"CFLAGS={flags}"]
    subprocess.run(command, cwd=EXAMPLES / "dynamic_backend", check=True)
    return build


class TestCpuRef(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="CpuRef")


@pytest.mark.cc
class TestCpuAcc(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        require_module("cffi", "pip install 'ferrule[run]'")
        require_cc()
        return Subject(id="CpuAcc")


class TestGpuAcc(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        require_opencl()
        return Subject(id="GpuAcc")


@pytest.mark.cc
class TestCpuRefAsSharedObject(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, shared_objects: Path) -> Subject:
        return Subject.dynamic("CpuRef", shared_objects / "cpu_ref")


@pytest.mark.cc
class TestSampleAsSharedObject(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, shared_objects: Path) -> Subject:
        return Subject.dynamic("Sample", shared_objects)


@pytest.mark.nightly
class TestMyCustom(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject.of_folder("MyCustom", EXAMPLES / "custom_backend" / "my_custom")
