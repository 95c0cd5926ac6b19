# SPDX-License-Identifier: Apache-2.0
"""The table of names in Arm NN's guide for backend developers, row by row, and traps that it does not mention."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.backends.dynamic.paths import find_candidates, is_backend_name, resembles_backend
from ferrule.backends.dynamic.report import LoadReport, Reason

GUIDE = [
    ("Arm_GpuAcc_backend.so", True),
    ("Arm_GpuAcc_backend.so.1", True),
    ("Arm_GpuAcc_backend.so.1.2", True),
    ("Arm_GpuAcc_backend.so.1.2.3", True),
    ("Arm_GpuAcc_backend.so.10.1.27", True),
    ("Arm_GpuAcc_backend.so.10.1.33.", False),
    ("Arm_GpuAcc_backend.so.3.4..5", False),
    ("Arm_GpuAcc_backend.so.1,1.1", False),
    ("Arm123_GpuAcc_backend.so", True),
    ("Arm_GpuAcc456_backend.so", True),
    ("Arm%Co_GpuAcc_backend.so", False),
    ("Arm_Gpu.Acc_backend.so", False),
    ("GpuAcc_backend.so", False),
    ("_GpuAcc_backend.so", False),
    ("Arm__backend.so", False),
    ("Arm_GpuAcc.so", False),
    ("__backend.so", False),
    ("__.so", False),
    ("Arm_GpuAcc_backend", False),
    ("Arm_GpuAcc_backend_v1.2.so", False),
]
TRAPS = [
    ("Arm_GpuAcc_backendXso", False),  # Arm NN does not escape the dot
    ("Arm_GpuAcc_backend_so.1", False),
    ("libArm_GpuAcc_backend.so", True),
    ("Arm_backend_backend.so", True),
    ("Arm_Gpu_Acc_backend.so", False),
    ("Arm_GpuAcc_BACKEND.so", False),
    ("Arm_GpuAcc_backend.SO", False),
    ("Arm_GpuAcc_backend.so.1a", False),
    (".Arm_GpuAcc_backend.so", False),
    ("Arm_GpuAcc_backend.so\n", False),
    ("Arm_GpuAcc_backend.so.١", False),  # a digit, but not an ASCII digit
    ("Ärm_GpuAcc_backend.so", False),
    ("Arm_GpuAcc_backend.so ", False),
    ("", False),
]


@pytest.mark.parametrize(("name", "valid"), GUIDE + TRAPS)
def test_name(name: str, *, valid: bool) -> None:
    assert is_backend_name(name) is valid


@pytest.mark.parametrize(("name", "valid"), [row for row in GUIDE + TRAPS if row[0]])
def test_file_of_that_name(tmp_path: Path, name: str, *, valid: bool) -> None:
    (tmp_path / name).write_bytes(b"")
    rows = list(find_candidates((str(tmp_path),)))
    if valid:
        assert rows == [LoadReport(path=tmp_path / name, canonical=(tmp_path / name).resolve())]
    else:
        (row,) = rows
        assert row.reason is Reason.NAME


def test_other_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("README", "notes.txt", "Arm_GpuAcc.json"):
        (tmp_path / name).write_bytes(b"")
        assert not resembles_backend(name)
    assert list(find_candidates((str(tmp_path),))) == []


def test_links_of_the_guide(tmp_path: Path) -> None:
    """There are links to links of CpuAcc, a dangling link, and names that recur in a second folder."""
    first, second = tmp_path / "pathA", tmp_path / "pathB"
    first.mkdir()
    second.mkdir()
    library = first / "Arm_CpuAcc_backend.so"
    library.write_bytes(b"")
    (first / "Arm_CpuAcc_backend.so.1").symlink_to("Arm_CpuAcc_backend.so")
    (first / "Arm_CpuAcc_backend.so.1.2").symlink_to("Arm_CpuAcc_backend.so.1")
    (first / "Arm_CpuAcc_backend.so.1.2.3").symlink_to("Arm_CpuAcc_backend.so.1.2")
    (first / "Arm_GpuAcc_backend.so").write_bytes(b"one")
    (first / "Arm_no_backend.so").symlink_to("nothing")
    (second / "Arm_GpuAcc_backend.so").write_bytes(b"two")
    (second / "Arm_CpuAcc_backend.so").symlink_to(library)

    rows = list(find_candidates((str(first), str(second))))
    found = [row.path for row in rows if row.accepted]
    assert found == [library, first / "Arm_GpuAcc_backend.so", second / "Arm_GpuAcc_backend.so"]
    refused = {row.path: row.reason for row in rows if not row.accepted}
    assert refused == {
        first / "Arm_CpuAcc_backend.so.1": Reason.DUPLICATE_FILE,
        first / "Arm_CpuAcc_backend.so.1.2": Reason.DUPLICATE_FILE,
        first / "Arm_CpuAcc_backend.so.1.2.3": Reason.DUPLICATE_FILE,
        first / "Arm_no_backend.so": Reason.BROKEN_LINK,
        second / "Arm_CpuAcc_backend.so": Reason.DUPLICATE_FILE,
    }


def test_a_good_name_may_lead_anywhere_and_a_bad_name_leads_nowhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "anything.bin").write_bytes(b"")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "Arm_Good_backend.so").symlink_to(elsewhere / "anything.bin")
    (folder / "bad_backend_link").symlink_to(elsewhere / "anything.bin")
    candidate, bad = find_candidates((str(folder),))
    assert candidate.accepted
    assert candidate.canonical == (elsewhere / "anything.bin").resolve()
    assert bad.reason is Reason.NAME


def test_loops_end(tmp_path: Path) -> None:
    (tmp_path / "Arm_Self_backend.so").symlink_to("Arm_Self_backend.so")
    (tmp_path / "Arm_Tic_backend.so").symlink_to("Arm_Toc_backend.so")
    (tmp_path / "Arm_Toc_backend.so").symlink_to("Arm_Tic_backend.so")
    (tmp_path / "loop").symlink_to("loop")
    rows = list(find_candidates((str(tmp_path),)))
    assert [row.reason for row in rows] == [Reason.LINK_LOOP] * 3


def test_folders_and_special_files_are_no_backends(tmp_path: Path) -> None:
    import os

    (tmp_path / "Arm_Folder_backend.so").mkdir()
    (tmp_path / "Arm_Folder_backend.so" / "Arm_Inner_backend.so").write_bytes(b"")
    os.mkfifo(tmp_path / "Arm_Pipe_backend.so")  # opening it would wait for ever
    rows = list(find_candidates((str(tmp_path),)))
    assert [row.reason for row in rows] == [Reason.NOT_A_FILE] * 2
