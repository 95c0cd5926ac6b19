# SPDX-License-Identifier: Apache-2.0
"""The speed of the unicorn engine: instructions counted or not, SysTick off and on, time in cycles.

The firmware repeats an int8 dot product of 4096 elements (tests/emulation/firmware/dot_product.c), built by
arm-none-eabi-gcc. SysTick interrupts it a thousand times per second of the board's clock. Times are CPU times of the
process, on one core. Run it from a checkout: python benchmarks/emulation_speed.py [board ...]

With --model, it runs inferences of a model with random inputs instead: with time in instructions, with time in cycles
and each wait for data measured, and with time in cycles and waits that inferences repeat, as a run does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import numpy as np
from guest import build_guest

import ferrule
from ferrule.boards import load_board
from ferrule.emulation import Clock, Machine
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.session import UnicornSession
from ferrule.emulation.unicorn.timing import Timing
from ferrule.firmware import read_image
from ferrule.running import RunRequest
from ferrule.running.session import RunningFirmware
from ferrule.timing import BoardTiming, CacheTiming, DataWaits, MemoryTiming

BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
REPEATS = 5
TICKS_PER_S = 1000
TIMEOUT_S = 600
CACHE = CacheTiming(sets=1, ways=64, line_bytes=16)
WAITING = MemoryTiming(wait_states=5, width_bytes=16, prefetch=True, instruction_cache=CACHE, data_cache=CACHE)
"""The waits of the code's memory on a board with waits, on which the engine sees each access to memory."""


def counted(machine: Machine) -> tuple[int, float]:
    """Run until the result arrives; return the number of instructions and the time in seconds."""
    with UnicornSession(machine) as session:
        start = time.process_time()
        if len(session.channel().read(4, TIMEOUT_S)) != 4:
            raise SystemExit(str(session.crash_report("no result")))
        seconds = time.process_time() - start
        return session.counters().instructions or 0, seconds


def uncounted(machine: Machine) -> float:
    """Run the same part without the counting hook; return the time in seconds."""
    add_hook = Guest._add_hook  # noqa: SLF001 (the product has no option to omit it)

    def add_others(self: Guest, kind: int, function: str) -> None:
        if function != "ferrule_guest_on_block":
            add_hook(self, kind, function)

    with patch.object(Guest, "_add_hook", add_others):
        session = UnicornSession(machine)
    guest = session._guest  # noqa: SLF001
    guest.engine.ctl_set_exits([read_image(machine.elf).address_of("put_result")])
    start = time.process_time()
    guest.engine.emu_start(guest.register("pc") | 1, 0)
    return time.process_time() - start


def with_count_of(rounds: Sequence[tuple[tuple[int, float], float, tuple[int, float]]]) -> float:
    """Return the shortest time in seconds with counting."""
    return min(seconds for (_, seconds), _, _ in rounds)


def speed(instructions: int, seconds: float) -> str:
    """Return the rate as text."""
    return f"{instructions / seconds / 1e6:.0f} million/s"


def inferences(firmware: ferrule.Firmware, clock: Clock, number: int) -> tuple[float, list[int], dict[str, int]]:
    """Run a model with random inputs; return the seconds, the times, and where their waits for data come from."""
    random = np.random.default_rng(0)
    inputs = firmware.network.inputs
    samples = [[random.integers(-128, 128, each.shape).astype(np.int8) for each in inputs] for _ in range(number)]
    with RunningFirmware(firmware, RunRequest(engine="unicorn", clock=clock)) as running:
        took, start = [], time.process_time()
        for sample in samples:
            running.run(sample)
            took.append(0 if running.took is None else running.took.total)
        seconds = time.process_time() - start
        return seconds, took, {each.value: running.data_waits[each] for each in DataWaits}


def compare_inferences(model: str, boards: Sequence[str], number: int) -> None:
    """Print the processor time of inferences with each clock."""
    for board in boards:
        firmware = ferrule.compile(ferrule.load(model), board=board)
        plain, _, _ = inferences(firmware, Clock.INSTRUCTIONS, number)
        with patch.object(Timing, "repeat"):
            measured, exact, _ = inferences(firmware, Clock.CYCLES, number)
        repeated, cycles, origins = inferences(firmware, Clock.CYCLES, number)
        said = ", ".join(f"{count} {what}" for what, count in origins.items())
        differs = max(abs(one - other) / one for one, other in zip(exact, cycles, strict=True))
        print(
            f"{board}: {number} inferences, {1e3 * plain / number:.1f} ms of processor time each; "
            f"{measured / plain:.1f} times with time in cycles and each wait measured, {repeated / plain:.1f} times as "
            f"a run does it ({said}), whose cycles differ by at most {1e6 * differs:.1f} ppm"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", nargs="*", default=BOARDS, metavar="board")
    parser.add_argument("--model", help="an int8 model, to run inferences of it")
    parser.add_argument("--inferences", type=int, default=20)
    options = parser.parse_args()
    if options.model is not None:
        compare_inferences(options.model, options.boards, options.inferences)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in options.boards:
            board = load_board(name)
            tick = f"-DTICK={board.clock_hz // TICKS_PER_S}"
            plain = build_guest("arm-none-eabi-gcc", "dot_product", board, Path(folder) / f"{name}.elf")
            ticking = build_guest(
                "arm-none-eabi-gcc", "dot_product", board, Path(folder) / f"{name}_tick.elf", flags=[tick]
            )
            timed = replace(plain, clock=Clock.CYCLES)
            waits = BoardTiming(source="this benchmark", memories={board.placement.code: WAITING})
            waiting = replace(timed, board=replace(board, timing=waits))
            rounds = [(counted(plain), uncounted(plain), counted(ticking)) for _ in range(REPEATS)]
            # in pairs, since other programs slow all of them down now and then
            pairs = [(counted(plain)[1], counted(timed)[1]) for _ in range(REPEATS)]
            in_cycles = min(seconds for _, seconds in pairs) / min(seconds for seconds, _ in pairs)
            with_waits = counted(waiting)[1] / with_count_of(rounds)
            instructions, ticking_instructions = rounds[0][0][0], rounds[0][2][0]
            with_count = with_count_of(rounds)
            without = min(seconds for _, seconds, _ in rounds)
            with_ticks = min(seconds for _, _, (_, seconds) in rounds)
            ratio = with_ticks / ticking_instructions / (with_count / instructions)
            print(
                f"{name}: {instructions:,} instructions, {speed(instructions, with_count)} counted, "
                f"{speed(instructions, without)} without counting, "
                f"{speed(ticking_instructions, with_ticks)} counted with SysTick on, {ratio:.2f} times the time per "
                f"instruction; {in_cycles:.2f} times with time in cycles, {with_waits:.1f} with memories that wait "
                f"(best of {REPEATS})"
            )


if __name__ == "__main__":
    main()
