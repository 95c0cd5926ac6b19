# SPDX-License-Identifier: Apache-2.0
"""The folders that are searched for dynamic backends."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ferrule.backends.dynamic import load_dynamic_backends, paths
from ferrule.backends.dynamic.paths import PATHS_VARIABLE, check_path, find_candidates, search_paths
from ferrule.backends.dynamic.report import LoadReport, Reason
from ferrule.backends.registry import BackendRegistry


@pytest.mark.parametrize(
    ("override", "environment", "build_paths", "expected"),
    [
        (None, None, "", ()),
        (None, None, "/one:/two:/one", ("/one", "/two")),
        (None, "/three:/four", "/one", ("/three", "/four")),
        (None, "", "/one", ()),
        ("/five:/six", "/three", "/one", ("/five:/six",)),
        ("", None, "/one", ("/one",)),
    ],
)
def test_an_override_replaces_the_environment_which_replaces_the_list_of_the_build(
    override: str | None, environment: str | None, build_paths: str, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BUILD_PATHS", build_paths)
    monkeypatch.delenv(PATHS_VARIABLE, raising=False)
    if environment is not None:
        monkeypatch.setenv(PATHS_VARIABLE, environment)
    assert search_paths(override) == expected


def test_checks_of_a_path_and_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    expected = {
        "": Reason.PATH_EMPTY,
        f"{tmp_path}/folder": None,
        f"{tmp_path}/folder/": None,
        f"{tmp_path}/link": None,
        f"{tmp_path}/loop": Reason.PATH_MISSING,
        f"{tmp_path}/nothing": Reason.PATH_MISSING,
        f"{tmp_path}/folder:{tmp_path}/link": Reason.PATH_MISSING,
        f"{tmp_path}/file": Reason.PATH_NOT_A_DIRECTORY,
        "folder": Reason.PATH_NOT_ABSOLUTE,
        "file": Reason.PATH_NOT_A_DIRECTORY,
        "nothing": Reason.PATH_MISSING,
        "/with\0zero": Reason.PATH_MISSING,
    }
    found = {path: check_path(path) for path in expected}
    assert {path: None if row is None else row.reason for path, row in found.items()} == expected


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_that_everyone_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    (folder / "Own_Good_backend.so").write_bytes(b"")
    (row,) = find_candidates((str(folder),))
    assert isinstance(row, LoadReport)
    assert row.reason is Reason.PATH_WORLD_WRITABLE
    assert row.message.endswith(f'chmod o-w "{folder}"')


def test_files_that_everyone_can_change_are_refused(tmp_path: Path) -> None:
    safe, shared = tmp_path / "safe", tmp_path / "shared"
    safe.mkdir()
    shared.mkdir()
    for path in (safe / "Own_File_backend.so", shared / "there.so"):
        path.write_bytes(b"")
    (safe / "Own_File_backend.so").chmod(0o666)
    (safe / "Own_Link_backend.so").symlink_to(shared / "there.so")
    shared.chmod(0o777)
    found = {row.path.name: row for row in find_candidates((str(safe),)) if not row.accepted}
    assert {name: row.reason for name, row in found.items()} == dict.fromkeys(
        ("Own_File_backend.so", "Own_Link_backend.so"), Reason.WORLD_WRITABLE
    )
    assert f'"{shared}" can be written by every user' in found["Own_Link_backend.so"].message


@pytest.mark.parametrize("path", ["nothing", "file"])
def test_a_bad_override_is_a_warning_and_no_stop(tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    registry = BackendRegistry()
    with caplog.at_level(logging.WARNING):
        (row,) = load_dynamic_backends(registry, tmp_path / path)
    assert not row.accepted
    assert registry.ids() == ()
    assert caplog.messages == [
        row.message,
        f'The given override path for dynamic backends "{tmp_path / path}" is not valid',
    ]


def test_bad_folders_do_not_stop_the_good_ones(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.mkdir()
    (good / "Arm_Good_backend.so").write_bytes(b"")
    rows = list(find_candidates((str(tmp_path / "nothing"), str(good), "")))
    assert [row.reason or row.path.name for row in rows] == [
        Reason.PATH_MISSING,
        "Arm_Good_backend.so",
        Reason.PATH_EMPTY,
    ]


def test_folders_come_in_the_order_of_the_list_and_files_by_name(tmp_path: Path) -> None:
    for folder, names in {"b": ("Z_z_backend.so", "A_a_backend.so"), "a": ("M_m_backend.so",), "empty": ()}.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_bytes(b"")
    paths = tuple(str(tmp_path / folder) for folder in ("b", "empty", "a"))
    assert [row.path.name for row in find_candidates(paths)] == ["A_a_backend.so", "Z_z_backend.so", "M_m_backend.so"]


def test_the_environment_is_read_when_backends_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Arm_Empty_backend.so").write_bytes(b"")
    monkeypatch.setenv(PATHS_VARIABLE, str(tmp_path))
    (row,) = load_dynamic_backends(BackendRegistry())
    assert row.path == tmp_path / "Arm_Empty_backend.so"
    assert row.reason is Reason.NOT_LOADABLE
