# SPDX-License-Identifier: Apache-2.0
"""Quantises a float model by the user's data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.budget import begun
from ferrule.codegen.digest import digest
from ferrule.errors import FerruleError
from ferrule.evaluation.data import DataSet, DataSettings
from ferrule.evaluation.data.stored import stored
from ferrule.evaluation.evaluate import evaluated
from ferrule.evaluation.losses import COMPARED, layer_losses
from ferrule.evaluation.request import EvaluationRequest
from ferrule.formats import ModelFile, to_tflite
from ferrule.graph import Array, Graph
from ferrule.interface import name_of
from ferrule.network import Network
from ferrule.operators.elementwise.quantize import CONVERSIONS
from ferrule.progress import Progress, say_nothing
from ferrule.quantization.choice import Choice, Equalise
from ferrule.quantization.form import FloatForm
from ferrule.quantization.library import check_installed
from ferrule.quantization.own import is_float
from ferrule.quantization.precision import SCHEMES, Keep, Precision, carried_over, precisions, rewritten
from ferrule.quantization.ranges import AUTO, Range, parse_rules
from ferrule.quantization.unrolling import unrolled
from ferrule.report.base import part_of
from ferrule.report.document import ModelPart
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.quantization_document import FloatLayerPart, QuantizationDocument
from ferrule.report.surroundings import environment
from ferrule.running import RunRequest
from ferrule.running.networks import network_of


@frozen
class QuantizedModel(QuantizationDocument):
    """The results of a quantisation: what its JSON has, by the same names, and the model in integers."""

    network: Network = field(repr=False)
    float_network: Network = field(repr=False)
    """The float model as it was quantised, whose tensors have the same names."""
    observed: Mapping[str, Range] = field(repr=False)
    """The range of each float tensor, by name."""

    @property
    @override
    def document(self) -> QuantizationDocument:
        """The quantisation without the networks."""
        return part_of(QuantizationDocument, self)

    @property
    def tflite(self) -> bytes:
        """The model as a TensorFlow Lite file."""
        return to_tflite(self.network)

    __repr__ = QuantizationDocument.__repr__


@begun()
def quantize(
    model: Network | ModelFile,
    data: str | Sequence[str] | DataSet,
    labels: str | None = None,
    *,
    scheme: str = "int8",
    io: str | None = None,
    ranges: str = AUTO,
    equalise: str = "auto",
    keep: Sequence[str] = (),
    settings: DataSettings | None = None,
    limit: int | None = None,
    seed: int = 0,
    compared: int = COMPARED,
    progress: Progress = say_nothing,
) -> QuantizedModel:
    """Return a float32 model with activations in integers and weights in int8, per channel, and what it loses.

    `data` has the samples, as for `evaluate`: real values as the model was trained with. With `labels`, or those of an
    open data set, both models are evaluated on them, too. With `limit`, that many are drawn with `seed`. `scheme` is
    "int8" or "int16", the type of activations. `io` is the type of the model's inputs and outputs: the scheme's, the
    default, or "float". `ranges` says how the range of a tensor follows from its values in all samples: "minmax", "mse"
    (the least mean squared error), "percentile" or "percentile=99.9"; by "auto", the model is quantised by several of
    them, and the one with the least noise at the outputs is returned. `equalise` says whether channels between layers
    are multiplied by powers of two, so that their sizes differ less: "on", "off", or "auto", the default, for int8 if
    the noise is less then. Each of `keep` is NAME or NAME=PRECISION: layers,
    or kinds of layers, that stay in "float", or have another precision than the scheme. Losses are measured on
    `compared` samples, the first of the data.

    Raises:
        InputError: the data cannot be read, does not fit the model, or gives values that are not finite.
        FerruleError: the model is quantised already, an option is wrong, or the library refuses the model.
        UnsupportedError: the model cannot be expressed in TensorFlow Lite.
        MissingToolError: the package ai-edge-quantizer is not installed.
    """
    wanted, outside, rules = _scheme(scheme), _io(io, scheme), parse_rules(ranges, _scheme(scheme))
    equal = Equalise.parse(equalise, wanted)
    if compared < 0:
        raise FerruleError(f"{name_of('compared')} is {compared}, expected a number from 0 on")
    check_installed()
    network = network_of(model)
    plain = unrolled(network)
    given = precisions(plain, wanted, [Keep.parse(text) for text in keep])
    form = FloatForm.of(plain)
    asked = EvaluationRequest(data=data, labels=labels, settings=settings, limit=limit, seed=seed, compared=0)
    samples = asked.opened(form.normal)
    own = carried_over(form.simple, rewritten(plain, given, form.simple), form.normal)
    done = Choice(form, own, outside, samples, progress).best(rules, equal)
    form, integers, result = done.form, done.network, done.form.with_own_outputs(done.network)
    count = min(compared, len(samples))
    pairs = zip(*(_each(each, count) for each in (samples, stored(samples, integers))), strict=True)
    losses, _ = layer_losses(integers, form.normal, form.names, pairs, count, progress)
    return QuantizedModel(
        ferrule_version=VERSION,
        model=ModelPart(name=network.name, digest=digest(network), macs=network.macs()),
        data=samples.part,
        scheme=wanted,
        io=outside,
        ranges=str(done.rule),
        tried=done.tried,
        equalisation=done.equalisation,
        keep=tuple(keep),
        layers=len(result.layers),
        float_bytes=_constant_bytes(network),
        integer_bytes=_constant_bytes(result),
        floats=tuple(_float_layers(integers, form.names, done.reasons)),
        compared=count,
        losses=losses,
        evaluation=None if samples.labels is None else _evaluation(result, form.normal, samples, asked, progress),
        environment=environment(),
        network=result,
        float_network=form.normal,
        observed=done.ranges,
    )


def _each(data: DataSet, count: int) -> Iterator[Sequence[Array]]:
    return (data.take([index]).inputs for index in range(count))


def _evaluation(
    network: Network, float_network: Network, samples: DataSet, asked: EvaluationRequest, progress: Progress
) -> EvaluationDocument:
    """Return the metrics of both models on samples with labels."""
    request = replace(asked, float_model=float_network, run=RunRequest(progress=progress))
    if isinstance(asked.data, DataSet):
        request = replace(request, data=stored(samples, network))
    return evaluated(network, request).document


def _scheme(text: str) -> Precision:
    if text not in SCHEMES:
        raise FerruleError(f"{name_of('scheme')} is '{text}', expected {' or '.join(SCHEMES)}")
    return Precision(text)


def _io(text: str | None, scheme: str) -> Precision:
    if text not in {None, scheme, Precision.FLOAT}:
        raise FerruleError(f"{name_of('io')} is '{text}', expected {scheme}, as the scheme, or {Precision.FLOAT}")
    return Precision(scheme if text is None else text)


def _constant_bytes(graph: Graph) -> int:
    return sum(tensor.data.nbytes for tensor in graph.tensors if tensor.data is not None)


def _float_layers(network: Network, names: Mapping[str, str], reasons: Mapping[str, str]) -> Iterator[FloatLayerPart]:
    """Yield the layers that compute in float32, by their names in the float model, which `names` has by tensor."""
    for layer in network.layers:
        tensor = layer.outputs[0]
        if layer.type not in CONVERSIONS and is_float(network, layer):
            name = names.get(tensor, layer.name)
            yield FloatLayerPart(name=name, type=str(layer.type), reason=reasons.get(tensor, ""))
