# SPDX-License-Identifier: Apache-2.0
"""The manifest in a backend's folder, and the ways in which the folder is found."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from imported import forgotten

from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.contribution import Warnings
from ferrule.backends.discovery import FOLDERS_VARIABLE, environment, in_folders, shipped
from ferrule.backends.manifest import MANIFEST_NAME, SHIPPED_FOLDER, backend_folders, read_manifest
from ferrule.backends.origin import OriginKind
from ferrule.backends.registry import BackendRegistry, DuplicateBackendError, default_registry, registry_with
from ferrule.backends.version import INTERFACE_VERSION
from ferrule.errors import FerruleError

BACKEND = """
from ferrule.backends import Backend, BackendId, Support


class Nothing(Backend):
    id = BackendId("Nothing")

    def layer_support(self):
        return self

    def supports(self, graph, layer, target):
        return Support(reason="it takes nothing")
"""
MANIFEST = 'id = "Nothing"\nfactory = "nothing_at_all.backend:Nothing"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A backend that supports no layer; its package is removed from sys.modules afterwards."""
    path = make(tmp_path / "nothing_at_all")
    with forgotten(path.name):
        yield path


def make(path: Path, manifest: str = MANIFEST) -> Path:
    (path / "tests").mkdir(parents=True)
    (path / "tests" / "test_nothing.py").write_text("def test_nothing(): pass\n")
    (path / "src_c").mkdir()
    for name in ("one", "two"):
        (path / "src_c" / f"{name}.c").write_text("int nothing;\n")
    (path / "include").mkdir()
    (path / MANIFEST_NAME).write_text(manifest)
    (path / "__init__.py").write_text('"""Nothing."""\n')
    (path / "backend.py").write_text(BACKEND)
    return path


def test_a_folder_is_imported_where_it_lies(folder: Path) -> None:
    path = list(sys.path)
    backend = read_manifest(folder).create()
    assert backend.id == "Nothing"
    assert type(backend).__module__ == "nothing_at_all.backend"
    assert Path(sys.modules["nothing_at_all"].__file__ or "") == folder / "__init__.py"
    assert sys.path == path
    assert type(read_manifest(folder).create()) is type(backend)


def test_another_package_of_that_name_is_told(folder: Path, tmp_path: Path) -> None:
    read_manifest(folder).create()
    other = make(tmp_path / "elsewhere" / "nothing_at_all")
    with pytest.raises(FerruleError, match="another Python package is called 'nothing_at_all'"):
        read_manifest(other).create()


def test_a_package_that_fails_leaves_nothing_behind(folder: Path) -> None:
    (folder / "__init__.py").write_text("raise RuntimeError('no luck')\n")
    with pytest.raises(RuntimeError, match="no luck"):
        read_manifest(folder).create()
    assert "nothing_at_all" not in sys.modules
    (folder / "__init__.py").write_text('"""Nothing."""\n')
    assert read_manifest(folder).create().id == "Nothing"


def test_a_folder_that_is_no_package(folder: Path) -> None:
    (folder / "__init__.py").unlink()
    with pytest.raises(FerruleError, match=r"cannot be imported: there is no .*__init__\.py"):
        read_manifest(folder).create()


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ('id = "X"', "missing required field `factory`"),
        (MANIFEST + "colour = 1", "unknown field `colour`"),
        (MANIFEST + "[firmware]\nsources = 1", r"\$\.firmware\.sources"),
        (MANIFEST.replace(":", "."), "expected module:name"),
        ("id = ", "Invalid value"),
        (MANIFEST.replace('"Nothing"', '"Something"'), "makes backend 'Nothing', expected 'Something'"),
        (MANIFEST.replace("backend:", "frontend:"), r"cannot be imported: No module named"),
        (MANIFEST + 'api = "2.0"\ncolour = 1', r"api is 2\.0, this Ferrule has version 1\.\d+ of the interface"),
        (MANIFEST + 'api = "0.9"', r"api is 0\.9, this Ferrule has version"),
        (MANIFEST + 'api = "1.999"', r"api is 1\.999, this Ferrule has version"),
        (MANIFEST + "api = 1.0", r"api is 1\.0, expected major\.minor in quotes, such as \"1\.\d+\""),
        (MANIFEST + 'api = "1.0.0"', r"api is '1\.0\.0', expected major\.minor"),
        (MANIFEST.replace(":Nothing", ":Anything"), "cannot be imported: .*has no attribute 'Anything'"),
    ],
)
def test_a_wrong_manifest_says_where(folder: Path, manifest: str, reason: str) -> None:
    (folder / MANIFEST_NAME).write_text(manifest)
    with pytest.raises(FerruleError, match=reason) as caught:
        read_manifest(folder).create()
    assert str(folder / MANIFEST_NAME) in str(caught.value)


