# SPDX-License-Identifier: Apache-2.0
"""C for this host: the search for a compiler, shared libraries that are compiled on first use, and their headers."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ferrule._frozen import frozen
from ferrule.cache import Store, tool_environment
from ferrule.child_process import CommandError, run
from ferrule.errors import FerruleError, MissingToolError
from ferrule.reading import read_bytes, read_text

COMPILE_TIMEOUT_S = 300
COMPILER_REMEDY = "apt-get install gcc libc6-dev, or pip install 'ferrule[run]', which brings ziglang"
RUN_REMEDY = "pip install 'ferrule[run]', or 'ferrule[emulate]' if you have a compiler"
_COMPILERS = ("cc", "gcc", "clang")
_VARIABLES = (
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "LIBRARY_PATH",
    "LD_LIBRARY_PATH",
    "CCC_OVERRIDE_OPTIONS",
    "SOURCE_DATE_EPOCH",
)
"""Environment variables that affect the output of GCC and clang."""
_SHARED = ("-shared", *(() if sys.platform == "darwin" else ("-nostdlib",)))
"""-nostdlib: the process has a C library already, and zig would spend seconds building one first. This is an option of
the linker only: with it, zig's compiler does not find the headers of the C library."""
_GLIBC = "2.28"
"""The glibc that zig's output needs: no newer one than Ferrule's dependencies."""
_MACHINES = {"aarch64", "riscv64", "x86_64"}
"""Machines that Python and zig call the same."""
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_TYPES: Mapping[str, Any] = {
    **{f"{name}_t": getattr(ctypes, f"c_{name}") for name in _INTEGERS},
    **{name: getattr(ctypes, f"c_{name}") for name in ("bool", "int", "float", "double")},
    "void": None,
}
"""The types of C in the headers of libraries."""
_STRUCT = re.compile(r"struct (\w+) \{([^{}]*)\};")
_MEMBERS = re.compile(r"(\w+) ([^;]+);")
_MEMBER = re.compile(r"(\**)(\w+)(?:\[(\d+)\])?")
_FUNCTION = re.compile(r"(\w+) (\**)(\w+)\(([^()]*)\);")


class CompilationError(FerruleError):
    """The host's compiler could not build a library; the message quotes its output."""


def host_compiler(purpose: str) -> tuple[str, ...]:
    """Return the command that compiles C for this host: the first of $CC, cc, gcc, clang and the ziglang wheel.

    Raises:
        MissingToolError: there is no compiler, or CC names none; the message includes `purpose`, which needs it.
    """
    if os.environ.get("CC"):
        return _named_compiler(os.environ["CC"], purpose)
    for name in _COMPILERS:
        program = shutil.which(name)
        if program is not None:
            return (program,)
    if find_spec("ziglang") is not None:
        return zig_compiler("cc")
    raise MissingToolError(f"no C compiler for this host was found; {purpose} needs one", hint=COMPILER_REMEDY)


def zig_compiler(language: str) -> tuple[str, ...]:
    """Return the command of the ziglang wheel for this host; `language` is cc or c++.

    On Linux it names the target, so that zig uses the headers of the C library that it brings: those of the host may be
    missing. The result runs on every processor of the machine's architecture. Undefined behaviour is checked only where
    it is asked for, as by other compilers.
    """
    command = (sys.executable, "-m", "ziglang", language, "-fno-sanitize=undefined")
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _MACHINES or sys.maxsize < 1 << 32:
        return command
    return (*command, "-target", f"{machine}-linux-{f'gnu.{_GLIBC}' if _has_glibc() else 'musl'}")


