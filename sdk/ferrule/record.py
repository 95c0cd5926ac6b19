# SPDX-License-Identifier: Apache-2.0
"""The read record: what was asked of the file system for a result, and the answers on which the result depends.

A question is about one path: its contents, its kind, or the names in a folder. A result that is kept with its questions
and answers may be used again if each question still has the same answer, as with a build tool's dependency files.

`ferrule.reading` notes what it reads. What other code reads is noted by a hook on Python's own calls, if `recording` is
asked for it, and what C libraries and compilers read is declared.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import stat
import sys
import sysconfig
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from importlib.util import source_from_cache
from pathlib import Path
from typing import Generic, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from ferrule.resources import root

CONTENTS, KIND, NAMES, BELOW, VALUE = "contents", "kind", "names ", "below ", "value"
"""Questions: NAMES is followed by a pattern of names in a folder, BELOW by a pattern of names in it and its folders, or
by several names with a / between them, and VALUE is about an environment variable instead of a path."""
FILE, FOLDER, OTHER, ABSENT = "file", "folder", "other", "absent"
"""Kinds of paths; OTHER is a pipe, a socket or a device."""
CHANGED = "changed while it was read"
"""An answer that is never given again."""
SOURCES = "{ferrule}"
"""Ferrule's own code, which is one path: its contents are all files of the package, its C sources and templates."""
_PYTHON, _SHIPPED = "{python}", "{shipped}"
_OWN_FOLDERS = ("include", "platforms", "scripts", "src_c", "src_cpp")
_SYSTEM = ("/proc/", "/sys/", "/dev/")
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Read(NamedTuple):
    """A question about a path, and its answer; the beginning of a path can be the name of a place in braces."""

    path: str
    question: str
    answer: str

    def holds(self, places: Places) -> bool:
        """Return whether the question has this answer now; `places` are the folders of names in braces."""
        return self.answer != CHANGED and answer(placed(self.path, places), self.question) == self.answer


Reads = tuple[Read, ...]
Places = Mapping[str, str]
"""Folders whose paths differ between machines, by their names in braces, which stand for them in a record."""


def digest_of(reads: Reads) -> str:
    """Return the SHA-256 of a record, which is equal for equal questions and answers."""
    return hashlib.sha256(json.dumps(sorted(reads)).encode()).hexdigest()


def answer(path: str, question: str) -> str:
    """Return the present answer to a question about a path."""
    if path == SOURCES:
        return _own_digest()
    if question == VALUE:
        return _value_of(path)
    if question.startswith(BELOW):
        return below(paths_below(path), question)
    if question.startswith(NAMES):
        try:
            names = names_in(path, question.removeprefix(NAMES))
        except OSError:
            return ABSENT
        return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
    kind = kind_of(path)
    return file_digest(path) if question == CONTENTS and kind == FILE else kind


def kind_of(path: str) -> str:
    """Return the kind of a path, after links are followed."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 a text is enough, and this is called very often
    except (OSError, ValueError):
        return ABSENT
    if stat.S_ISREG(mode):
        return FILE
    return FOLDER if stat.S_ISDIR(mode) else OTHER


class _Signature(NamedTuple):
    """What tells whether a file has changed since, without its contents."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


def signature_of(status: os.stat_result) -> _Signature:
    """Return the signature of a file's status."""
    return _Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


_DIGESTS: dict[str, tuple[_Signature, str]] = {}
"""By path: the digest of a file that has this signature."""


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file's contents; a word instead if it cannot be read, which equals no digest."""
    try:
        signature = signature_of(os.stat(path))  # noqa: PTH116 as above
        known = _DIGESTS.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        with unnoted(), open(path, "rb") as file:  # noqa: PTH123 as above
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if signature_of(os.fstat(file.fileno())) != signature:
                return CHANGED
    except OSError as error:
        return f"cannot be read: {error.errno}"
    _DIGESTS[path] = signature, digest
    return digest