@pytest.mark.parametrize("version", ["1.0", str(INTERFACE_VERSION)])
def test_older_minor_versions_of_the_interface_are_accepted(folder: Path, version: str) -> None:
    (folder / MANIFEST_NAME).write_text(MANIFEST + f'api = "{version}"\n')
    assert read_manifest(folder).create().id == "Nothing"


@pytest.mark.parametrize(
    ("version", "hint"), [("9.0", "install a newer Ferrule"), ("0.1", "adapt the backend; .*CHANGELOG")]
)
def test_another_version_of_the_interface_has_a_hint(folder: Path, version: str, hint: str) -> None:
    (folder / MANIFEST_NAME).write_text(MANIFEST + f'api = "{version}"\n')
    with pytest.raises(FerruleError) as caught:
        read_manifest(folder)
    assert re.match(hint, caught.value.hint or "")


def test_contributions(folder: Path) -> None:
    firmware = '[firmware]\nsources = ["src_c/*.c"]\ninclude_dirs = ["include"]\n'
    (folder / MANIFEST_NAME).write_text(MANIFEST + 'tests = ["tests"]\n' + firmware)
    found = read_manifest(folder)
    (part,) = found.contributions()
    assert part.name == f"backends/{folder.name}"
    assert part.sources == ("src_c/one.c", "src_c/two.c")
    assert part.include_dirs == ("include",)
    assert (part.licence, part.warnings, part.defines) == ("NOASSERTION", Warnings.OWN, {})
    assert found.tests() == (folder / "tests",)
    (folder / MANIFEST_NAME).write_text(MANIFEST + 'shared = ["nothing"]\ntests = ["test"]')
    with pytest.raises(FerruleError, match="there is no shared folder"):
        read_manifest(folder).shared()
    with pytest.raises(FerruleError, match="'test' matches nothing"):
        read_manifest(folder).tests()


def test_parts_differ_in_licence_and_warnings(folder: Path) -> None:
    (folder / MANIFEST_NAME).write_text(
        MANIFEST
        + '[[firmware]]\nsources = ["src_c/one.c"]\nlicence = "MIT"\n'
        + '[[firmware]]\nsources = ["src_c/two.c"]\nlicence = "BSD-3-Clause"\nwarnings = "third-party"\n'
        + 'defines = { MODE = "2" }\n'
    )
    own, vendor = read_manifest(folder).contributions()
    assert (own.sources, own.licence, own.warnings) == (("src_c/one.c",), "MIT", Warnings.OWN)
    assert (vendor.sources, vendor.licence, vendor.warnings) == (("src_c/two.c",), "BSD-3-Clause", Warnings.THIRD_PARTY)
    assert vendor.defines == {"MODE": "2"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('sources = ["src_c/three.c"]', "'src_c/three.c' matches nothing"),
        ('licence = ""', "licence '' is no SPDX expression"),
        ('defines = { "A B" = "1" }', "defines A B as '1', expected a C identifier"),
    ],
)
def test_contributions_that_cannot_be(folder: Path, line: str, reason: str) -> None:
    (folder / MANIFEST_NAME).write_text(MANIFEST + f"[firmware]\n{line}\n")
    with pytest.raises(FerruleError, match=reason) as caught:
        read_manifest(folder).contributions()
    assert str(caught.value).startswith(str(folder / MANIFEST_NAME))


