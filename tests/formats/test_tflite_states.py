# SPDX-License-Identifier: Apache-2.0
"""Variables of .tflite files become states of a network, and are written back."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffer_tree import Table, one_operator_model, operator, table, tensor, write
from numpy.testing import assert_array_equal
from oracle import tflm_sequence
from sample_networks import valid_samples
from vela_cases import vela_case

from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats import load, to_tflite
from ferrule.graph import Array, DataType, Quantization, TensorInfo
from ferrule.network import Network

_STEPS = [np.array([[step, 2 * step + 1]], np.int8) for step in range(5)]


def _info(name: str, zero_point: int = 3) -> TensorInfo:
    return TensorInfo(name, (1, 2), DataType.INT8, quantization=Quantization.of(0.5, zero_point))


def _network(first: Array, second: Array) -> Network:
    """Return y = (x + sum) * (x before); the states are the sum and the x before."""
    network = Network("stateful")
    network.add_input(_info("x"))
    network.add_state(_info("old"), first, name="sum")
    network.add_state(_info("before"), second)
    total = network.add_add_layer("x", "old", quantization=Quantization.of(0.5, 3), name="total")
    product = network.add_mul_layer(total, "before", quantization=Quantization.of(4.0, -7), name="y")
    network.set_state("sum", total)
    network.set_state("before", "x")
    network.set_outputs([product])
    return network


def _sequence(network: Network) -> list[list[Array]]:
    state = network.initial_state()
    return [network.run([x], state=state) for x in _STEPS]


@pytest.mark.parametrize("start", [3, 40])
def test_written_states_are_those_of_tflm_and_are_read_back(start: int) -> None:
    network = _network(np.full((1, 2), start, np.int8), np.full((1, 2), 3, np.int8))
    data = to_tflite(network)
    again = load(data, name="stateful")
    wanted = _sequence(network)
    assert_array_equal(_sequence(again), wanted)
    assert_array_equal(tflm_sequence(data, [[x] for x in _STEPS]), wanted)
    assert [(each.name, each.source, each.result) for each in again.states] == [
        ("sum", "old", "total"),
        ("before", "before", "x"),
    ]
    assert to_tflite(again) == data


# A model written by hand: y = RELU(variable), variable = x; `order` selects the operators.

_CODES = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "RELU")


def _operators() -> dict[str, Table]:
    handle = table("VarHandleOptions", SharedName="v")
    return {
        "handle": operator([], [0], handle, code=0),
        "read": operator([0], [2], table("ReadVariableOptions"), code=1),
        "assign": operator([0, 1], [], table("AssignVariableOptions"), code=2),
        "call": operator([], [], table("CallOnceOptions", InitSubgraphIndex=1), code=3),
        "relu": operator([2], [3], code=4),
    }


def _model(*order: str, **changes: Table) -> Table:
    import tflite

    shape = (1, 2)
    tensors = [tensor("v", (), "RESOURCE"), *(tensor(name, shape) for name in ("x", "old", "y"))]
    model = one_operator_model("RELU", tensors, [2], [3], graph_inputs=[1])
    model["OperatorCodes"] = [
        table("OperatorCode", DeprecatedBuiltinCode=min(code, 127), BuiltinCode=code)
        for code in (getattr(tflite.BuiltinOperator, name) for name in _CODES)
    ]
    operators = _operators() | changes
    model["Subgraphs"][0]["Operators"] = [operators[name] for name in order]
    return model


def _with_initialiser(model: Table, *order: str) -> Table:
    tensors = [tensor("v", (), "RESOURCE"), tensor("start", (1, 2), buffer=1)]
    model["Buffers"] = [table("Buffer"), table("Buffer", Data=np.float32([5, 6]).tobytes())]
    operators = [_operators()[name] for name in order]
    empty = np.array([], np.int32)
    model["Subgraphs"].append(table("SubGraph", Tensors=tensors, Inputs=empty, Outputs=empty, Operators=operators))
    return model


def _values(network: Network) -> list[float]:
    state = network.initial_state()
    return [float(network.run([np.full((1, 2), x, np.float32)], state=state)[0][0, 0]) for x in (1, 2, 3)]


def test_variable_that_is_read_before_it_is_assigned_is_a_state() -> None:
    network = load(write(_model("handle", "read", "assign", "relu")), name="m")
    assert _values(network) == [0, 1, 2]
    assert [layer.name for layer in network.layers] == ["relu_3"]


def test_variable_that_is_assigned_before_it_is_read_is_no_state() -> None:
    network = load(write(_model("handle", "assign", "read", "relu")), name="m")
    assert (_values(network), network.states) == ([1, 2, 3], ())


def test_initialiser_gives_the_first_value() -> None:
    model = _with_initialiser(_model("handle", "call", "read", "assign", "relu"), "handle", "assign")
    network = load(write(model), name="m")
    assert (_values(network), _values(network)) == ([5, 1, 2], [5, 1, 2])


@pytest.mark.parametrize(
    ("model", "kind", "text"),
    [
        (_model("read", "relu"), ModelError, "READ_VARIABLE -> tensor 'old': its input 0 is not the output of a VAR_H"),
        (_model("handle", "read", "relu", "call"), ModelError, "subgraph 1: it does not exist"),
        (
            _model("call", call=operator([], [], table("CallOnceOptions", InitSubgraphIndex=0), code=3)),
            UnsupportedError,
            "CALL_ONCE: subgraph 0: 'main' calls itself",
        ),
        (
            _with_initialiser(_model("handle", "read", "call", "relu"), "handle", "assign"),
            UnsupportedError,
            "it initialises variable 'v' after its first use",
        ),
        (_model("handle", "relu", handle=operator([], [0], code=0)), ModelError, "no options, expected VarHandleOpt"),
        (
            _model("handle", "read", "relu", read=operator([0], [2, 3], table("ReadVariableOptions"), code=1)),
            ModelError,
            "it has 2 outputs, expected 1",
        ),
    ],
)
def test_malformed_variables_are_refused(model: Table, kind: type[FerruleError], text: str) -> None:
    with pytest.raises(kind) as caught:
        load(write(model), name="m")
    assert text in str(caught.value)


def test_what_an_operator_keeps_is_read_by_it_alone() -> None:
    import tflite

    (network,) = (graph for graph in valid_samples() if graph.name == "svdf_float32")
    data = bytearray(to_tflite(network))
    subgraph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    names = [subgraph.Tensors(index).Name().decode() for index in range(subgraph.TensorsLength())]
    subgraph.OutputsAsNumpy()[0] = names.index("svdf_0_state")
    with pytest.raises(UnsupportedError, match="'svdf_0_state' is a variable that an operator keeps"):
        load(bytes(data), name="m")


@pytest.mark.parametrize("kind", ["lstm", "lstm16"])
def test_a_quantised_lstm_has_the_intermediates_that_compilers_read(kind: str) -> None:
    """Five tensors without elements; the last has the quantisation of the hidden state."""
    import tflite

    network = vela_case(kind, 0)
    model = to_tflite(network)
    graph = tflite.Model.GetRootAs(model, 0).Subgraphs(0)
    places = graph.Operators(0).IntermediatesAsNumpy()
    tensors = [graph.Tensors(place) for place in places]
    assert [tensor.ShapeAsNumpy().tolist() for tensor in tensors] == [[0]] * 5
    assert tensors[-1].Quantization().Scale(0) == np.float32(network.outputs[0].scale)
    assert [state.initial.tolist() for state in load(model).states] == [s.initial.tolist() for s in network.states]
