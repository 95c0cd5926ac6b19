# SPDX-License-Identifier: Apache-2.0
"""Good and bad shared objects: a bad one costs no more than its own row of the report."""

from __future__ import annotations

import gc
import logging
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from children import ran
from gate import every

from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.dynamic import LoadReport, Reason, load_dynamic_backends
from ferrule.backends.dynamic.library import DynamicLibraryError, Library
from ferrule.backends.dynamic.probe import probe, probe_all
from ferrule.backends.origin import OriginKind
from ferrule.backends.registry import BackendRegistry
from ferrule.errors import FerruleError

pytestmark = pytest.mark.cc

Compile = Callable[..., Path]
NOTHING = """
import sys
from pathlib import Path
from ferrule.backends.dynamic import load_dynamic_backends
from ferrule.backends.registry import BackendRegistry
load_dynamic_backends(BackendRegistry(), Path(sys.argv[1]))
print("ferrule.backends.dynamic.abi" in sys.modules)
"""

VALID = [
    ("plain", (), "Valid"),
    ("the same version", ("MAJOR=1", "MINOR=0"), "Valid"),
    ("an id that Arm NN takes", ('ID="Undefined"',), "Undefined"),
    ("an id with a space", ('ID="Has Space"',), "Has Space"),
    ("the id of the reference", ('ID="CpuRef"',), "CpuRef"),
    ("capabilities", ("CAPABILITIES=&capabilities",), "Valid"),
    ("no context here", ("CONTEXTS=&contexts",), "Valid"),
    ("noise", ("AT_ID=SHOUT",), "Valid"),
]
INVALID = [
    ("no id", ("NO_ID",), Reason.MISSING_SYMBOL, "GetBackendId"),
    ("no version", ("NO_VERSION",), Reason.MISSING_SYMBOL, "GetVersion"),
    ("no factory", ("NO_FACTORY",), Reason.MISSING_SYMBOL, "BackendFactory"),
    ("mangled", ("MANGLED",), Reason.MISSING_SYMBOL, "GetBackendId"),
    ("nothing", ("NO_ID", "NO_VERSION", "NO_FACTORY"), Reason.MISSING_SYMBOL, "GetBackendId"),
    ("null id", ("ID=NULL",), Reason.INVALID_ID, "null"),
    ("empty id", ('ID=""',), Reason.INVALID_ID, "''"),
    ("reserved id", ('ID="Unknown"',), Reason.INVALID_ID, "Unknown"),
    ("no text", (r'ID="\xff\xfe"',), Reason.INVALID_ID, "UTF-8"),
    ("control characters", (r'ID="a\nb"',), Reason.INVALID_ID, "invalid"),
    ("id at a wild address", ("ID=((const char*)16)",), Reason.CRASHED, "GetBackendId"),
    ("version 0.0", ("MAJOR=0", "MINOR=0"), Reason.INCOMPATIBLE_VERSION, "[0.0]"),
    ("version 0.7", ("MAJOR=0", "MINOR=7"), Reason.INCOMPATIBLE_VERSION, "[0.7]"),
    ("newer minor", ("MINOR=4",), Reason.INCOMPATIBLE_VERSION, "[1.4]"),
    ("newer major", ("MAJOR=2",), Reason.INCOMPATIBLE_VERSION, "[2.3]"),
    ("silent version", ("SILENT_VERSION",), Reason.INCOMPATIBLE_VERSION, "no version"),
    ("null factory", ("FACTORY_RESULT=NULL",), Reason.NULL_FACTORY, "null"),
    ("wild factory", ("FACTORY_RESULT=4096",), Reason.CRASHED, "reading its tables"),
    ("misaligned factory", ("FACTORY_RESULT=(const char *)&backend+1",), Reason.INVALID_TABLE, "not aligned"),
    ("table too small", ("TABLE_SIZE=4",), Reason.INVALID_TABLE, "4 bytes"),
    ("table of size 0", ("TABLE_SIZE=0",), Reason.INVALID_TABLE, "0 bytes"),
    ("table too large", ("TABLE_SIZE=1000000",), Reason.INVALID_TABLE, "1000000 bytes"),
    ("table of another version", ("TABLE_MAJOR=3",), Reason.INVALID_TABLE, "3.3"),
    ("no layer support", ("SUPPORT_TABLE=NULL",), Reason.INVALID_TABLE, "layer_support"),
    ("small layer support", ("SUPPORT_SIZE=1",), Reason.INVALID_TABLE, "layer_support"),
    ("no answer", ("SUPPORTS=NULL",), Reason.INVALID_TABLE, "supports"),
    ("answer at no code", ("SUPPORTS=((void *)&not_code)",), Reason.INVALID_TABLE, "not code"),
    ("answer at a wild address", ("SUPPORTS=((void *)0x1234)",), Reason.INVALID_TABLE, "not code"),
    ("wild table", ("SUPPORT_TABLE=((void *)4096)",), Reason.CRASHED, "reading its tables"),
    ("workloads without functions", ("WORKLOADS=&no_functions",), Reason.INVALID_TABLE, "create"),
    ("short workloads", ("WORKLOADS=&short_table",), Reason.INVALID_TABLE, "workloads"),
    ("no handle factories", ("HANDLES=&no_factories",), Reason.INVALID_TABLE, "0 factories"),
    ("null handle factory", ("HANDLES=&null_factory",), Reason.INVALID_TABLE, "factory 0"),
    ("nameless capability", ("CAPABILITIES=&capabilities", "CAPABILITY_NAME=NULL"), Reason.INVALID_TABLE, "no name"),
    ("countless", ("CAPABILITIES=&capabilities", "CAPABILITY_COUNT=5000"), Reason.INVALID_TABLE, "5000 capabilities"),
    ("crash in the capabilities", ("CAPABILITIES=&capabilities", "AT_LIST=CRASH"), Reason.CRASHED, "capabilities"),
    ("abort in the context", ("CONTEXTS=&contexts", "AT_CONTEXT=ABORT"), Reason.CRASHED, "'contexts'"),
    ("crash in a constructor", ("AT_CONSTRUCTOR=CRASH",), Reason.CRASHED, "loading it"),
    ("abort in a constructor", ("AT_CONSTRUCTOR=ABORT",), Reason.CRASHED, "SIGABRT"),
    ("crash in the id", ("AT_ID=CRASH",), Reason.CRASHED, "GetBackendId"),
    ("abort in the version", ("AT_VERSION=ABORT",), Reason.CRASHED, "GetVersion"),
    ("crash in the factory", ("AT_FACTORY=CRASH",), Reason.CRASHED, "BackendFactory"),
    ("crash in a destructor", ("AT_DESTRUCTOR=CRASH",), Reason.CRASHED, "unloading it"),
    ("ends its group", ("AT_ID=KILL_GROUP",), Reason.CRASHED, "SIGTERM"),
    ("exit in a constructor", ("AT_CONSTRUCTOR=LEAVE",), Reason.EXITED, "127"),
    ("exit in the id", ("AT_ID=LEAVE",), Reason.EXITED, "GetBackendId"),
    ("good exit in the factory", ("AT_FACTORY=LEAVE_WELL",), Reason.EXITED, "exit code 0"),
    ("undefined function", ("UNDEFINED_FUNCTION",), Reason.NOT_LOADABLE, "no_such_function"),
    ("undefined data", ("UNDEFINED_DATA",), Reason.NOT_LOADABLE, "no_such_data"),
]
HANGING = [
    ("hang in a constructor", ("AT_CONSTRUCTOR=HANG",), "loading it"),
    ("endless loop in the id", ("AT_ID=SPIN",), "GetBackendId"),
    ("hang in the context", ("CONTEXTS=&contexts", "AT_CONTEXT=HANG"), "creating and destroying"),
    ("hang in the factory", ("AT_FACTORY=HANG",), "BackendFactory"),
]


