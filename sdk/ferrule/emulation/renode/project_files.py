# SPDX-License-Identifier: Apache-2.0
"""Files that run a generated project with Renode alone: platform description (.repl), script (.resc), Robot test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.codegen import Artifact, Program
from ferrule.emulation.renode.script import EMULATION_COMMANDS, load_commands
from ferrule.errors import FerruleError
from ferrule.firmware import DEFAULT_PLATFORM
from ferrule.firmware.project import BUILD_FOLDER
from ferrule.graph import Array
from ferrule.graph.tensor import little_endian
from ferrule.interface import option
from ferrule.link import DEFAULT_BAUD
from ferrule.link.frame import Frame
from ferrule.link.protocol import (
    MAX_PAYLOAD_BYTES,
    PROTOCOL_VERSION,
    RESET,
    RESPONSE,
    WRITE_HEADER_BYTES,
    MessageType,
    request,
)
from ferrule.network import Network
from ferrule.network.samples import pattern_sample
from ferrule.reading import read_bytes
from ferrule.scratch import write_file, writing

SCRIPT_NAME, TEST_NAME = "ferrule.resc", "ferrule.robot"
MOST_INPUT_BYTES = 4096
"""Limit on the input in the test; a larger one would make the test thousands of lines long."""
RUN_TIMEOUT_S = 600
"""Limit for one inference, in seconds of virtual time."""
_ROW_BYTES = 16
_DIGEST_CHARACTERS = 8
"""Enough to distinguish models, and few enough that a COBS block ends within them only for very long names."""


@frozen
class _Exchange:
    """Bytes sent to the firmware, and bytes that its answer must contain."""

    sent: bytes
    awaited: bytes


def check_renode(program: Program, platform: str, folder: Path) -> None:
    """Check, before anything is written, that Renode alone can run a project, and that the folder can be written.

    Raises:
        FerruleError: the project is for an RTOS, it has devices, whose models are in Python, or the folder is a file.
    """
    above = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise FerruleError(f"{folder}: {above} is not a folder that can be written")
    if platform != DEFAULT_PLATFORM:
        raise FerruleError(f"files for Renode are made for the platform {DEFAULT_PLATFORM}, not for {platform}")
    modelled = [use.name for use in program.devices]
    if modelled:
        raise FerruleError(
            f"the models of devices ({', '.join(modelled)}) are in Python: Renode alone does not have them",
            hint=f"run it with {option('engine', 'renode')}, or generate it without these backends",
        )


def emit_renode(networks: Sequence[Network], program: Program, board: Board, project: Path, folder: Path) -> list[Path]:
    """Write the files for a project into a folder and return their paths; existing files of these names are replaced.

    The test checks the firmware's identity, for each of its models. For integer models with small inputs it also
    compares every output of one inference, byte by byte, with the numpy reference.
    """
    elf = os.path.relpath(project / BUILD_FOLDER / "firmware.elf", folder)
    files = {
        SCRIPT_NAME: "\n".join(_script(board, Path(elf).as_posix())) + "\n",
        TEST_NAME: "\n".join(_test(networks, program, board)) + "\n",
    }
    platforms = {board.path_for_renode(file): read_bytes(file) for file in board.files if file.suffix == ".repl"}
    contents = platforms | {name: text.encode() for name, text in files.items()}
    with writing(folder):
        for name, data in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_file(folder / name, data)
    return [folder / name for name in contents]


def _script(board: Board, elf: str) -> Iterator[str]:
    yield f":name: {board.name} with a firmware of Ferrule"
    yield f":description: Runs {elf} on {board.title}."
    yield ""
    yield from EMULATION_COMMANDS
    yield "path add $ORIGIN"
    yield from load_commands(board, f"$ORIGIN/{board.path_for_renode(board.platform).as_posix()}", f"$ORIGIN/{elf}")
    yield ""
    yield "# A host can talk to the firmware here: ferrule run ... --engine serial --port socket://localhost:3456"
    yield f"# (the link is on {board.link_uart.name}; a real board would run at {DEFAULT_BAUD} baud)."
    yield '# emulation CreateServerSocketTerminal 3456 "link" false'
    yield f"# connector Connect sysbus.{board.link_uart.name} link"


def _test(networks: Sequence[Network], program: Program, board: Board) -> Iterator[str]:
    uart = f"sysbus.{board.link_uart.name}"
    yield "*** Comments ***"
    yield f"Run it with Renode's own test runner: renode-test {TEST_NAME}"
    yield "Frames are those of the link between host and firmware: COBS between zero bytes, with a CRC-32."
    yield ""
    yield "*** Keywords ***"
    yield "Boot"
    yield f"    Execute Script              ${{CURDIR}}/{SCRIPT_NAME}"
    yield f"    Create Terminal Tester      {uart}  binaryMode=true"
    yield "    Start Emulation"
    yield ""
    yield "Send"
    yield "    [Arguments]                 @{bytes}"
    yield "    FOR  ${byte}  IN  @{bytes}"
    yield f"        Execute Command         {uart} WriteChar 0x${{byte}}"
    yield "    END"
    yield ""
    yield "*** Test Cases ***"
    for index, (network, artifact) in enumerate(zip(networks, program.artifacts, strict=True)):
        which = "" if program.single else f" {index}"
        known = _identity(artifact, index)
        yield f"The Firmware Has The Model{which}"
        yield "    Boot"
        yield from _steps(known)
        samples = pattern_sample(network.inputs)
        integers = all(np.issubdtype(info.dtype.numpy, np.integer) for info in network.outputs)
        if integers and sum(sample.nbytes for sample in samples) <= MOST_INPUT_BYTES:
            yield ""
            yield f"One Inference Is Bit-Exact{which and f' With The Model{which}'}"
            yield "    Boot"
            yield from _steps([*known, *_inference(network, samples, len(known) + 1)])
        if artifact is not program.artifacts[-1]:
            yield ""


def _steps(exchanges: Sequence[_Exchange]) -> Iterator[str]:
    for exchange in exchanges:
        rows = [exchange.sent[at : at + _ROW_BYTES] for at in range(0, len(exchange.sent), _ROW_BYTES)]
        for number, row in enumerate(rows):
            yield f"    {'Send' if number == 0 else '...':<28}{row.hex('|').replace('|', '  ')}"
        yield f"    Wait For Bytes On Uart      {exchange.awaited.hex(' ')}  timeout={RUN_TIMEOUT_S}"


def _identity(artifact: Artifact, index: int) -> list[_Exchange]:
    """Exchange hello, choose the model and query it; its digest is text in the answer, which COBS leaves unchanged."""
    asked = [(MessageType.HELLO, b"")]
    if index > 0:
        asked.append((MessageType.CHOOSE_MODEL, request(MessageType.CHOOSE_MODEL, index)))
    begun = [
        _Exchange(sent=_frame(kind, number, payload), awaited=_header(kind | RESPONSE, number))
        for number, (kind, payload) in enumerate(asked, start=1)
    ]
    sent = _frame(MessageType.MODEL_INFO, len(begun) + 1)
    return [*begun, _Exchange(sent=sent, awaited=artifact.digest[:_DIGEST_CHARACTERS].encode())]


def _inference(network: Network, inputs: Sequence[Array], sequence: int) -> Iterator[_Exchange]:
    """Write the inputs, run the model from its initial state and read the outputs, as numpy computes them.

    The first request has this sequence number.
    """
    step = MAX_PAYLOAD_BYTES - WRITE_HEADER_BYTES
    for index, array in enumerate(inputs):
        data = little_endian(array)
        for offset in range(0, len(data), step):
            payload = request(MessageType.WRITE_INPUT, index, offset) + data[offset : offset + step]
            yield _answered(MessageType.WRITE_INPUT, sequence, payload, b"")
            sequence += 1
    flags = RESET if network.states else 0
    started = _frame(MessageType.RUN, sequence, request(MessageType.RUN, flags))
    yield _Exchange(sent=started, awaited=_header(MessageType.RUN | RESPONSE, sequence))
    for index, array in enumerate(network.run(inputs)):
        data = little_endian(array)
        for offset in range(0, len(data), MAX_PAYLOAD_BYTES):
            sequence += 1
            piece = data[offset : offset + MAX_PAYLOAD_BYTES]
            asked = request(MessageType.READ_OUTPUT, index, offset, len(piece))
            yield _answered(MessageType.READ_OUTPUT, sequence, asked, piece)


def _answered(kind: MessageType, sequence: int, payload: bytes, answer: bytes) -> _Exchange:
    return _Exchange(sent=_frame(kind, sequence, payload), awaited=_frame(kind | RESPONSE, sequence, answer))


def _frame(kind: int, sequence: int, payload: bytes = b"") -> bytes:
    return Frame(version=PROTOCOL_VERSION, type=kind, sequence=sequence, payload=payload).encode()


def _header(kind: int, sequence: int) -> bytes:
    """Return a frame's header, which COBS leaves unchanged if the sequence number is 1 to 254."""
    return bytes([PROTOCOL_VERSION, kind, sequence])
