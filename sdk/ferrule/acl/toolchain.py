# SPDX-License-Identifier: Apache-2.0
"""Finds what compiles and runs programs of the Arm Compute Library, on an arm64 machine or by emulation."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ferrule import resources
from ferrule._frozen import frozen
from ferrule.errors import MissingToolError
from ferrule.firmware.probe import ToolStatus
from ferrule.reading import exists, is_file, is_folder, list_folder

SYSROOT = "FERRULE_ACL_SYSROOT"
"""Environment variable for the folder that scripts/acl_sysroot.sh made, or for any arm64 sysroot."""
ACL_ROOT = "ACL_ROOT"
"""Environment variable for an Arm Compute Library of one's own: its folder with headers and `lib` or `build`."""
_MULTIARCH = "aarch64-linux-gnu"
_CROSS_COMPILERS = ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-g++-12")
_NATIVE_COMPILERS = ("c++", "g++", "clang++")
_EMULATORS = ("qemu-aarch64", "qemu-aarch64-static")
_CPU = "cortex-a76"
"""The emulated core, unless QEMU_CPU names another: QEMU's default has SVE, with which int8 MUL of 24.11 crashes."""
_RELEASES = {20: "20.08", 43: "24.11"}
"""Releases of the library by the major number of its shared object."""
_FLAGS = ("-std=c++14", "-Wall", "-Wextra", "-Werror")


@frozen
class AclToolchain:
    """The commands that compile, link and run a program."""

    compiler: tuple[str, ...]
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    launcher: tuple[str, ...]
    """The command in front of a program; nothing on an arm64 machine without sysroot."""
    version: str
    """Version of the library, such as "20.08", or "of libarm_compute.so.N" if it is not a known one."""
    emulated: bool
    """Whether programs run in user-mode emulation."""
    opencl: bool
    """Whether programs for OpenCL can run, because the machine itself has an OpenCL library."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the compiler needs."""

    @property
    def title(self) -> str:
        """What runs the programs."""
        return "qemu-aarch64" if self.emulated else "this machine"


@frozen
class _Place:
    """Where tools and libraries are."""

    native: bool
    """Whether this machine is arm64."""
    sysroot: Path | None
    root: Path
    """The root folder of the libraries."""
    cross: Path | None
    """The folder of a cross compiler and an emulator that are not installed."""


def find_toolchain(sysroot: Path | None = None) -> AclToolchain:
    """Return the tools; `sysroot` defaults to the folder that FERRULE_ACL_SYSROOT names.

    Raises:
        MissingToolError: there is no compiler, no Arm Compute Library, no HDF5 library or no emulator.
    """
    place, own = _place(sysroot), _from(ACL_ROOT)
    headers, library = _library(place.root, own)
    hdf5_headers, hdf5 = _hdf5(place.root)
    sysroot_flags = () if place.sysroot is None else (f"--sysroot={place.root}",)
    core = exists(library.parent / "libarm_compute_core.so")
    return AclToolchain(
        compiler=_compiler(place),
        compile_flags=(*_FLAGS, *sysroot_flags, *_system((*headers, *hdf5_headers))),
        link_flags=(
            *sysroot_flags,
            *(() if own is None else (f"-L{library.parent}", f"-Wl,-rpath-link,{library.parent}")),
            "-larm_compute",
            "-larm_compute_core" if core else "-Wl,--allow-shlib-undefined",
            f"-l{hdf5}",
        ),
        launcher=_launcher(place, None if own is None else library.parent),
        version=_release(library),
        emulated=not place.native,
        opencl=place.native and _has_opencl(),
        environment=_environment(place.cross),
    )


def probe_acl() -> list[ToolStatus]:
    """Return the status of what programs of the Arm Compute Library need: the library, a compiler, an emulator."""

    def library() -> tuple[str, Path]:
        place = _place(None)
        _hdf5(place.root)
        found = _library(place.root, _from(ACL_ROOT))[1]
        return _release(found), found

    def compiler() -> tuple[str, Path]:
        path = Path(_compiler(_tools())[0])
        return path.name, path

    def emulator() -> tuple[str, Path]:
        path = Path(_emulator(_tools()))
        return path.name, path

    rows: list[tuple[str, str, Callable[[], tuple[str, Path]]]] = [
        ("arm-compute", "ferrule artifact run: the Arm Compute Library and HDF5 for arm64", library),
        ("arm64-c++", "ferrule artifact run: compiles generated classes", compiler),
    ]
    if not _is_native():
        rows.append(("qemu-aarch64", "ferrule artifact run: runs generated classes on this machine", emulator))
    return [_status(name, purpose, find) for name, purpose, find in rows]


def _status(name: str, purpose: str, find: Callable[[], tuple[str, Path]]) -> ToolStatus:
    try:
        version, path = find()
    except MissingToolError as error:
        return ToolStatus(name, purpose, error.hint or remedy())
    return ToolStatus(name, purpose, remedy(), found=True, version=version, path=str(path))


def _is_native() -> bool:
    return platform.machine() in {"aarch64", "arm64"}


def _tools() -> _Place:
    """Return the place of compiler and emulator, which may be there without libraries."""
    try:
        return _place(None)
    except MissingToolError:
        return _Place(native=_is_native(), sysroot=None, root=Path("/"), cross=None)