def load(folder: Path, registry: BackendRegistry | None = None) -> LoadReport:
    (row,) = load_dynamic_backends(registry or BackendRegistry(), folder)
    return row


def test_the_c_interface_is_not_read_for_a_folder_without_backends(tmp_path: Path) -> None:
    done = ran([sys.executable, "-c", NOTHING, str(tmp_path)])
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


@pytest.mark.parametrize(("case", "defines", "backend"), VALID)
def test_valid(tmp_path: Path, compile_backend: Compile, case: str, defines: tuple[str, ...], backend: str) -> None:
    del case
    path = compile_backend(tmp_path, *defines)
    registry = BackendRegistry()
    row = load(tmp_path, registry)
    assert row == LoadReport(path=path, canonical=path.resolve(), backend=row.backend)
    assert registry.ids() == (backend,)
    assert registry.create(backend).id == backend
    assert registry.origin(backend).kind is OriginKind.DYNAMIC
    assert registry.origin(backend).place == str(path.resolve())


@pytest.mark.parametrize(("case", "defines", "reason", "words"), every(2, INVALID))
def test_invalid(
    tmp_path: Path,
    compile_backend: Compile,
    caplog: pytest.LogCaptureFixture,
    case: str,
    defines: tuple[str, ...],
    reason: Reason,
    words: str,
) -> None:
    del case
    path = compile_backend(tmp_path, *defines)
    registry = BackendRegistry()
    with caplog.at_level(logging.WARNING):
        row = load(tmp_path, registry)
    assert (row.path, row.reason) == (path, reason), row
    assert words in row.message
    assert not mapped(path)
    assert registry.ids() == ()
    assert caplog.messages == [
        f'Cannot create a valid dynamic backend from the shared object file "{path}": {row.message}'
    ]