class Record:
    """Questions and answers of one piece of work; several threads may add to it."""

    def __init__(self, *, foreign: bool = False, builds: bool = True) -> None:
        self.foreign = foreign
        """Whether it has what other code than Ferrule's reads, too."""
        self.builds = builds
        """Whether it has what is read while a project is built."""
        self._noted: dict[tuple[str, str], str | _Signature] = {}

    def note(self, path: str, question: str, found: str | _Signature) -> None:
        """Add an answer; a file's contents may be stated by its signature. Two different answers are `CHANGED`."""
        known = self._noted.setdefault((path, question), found)
        if known != found:
            self._noted[path, question] = CHANGED

    def merge(self, other: Record) -> None:
        """Add all of another record."""
        for (path, question), found in list(other._noted.items()):
            self.note(path, question, found)

    def reads(self, places: Places | None = None) -> Reads:
        """Return the questions with their answers, sorted; each file whose digest is unknown is read."""
        found = {key: self._answer(*key) for key in list(self._noted)}
        if self.foreign:
            others = [key for key in list(_PROCESS._noted) if key not in found]
            found = {**_modules(), **{key: _PROCESS._answer(*key) for key in others}, **found}
            if (SOURCES, CONTENTS) not in found:
                found[SOURCES, CONTENTS] = _own_digest()
        known = {**(places or {}), **_places()}
        return tuple(sorted(Read(spelled(path, known), question, said) for (path, question), said in found.items()))

    def files(self) -> dict[str, str]:
        """Return the digests of the files whose contents were read, by path; Ferrule's own are left out."""
        asked = [path for path, question in list(self._noted) if question == CONTENTS and path != SOURCES]
        return {path: self._answer(path, CONTENTS) for path in asked if kind_of(path) == FILE}

    def is_current(self) -> bool:
        """Return whether everything is as it was noted, by the signatures of files."""
        return all(
            _signature(path) == found if isinstance(found, _Signature) else answer(path, question) == found
            for (path, question), found in list(self._noted.items())
            if path != SOURCES  # this process runs the code that it has
        )

    def _answer(self, path: str, question: str) -> str:
        found = self._noted[path, question]
        if path == SOURCES:
            return _own_digest()
        if not isinstance(found, _Signature):
            return found
        return file_digest(path) if _signature(path) == found else CHANGED


def _signature(path: str) -> _Signature | None:
    try:
        return signature_of(os.stat(path))  # noqa: PTH116 as above
    except OSError:
        return None


_CURRENT: ContextVar[tuple[Record, ...]] = ContextVar("records", default=())
_OPEN: list[Record] = []
"""All records to which something may be added: threads of a pool have no context of their own, and add to all."""
_ATTACHED: WeakKeyDictionary[object, Record] = WeakKeyDictionary()
_PROCESS = Record()
"""What this process may use for all of its work: what is read once, and all that other code has asked."""


@contextmanager
def recording(*, foreign: bool = False, builds: bool = True) -> Iterator[Record]:
    """Record what is read in the block, in threads that it starts, too; records around it get the same.

    With `foreign`, the record also has the files and folders that other Python code opens, since the process began to
    record, and the modules that the process has imported from outside of Python's own library. Without `builds`, it has
    nothing that is read while a project is built.
    """
    record = Record(foreign=foreign, builds=builds)
    if foreign:
        _watch()
    token = _CURRENT.set((*_CURRENT.get(), record))
    _OPEN.append(record)
    try:
        yield record
    finally:
        _OPEN[:] = [each for each in _OPEN if each is not record]
        _CURRENT.reset(token)


@contextmanager
def building() -> Iterator[None]:
    """Build a project in the block: what compilers read is no input of what was generated before."""
    hidden = [each for each in _CURRENT.get() if not each.builds]
    token = _CURRENT.set(tuple(each for each in _CURRENT.get() if each.builds))
    _OPEN[:] = [each for each in _OPEN if each not in hidden]
    try:
        yield
    finally:
        _OPEN.extend(hidden)
        _CURRENT.reset(token)


def attach(thing: object, record: Record) -> None:
    """Keep the record of a value that was read, for `recall`."""
    _ATTACHED[thing] = record


def recall(thing: object) -> None:
    """Add what was read for a value to the present records, since it is used for the present work."""
    record = _ATTACHED.get(thing)
    if record is not None:
        for each in records():
            each.merge(record)


def inputs() -> dict[str, str]:
    """Return the digests, by path, of the files that were read for the innermost generation that is recorded."""
    current = [each for each in records() if not each.builds]
    return current[-1].files() if current else {}


def records() -> tuple[Record, ...]:
    """Return the records to which this thread adds what it reads."""
    return _CURRENT.get() or tuple(_OPEN)


def declare(path: str | os.PathLike[str]) -> None:
    """Add a file that a C library, a compiler or another program reads for the present work."""
    note(os.fspath(path), CONTENTS)


def note(path: str, question: str, found: str | _Signature | None = None) -> None:
    """Add a question to the present records; without an answer, the present one."""
    current = records()
    if not current:
        return
    if question != VALUE:
        path = os.path.abspath(path)  # noqa: PTH100 links must stay in it
        if _is_made(path):
            return
    if _is_own(path):
        path, question, found = SOURCES, CONTENTS, SOURCES
    known = _noted_answer(path, question) if found is None else found
    for record in current:
        record.note(path, question, known)


def variable(name: str) -> str:
    """Return the value of an environment variable on which results depend, and note it; "" if there is none."""
    note(name, VALUE)
    return os.environ.get(name, "")