def _has_glibc() -> bool:
    """Return whether this process uses glibc."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False


def is_zig(command: Sequence[str]) -> bool:
    """Return whether a compiler's command is zig's, judged by its name."""
    return "ziglang" in command or Path(command[0]).stem == "zig"


def _named_compiler(command: str, purpose: str) -> tuple[str, ...]:
    try:
        named = shlex.split(command)
    except ValueError:  # an unterminated quotation
        named = []
    program = shutil.which(named[0]) if named else None
    if program is None:
        raise MissingToolError(
            f"CC is '{command}', which is not a program on this host; {purpose} needs a C compiler",
            hint=f"set CC to a C compiler, or unset it: then {', '.join(_COMPILERS)} or ziglang is used",
        )
    return (program, *named[1:])


@frozen
class NativeLibrary:
    """C sources and the settings to compile them into a shared library."""

    name: str
    """File name without suffix."""
    title: str
    """Name in messages, such as "unicorn hooks"."""
    purpose: str
    """The part of Ferrule that needs the library, such as "the unicorn engine"."""
    sources: tuple[Path, ...]
    headers: tuple[Path, ...] = ()
    """All headers of this package that the sources include."""
    include_dirs: tuple[Path, ...] = ()
    """Folders of the headers; where they are does not affect the result."""
    flags: tuple[str, ...] = ()
    """Compiler flags; those for a shared library and for the include folders are added."""
    units: Callable[[], Sequence[str]] | None = None
    """Returns texts to compile in place of the sources: each includes some of them, and together they include all, with
    the same result. Those that take longest come first, so that all cores have work until the end."""
    facts: tuple[str, ...] = ()
    """Further facts that the result depends on, such as the version of a library whose headers are used."""

    def file(self, announce: Callable[[], object] = lambda: None) -> Path:
        """Return the path of the shared library, which is compiled unless the cache has an intact copy.

        If several processes need it at once, only one compiles it, and calls `announce` before. A truncated or modified
        library is never loaded.

        Raises:
            MissingToolError: there is no compiler.
            CompilationError: the compiler failed.
            FerruleError: the cache folder cannot be written.
        """
        command = host_compiler(self.purpose)
        name = f"{self.name}_{self._key(command)}.so"

        def build(library: Path) -> None:
            announce()
            self._build(library, command)

        return Store("libraries").file(name, build, once=True)

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions that the headers declare, by their names; pointers are addresses.

        Raises:
            FerruleError: the library cannot be compiled, as for `file`.
            OSError: the system refuses to load it.
        """
        library, found = ctypes.CDLL(str(self.file())), {}
        for header in self.headers:
            for kind, stars, name, parameters in _FUNCTION.findall(_code(header)):
                function = found[name] = getattr(library, name)
                function.restype = ctypes.c_void_p if stars else _TYPES[kind]
                given = [] if parameters == "void" else parameters.split(", ")
                function.argtypes = [ctypes.c_void_p if "*" in each else _TYPES[each.split()[0]] for each in given]
        return found

    def _key(self, command: tuple[str, ...]) -> str:
        digest = hashlib.sha256()
        for path in (*self.sources, *self.headers):
            digest.update(f"{path.name}\0".encode())
            digest.update(read_bytes(path))
        facts = (
            *command,
            *self.flags,
            *_SHARED,
            *self.facts,
            *compiler_facts(command),
            *platform.libc_ver(),  # whose headers are those that a library includes beside its own
            sys.platform,
            platform.machine(),
        )
        digest.update("\0".join(facts).encode())
        return digest.hexdigest()[:32]

    def _build(self, library: Path, command: tuple[str, ...]) -> None:
        flags = [*self.flags, *(f"-I{folder}" for folder in self.include_dirs), "-fPIC"]
        sources = self.sources if self.units is None else _written(self.units(), library.parent)
        objects = [str(library.parent / f"{index}_{source.stem}.o") for index, source in enumerate(sources)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            steps = (
                [*command, *flags, "-MMD", "-MF", f"{target}.d", "-c", "-o", target, str(source)]
                for target, source in zip(objects, sources, strict=True)
            )
            list(pool.map(self._compile, steps))
        self._require_declared(objects, sources)
        self._compile([*command, *flags, *_SHARED, "-o", str(library), *objects])

    def _require_declared(self, objects: Sequence[str], units: Sequence[Path]) -> None:
        """Raise RuntimeError, a bug in Ferrule, if the compiler has read an own file that is no part of the key."""
        own = {os.path.realpath(folder) for folder in (*self.include_dirs, *(path.parent for path in self.sources))}
        declared = {os.path.realpath(path) for path in (*self.sources, *self.headers, *units)}
        read = {os.path.realpath(name) for each in objects for name in prerequisites(read_text(Path(f"{each}.d")))}
        missing = sorted(name for name in read - declared if any(name.startswith(f"{each}{os.sep}") for each in own))
        if missing:
            raise RuntimeError(f"the {self.title} include {', '.join(missing)}, which the library does not declare")

    def _compile(self, argv: Sequence[str]) -> None:
        run_compiler(argv, f"can't compile the {self.title}")


def structs(header: Path) -> dict[str, Any]:
    """Return the class of each struct in a C header, by its tag; pointers are addresses."""
    found: dict[str, Any] = {}
    for tag, body in _STRUCT.findall(_code(header)):
        fields = []
        for kind, members in _MEMBERS.findall(body.replace("struct ", "")):
            for text in members.split(", "):
                member = _MEMBER.fullmatch(text)
                if member is None:  # a guess would shift all members behind it
                    raise RuntimeError(f"{header.name}: the member '{kind} {text}' of {tag} cannot be read")
                stars, name, length = member.groups()
                one = ctypes.c_void_p if stars else found.get(kind) or _TYPES[kind]
                fields.append((name, one * int(length) if length else one))
        found[tag] = type(tag, (ctypes.Structure,), {"_fields_": fields})
    return found


def _code(header: Path) -> str:
    """Return a header without comments and qualifiers, in one line."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\bconst\b", "", read_text(header), flags=re.DOTALL)
    return " ".join(text.split())


def _written(units: Sequence[str], folder: Path) -> list[Path]:
    paths = [folder / f"unit_{index}.c" for index in range(len(units))]
    for path, text in zip(paths, units, strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def prerequisites(rule: str) -> list[str]:
    """Return the files that a compiler read, as listed in the make rule that it wrote."""
    words = rule.replace("\\\n", " ").partition(": ")[2].replace("\\ ", "\0").split()
    return [word.replace("\0", " ").replace("$$", "$").replace("\\#", "#") for word in words]


def run_compiler(argv: Sequence[str], failure: str, *, text: str = "") -> str:
    """Run this host's compiler with a text as its standard input and return what it printed.

    Raises:
        CompilationError: it failed; the message begins with `failure` and has the last lines of its errors.
    """
    try:
        return run(argv, COMPILE_TIMEOUT_S, given=text.encode(), environment=tool_environment()).stdout
    except CommandError as error:
        raise CompilationError(
            f"{failure}: {error}", hint=f"set CC to a working C compiler, or unset it; {COMPILER_REMEDY}"
        ) from error


def compiler_facts(command: tuple[str, ...], environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return all that a compiler's output depends on beside its arguments and the files that it reads.

    `environment` has variables that the compiler gets beside those of this process.
    """
    own = environment or {}
    given = ((name, own[name] if name in own else os.environ.get(name, "")) for name in _VARIABLES)
    return (compiler_identity(command), *(f"{name}={value}" for name, value in given))


def compiler_identity(command: tuple[str, ...]) -> str:
    """Return a text that changes whenever the compiler does, without running the compiler."""
    if "ziglang" in command:
        return f"ziglang {importlib.metadata.version('ziglang')}"
    program = Path(command[0]).resolve()
    status = program.stat()
    return f"{program} {status.st_size} {status.st_mtime_ns}"
