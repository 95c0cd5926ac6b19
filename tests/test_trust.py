# SPDX-License-Identifier: Apache-2.0
"""Who can change a cache: each way in which another user could, and each in which none can."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from needs import lacking

from ferrule import trust
from ferrule.cache import Store, cache_folder, tool_environment
from ferrule.errors import FerruleError
from ferrule.trust import writer_besides

STRANGER = 54321


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a cache below one of this user's."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for name in ("FERRULE_CACHE", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "above" / "ferrule"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def given_away(path: Path) -> None:
    if os.geteuid():
        lacking("the right to give a file to another user", "run the tests as root", rare=True)
    os.chown(path, STRANGER, -1, follow_symlinks=False)


def through_a_link_of_a_stranger(folder: Path) -> None:
    folder.rename(folder.with_name("real"))
    folder.symlink_to(folder.with_name("real"))
    given_away(folder)


OPEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "everybody may write it": (lambda folder: folder.chmod(0o777), "every user can write"),
    "everybody may write it, with the sticky bit": (lambda folder: folder.chmod(0o1777), "every user can write"),
    "everybody may write what is above": (lambda folder: folder.parent.chmod(0o777), "every user can write"),
    "a stranger has it": (given_away, "belongs to the user number 54321"),
    "a stranger has what is above": (lambda folder: given_away(folder.parent), "who can replace what is in it"),
    "a stranger has the link to it": (through_a_link_of_a_stranger, "is a link of the user"),
}


@pytest.mark.parametrize("case", OPEN)
def test_a_named_cache_that_another_user_can_write_is_refused(
    case: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, reason = OPEN[case]
    monkeypatch.setenv("FERRULE_CACHE", str(place))
    assert cache_folder() == place
    change(place)
    with pytest.raises(FerruleError, match=reason) as caught:
        cache_folder()
    assert "FERRULE_CACHE" in (caught.value.hint or "")


@pytest.mark.parametrize("case", OPEN)
def test_the_usual_cache_that_another_user_can_write_is_left_with_a_warning(
    case: str, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    change, reason = OPEN[case]
    monkeypatch.setenv("XDG_CACHE_HOME", str(place.parent))
    change(place)
    with caplog.at_level(logging.WARNING):
        assert cache_folder().name == f"ferrule-cache-{os.getuid()}"
        assert cache_folder().name == f"ferrule-cache-{os.getuid()}"
    (message,) = caplog.messages
    assert reason in message
    assert str(place) in message


@pytest.mark.parametrize(
    ("group", "members", "is_private"),
    [("me", [], True), ("root", ["me"], True), ("staff", [], False), ("me", ["you"], False)],
)
def test_a_group_counts_unless_the_user_has_it_alone(
    group: str, members: list[str], is_private: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.chmod(0o770)
    own = place.stat().st_gid
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="me", pw_gid=own))
    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_name=group, gr_mem=members))
    monkeypatch.setattr(trust, "_is_private_group", trust._is_private_group.__wrapped__)
    assert (writer_besides(place) is None) == is_private


@pytest.mark.parametrize("above", [0o755, 0o700, 0o1777])
def test_a_folder_of_ones_own_is_used(above: int, place: Path) -> None:
    place.parent.chmod(above)
    place.chmod(0o755)
    assert writer_besides(place) is None


def test_a_link_of_ones_own_is_followed(place: Path) -> None:
    link = place.parent / "link"
    link.symlink_to(place)
    assert writer_besides(link) is None
    place.chmod(0o777)
    assert "every user can write" in (writer_besides(link) or "")


def test_a_folder_in_the_cache_counts_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(place))
    for name in ("things", "scratch", "zig"):
        (place / name).mkdir()
        (place / name).chmod(0o777)
        with pytest.raises(FerruleError, match=f"{name} is not used: every user can write"):
            tool_environment() if name == "zig" else Store("things")
        (place / name).chmod(0o700)


@pytest.mark.parametrize("change", [lambda path: path.chmod(0o666), given_away])
@pytest.mark.parametrize("which", ["one.so", "one.so.sha256"])
def test_an_entry_that_another_user_can_write_is_made_anew(
    change: Callable[[Path], None],
    which: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(place))
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_bytes(b"contents")

    store = Store("things")
    store.file("one.so", make)
    change(place / "things" / which)
    store.file("one.so", make)
    store.file("one.so", make)
    assert len(made) == 2
    assert len(caplog.messages) == 1


def test_an_entry_with_a_right_checksum_of_another_user_is_absent(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(place))
    store = Store("things")
    store.keep("one", b"data")
    assert store.get("one") == b"data"
    (place / "things" / "one").chmod(0o666)
    assert store.get("one") is None


def test_what_is_made_is_ones_own_whatever_the_mask_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(place / "new"))
    before = os.umask(0)
    try:
        store = Store("things")
        store.keep("one", b"data")
        store.file("one.so", lambda path: path.write_bytes(b"contents"))
    finally:
        os.umask(before)
    assert writer_besides(place / "new") is None
    assert Store("things").get("one") == b"data"
    assert [each for each in (place / "new").rglob("*") if writer_besides(each) is not None] == []


def test_a_pipe_in_the_cache_is_no_entry(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(place))
    store = Store("things")
    store.keep("other", b"")
    os.mkfifo(place / "things" / "one")
    assert store.get("one") is None
