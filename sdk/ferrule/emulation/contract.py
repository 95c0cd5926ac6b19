# SPDX-License-Identifier: Apache-2.0
"""The contract of a firmware's devices: the commands that its executors begin, and the memory that each may access.

It is checked in every run of an engine that can; docs/emulation.md describes the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.codegen import Artifact, Call, Program
from ferrule.devices import Range
from ferrule.devices.contract import Operand
from ferrule.emulation.crash import EngineError
from ferrule.emulation.ownership import FINISH, NEXT, OF_DEVICES, RAN, UNCHECKED, OwnershipPlan, owned_storage
from ferrule.firmware import Image

END, WAIT = "ferrule_held_end", "ferrule_platform_wait"


@frozen
class ContractStep:
    """A layer that a device runs."""

    layer: str
    index: int
    """Its number among the executor's layers."""
    devices: tuple[str, ...]
    """The device that runs it, or the members of its pool."""
    begun: bool
    """Whether it is only begun there, and collected later."""
    exclusive: bool
    """Whether only the device may write the outputs: its driver does not, nor does the core copy them."""
    operands: tuple[Operand, ...]

    @property
    def label(self) -> str:
        """The layer in words."""
        return f"layer '{self.layer}' (step {self.index})"


@frozen
class ModelContract:
    """The commands of one model."""

    runs: tuple[int, ...]
    """The addresses of the executor's functions, each of which is a run: without a deadline, and with one."""
    workspace: tuple[Range, ...]
    tensors: tuple[Operand, ...]
    """All tensors and scratch in the workspace, for messages."""
    steps: tuple[ContractStep | None, ...]
    """The layers in the order of execution; None for those of the core."""
    given: tuple[Operand, ...] = ()
    """The inputs and outputs that lie in the workspace, unless the caller passes pointers to its own memory."""
    pointers: tuple[int, int] = (0, 0)
    """The most pointers in the structs of inputs and outputs, the first two arguments of the executor's function."""


@frozen
class DeviceRules:
    """How a device accesses memory."""

    name: str
    tensor_alignment: int = 1
    transfer_alignment: int = 1
    handle: int = 0
    """The address of its handle; 0 if it is unknown."""
    interrupt: int | None = None
    """The interrupt that its driver uses; None if it uses none."""


@frozen
class ContractPlan:
    """What an engine needs to check the contract of a firmware's devices."""

    models: tuple[ModelContract, ...] = ()
    devices: tuple[DeviceRules, ...] = ()
    next: int = 0
    """The address of the function that announces layers, like those below."""
    ran: int = 0
    """0 if there is none, like those below."""
    finish: int = 0
    end: int = 0
    wait: int = 0
    """The platform's function that lets a thread wait for a device."""
    unchecked: str = ""
    """Why the contract cannot be checked; empty if it can, and if there is none."""


@frozen
class ContractCounts:
    """What a check without an error has covered."""

    commands: int
    """Commands of devices that have begun."""
    transfers: int
    """Transfers that were judged."""


def contract_plan(program: Program, image: Image) -> ContractPlan:
    """Return the plan of a firmware's devices; of one that cannot be checked, the reason."""
    if not program.devices:
        return ContractPlan()
    missing = [name for name in (NEXT, END) if not image.has(name)]
    if missing:
        return ContractPlan(unchecked=f"{image.path.name} has no symbol {missing[0]}")
    try:
        models = tuple(_model(artifact, image) for artifact in program.with_devices)
    except EngineError as error:
        return ContractPlan(unchecked=error.args[0].removeprefix(UNCHECKED))
    return ContractPlan(
        models=models,
        devices=tuple(
            DeviceRules(
                name=use.device.name,
                tensor_alignment=1 if use.has_memory else use.driver.tensor_alignment,
                transfer_alignment=use.driver.transfer_alignment,
                handle=image.find(f"{use.name}_device"),
                interrupt=use.driver.interrupt,
            )
            for use in program.devices
        ),
        next=image.address_of(NEXT),
        ran=image.find(RAN),
        finish=image.find(FINISH),
        end=image.address_of(END),
        wait=image.find(WAIT),
    )


def _model(artifact: Artifact, image: Image) -> ModelContract:
    owned = owned_storage(artifact, image)
    tensors = tuple(_operand(owned, name) for name in owned.numbers)
    begun, graph = artifact.ends, artifact.graph
    ports = {info.name for info in (*graph.sources, *graph.results)}
    return ModelContract(
        runs=tuple(each for each in (owned.run, owned.until) if each),
        workspace=owned.workspace,
        tensors=tensors,
        given=tuple(each for each in tensors if each.name in ports and not artifact.storage.is_tied(each.name)),
        pointers=(len(graph.sources), len(graph.results)),
        steps=tuple(_step(artifact, owned, index, begun=index in begun) for index in range(len(artifact.operators))),
    )


def _step(artifact: Artifact, owned: OwnershipPlan, index: int, *, begun: bool) -> ContractStep | None:
    record = artifact.operators[index]
    calls = {call.call for call in record.device_calls}
    if not calls & OF_DEVICES:
        return None
    use = next(each for each in artifact.devices if each.device.name == record.device)
    pool = [each.device.name for each in artifact.devices if each.name in use.pool]
    copied = any(not copy.inwards for copy in record.copies) or bool(calls & {Call.COPY_TO, Call.COPY_FROM})
    return ContractStep(
        layer=record.layer,
        index=index,
        devices=tuple(pool or [use.device.name]),
        begun=begun,
        exclusive=use.driver.depth > 1 and not use.has_memory and not copied,
        operands=tuple(_operands(artifact, owned, record.layer)),
    )


def _operands(artifact: Artifact, owned: OwnershipPlan, layer: str) -> Iterator[Operand]:
    found = artifact.graph.layer(layer)
    roles = (
        (found.present_inputs, True, False, False),
        (artifact.storage.scratches(layer), False, True, False),
        (found.outputs, False, True, True),
    )
    for names, is_input, writable, is_output in roles:
        for name in names:
            if name in owned.numbers:
                operand = _operand(owned, name)
                yield replace(operand, is_input=is_input, writable=writable, is_output=is_output)


def _operand(owned: OwnershipPlan, name: str) -> Operand:
    """Return a tensor, or a layer's scratch, in the workspace."""
    return Operand(name=name, address=owned.buffers[owned.numbers[name]].address, size_bytes=owned.sizes[name])