def _place(sysroot: Path | None) -> _Place:
    native, named = _is_native(), sysroot or _from(SYSROOT)
    if named is None:
        if native:
            return _Place(native=True, sysroot=None, root=Path("/"), cross=None)
        raise MissingToolError(
            "no arm64 sysroot was found: programs of the Arm Compute Library need one on this machine", hint=remedy()
        )
    if not is_folder(named):
        raise MissingToolError(f"the sysroot {named} is not a folder", hint=remedy())
    folder = named.resolve()
    root = folder / "root" if is_folder(folder / "root") else folder
    return _Place(native=native, sysroot=folder, root=root, cross=folder / "cross" / "usr")


def remedy() -> str:
    """Return how to get all tools and libraries."""
    return f"on Debian, run {resources.root() / 'scripts' / 'acl_sysroot.sh'} DIR, and set {SYSROOT} to DIR"


def _from(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).resolve() if value else None


def _system(folders: Iterable[Path]) -> list[str]:
    return [word for folder in folders for word in ("-isystem", str(folder))]


def _first(candidates: Iterable[Path]) -> Path | None:
    return next((path for path in candidates if exists(path)), None)


def _library(root: Path, own: Path | None) -> tuple[list[Path], Path]:
    """Return the include folders of the Arm Compute Library that the compiler does not know, and its shared object."""
    if own is not None:
        headers = [folder for folder in (own, own / "include") if is_folder(folder / "arm_compute")]
        library = _first(own / folder / "libarm_compute.so" for folder in ("lib", "build", "."))
        if not headers or library is None:
            raise MissingToolError(
                f"{ACL_ROOT} is {own}, which has no {'headers arm_compute/' if not headers else 'libarm_compute.so'}",
                hint="set it to a built Arm Compute Library, with its headers, and with lib/ or build/",
            )
        return list(dict.fromkeys([*headers, *filter(is_folder, [own / "include"])])), library
    found = _first(root / "usr" / folder / "libarm_compute.so" for folder in (f"lib/{_MULTIARCH}", "lib", "local/lib"))
    include = _first(
        root / "usr" / folder / "arm_compute" for folder in (f"include/{_MULTIARCH}", "include", "local/include")
    )
    if found is None or include is None:
        raise MissingToolError(
            f"the Arm Compute Library was not found in {root}",
            hint=f"apt-get install libarm-compute-dev libhdf5-dev, or set {ACL_ROOT}; for another machine, {remedy()}",
        )
    return [], found


def _hdf5(root: Path) -> tuple[list[Path], str]:
    """Return the include folders of HDF5 that the compiler does not know, and the name of its library."""
    for headers, name in (("hdf5/serial", "hdf5_serial"), (".", "hdf5")):
        folder = root / "usr" / "include" / headers
        if is_file(folder / "hdf5.h"):
            return [] if headers == "." else [folder], name
    raise MissingToolError(
        f"the HDF5 library was not found in {root}",
        hint=f"apt-get install libhdf5-dev; for another machine, {remedy()}",
    )


def _release(library: Path) -> str:
    number = re.search(r"\.so\.(\d+)", library.resolve().name)
    if number is None:
        return f"of {library}"
    return _RELEASES.get(int(number[1]), f"of libarm_compute.so.{number[1]}")


def _program(names: Sequence[str], cross: Path | None) -> str | None:
    path = None if cross is None else str(cross / "bin")
    found = (
        each for name in names for each in (shutil.which(name), shutil.which(name, path=path) if path else None) if each
    )
    return next(found, None)


def _compiler(place: _Place) -> tuple[str, ...]:
    if place.native:
        named = shlex.split(os.environ.get("CXX", ""))
        found = shutil.which(named[0]) if named else _program(_NATIVE_COMPILERS, None)
        if found is None:
            what = f"CXX is '{' '.join(named)}', which is not a program" if named else "no C++ compiler was found"
            raise MissingToolError(what, hint="apt-get install g++")
        return (found, *named[1:])
    found = _program(_CROSS_COMPILERS, place.cross)
    if found is None:
        raise MissingToolError(
            "no C++ compiler for arm64 was found", hint=f"apt-get install g++-aarch64-linux-gnu, or, {remedy()}"
        )
    return (found,)


def _emulator(place: _Place) -> str:
    found = _program(_EMULATORS, place.cross)
    if found is None:
        raise MissingToolError(
            "qemu-aarch64 was not found, which runs arm64 programs on this machine",
            hint=f"apt-get install qemu-user, or, {remedy()}",
        )
    return found


def _launcher(place: _Place, library: Path | None) -> tuple[str, ...]:
    path = () if library is None else (f"LD_LIBRARY_PATH={library}",)
    if not place.native:
        model = () if os.environ.get("QEMU_CPU") else ("-cpu", _CPU)
        return (_emulator(place), *model, "-L", str(place.root), *(word for each in path for word in ("-E", each)))
    if place.sysroot is None:
        return ("env", *path) if path else ()
    loader = place.root / "lib" / "ld-linux-aarch64.so.1"
    folders = [*([library] if library else []), place.root / "lib" / _MULTIARCH, place.root / "usr/lib" / _MULTIARCH]
    return (str(loader), "--library-path", ":".join(map(str, folders)))


def _environment(cross: Path | None) -> dict[str, str]:
    """Return the variables with which the compiler in a sysroot's folder finds its libraries."""
    if cross is None or not is_folder(cross):
        return {}
    folders = [str(folder) for folder in list_folder(cross / "lib", "*-linux-gnu") if is_folder(folder)]
    before = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": ":".join([*folders, *([before] if before else [])])} if folders else {}


def _has_opencl() -> bool:
    import ctypes.util

    return ctypes.util.find_library("OpenCL") is not None
