# SPDX-License-Identifier: Apache-2.0
"""The registry: factories by id, duplicates, broken backends, scopes."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from children import ran

from ferrule._typing import override
from ferrule.backends import Backend, BackendId, LayerSupport, backend_ids, create_backend
from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.cpu_ref.backend import CpuRefSupport
from ferrule.backends.discovery import Found, shipped
from ferrule.backends.origin import Origin, OriginKind
from ferrule.backends.registry import BackendRegistry, DuplicateBackendError, default_registry
from ferrule.errors import FerruleError


class Own(Backend):
    id: ClassVar[BackendId] = BackendId("Own")

    @override
    def layer_support(self) -> LayerSupport:
        return CpuRefSupport()


class Other(Own):
    id: ClassVar[BackendId] = BackendId("Other")


def test_a_registered_factory_makes_a_new_object_each_time() -> None:
    registry = BackendRegistry()
    registry.register("Own", Own, origin="test")
    first, second = registry.create("Own"), registry.create("Own")
    assert isinstance(first, Own)
    assert first is not second
    assert registry.ids() == ("Own",)
    assert "Own" in registry
    assert "Other" not in registry
    assert str(registry.origin("Own")) == "application: test"


def test_no_backend_object_is_kept() -> None:
    registry = BackendRegistry()
    registry.register("Own", Own)
    made = weakref.ref(registry.create("Own"))
    gc.collect()
    assert made() is None


def test_duplicates_are_refused_and_name_the_origin_of_the_first() -> None:
    registry = BackendRegistry()
    registry.register("Own", Own, origin=Origin(OriginKind.DYNAMIC, "/lib/Arm_Own_backend.so"))
    with pytest.raises(DuplicateBackendError, match=r"/lib/Arm_Own_backend\.so"):
        registry.register("Own", Own, origin="second")
    assert registry.origin("Own").place == "/lib/Arm_Own_backend.so"


def test_a_shipped_id_is_taken() -> None:
    with pytest.raises(DuplicateBackendError, match="shipped: ferrule/backends/cpu_ref"):
        default_registry().register("CpuRef", Own)


@pytest.mark.parametrize("backend_id", ["", "Unknown"])
def test_reserved_ids_are_refused(backend_id: str) -> None:
    with pytest.raises(FerruleError, match="no backend id"):
        BackendRegistry().register(backend_id, Own)


@pytest.mark.parametrize("backend_id", ["Undefined", "Has Space", "CpuRef"])
def test_odd_ids_are_fine(backend_id: str) -> None:
    registry = BackendRegistry()
    registry.register(backend_id, Own)
    assert registry.ids() == (backend_id,)


def test_an_object_in_place_of_a_factory_is_refused() -> None:
    with pytest.raises(FerruleError, match="Own in place of a factory"):
        BackendRegistry().register("Own", Own())  # type: ignore[arg-type]


def test_unknown_ids_list_the_near_ones() -> None:
    with pytest.raises(FerruleError, match="no backend 'CpuRev'") as caught:
        create_backend("CpuRev")
    assert "CpuRef" in (caught.value.hint or "")


def raising() -> Backend:
    raise ValueError("no licence")


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        (raising, "ValueError: no licence"),
        (lambda: None, "returns NoneType"),
        (lambda: "Own", "returns str"),
        (Other, "with the id 'Other'"),
    ],
)
def test_a_broken_factory_is_a_row_with_a_reason(factory: type[Backend], reason: str) -> None:
    registry = BackendRegistry()
    registry.register("Own", factory, origin="test")
    with pytest.raises(BackendUnavailableError, match=reason):
        registry.create("Own")
    (row,) = registry.rows()
    assert row.id == "Own"
    assert reason in row.reason


def test_a_backend_is_unavailable_in_its_own_words() -> None:
    def absent() -> Backend:
        raise BackendUnavailableError("there is no such chip")

    registry = BackendRegistry()
    registry.register("Own", absent)
    with pytest.raises(BackendUnavailableError, match=r"^there is no such chip$"):
        registry.create("Own")


def test_an_entry_lives_as_long_as_one_registry_holds_it() -> None:
    released = []
    registry = BackendRegistry()
    registry.register("Own", Own, on_release=lambda: released.append("Own"))
    first, second = registry.scope(), registry.scope()
    registry.deregister("Own")
    assert "Own" not in registry
    first.close()
    first.close()
    assert released == []
    assert isinstance(second.create("Own"), Own)
    assert first.ids() == ()
    second.close()
    assert released == ["Own"]
    registry.register("Own", Own)


def test_the_registry_is_free_while_an_entry_is_released() -> None:
    registry = BackendRegistry()
    found: list[tuple[BackendId, ...]] = []

    def ask_in_a_thread() -> None:
        thread = threading.Thread(target=lambda: found.append(registry.ids()), daemon=True)
        thread.start()
        thread.join(timeout=10)

    for end in (lambda: registry.deregister("Own"), registry.close):
        registry.register("Own", Own, on_release=ask_in_a_thread)
        end()
        assert found.pop() == ()


def test_scopes_do_not_see_each_others_backends() -> None:
    registry = BackendRegistry()
    registry.register("Own", Own)
    first, second = registry.scope(), registry.scope(without={BackendId("Own"): "not here"})
    first.register("Other", Other)
    assert first.ids() == ("Own", "Other")
    assert second.ids() == ()
    assert registry.ids() == ("Own",)


def test_deregistering_what_is_not_there_is_an_error() -> None:
    with pytest.raises(FerruleError, match="no backend 'Own'"):
        BackendRegistry().deregister("Own")


def test_sources_are_asked_late_and_once() -> None:
    asked = []

    def source() -> Iterator[Found]:
        asked.append("source")
        yield Found(id=BackendId("Own"), factory=Own, origin=Origin(OriginKind.ENTRY_POINT, "package 1.0"))
        yield Found(id=BackendId("Own"), factory=Other, origin=Origin(OriginKind.ENTRY_POINT, "rival 2.0"))
        yield Found(id=BackendId("Unknown"), factory=Own, origin=Origin(OriginKind.ENTRY_POINT, "odd 1"))

    registry = BackendRegistry([source])
    registry.register("Other", Other)
    assert isinstance(registry.create("Other"), Other)
    assert asked == ["source"], "registering has to know whether the id is taken"
    assert registry.ids() == ("Own", "Other")
    assert asked == ["source"]
    assert [(row.origin.place, row.reason) for row in registry.refusals()] == [
        ("rival 2.0", "the id is registered already (entry point: package 1.0)"),
        ("odd 1", "the id is reserved"),
    ]
    assert registry.scope().refusals() == registry.refusals()


def test_many_threads_register_and_create() -> None:
    registry = BackendRegistry()
    winners, losers, start = [], [], threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for index in range(50):
            try:
                registry.register(f"Backend{index}", Own, origin=f"thread {number}")
                winners.append(index)
            except DuplicateBackendError:
                losers.append(index)
            registry.scope().close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(winners) == list(range(50))
    assert len(losers) == 7 * 50


def test_the_shipped_backends_are_there() -> None:
    assert {"CpuAcc", "CpuRef"} <= set(backend_ids())
    for backend_id in ("CpuAcc", "CpuRef"):
        assert create_backend(backend_id).id == backend_id


def test_a_folder_with_a_manifest_is_a_backend(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "backend.toml").write_text('id = "Mine"\nfactory = "ferrule.backends.cpu_ref:CpuRef"\ntitle = "Mine"\n')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "backend.toml").write_text("id = 3\n")
    registry = BackendRegistry([lambda: shipped(tmp_path)])
    rows = {row.id: row.reason for row in registry.rows()}
    assert set(rows) == {"Mine", "broken"}
    assert "makes backend 'CpuRef'" in rows[BackendId("Mine")]
    assert "backend.toml" in rows[BackendId("broken")]


ENTRY_POINTS = """
[ferrule.backends]
Installed = entry_module:Installed
NoModule = no_such_module:Backend
NoName = entry_module:Missing
Raises = entry_module:raises
CpuRef = entry_module:Installed
"""

MODULE = """
from ferrule.backends.cpu_ref import CpuRef

class Installed(CpuRef):
    id = "Installed"

def raises():
    raise OSError("the driver is missing")
"""

PROGRAM = """
from ferrule.backends.registry import default_registry
import sys
registry = default_registry()
registry.create("CpuRef")
assert "entry_module" not in sys.modules
registry.ids()
assert "entry_module" not in sys.modules
for row in registry.rows():
    print(row.id, "|", row.origin, "|", row.reason)
"""


def test_entry_points_are_loaded_late_and_broken_ones_are_rows(tmp_path: Path) -> None:
    info = tmp_path / "vendor_backend-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-backend\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "entry_module.py").write_text(MODULE)
    done = ran(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"],
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split(" | ") for line in done.stdout.splitlines() if "vendor-backend" in line]
    assert all(line[1].startswith("entry point: vendor-backend 1.5 (") for line in lines)
    assert {line[0]: line[2].strip() for line in lines if len(line) > 2 and line[2].strip()}.keys() == {
        "NoModule",
        "NoName",
        "Raises",
        "CpuRef",
    }
    text = done.stdout
    assert "ModuleNotFoundError" in text
    assert "AttributeError" in text
    assert "OSError: the driver is missing" in text
    assert "registered already (shipped: ferrule/backends/cpu_ref)" in text
