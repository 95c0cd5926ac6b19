# SPDX-License-Identifier: Apache-2.0
"""The read record: which changes it notices, which it does not mind, and what it may not forget."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from children import ran

from ferrule import reading, record
from ferrule.record import (
    ABSENT,
    BELOW,
    CHANGED,
    CONTENTS,
    Read,
    Reads,
    answer,
    building,
    declare,
    digest_of,
    made,
    paths_below,
    recording,
    remembered,
)


def held(reads: Reads) -> bool:
    return all(each.holds({}) for each in reads)


def asked(reads: Reads, path: Path) -> list[str]:
    return [each.question for each in reads if each.path == str(path)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "two.h").write_bytes(b"2")
    return tmp_path


def tolerant(path: Path) -> None:
    with contextlib.suppress(OSError):
        reading.read_bytes(path)


def swapped(path: Path, data: bytes) -> None:
    """Replace a file by one with the same size and time of change."""
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def retargeted(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


NOTICED: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "other contents": (lambda at: reading.read_bytes(at / "one"), lambda at: (at / "one").write_bytes(b"2")),
    "same size and time": (lambda at: reading.read_text(at / "one"), lambda at: swapped(at / "one", b"2")),
    "gone": (lambda at: reading.open_file(at / "one").close(), lambda at: (at / "one").unlink()),
    "a folder instead": (
        lambda at: reading.read_bytes(at / "one"),
        lambda at: ((at / "one").unlink(), (at / "one").mkdir()),
    ),
    "a pipe instead": (
        lambda at: reading.read_bytes(at / "one"),
        lambda at: ((at / "one").unlink(), os.mkfifo(at / "one")),
    ),
    "no longer absent": (lambda at: tolerant(at / "new"), lambda at: (at / "new").write_bytes(b"")),
    "no longer no file": (lambda at: reading.is_file(at / "new"), lambda at: (at / "new").write_bytes(b"")),
    "a file where none was": (lambda at: reading.exists(at / "new"), lambda at: (at / "new").write_bytes(b"")),
    "no folder any more": (lambda at: reading.is_folder(at / "below"), lambda at: (at / "below").rename(at / "there")),
    "a new name": (lambda at: reading.list_folder(at / "below"), lambda at: (at / "below" / "x").touch()),
    "a name that matches": (
        lambda at: reading.list_folder(at / "below", "*.h"),
        lambda at: (at / "below" / "x.h").touch(),
    ),
    "a name deep below": (lambda at: reading.files_below(at, "*.h"), lambda at: (at / "below" / "x.h").touch()),
    "a folder deep below": (
        lambda at: reading.files_below(at, "*.h"),
        lambda at: (at / "below" / "deep").mkdir(),
    ),
    "a declared file": (lambda at: declare(at / "one"), lambda at: (at / "one").write_bytes(b"x")),
    "a declared absent file": (lambda at: declare(at / "new"), lambda at: (at / "new").touch()),
    "another target of a link": (
        lambda at: ((at / "link").symlink_to("one"), reading.read_bytes(at / "link")),
        lambda at: retargeted(at / "link", "below/two.h"),
    ),
    "a variable": (lambda at: record.variable("FERRULE_X"), lambda at: os.environ.update(FERRULE_X="y")),
}


@pytest.mark.parametrize("case", NOTICED)
def test_a_change_is_noticed(case: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_X", "x")
    read, change = NOTICED[case]
    with recording() as found:
        read(folder)
    reads = found.reads()
    assert held(reads)
    change(folder)
    assert not held(reads)


MINDED_NOT: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "a new time": (lambda at: reading.read_bytes(at / "one"), lambda at: os.utime(at / "one", (0, 0))),
    "new permissions": (lambda at: reading.read_bytes(at / "one"), lambda at: (at / "one").chmod(0o600)),
    "a copy in its place": (
        lambda at: reading.read_bytes(at / "one"),
        lambda at: ((at / "one").rename(at / "moved"), (at / "one").write_bytes(b"1")),
    ),
    "a file beside it": (lambda at: reading.read_bytes(at / "one"), lambda at: (at / "new").touch()),
    "a name that does not match": (
        lambda at: reading.list_folder(at, "*.h"),
        lambda at: (at / "new.c").touch(),
    ),
    "contents of a file that was only asked for": (
        lambda at: reading.is_file(at / "one"),
        lambda at: (at / "one").write_bytes(b"other"),
    ),
    "caches of Python": (reading.files_below, lambda at: (at / "__pycache__").mkdir()),
}


@pytest.mark.parametrize("case", MINDED_NOT)
def test_other_changes_do_not_count(case: str, folder: Path) -> None:
    read, change = MINDED_NOT[case]
    with recording() as found:
        read(folder)
    reads = found.reads()
    change(folder)
    assert held(reads)


def test_a_file_that_changes_before_the_record_is_read_never_holds(folder: Path) -> None:
    with recording() as found:
        reading.read_bytes(folder / "one")
    (folder / "one").write_bytes(b"2")
    assert [each.answer for each in found.reads()] == [CHANGED]
    (folder / "one").write_bytes(b"1")
    assert not held(found.reads())


def test_a_file_that_changes_between_two_readings_never_holds(folder: Path) -> None:
    with recording() as found:
        reading.read_bytes(folder / "one")
        (folder / "one").write_bytes(b"22")
        reading.read_bytes(folder / "one")
    assert [each.answer for each in found.reads()] == [CHANGED]


def test_what_the_process_makes_is_no_input(folder: Path) -> None:
    made(folder / "below")
    with recording() as found:
        reading.read_bytes(folder / "below" / "two.h")
        reading.files_below(folder / "below")
    assert found.reads() == ()


def test_ferrules_own_files_are_one_input() -> None:
    with recording() as found:
        reading.read_bytes(Path(record.__file__))
        reading.files_below(Path(record.__file__).parent / "graph", "*.py")
    (only,) = found.reads()
    assert only.path == record.SOURCES
    assert only.holds({})
    assert not only._replace(answer="0" * 64).holds({})


def test_threads_and_outer_records_get_the_same(folder: Path) -> None:
    with recording() as outer, recording() as inner:
        thread = threading.Thread(target=reading.read_bytes, args=(folder / "one",))
        thread.start()
        thread.join()
    assert asked(inner.reads(), folder / "one") == asked(outer.reads(), folder / "one") == [CONTENTS]
    with recording() as outer, recording(builds=False) as inner, building():
        reading.read_bytes(folder / "one")
    assert asked(outer.reads(), folder / "one") == [CONTENTS]
    assert inner.reads() == ()


def test_a_memo_forgets_nothing_and_is_not_stale(folder: Path) -> None:
    calls: list[Path] = []

    @partial(remembered, limit=1)
    def contents(path: Path) -> bytes:
        calls.append(path)
        return reading.read_bytes(path)

    for _ in range(2):
        with recording() as found:
            assert contents(folder / "one") == b"1"
        assert asked(found.reads(), folder / "one") == [CONTENTS]
    assert len(calls) == 1
    (folder / "one").write_bytes(b"22")
    assert contents(folder / "one") == b"22"
    assert contents(folder / "below" / "two.h") == b"2"
    contents(folder / "one")
    assert len(calls) == 4


def test_a_record_is_relative_to_places(folder: Path) -> None:
    with recording() as found:
        reading.read_bytes(folder / "one")
    reads = found.reads({"{here}": str(folder)})
    assert [each.path for each in reads] == ["{here}/one"]
    (folder / "below" / "one").write_bytes(b"1")
    assert all(each.holds({"{here}": str(folder / "below")}) for each in reads)
    assert not held(reads)


def test_digests_follow_from_questions_and_answers() -> None:
    one, two = Read("a", CONTENTS, "1"), Read("b", CONTENTS, ABSENT)
    assert digest_of((one, two)) == digest_of((two, one))
    assert len({digest_of(()), digest_of((one,)), digest_of((two,)), digest_of((one._replace(answer="2"),))}) == 4


PROGRAM = """
import sys
from pathlib import Path
from ferrule import record, reading
folder = Path(sys.argv[1])
with record.recording(foreign=True) as found:
    sys.path.insert(0, str(folder))
    {code}