@pytest.mark.parametrize(("case", "defines", "step"), HANGING)
def test_hanging(tmp_path: Path, compile_backend: Compile, case: str, defines: tuple[str, ...], step: str) -> None:
    del case
    compile_backend(tmp_path, *defines)
    for timeout_s in (1.0, 10.0, 100.0):  # on a loaded machine a short time-out may end before the child gets there
        (row,) = load_dynamic_backends(BackendRegistry(), tmp_path, timeout_s=timeout_s)
        assert row.reason is Reason.TIMED_OUT
        if row.message.startswith(step):
            return
    pytest.fail(row.message)


def test_files_that_are_no_shared_objects(tmp_path: Path, compile_backend: Compile) -> None:
    whole = compile_backend(tmp_path).read_bytes()
    (tmp_path / "Test_Variant_backend.so").unlink()
    headers = 64 + 56 * whole[56]  # of the file and of its segments; a compiler may place code right behind them
    contents = {
        "empty": b"",
        "text": b"this is text\n" * 1000,
        "magic": whole[:16],
        "header": whole[:64],
        "half": whole[: len(whole) // 2],
        "zeros": bytes(len(whole)),
        "machine": whole[:18] + b"\xff\xff" + whole[20:],
        "holes": whole[:headers].ljust(len(whole), b"\0"),
    }
    for name, content in contents.items():
        (tmp_path / f"Bad_{name}_backend.so").write_bytes(content)
    rows = load_dynamic_backends(BackendRegistry(), tmp_path)
    assert len(rows) == len(contents)
    found = {row.path.name.split("_")[1]: row.reason for row in rows}
    for name in ("empty", "text", "magic", "header", "half", "zeros", "machine"):
        assert found[name] is Reason.NOT_LOADABLE
    assert found["holes"] in {Reason.CRASHED, Reason.NOT_LOADABLE, Reason.MISSING_SYMBOL}


@pytest.mark.parametrize("missing", [1, 100, 1000, 5000, 10_000])
def test_a_file_that_is_cut_off(tmp_path: Path, compile_backend: Compile, missing: int) -> None:
    """An access to mapped pages beyond the file's end is a bus error, which kills Arm NN."""
    path = compile_backend(tmp_path)
    path.write_bytes(path.read_bytes()[:-missing])
    row = load(tmp_path)
    assert row.reason is Reason.NOT_LOADABLE
    assert row.message.startswith("the file is truncated")


@pytest.mark.parametrize(("machine", "name"), [(183, "AArch64 (64-bit)"), (9999, "the ELF machine 9999 (64-bit)")])
def test_a_file_for_another_processor_is_called_so(
    tmp_path: Path, compile_backend: Compile, machine: int, name: str
) -> None:
    """The dynamic linker may say that there is no such file."""
    path = compile_backend(tmp_path)
    whole = bytearray(path.read_bytes())
    whole[18:20] = machine.to_bytes(2, "little")
    path.write_bytes(whole)
    row = load(tmp_path)
    assert row.reason is Reason.NOT_LOADABLE
    assert row.message.startswith(f"the file is built for {name}, this Python runs on ")


def test_damaged_files_never_reach_this_process(tmp_path: Path, compile_backend: Compile) -> None:
    """However the dynamic linker reacts to a damaged header or table, the probe returns a verdict."""
    whole = compile_backend(tmp_path).read_bytes()
    dice = random.Random(7)
    paths = []
    for number in range(24):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 8)):
            damaged[dice.randrange(min(len(whole), 12_000))] = dice.randrange(256)
        paths.append(tmp_path / f"Bad_{number}_backend.so")
        paths[-1].write_bytes(damaged)
    for path, verdict in zip(paths, probe_all(paths, timeout_s=5.0), strict=True):
        assert verdict.reason is None or verdict.message, path
        assert not mapped(path)