@pytest.mark.parametrize("path", list(backend_folders()), ids=lambda path: path.name)
def test_shipped_manifests_say_all(path: Path) -> None:
    found = read_manifest(path)
    assert found.manifest.title
    found.shared()
    assert all(part.licence == "Apache-2.0" for part in found.contributions())
    listed = [test for part in found.tests() for test in ([part] if part.is_file() else part.rglob("test_*.py"))]
    assert sorted(listed) == sorted(path.rglob("test_*.py"))


# ---- ways into the registry


def test_folders_hold_one_backend_or_several(folder: Path, tmp_path: Path) -> None:
    other = make(
        tmp_path / "something_else", MANIFEST.replace("Nothing", "Else").replace("nothing_at_all", "something_else")
    )
    (tmp_path / "no_backend").mkdir()
    assert [found.id for found in in_folders([folder])] == ["Nothing"]
    rows = list(in_folders([tmp_path]))
    assert [(row.id, row.origin.kind, row.origin.place) for row in rows] == [
        ("Nothing", OriginKind.FOLDER, str(folder)),
        ("Else", OriginKind.FOLDER, str(other)),
    ]
    for wrong in (tmp_path / "no_backend", tmp_path / "not_there", folder / "backend.py"):
        with pytest.raises(FerruleError, match="is no backend's folder and holds none"):
            list(in_folders([wrong]))


def test_a_registry_with_folders(folder: Path) -> None:
    registry = registry_with([folder])
    assert registry.create("Nothing").id == "Nothing"
    assert str(registry.origin("Nothing")) == f"folder: {folder}"
    assert "CpuRef" in registry
    assert "Nothing" not in default_registry()
    with pytest.raises(DuplicateBackendError, match="registered already"):
        registry_with([folder, folder])


def test_the_environment_names_folders(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDERS_VARIABLE, f"{folder}:{tmp_path / 'not_there'}:")
    registry = BackendRegistry(sources=(shipped, environment))
    assert registry.create("Nothing").id == "Nothing"
    (row,) = [row for row in registry.rows() if row.reason]
    assert row.id == str(tmp_path / "not_there")
    assert "FERRULE_BACKENDS: " in row.reason


def test_a_broken_folder_costs_its_own_row(folder: Path) -> None:
    (folder / MANIFEST_NAME).write_text("id = 3")
    registry = registry_with([folder])
    reasons = {row.id: row.reason for row in registry.rows()}
    assert "expected `str`" in reasons.pop("nothing_at_all").lower()
    assert "CpuRef" in reasons


def test_a_broken_manifest_keeps_its_id(folder: Path) -> None:
    path = folder / MANIFEST_NAME
    for text, reason in (
        ('id = "Nothing"\nfactory = "nothing_at_all:Nothing"\nrank = "first"\n', "$.rank"),
        ('id = "Nothing"\nfactory = [\n', str(path)),
        ("id='Nothing'\nfactory = 'a:b'\nsurprise = 1\n", "surprise"),
    ):
        path.write_text(text)
        with pytest.raises(BackendUnavailableError) as error:
            registry_with([folder]).create("Nothing")
        assert str(path) in str(error.value)
        assert reason in str(error.value)


def test_shipped_backends_are_those_with_a_manifest() -> None:
    ids = [found.id for found in shipped()]
    assert sorted(ids) == sorted(
        read_manifest(path).manifest.id for path in SHIPPED_FOLDER.iterdir() if (path / MANIFEST_NAME).is_file()
    )
