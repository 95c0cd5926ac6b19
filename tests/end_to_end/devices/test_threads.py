# SPDX-License-Identifier: Apache-2.0
"""Two threads run one model on the same two devices, with the Zephyr adapter on the fakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from device_networks import artifact, crossing, sample
from needs import require_cc, require_module

from ferrule.codegen import Program
from ferrule.testing import Adapter, ZephyrFakes, build_adapter

pytestmark = pytest.mark.cc
FOLDER = Path(__file__).parent
TIMEOUT = -9
ADAPTED = ("device.c", "command.c")
"""The sources that `build_adapter` compiles."""


def build(folder: Path, edit: Callable[[str], str] = str) -> Adapter[ZephyrFakes]:
    """Compile the model; `edit` changes the text of its executor."""
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    model = artifact()
    for name, text in model.files.items():
        (folder / name).write_text(edit(text) if name == "ferrule_crossing.c" else text)
    contexts = "\n".join(Program(artifacts=(model,)).device_c(use.name) for use in model.devices)
    (folder / "contexts.h").write_text(f"/* SPDX-License-Identifier: Apache-2.0 */\n{contexts}")
    adapter = build_adapter(
        "zephyr",
        sources=[
            *(folder / name for name in ("ferrule_crossing.c", "ferrule_crossing_weights.c")),
            *(path for part in model.contributions for path in part.source_paths if path.name not in ADAPTED),
            FOLDER / "two_threads.c",
        ],
        headers=["two_threads.h"],
        include_dirs=[folder, FOLDER, *(path for part in model.contributions for path in part.include_paths)],
    )
    assert adapter.lib.shared_start() == 0
    return adapter


def runner(adapter: Adapter[ZephyrFakes], seed: int, runs: int) -> Callable[[], int]:
    """Return a function that runs the model on its own input; it returns 0, an error, or 1 for a wrong output."""
    x = sample(seed)
    h, late = crossing().run([x])
    buffers = [adapter.ffi.new("int8_t[]", data.tobytes()) for data in (x, h, late)]
    return lambda: int(adapter.lib.shared_run(runs, *buffers))


def interrupted(adapter: Adapter[ZephyrFakes]) -> list[tuple[int, int]]:
    """Run the model in a second thread after each call that unlocks a mutex; return the pairs of results."""
    fakes = adapter.fakes
    first, second = runner(adapter, 1, 1), runner(adapter, 2, 1)
    fakes.forget_calls()
    assert first() == 0
    found = []
    for number in range(1, len(fakes.calls_of("k_mutex_unlock")) + 1):
        said: list[int] = []

        def come_between(said: list[int] = said) -> None:
            with fakes.as_thread(2):
                said.append(second())

        fakes.after("k_mutex_unlock", come_between, nth=number)
        result = first()
        fakes.forget_scripts()
        found.append((result, *said))
    assert adapter.lib.shared_activations() == 0
    return found


def test_threads_share_the_devices(tmp_path: Path) -> None:
    adapter = build(tmp_path)
    assert adapter.fakes.run(runner(adapter, 1, 25), runner(adapter, 2, 25)) == [0, 0]
    assert adapter.lib.shared_activations() == 0


def test_a_thread_that_comes_between_waits_or_harms_nobody(tmp_path: Path) -> None:
    found = interrupted(build(tmp_path))
    assert {first for first, _ in found} == {0}
    assert {second for _, second in found} == {0, TIMEOUT}


def test_a_device_that_is_closed_while_it_holds_a_tensor_loses_it(tmp_path: Path) -> None:
    """The mutant closes both devices before the core's operator, although `a` lives in npu0, and opens them again."""
    again = "".join(
        f"    if (status == FERRULE_OK) {{\n        status = ferrule_held_{call};\n    }}\n"
        for call in (
            *("close(held, DEVICE_NPU1)", "close(held, DEVICE_NPU0)"),
            "open_set(held, opened_before_0, 2)",
        )
    )

    def mutate(text: str) -> str:
        place = text.index("    status = ferrule_held_next(held, 4);")  # c, on the core
        return text[:place] + again + text[place:]

    assert (1, 0) in interrupted(build(tmp_path, mutate))