for each in found.reads({{"{{at}}": str(folder)}}):
    if each.path.startswith("{{at}}"):
        print(each.path, each.question.replace(" ", "_"), each.answer)
"""
FOREIGN = {
    "open(folder / 'one').read()": "{at}/one contents",
    "import os; os.close(os.open(folder / 'one', 0))": "{at}/one contents",
    "import numpy; numpy.fromfile(folder / 'one', 'u1')": "{at}/one contents",
    "import mine": "{at}/mine.py contents",
    "import os; os.listdir(folder / 'below')": "{at}/below names_*",
    "sorted((folder / 'below').iterdir())": "{at}/below names_*",
    "import contextlib\n    with contextlib.suppress(OSError): open(folder / 'new')": "{at}/new contents absent",
    "import shutil; shutil.copyfile(folder / 'one', folder / 'copy')": "{at}/one contents",
    "import threading; t = threading.Thread(target=open, args=(folder / 'one',)); t.start(); t.join()": "{at}/one ",
    "import gzip, contextlib\n    with contextlib.suppress(OSError): gzip.open(folder / 'one').read()": "{at}/one",
}


@pytest.mark.parametrize("code", FOREIGN)
def test_what_other_code_reads_is_seen(code: str, folder: Path) -> None:
    (folder / "mine.py").write_text("import helper\n", encoding="utf-8")
    (folder / "helper.py").write_text("", encoding="utf-8")
    argv = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(code=code), str(folder)]
    said = ran(argv, check=True).stdout
    assert FOREIGN[code] in said, said
    assert "copy" not in said
    if "mine" in code:
        assert "{at}/helper.py contents" in said


def test_a_question_about_a_folder_and_its_folders(tmp_path: Path) -> None:
    for name in ("a.h", "inner/a.h", "inner/b.h", "inner/c.c"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    place = str(tmp_path)
    named, headers, absent = (answer(place, f"{BELOW}{each}") for each in ("a.h/c.c", "*.h", "d.h"))
    assert paths_below(place) == ["a.h", "inner/a.h", "inner/b.h", "inner/c.c"]
    (tmp_path / "inner" / "b.h").write_text("y")
    assert answer(place, f"{BELOW}a.h/c.c") == named
    (tmp_path / "inner" / "e.h").write_text("x")
    assert answer(place, f"{BELOW}a.h/c.c") == named
    assert answer(place, f"{BELOW}*.h") != headers
    (tmp_path / "inner" / "d.h").write_text("x")
    assert answer(place, f"{BELOW}d.h") != absent
    assert answer(str(tmp_path / "nowhere"), f"{BELOW}d.h") == absent
