# SPDX-License-Identifier: Apache-2.0
"""Flips of single bits in the weights of float32 firmwares: what a verdict finds of what they change."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from amounts import amount

import ferrule
from ferrule._frozen import frozen
from ferrule.firmware.identification import read_identities
from ferrule.formats import load
from ferrule.graph import Array, DataType, Graph, Shape, TensorInfo
from ferrule.network import Network
from ferrule.network.bounds import outside
from ferrule.network.execution import run_graph
from ferrule.network.samples import Sample, pattern_sample
from ferrule.operators.activation import Activation
from ferrule.report import Verdict
from ferrule.report.verdicts import Expected, judge
from ferrule.running import Firmware
from ferrule.running.own_code import OwnCode
from ferrule.running.references import References, bounded_references, has_own_flags
from ferrule.running.session import RunningFirmware

OWN = "own"
MODELS = ("ad01_fp32", "kws_ref_model_float32", "pretrainedResnet", "vww_96_float", OWN)
"""The float32 models of MLPerf Tiny, and a network of this module."""


@frozen
class Flip:
    """A bit of a weight."""

    tensor: str
    element: int
    bit: int


@frozen
class Found:
    """What a flip changed, and the verdicts on it."""

    flip: Flip
    beyond: bool
    """Whether numpy, with the flipped weight, computes an output outside its bound."""
    changed: bool
    """Whether a bit of the board's outputs changed."""
    verdict: Verdict
    """That of the bits."""
    by_bound: Verdict
    """The one if other code may have computed the outputs, of which only bounds are known."""

    @property
    def is_missed(self) -> bool:
        """Whether a verdict does not say what it has to."""
        wanted = Verdict.DIFFERENT if self.changed else Verdict.EXACT
        return self.verdict is not wanted or (self.beyond and self.verdict is not Verdict.DIFFERENT)


def own_network(*, first: float = 0.0) -> Network:
    """Return a network whose outputs have magnitudes from 1 to 1e8; `first` is added to its first weight."""
    generator = np.random.default_rng(7)

    def weights(*shape: int) -> Array:
        return generator.normal(0, 0.5, shape).astype(np.float32)

    network = Network(OWN)
    source = network.add_input(TensorInfo("x", (1, 8, 8, 2), DataType.FLOAT32))
    kernel = weights(4, 3, 3, 2)
    kernel[0, 0, 0, 0] += first
    hidden = network.add_conv2d_layer(source, kernel, weights(4), activation=Activation.RELU)
    hidden = network.add_depthwise_conv2d_layer(hidden, weights(1, 3, 3, 4), weights(4))
    dense = weights(5, 64)
    dense *= np.array([[1], [1e2], [1e4], [1e6], [1e8]], np.float32)
    flat = network.add_reshape_layer(network.add_max_pool2d_layer(hidden, (1, 1)), (1, 64))
    network.set_outputs([network.add_fully_connected_layer(flat, dense, weights(5), name="y")])
    return network


def network_of(name: str, folder: Path) -> Network:
    """Return a model by name; weights that are stored as int8 are converted to float32."""
    return own_network() if name == OWN else load(folder / f"{name}.tflite", dequantize_weights=True)