def _value_of(name: str) -> str:
    """Return the value of a variable; with the present folder if it has paths that are relative to it."""
    value = os.environ.get(name, "")
    relative = any(not os.path.isabs(each) for each in value.split(os.pathsep))  # noqa: PTH117 it may be no path
    return f"{value} in {os.getcwd()}" if value and relative else value  # noqa: PTH109 as above


def _noted_answer(path: str, question: str) -> str | _Signature:
    """Return an answer without reading a file: its contents are stated by its signature."""
    signature = _signature(path) if question == CONTENTS and kind_of(path) == FILE else None
    return signature or answer(path, question)


class _Remembered(NamedTuple, Generic[_T]):
    value: _T
    record: Record


def remembered(function: Callable[_P, _T], *, limit: int = 1 << 16) -> Callable[_P, _T]:
    """Keep the last results of a function that reads files: one is used again as long as what it read is unchanged.

    Each use adds to the present records what the function read. The arguments have to be hashable.
    """
    kept: dict[Hashable, _Remembered[_T]] = {}

    @wraps(function)
    def call(*arguments: _P.args, **keywords: _P.kwargs) -> _T:
        key: Hashable = (arguments, tuple(sorted(keywords.items())))
        found = kept.pop(key, None)
        if found is None or not found.record.is_current():
            with recording() as record:
                found = _Remembered(function(*arguments, **keywords), record)
        else:
            for each in records():
                each.merge(found.record)
        kept[key] = found
        while len(kept) > limit:
            del kept[next(iter(kept))]
        return found.value

    return call


