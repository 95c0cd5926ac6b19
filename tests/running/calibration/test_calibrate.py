# SPDX-License-Identifier: Apache-2.0
"""Calibrations over a serial port, of emulated boards whose timing is hidden from the fit."""

from __future__ import annotations

import os
import pty
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import small_networks
from board_port import board_at_terminal
from gate import some_of
from needs import require_module

import ferrule
import ferrule.link
from ferrule.boards import Board, load_board
from ferrule.emulation import Clock, EngineError, EngineOptions, Machine, engine
from ferrule.emulation.unicorn import session as unicorn_session
from ferrule.emulation.unicorn.session import UnicornSession
from ferrule.errors import FerruleError
from ferrule.interface import command_line
from ferrule.link import CounterSource, LinkSession
from ferrule.network.samples import pattern_sample
from ferrule.running.calibration import Calibration, CalibrationRequest, calibrate, calibration_firmware, measurement
from ferrule.running.calibration import calibration as calibrating
from ferrule.running.session import linked_machine
from ferrule.timing import BoardTiming, CacheTiming, CoreTiming, MemoryTiming, core_timing

pytestmark = [pytest.mark.cc, pytest.mark.emu]

NAME = "mps2-an386"
BOARD = load_board(NAME)
CODE, DATA = BOARD.placement.code, BOARD.placement.data
CACHED = MemoryTiming(
    wait_states=5,
    width_bytes=16,
    prefetch=True,
    instruction_cache=CacheTiming(sets=1, ways=64, line_bytes=16),
    data_cache=CacheTiming(sets=1, ways=8, line_bytes=16),
)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> ferrule.Firmware:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    return calibration_firmware(ferrule.Job(board=NAME, out=tmp_path_factory.mktemp("calibration") / "project"))


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> ferrule.Firmware:
    """A firmware with layers that no fit has seen."""
    generator = np.random.default_rng(7)
    network = ferrule.Network("held out")
    network.add_input(small_networks.int8_input("x", 1, 16, 16, 4))
    scale, weights = small_networks.SCALE, ferrule.Quantization.of(0.03)
    convolution = partial(network.add_conv2d_layer, weights_quantization=weights, quantization=scale)
    for name, source, shape in (("first", "x", (12, 3, 3, 4)), ("second", "first", (20, 1, 1, 12))):
        convolution(source, generator.integers(-127, 128, shape, dtype=np.int8), name=name, padding="same")
    network.add_mul_layer("second", "second", quantization=scale, name="square")
    network.add_logistic_layer("square", name="squashed")
    network.add_mean_layer("squashed", (1, 2), quantization=scale, name="mean")
    network.set_outputs(["mean"])
    return ferrule.compile(network, board=NAME, out=tmp_path_factory.mktemp("held_out") / "project")


def with_timing(code: MemoryTiming, data: MemoryTiming | None = None) -> Board:
    """Return the board with the timing of the memory of code and weights, and of that of data."""
    memories: Mapping[str, MemoryTiming] = {CODE: code, DATA: data or MemoryTiming()}
    return replace(BOARD, timing=BoardTiming(source="hidden", memories=memories))


def calibrated(firmware: ferrule.Firmware, hidden: Board) -> Calibration:
    """Return the calibration of a board over its serial port."""
    with board_at_terminal(hidden, firmware.elf, clock=Clock.CYCLES) as port:
        return calibrate(firmware, CalibrationRequest(options=EngineOptions(port=port), repeats=2))


def cycles(firmware: ferrule.Firmware, timing: BoardTiming | None) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return what the layers of a firmware take, and then the whole."""
    machine = linked_machine(firmware, {})
    machine = replace(machine, clock=Clock.CYCLES, board=replace(machine.board, timing=timing))
    with engine("unicorn").start(machine) as session:
        link, sample = LinkSession(session.channel()), pattern_sample(firmware.network.inputs)
        counters = link.run(sample, profile=True).counters
        return np.array([*counters, link.run(sample).total], float)


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (MemoryTiming(), MemoryTiming()),
        (MemoryTiming(wait_states=2), MemoryTiming(write_wait_states=1)),
        pytest.param(
            MemoryTiming(wait_states=4, width_bytes=8), MemoryTiming(wait_states=1), marks=pytest.mark.nightly
        ),
        pytest.param(CACHED, MemoryTiming(), marks=pytest.mark.nightly),
    ],
)
def test_a_hidden_timing_is_found(
    firmware: ferrule.Firmware, held_out: ferrule.Firmware, code: MemoryTiming, data: MemoryTiming
) -> None:
    hidden = with_timing(code, data)
    found = calibrated(firmware, hidden)
    assert (found.timing.memories[CODE], found.timing.memories[DATA]) == (code, data)
    assert found.timing.source.startswith("calibrated on 20")
    assert found.timing.residual is not None
    assert max(map(abs, found.timing.residual)) < 0.005
    ratios = cycles(held_out, found.timing) / cycles(held_out, hidden.timing)
    assert np.abs(ratios - 1).max() < 0.03


Effect = Callable[[pytest.MonkeyPatch], None]
"""Gives the boards of other threads than the main one an effect that no timing states."""


def longer_refill(monkeypatch: pytest.MonkeyPatch) -> None:
    """The board's flash needs two more cycles after each taken branch, as one whose prefetch has to begin anew."""

    def other(core: str) -> CoreTiming | None:
        timing = core_timing(core)
        if timing is None or threading.current_thread() is threading.main_thread():
            return timing
        later = ("refill_direct", "refill_link", "refill_indirect", "refill_load")
        return replace(timing, **{name: getattr(timing, name) + 2 for name in later})

    monkeypatch.setattr(unicorn_session, "core_timing", other)


