# SPDX-License-Identifier: Apache-2.0
"""Follows docs/backends.md from beginning to end."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import children
import msgspec
import pytest
import small_networks
from children import ran
from needs import require_module

from ferrule import Network
from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.manifest import FirmwarePart, Manifest
from ferrule.backends.registry import default_registry
from ferrule.formats import to_tflite
from ferrule.running.configuration import DeviceEntry

DOCUMENT = Path(__file__).parents[2] / "docs" / "backends.md"
FILE = re.compile(r"```\{code-block\} \w+\n:caption: (\S+)(?: \((\w+)\))?\n(.*?)```", re.DOTALL)


@pytest.fixture
def documented(tmp_path: Path) -> Path:
    """A folder with the page's files; parts of the same file are joined in order."""
    for name, _, contents in FILE.findall(DOCUMENT.read_text(encoding="utf-8")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(contents)
    return tmp_path


def network() -> Network:
    """Return a network with a comparison and a layer that the NPU does not support."""
    made = Network("compare")
    for name in ("x", "y"):
        made.add_input(small_networks.int8_input(name, 2, 3))
    made.set_outputs([made.add_relu_layer(made.add_maximum_layer("x", "y", name="largest"), name="relu")])
    return made


def command(folder: Path, *arguments: str, search_path: Path | None = None) -> str:
    environment = children.environment(*([search_path] if search_path else []))
    environment.pop("FERRULE_BACKENDS", None)
    done = ran([sys.executable, *arguments], cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def keys_in(text: str, heading: str) -> set[str]:
    """Return the keys of the first table after a line."""
    table = text.split(heading, 1)[1].lstrip("\n").split("\n\n")[0]
    return set(re.findall(r"^\| `([\w.]+)`", table, re.MULTILINE))


def test_the_files_are_there(documented: Path) -> None:
    names = {path.relative_to(documented).as_posix() for path in documented.rglob("*") if path.is_file()}
    assert {"acme_npu/backend.toml", "acme_npu/src_c/compare.c", "ferrule.toml", "use.py"} <= names


@pytest.mark.cc
@pytest.mark.emu
def test_the_program_runs(documented: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    command(documented, "use.py")


def test_one_command_writes_its_files(documented: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (line,) = re.findall(r"^ferrule (new .*)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    folder = tmp_path_factory.mktemp("new")
    command(folder, "-m", "ferrule", *line.split())
    assert files(folder / "acme_npu") == files(documented / "acme_npu")


def files(folder: Path) -> dict[str, str]:
    """Return the text of every file in a folder, by path."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}


@pytest.mark.cc
@pytest.mark.emu
def test_its_tests_run(documented: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    out = command(documented, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "acme_npu")
    assert re.search(r"\b\d{3} passed", out), out
    assert "skipped" not in out


def test_it_is_listed_with_its_devices(documented: Path) -> None:
    listing = msgspec.json.decode(command(documented, "-m", "ferrule", "backends", "AcmeNpu", "--json"))
    (acme,) = [backend for backend in listing["backends"] if backend["id"] == "AcmeNpu"]
    assert acme == {
        "id": "AcmeNpu",
        "origin": "folder",
        "place": str(documented / "acme_npu"),
        "reason": "",
        "host": True,
        "firmware": True,
        "capabilities": {},
        "devices": ["npu0", "npu1"],
        "options": [],
        "handles": [
            {
                "factory": "Ferrule/Host",
                "maps": True,
                "imports": {"malloc": 1},
                "exports": ["malloc"],
                "capabilities": [],
            }
        ],
    }


def test_as_a_package(documented: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The backend is installed as pip would, with the entry point from the page."""
    (line,) = re.findall(r"`(AcmeNpu = \"[\w.:]+\")`", DOCUMENT.read_text(encoding="utf-8"))
    information = documented / "acme_npu-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-npu\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[ferrule.backends]\n{line.replace(chr(34), '')}\n")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    listing = msgspec.json.decode(command(elsewhere, "-m", "ferrule", "backends", "--json", search_path=documented))
    (acme,) = [backend for backend in listing["backends"] if backend["id"] == "AcmeNpu"]
    assert (acme["origin"], acme["place"]) == ("entry point", "acme-npu 1.0 (acme_npu.backend:AcmeNpu)")
    assert (acme["reason"], acme["firmware"]) == ("", True)


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("hints", "device"),
    [((), "npu0"), (("--hint", "maximum_0=AcmeNpu/npu1"), "npu1"), (("--device", "npu0=CpuAcc"), "npu1")],
)
def test_the_command_line_uses_it(documented: Path, hints: Sequence[str], device: str) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    (documented / "model.tflite").write_bytes(to_tflite(network()))
    report = msgspec.json.decode(
        command(
            documented, "-m", "ferrule", "run", "model.tflite", "--backends", "AcmeNpu,CpuAcc", *hints, "--json", "-"
        )
    )
    assert report["verdict"] == "exact"
    first = report["layers"][0]
    assert (first["backend"], first["device"]) == ("AcmeNpu", device)


def test_the_command_line_shows_what_it_refuses(documented: Path) -> None:
    (documented / "model.tflite").write_bytes(to_tflite(network()))
    shown = command(documented, "-m", "ferrule", "inspect", "model.tflite", "--backends", "AcmeNpu,CpuAcc", "--json")
    assert "the unit only compares tensors, it does not support RELU" in shown


def test_every_key_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = set(Manifest.__struct_fields__) - {"firmware"}
    wanted |= {f"firmware.{name}" for name in FirmwarePart.__struct_fields__}
    assert keys_in(text, "another one is refused:") == wanted
    assert keys_in(text, 'backend = "AcmeNpu"\n```') == set(DeviceEntry.__struct_fields__)


def test_every_shipped_backend_is_listed() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    shipped = [name for name in default_registry().ids() if default_registry().origin(name).kind == "shipped"]
    for name in shipped:
        row = re.search(rf"^\| {name} \| (\w+) \| (\w+) \|", text, re.MULTILINE)
        assert row is not None, name
        try:
            backend = default_registry().create(name)
        except BackendUnavailableError:  # the backend needs a package that is not installed
            continue
        assert row[1] == ("yes" if backend.has_host_face() else "no")
        assert row[2] == ("yes" if backend.firmware_target() is not None else "no")