def test_an_unreadable_file(tmp_path: Path, compile_backend: Compile) -> None:
    path = compile_backend(tmp_path)
    path.chmod(0)
    row = load(tmp_path)
    assert row.accepted if os.geteuid() == 0 else row.reason is Reason.NOT_LOADABLE
    path.chmod(0o644)


def test_good_and_bad_together(tmp_path: Path, compile_backend: Compile) -> None:
    compile_backend(tmp_path, "AT_ID=CRASH", name="A_Crash")
    compile_backend(tmp_path, 'ID="First"', name="B_First")
    compile_backend(tmp_path, "NO_ID", name="C_Missing")
    compile_backend(tmp_path, 'ID="Second"', name="D_Second")
    (tmp_path / "E_Loop_backend.so").symlink_to("E_Loop_backend.so")
    (tmp_path / "F_Folder_backend.so").mkdir()
    (tmp_path / "G_First_backend.so").symlink_to("B_First_backend.so")
    registry = BackendRegistry()
    rows = load_dynamic_backends(registry, tmp_path)
    assert [row.reason for row in rows] == [
        Reason.CRASHED,
        None,
        Reason.MISSING_SYMBOL,
        None,
        Reason.LINK_LOOP,
        Reason.NOT_A_FILE,
        Reason.DUPLICATE_FILE,
    ]
    assert registry.ids() == ("First", "Second")


def test_of_two_files_with_one_id_the_first_is_taken(
    tmp_path: Path, compile_backend: Compile, caplog: pytest.LogCaptureFixture
) -> None:
    first = compile_backend(tmp_path, 'ID="Twice"', name="A_One")
    compile_backend(tmp_path, 'ID="Twice"', name="B_Two")
    registry = BackendRegistry()
    with caplog.at_level(logging.WARNING):
        one, two = load_dynamic_backends(registry, tmp_path)
    assert one.accepted
    assert two.reason is Reason.DUPLICATE_ID
    assert two.backend == "Twice"
    assert registry.origin("Twice").place == str(first.resolve())
    assert 'Cannot register dynamic backend "Twice"' in caplog.text


def test_an_id_that_is_registered_already(tmp_path: Path, compile_backend: Compile) -> None:
    path = compile_backend(tmp_path, 'ID="CpuAcc"')
    registry = BackendRegistry()
    registry.register("CpuAcc", CpuAcc, origin="the test")
    row = load(tmp_path, registry)
    assert row.reason is Reason.DUPLICATE_ID
    assert isinstance(registry.create("CpuAcc"), CpuAcc)
    gc.collect()
    assert not mapped(path), "the refused file is unloaded"