def refresh_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code and data lie in one DRAM; every 195 cycles (7.8 us at 25 MHz) the core waits 12 for a refresh."""
    start = UnicornSession.__init__

    def refreshed(session: UnicornSession, machine: Machine) -> None:
        start(session, machine)
        if threading.current_thread() is threading.main_thread():
            return
        processor = session._processor

        def refresh() -> None:
            processor.contend(12)
            timer.set(processor.now + 195 - 12)

        timer = processor.timer(refresh)
        timer.set(195)

    monkeypatch.setattr(UnicornSession, "__init__", refreshed)


@pytest.mark.parametrize("effect", some_of([longer_refill, refresh_stalls], [refresh_stalls]))
def test_an_effect_that_the_model_lacks_is_in_the_residual(
    firmware: ferrule.Firmware, held_out: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch, effect: Effect
) -> None:
    effect(monkeypatch)
    hidden = with_timing(MemoryTiming(wait_states=1))
    found = calibrated(firmware, hidden)
    low, high = found.timing.residual or (0.0, 0.0)
    assert low < -0.05
    measured: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
    thread = threading.Thread(target=lambda: measured.append(cycles(held_out, hidden.timing)))
    thread.start()
    thread.join()
    errors = cycles(held_out, found.timing) / measured[0] - 1
    assert np.abs(errors).max() > 0.005
    assert low <= errors.min()
    assert errors.max() <= high


def test_the_engine_itself_is_calibrated(firmware: ferrule.Firmware) -> None:
    found = calibrate(firmware, CalibrationRequest(engine="unicorn", repeats=1))
    assert found.errors
    assert not found.unexplained
    assert found.groups.keys() == found.measured.keys() == found.predicted.keys() == found.errors.keys()


def test_boards_that_cannot_be_calibrated(
    firmware: ferrule.Firmware, held_out: ferrule.Firmware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FerruleError, match=r"board mps3-an547 cannot be calibrated: .* have no model"):
        calibration_firmware(ferrule.Job(board="mps3-an547", out=tmp_path / "never"))
    with pytest.raises(FerruleError, match="which engine qemu does not count"):
        calibrate(firmware, CalibrationRequest(engine="qemu"))
    with pytest.raises(FerruleError, match="needs the board's port"):
        calibrate(firmware)
    with pytest.raises(FerruleError, match="this firmware is for `ferrule calibrate`"):
        firmware.run()
    with (
        board_at_terminal(BOARD, held_out.elf) as port,
        pytest.raises(FerruleError, match="is not the one of this calibration"),
    ):
        calibrate(firmware, CalibrationRequest(options=EngineOptions(port=port)))
    monkeypatch.setattr(calibrating, "LinkSession", partial(LinkSession, timeout_s=0.05, retries=1))
    master, slave = pty.openpty()
    try:
        with pytest.raises(EngineError, match="did not answer HELLO") as caught:
            calibrate(firmware, CalibrationRequest(options=EngineOptions(port=os.ttyname(slave)), timeout_s=0.1))
    finally:
        os.close(master)
        os.close(slave)
    with command_line():
        assert "the firmware that --keep has written" in (caught.value.hint or "")
    assert "the firmware that calibration_firmware has written" in (caught.value.hint or "")


def test_a_board_without_a_counter(firmware: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinkSession, "model_info", lambda link: replace(known(link), counter=CounterSource.NONE))
    with pytest.raises(FerruleError, match="has no counter"):
        calibrate(firmware, CalibrationRequest(engine="unicorn"))


known = LinkSession.model_info


def test_a_count_that_cannot_be(firmware: ferrule.Firmware) -> None:
    programs = measurement.Programs.of(firmware)
    with pytest.raises(ferrule.link.LinkError, match="it cannot have run"):
        measurement._plausible(dict.fromkeys(programs.groups, 1), programs.groups)
