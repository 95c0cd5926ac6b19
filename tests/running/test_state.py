# SPDX-License-Identifier: Apache-2.0
"""Models with state on a board: sequences of samples, resets, and what a run without a valid state returns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import signal_networks
import small_networks
import state_networks
from numpy.testing import assert_array_equal

import ferrule
from ferrule.emulation import EngineOptions, Machine, engine
from ferrule.errors import UnsupportedError
from ferrule.link import FirmwareError, LinkSession, RunFailedError

pytestmark = [pytest.mark.cc, pytest.mark.emu]

Build = Callable[[ferrule.Network], ferrule.Firmware]
SAMPLES = np.arange(8, dtype=np.float32).reshape(4, 1, 2)


@pytest.mark.parametrize("through_link", [False, True])
def test_samples_are_a_sequence_unless_each_begins_with_a_reset(built: Build, through_link: bool) -> None:
    network = state_networks.stream()
    firmware, options = built(network), EngineOptions(through_link=through_link)
    sequence = firmware.run([SAMPLES], options=options, check_ownership=True)
    each = firmware.run([SAMPLES], options=options, reset_each=True)
    state = network.initial_state()
    wanted = np.concatenate([network.run([sample[None]], state=state)[0] for sample in SAMPLES])
    assert (sequence.verdict, each.verdict) == (ferrule.Verdict.EXACT, ferrule.Verdict.EXACT)
    assert_array_equal(sequence.outputs[0], wanted)
    assert_array_equal(each.outputs[0], np.concatenate([network.run([x[None]])[0] for x in SAMPLES]))
    ram = sequence.memory.ram
    assert (sequence.memory.arena.state_bytes, firmware.artifact.state_bytes) == (20, 20)
    assert ram.total == ram.workspace + ram.stack_reserved + ram.link + ram.fault_stack + ram.other


def test_a_preprocessor_of_audio_computes_the_host_s_features(built: Build) -> None:
    network = signal_networks.preprocessor()
    noise = np.random.default_rng(3).integers(-(2**15), 2**15, (6, 30))
    samples = (noise >> np.arange(0, 12, 2).reshape(6, 1)).astype(np.int16)
    report = built(network).run([samples], check_ownership=True)
    state = network.initial_state()
    wanted = [network.run([sample[None]], state=state)[0] for sample in samples]
    assert report.verdict is ferrule.Verdict.EXACT
    assert len({tuple(each) for each in wanted}) > 2
    assert_array_equal(report.outputs[0].reshape(6, 2), wanted)


def test_a_difference_is_located_in_a_firmware_with_the_same_states(
    built: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = state_networks.running_sum()
    firmware = built(network)
    begin = type(network).initial_state
    monkeypatch.setattr(type(network), "initial_state", lambda self: {"sum": begin(self)["sum"] * 2})
    report = firmware.run([SAMPLES[0]], locate=True)
    assert report.verdict is ferrule.Verdict.DIFFERENT
    assert (report.document.first_difference.layer, report.document.first_difference.tensor) == ("total", "total")


def test_models_in_a_shared_arena_have_states_of_their_own(zig: str, tmp_path: Path) -> None:
    networks = [state_networks.running_sum(), small_networks.dense(), state_networks.stream()]
    firmwares = ferrule.compile(networks, toolchain=zig, arena="shared", out=tmp_path / "project")
    first, plain, last = firmwares
    x = np.ones((1, 2), np.float32)
    with engine("unicorn").start(Machine(board=first.board, elf=first.elf)) as session:
        link = LinkSession(session.channel(), start_timeout_s=60.0)
        state = networks[0].initial_state(), {}, networks[2].initial_state()
        for step, model in enumerate((0, 2, 0, 2, 0)):
            link.choose_model(model)
            given = [x if model == 0 else x[None]]
            (found,) = link.run(given, reset=step < 2).outputs
            assert_array_equal(found, networks[model].run(given, state=state[model])[0])
        link.choose_model(1)
        with pytest.raises(FirmwareError, match="unknown flags"):
            link.run([np.zeros((1, 6), np.int8)], reset=True)
    assert plain.run().verdict is ferrule.Verdict.EXACT
    assert last.run(check_ownership=True).verdict is ferrule.Verdict.EXACT
    assert first.program.workspace_bytes > sum(each.artifact.state_bytes for each in firmwares) == 12 + 20


def test_a_state_that_is_not_valid_ends_the_run_until_a_reset(built: Build) -> None:
    firmware = built(state_networks.running_sum())
    word = firmware.image.address_of("ferrule_running_sum_default_state") + 8
    x = np.ones((1, 2), np.float32)
    with engine("unicorn").start(Machine(board=firmware.board, elf=firmware.elf)) as session:
        link = LinkSession(session.channel(), start_timeout_s=60.0)
        link.run([x], reset=True)
        session.memory().write(word, bytes(4))  # as a run leaves it that has not ended
        with pytest.raises(RunFailedError, match="STATE"):
            link.run([x])
        with pytest.raises(RunFailedError, match="STATE"):
            link.run([x])
        assert link.run([x], reset=True).outputs[0].tolist() == [[2, 0]]
        assert link.run([x]).outputs[0].tolist() == [[3, 1]]


def test_an_input_row_by_row_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"keeps 'past' from run to run, which an input row by row \(input_rows"):
        ferrule.generate(state_networks.stream(), board="mps2-an386", goal="memory", input_rows=True, out="/nowhere")


@pytest.mark.parametrize("platform", ["bare-metal", "cmsis", "zephyr"])
def test_the_first_run_of_a_project_begins_with_a_reset(platform: str, tmp_path: Path) -> None:
    """Every file of the project sees the link with resets, and a project without state the one without."""
    for network, has_state in ((state_networks.stream(), True), (small_networks.dense(), False)):
        folder = tmp_path / network.name
        ferrule.generate(network, board="mps2-an386", platform=platform, out=folder)
        own = [path for path in folder.rglob("*") if path.is_file() and "lib" not in path.relative_to(folder).parts]
        texts = {path.name: path.read_text() for path in own}
        main = texts["main.c"]
        assert ("ferrule_link_run_first(model, " in main, "model->run(" in main) == (has_state, not has_state)
        assert any("FERRULE_LINK_STATE" in text for text in texts.values()) is has_state