class Flips:
    """One model's firmware on an emulated board, whose weights can be flipped."""

    def __init__(self, network: Network, board: str, folder: Path, *, natively: bool = False) -> None:
        """Build the firmware; `natively` runs its C on this machine with the flipped weight, in place of the board."""
        self._natively = natively
        self._firmware: Firmware = ferrule.compile(network, board=board)
        self._elf = self._firmware.image.path.read_bytes()
        self._damaged = folder / "damaged.elf"
        self._sample: Sample = pattern_sample(network.inputs)
        (build,) = read_identities(self._firmware.image)
        assert has_own_flags(build)
        (self._expected,) = References(self._firmware, build).of([(self._sample, True)])
        (self._bounded,) = bounded_references(network, [(self._sample, True)])
        self._graph: Graph = self._firmware.optimized.graph
        self.places = dict(self._find())
        """By tensor, where the ELF file has its bytes."""
        self._whole = self._run()
        assert judge(self._whole, self._expected)[0] is Verdict.EXACT

    @property
    def weights(self) -> int:
        """The number of weights that may be flipped."""
        return sum(self._graph.info(name).elements for name in self.places)

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor of weights."""
        return self._graph.info(name).shape

    def draw(self, generator: np.random.Generator) -> Flip:
        """Draw a weight, each as likely as any other, and one of its 32 bits."""
        names = list(self.places)
        sizes = np.array([self._graph.info(name).elements for name in names])
        name = names[int(generator.choice(len(names), p=sizes / sizes.sum()))]
        element = int(generator.integers(self._graph.info(name).elements))
        return Flip(tensor=name, element=element, bit=int(generator.integers(32)))

    def judge(self, flip: Flip) -> Found:
        """Run the firmware with a flipped bit."""
        graph = self._flipped(flip)
        outputs = self._run_natively(graph) if self._natively else self._run_damaged(flip)
        with np.errstate(all="ignore"):
            truth = run_graph(graph, self._sample)
        pairs = zip(truth, self._bounded.bounded, strict=True)
        return Found(
            flip=flip,
            beyond=any(bool(outside(found, wanted).any()) for found, wanted in pairs),
            changed=any(one.tobytes() != other.tobytes() for one, other in zip(outputs, self._whole, strict=True)),
            verdict=judge(outputs, self._expected)[0],
            by_bound=judge(outputs, _of_other_code(self._bounded))[0],
        )

    def _run(self, elf: Path | None = None) -> list[Array]:
        image = self._firmware.image if elf is None else replace(self._firmware.image, path=elf)
        with RunningFirmware(replace(self._firmware, image=image)) as running:
            return running.run(self._sample, reset=True)

    def _run_damaged(self, flip: Flip) -> list[Array]:
        data = bytearray(self._elf)
        data[self.places[flip.tensor] + 4 * flip.element + flip.bit // 8] ^= 1 << flip.bit % 8
        self._damaged.write_bytes(data)
        return self._run(self._damaged)

    def _run_natively(self, graph: Graph) -> list[Array]:
        code = OwnCode(replace(self._firmware.optimized, graph=graph), self._firmware.job.backend_source())
        return code.run(self._sample, {})

    def _find(self) -> Iterator[tuple[str, int]]:
        """Yield where the file has the weights that it has as they are, and once."""
        for tensor in self._graph.tensors:
            if tensor.data is not None and tensor.data.dtype == np.float32 and tensor.data.size > 1:
                stored = tensor.data.tobytes()
                place = self._elf.find(stored)
                if place >= 0 and self._elf.find(stored, place + 1) < 0:
                    yield tensor.info.name, place

    def _flipped(self, flip: Flip) -> Graph:
        graph = Graph("flipped")
        for tensor in self._graph.tensors:
            if tensor.data is None:
                continue
            data = tensor.data.copy()
            if tensor.info.name == flip.tensor:
                data.reshape(-1).view(np.uint32)[flip.element] ^= np.uint32(1 << flip.bit)
            graph.add_constant(tensor.info, data)
        for info in self._graph.inputs:
            graph.add_input(info)
        for layer in self._graph.layers:
            graph.add_layer(layer, self._graph.output_infos(layer))
        graph.set_outputs([info.name for info in self._graph.outputs])
        return graph


def _of_other_code(expected: Expected) -> Expected:
    return replace(expected, own=None)


def main(description: str | None) -> int:
    """Run the campaign; the exit status is 1 if a verdict missed a flip."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=amount, default=1000, help="flips of all models together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("FERRULE_MODELS", ".")), help="the models")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--natively", action="store_true", help="run the C on this machine, in place of the board")
    given = parser.parse_args()
    missed = 0
    for name in given.models:
        with tempfile.TemporaryDirectory() as folder:
            flips = Flips(network_of(name, given.folder), given.board, Path(folder), natively=given.natively)
            generator = np.random.default_rng([given.seed, MODELS.index(name)])
            found = [flips.judge(flips.draw(generator)) for _ in range(-(-given.count // len(given.models)))]
        print(f"{name}, {flips.weights:,} weights: {summary(found)}", flush=True)
        for each in (each for each in found if each.is_missed):
            missed += 1
            print(f"missed: {each}")
    return int(missed > 0)


def summary(found: Sequence[Found]) -> str:
    """Return the counts in words."""
    beyond = [each for each in found if each.beyond]
    return (
        f"{len(found)} flips; {sum(each.changed for each in found)} change a bit of the outputs, "
        f"{_different(each.verdict for each in found)} are different; {len(beyond)} change an output by more "
        f"than its bound, {_different(each.verdict for each in beyond)} of them are different by bits, "
        f"{_different(each.by_bound for each in beyond)} by bounds alone; "
        f"{sum(each.is_missed for each in found)} missed"
    )


def _different(verdicts: Iterable[Verdict]) -> int:
    return sum(verdict is Verdict.DIFFERENT for verdict in verdicts)