def test_a_factory_that_fails_later_makes_the_backend_unusable(tmp_path: Path, compile_backend: Compile) -> None:
    """The first call in the host process returns null, which the child process cannot foresee."""
    path = compile_backend(tmp_path, f'FACTORY_RESULT=(access("{tmp_path}/gone",F_OK)?(const void*)&backend:NULL)')
    registry = BackendRegistry()
    assert load(tmp_path, registry).accepted
    (tmp_path / "gone").write_bytes(b"")
    with pytest.raises(FerruleError, match=r"BackendFactory of .* returns null"):
        registry.create("Valid")
    assert path.exists()


def test_two_registries_do_not_touch_each_other(tmp_path: Path, compile_backend: Compile) -> None:
    """In Arm NN a second runtime finds the id taken, and loses the backend when the first runtime is destroyed."""
    compile_backend(tmp_path)
    first, second = BackendRegistry(), BackendRegistry()
    assert load(tmp_path, first).accepted
    assert load(tmp_path, second).accepted
    first.close()
    gc.collect()
    assert first.ids() == ()
    assert second.create("Valid").id == "Valid"
    second.close()


def mapped(path: Path) -> bool:
    return str(path.resolve()) in Path("/proc/self/maps").read_text(encoding="utf-8")


def test_a_library_is_unloaded_with_the_last_object_that_it_made(tmp_path: Path, compile_backend: Compile) -> None:
    path = compile_backend(tmp_path)
    registry = BackendRegistry()
    load(tmp_path, registry)
    backend = registry.create("Valid")
    support = backend.layer_support()
    assert mapped(path)
    registry.close()
    del backend
    gc.collect()
    assert mapped(path)
    assert support is not None
    del support
    gc.collect()
    assert not mapped(path)


def test_a_file_is_tried_again_when_it_changed(tmp_path: Path, compile_backend: Compile) -> None:
    path = compile_backend(tmp_path, "NO_ID")
    assert probe(path).reason is Reason.MISSING_SYMBOL
    assert probe(path) is probe(path)
    path.unlink()
    path = compile_backend(tmp_path)
    os.utime(path, ns=(1, 1))
    assert probe(path).reason is None


def test_what_a_file_starts_ends_with_its_trial(tmp_path: Path, compile_backend: Compile) -> None:
    note = tmp_path / "note"
    path = compile_backend(tmp_path, f'AT_CONSTRUCTOR=LEAVE_A_CHILD("{note}")')
    assert probe(path).reason is None
    child = int(note.read_text())
    while alive(child):
        time.sleep(0.01)


def alive(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_file_that_vanishes_before_it_is_tried(tmp_path: Path) -> None:
    assert probe(tmp_path / "Gone_Gone_backend.so").reason is Reason.UNREADABLE


def test_a_child_that_ends_before_it_opens_the_file_does_not_blame_it(
    tmp_path: Path, compile_backend: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, child = compile_backend(tmp_path), tmp_path / "child.py"
    child.write_text("raise SystemExit(3)", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr("ferrule.backends.dynamic.probe._CHILD", child)
        row = probe(path)
    assert (row.reason, row.message) == (
        Reason.NOT_PROBED,
        "the child process that tries it ended with exit code 3",
    )
    assert probe(path).reason is None, "it is tried again"


def test_open_by_hand_says_what_is_wrong(tmp_path: Path, compile_backend: Compile) -> None:
    with pytest.raises(DynamicLibraryError, match="cannot be loaded"):
        Library(tmp_path / "nothing.so")
    with pytest.raises(DynamicLibraryError, match="GetVersion"):
        Library(compile_backend(tmp_path, "NO_VERSION"))
    with pytest.raises(DynamicLibraryError, match=r"version 2\.3"):
        Library(compile_backend(tmp_path, "MAJOR=2", name="Test_Newer"))