def lasting(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let what a function reads count for all later work of the process, since its result is used for all of it."""

    @wraps(function)
    def call(*arguments: _P.args, **keywords: _P.kwargs) -> _T:
        token = _CURRENT.set((*records(), _PROCESS))
        try:
            return function(*arguments, **keywords)
        finally:
            _CURRENT.reset(token)

    return call


_MADE: set[str] = set()
"""Folders whose files this process makes: what is read there is no input."""


def made(folder: Path) -> None:
    """Declare that the files of a folder are made by this process, or by one that it waits for."""
    _MADE.add(os.path.abspath(folder))  # noqa: PTH100 as above


def _is_made(path: str) -> bool:
    """Return whether a path or a folder around it was declared: a long process declares thousands."""
    while _MADE and path not in _MADE:
        path, separator, _ = path.rpartition(os.sep)
        if not separator:
            return False
    return bool(_MADE)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


@cache
def _own_folders() -> tuple[str, ...]:
    return (str(Path(__file__).resolve().parent), *(str(root() / name) for name in _OWN_FOLDERS))


@lru_cache(maxsize=1 << 16)
def _is_own(path: str) -> bool:
    return any(_is_below(path, folder) for folder in _own_folders())


def _own_digest() -> str:
    """Return a digest of all that Ferrule itself consists of; it is computed again when a signature differs."""
    return _digest_of_files(tuple(each for top in _own_folders() for each in _own_files(top, "")))


@lru_cache(maxsize=1)
def _digest_of_files(files: tuple[tuple[str, str, _Signature], ...]) -> str:
    digest = hashlib.sha256()
    for name, path, _ in files:
        digest.update(f"{name}\0{file_digest(path)}\0".encode())
    return digest.hexdigest()


def _own_files(folder: str, name: str) -> Iterator[tuple[str, str, _Signature]]:
    """Yield the name below the top, the path and the signature of each file of a folder, sorted; no folder has none."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in found:
        if not entry.is_dir(follow_symlinks=False):
            yield f"{name}{entry.name}", entry.path, signature_of(entry.stat())
        elif entry.name not in {"__pycache__", "tests", "_data"}:
            yield from _own_files(entry.path, f"{name}{entry.name}/")


@cache
def _places() -> Mapping[str, str]:
    """Return the folders that have different paths on different machines, by their names in braces."""
    paths = sysconfig.get_paths()
    return {_PYTHON: paths["purelib"], _SHIPPED: str(root())}  # the former may be in the latter


def spelled(path: str, places: Places) -> str:
    """Return a path as a record has it: with the name of its place in braces, if it is in one."""
    for name, folder in places.items():
        if _is_below(path, folder):
            return f"{name}{path[len(folder) :]}"
    return path


def placed(path: str, places: Places) -> str:
    """Return a path of a record as it is here."""
    for name, folder in {**places, **_places()}.items():
        if _is_below(path, name):
            return f"{folder}{path[len(name) :]}"
    return path


def names_in(path: str, pattern: str) -> list[str]:
    """Return the sorted names in a folder that match a pattern; with a / at its end, only those of folders."""
    with unnoted(), os.scandir(path) as entries:
        found = [each.name for each in entries if not pattern.endswith("/") or each.is_dir()]
    return sorted(name for name in fnmatch.filter(found, pattern.removesuffix("/")) if name != "__pycache__")


def paths_below(path: str) -> list[str]:
    """Return the sorted paths of the files in a folder and its folders, relative to it; none without such a folder."""
    found, start = [], len(path.rstrip(os.sep)) + 1
    with unnoted():
        for place, folders, names in os.walk(path):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found += [f"{place}{os.sep}"[start:] + name for name in names]
    return sorted(found)


def below(paths: list[str], question: str) -> str:
    """Return the answer to a question BELOW about a folder with these paths."""
    wanted = question.removeprefix(BELOW)
    if "*" in wanted:
        found = [path for path in paths if fnmatch.fnmatch(os.path.basename(path), wanted)]  # noqa: PTH119 as above
    else:
        names = set(wanted.split("/"))
        found = [path for path in paths if os.path.basename(path) in names]  # noqa: PTH119 as above
    return hashlib.sha256("\0".join(found).encode("utf-8", "surrogateescape")).hexdigest()


# --- what other code reads ---

_QUIET = threading.local()


@contextmanager
def unnoted() -> Iterator[None]:
    """Let the hook leave out what this thread opens in the block."""
    before = getattr(_QUIET, "on", False)
    _QUIET.on = True
    try:
        yield
    finally:
        _QUIET.on = before


@cache
def _watch() -> None:
    sys.addaudithook(_hook)


@cache
def _library() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return (paths["stdlib"], paths["platstdlib"])


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    """Note a file that is opened, or a folder that is listed, by code that does not note it itself."""
    if event not in {"open", "os.listdir", "os.scandir"} or getattr(_QUIET, "on", False):
        return
    given = "." if arguments[0] is None else arguments[0]
    if not any(each.foreign for each in _OPEN) or not isinstance(given, (str, bytes, os.PathLike)):
        return  # a number is a file that is open already
    caller, imports = _caller()
    if (_is_own(caller) and not imports) or "metadata" in imports:
        return  # Ferrule handles its own output, and the versions of packages are known
    with unnoted(), suppress(OSError, ValueError):  # they are errors of the caller, too
        path = os.path.abspath(os.fsdecode(given))  # noqa: PTH100 as above
        if event != "open":
            if not (imports and _is_installed(path)):
                _note_foreign(path, f"{NAMES}*.py" if imports else f"{NAMES}*")
        elif _writes(*arguments[1:3]):
            _MADE.add(path)
        else:
            cached = f"{os.sep}__pycache__{os.sep}" in path  # a module's byte code, whose source counts
            _note_foreign(source_from_cache(path) if cached else path, CONTENTS)


def _caller() -> tuple[str, str]:
    """Return the file of the innermost code outside of Python's library, and that of importlib if it asks for it."""
    frame, imports = sys._getframe(2), ""  # noqa: SLF001 it is known in no other way
    while True:
        name = frame.f_code.co_filename
        imports = imports or (name if "importlib" in name else "")
        if frame.f_back is None or not (name.startswith("<frozen") or _is_of_library(name)):
            return name, imports
        frame = frame.f_back


def _note_foreign(path: str, question: str) -> None:
    if not _is_left_out(path) and kind_of(path) != OTHER:
        _PROCESS.note(path, question, _noted_answer(path, question))


def _is_left_out(path: str) -> bool:
    if _is_made(path) or _is_own(path):
        return True
    return _is_of_library(path) or f"{path}{os.sep}".startswith(_SYSTEM)


@lru_cache(maxsize=1 << 16)
def _is_of_library(path: str) -> bool:
    return not _is_installed(path) and any(_is_below(path, folder) for folder in _library())


def _is_installed(path: str) -> bool:
    return "site-packages" in path or "dist-packages" in path


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


@lru_cache(maxsize=1 << 16)
def _normal(path: str) -> str:
    """Return the normal spelling of an absolute path; each record asks for those of thousands of modules."""
    return os.path.normpath(path)


def _modules() -> dict[tuple[str, str], str]:
    """Return the digests of this process's modules that are not Python's, and the names of those that it could find."""
    found = {("PYTHONPATH", VALUE): _value_of("PYTHONPATH")}
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name not in {"__main__", "__mp_main__"} and isinstance(path, str):
            path = _normal(path) if os.path.isabs(path) else os.path.abspath(path)  # noqa: PTH100, PTH117 as above
            if not _is_left_out(path):
                found[path, CONTENTS] = answer(path, CONTENTS)
    question = f"{NAMES}*.py"
    searched = [*sys.path, *sys.path_importer_cache]  # a finder lists a folder once for all of its imports
    for folder in dict.fromkeys(os.path.abspath(each) for each in searched):  # noqa: PTH100 as above
        if kind_of(folder) == FOLDER and not _is_installed(folder) and not _is_left_out(folder):
            found[folder, question] = answer(folder, question)
    return found
