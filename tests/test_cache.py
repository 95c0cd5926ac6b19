# SPDX-License-Identifier: Apache-2.0
"""The cache folder and its stores, without a compiler."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule import cache
from ferrule.cache import RecordedStore, Store, cache_folder, tool_environment
from ferrule.errors import FerruleError
from ferrule.record import CHANGED, CONTENTS, Read, Reads, answer, recording


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder below which everything is, in an environment that names no cache."""
    for name in ("FERRULE_CACHE", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path


@pytest.fixture
def store(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store."""
    monkeypatch.setenv("FERRULE_CACHE", str(bare / "cache"))
    return Store("things")


def private(bare: Path) -> Path:
    return bare / "temporary" / f"ferrule-cache-{os.getuid()}"


@pytest.mark.parametrize(
    ("variable", "below"), [("FERRULE_CACHE", ""), ("XDG_CACHE_HOME", "ferrule"), ("HOME", ".cache/ferrule")]
)
def test_where_the_cache_is(variable: str, below: str, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, str(bare / "place"))
    assert cache_folder() == bare / "place" / below
    assert cache_folder().is_dir()


def test_a_relative_folder_is_made_absolute(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bare)
    monkeypatch.setenv("FERRULE_CACHE", "mine")
    assert cache_folder() == bare / "mine"


@pytest.mark.parametrize("home", ["file/home", "/dev/null"])
def test_a_home_that_cannot_be_written_gives_a_private_folder(
    home: str, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare / "file").write_text("")
    monkeypatch.setenv("HOME", str(bare / home))
    assert cache_folder() == private(bare)
    assert stat.S_IMODE(private(bare).stat().st_mode) == 0o700
    assert cache_folder() == private(bare)


def test_a_user_without_a_home_gets_a_private_folder(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert cache_folder() == private(bare)


def readable(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)


def linked(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize("occupy", [readable, linked, Path.touch])
def test_a_private_folder_that_could_be_another_users_is_refused(
    occupy: object, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(occupy)
    occupy(private(bare))
    monkeypatch.setenv("HOME", "/dev/null")
    with pytest.raises(FerruleError) as caught:
        cache_folder()
    assert str(private(bare)) in str(caught.value)
    assert "FERRULE_CACHE" in (caught.value.hint or "")


def test_another_users_folder_is_refused(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private(bare).mkdir(mode=0o700)
    own = os.getuid()
    folder = private(bare)
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setattr("os.getuid", lambda: own + 1)
    folder.rename(private(bare))
    with pytest.raises(FerruleError, match="not a folder that only you can read"):
        cache_folder()


def test_a_named_folder_that_cannot_be_written_is_an_error(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "file").write_text("")
    monkeypatch.setenv("FERRULE_CACHE", str(bare / "file" / "below"))
    with pytest.raises(FerruleError, match="file/below") as caught:
        cache_folder()
    assert "FERRULE_CACHE" in (caught.value.hint or "")


def test_zig_gets_its_folder_here_unless_the_user_names_one(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(bare / "cache"))
    assert tool_environment()["ZIG_GLOBAL_CACHE_DIR"] == str(bare / "cache" / "zig")
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", "/mine")
    assert tool_environment()["ZIG_GLOBAL_CACHE_DIR"] == "/mine"


def test_what_is_kept_is_found(store: Store) -> None:
    assert store.get("one") is None
    store.keep("one", b"first\nsecond\n")
    assert store.get("one") == b"first\nsecond\n"
    assert Store("others").get("one") is None


@pytest.mark.parametrize("damage", [b"", b"x", b"x\ny", b"\n"])
def test_damaged_data_are_absent(store: Store, damage: bytes) -> None:
    store.keep("one", b"data")
    (store.folder / "one").write_bytes(damage)
    assert store.get("one") is None


def test_a_file_is_made_once(store: Store) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_bytes(b"contents")

    assert store.file("one.so", make) == store.file("one.so", make, once=True) == store.folder / "one.so"
    assert (store.folder / "one.so").read_bytes() == b"contents"
    assert len(made) == 1
    assert not made[0].parent.exists()


@pytest.mark.parametrize("damage", ["truncate", "change", "no checksum", "odd checksum"])
def test_a_damaged_file_is_made_anew(store: Store, damage: str) -> None:
    def make(path: Path) -> None:
        path.write_bytes(b"contents")

    target = store.file("one.so", make)
    checksum = target.with_name("one.so.sha256")
    if damage == "truncate":
        target.write_bytes(b"cont")
    elif damage == "change":
        target.write_bytes(b"Contents")
    elif damage == "no checksum":
        checksum.unlink()
    else:
        checksum.write_bytes(b"\xff\xfe")
    assert store.file("one.so", make).read_bytes() == b"contents"


def test_a_failure_leaves_nothing(store: Store) -> None:
    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise FerruleError("no compiler")

    with pytest.raises(FerruleError, match="no compiler"):
        store.file("one.so", fail)
    assert [path for path in store.folder.parent.rglob("*") if path.is_file()] == []


def test_a_file_that_cannot_be_kept_is_an_error(store: Store) -> None:
    store.folder.write_text("not a folder")
    with pytest.raises(FerruleError, match=r"can't keep one\.so in") as caught:
        store.file("one.so", lambda path: path.write_bytes(b""))
    assert "FERRULE_CACHE" in (caught.value.hint or "")


def test_the_least_recently_used_half_goes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for age in range(10):
        store.keep(str(age), bytes(1000))
        os.utime(store.folder / str(age), (1_000_000 - age, 1_000_000 - age))
    store.file("made", lambda path: path.write_bytes(bytes(1000)))
    assert store.get("9") is not None
    monkeypatch.setattr(cache, "LIMIT_BYTES", 9_000)
    store.keep("new", b"")
    store.prune()
    assert {path.name for path in store.folder.iterdir()} == {"0", "1", "9", "made", "made.sha256", "new"}


def test_the_library_cleared_is_empty(store: Store) -> None:
    store.keep("one", bytes(935))
    assert cache.cache_sizes()["things"] == 1000
    cache.clear_cache()
    assert cache.cache_sizes() == {}
    assert store.get("one") is None


def test_help_does_not_import_what_finds_the_folder() -> None:
    code = "import sys, ferrule.cache; sys.exit('platformdirs' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_result_is_used_as_long_as_its_record_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(tmp_path / "cache"))
    place = {"{project}": str(tmp_path / "project")}
    header = tmp_path / "project" / "a.h"
    header.parent.mkdir()

    def reads() -> Reads:
        return (Read("{project}/a.h", CONTENTS, answer(str(header), CONTENTS)),)

    header.write_text("one")
    RecordedStore("results", place).keep("key", reads(), b"from one")
    header.write_text("two")
    assert RecordedStore("results", place).get("key") is None
    RecordedStore("results", place).keep("key", reads(), b"from two")
    assert RecordedStore("results", place).get("key") == b"from two"
    header.write_text("one")
    with recording() as record:
        assert RecordedStore("results", place).get("key") == b"from one"
    assert str(header) in record.files()
    assert RecordedStore("results", place).get("other") is None
    header.unlink()
    assert RecordedStore("results", place).get("key") is None


def test_a_result_whose_file_changed_while_it_was_read_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(tmp_path / "cache"))
    store = RecordedStore("results", {})
    store.keep("key", (Read(str(tmp_path / "x"), CONTENTS, CHANGED),), b"data")
    assert store.get("key") is None
