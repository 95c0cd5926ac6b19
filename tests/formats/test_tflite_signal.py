# SPDX-License-Identifier: Apache-2.0
"""The options, parameters and hidden states of the signal library's operators in .tflite files."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from call_models import graph
from flatbuffer_tree import operator, table, tensor, write
from numpy.testing import assert_array_equal
from oracle import tflm_sequence
from signal_networks import preprocessor, signal_networks

from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats import load, to_tflite
from ferrule.formats.tflite import encoder
from ferrule.formats.tflite.flexbuffer import FlexValue, write_map
from ferrule.graph import Graph
from ferrule.network import Network

NETWORKS = {network.name: network for network in signal_networks()}
WITH_OPTIONS = [name for name in NETWORKS if "auto_scale" not in name and "square_root" not in name]
EXTREMES = (-(2**31), -1, 0, 2, 2**31 - 1, 2**40, True, 0.5, "2")


def keys_of(network: Network, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the options of the network's operator."""
    found: set[str] = set()

    def noted(values: dict[str, FlexValue]) -> bytes:
        found.update(values)
        return write_map(values)

    monkeypatch.setattr(encoder, "write_map", noted)
    to_tflite(network)
    return found


def changed(network: Graph, monkeypatch: pytest.MonkeyPatch, **values: FlexValue | None) -> bytes:
    """Return a file with other options; None removes one."""

    def with_changes(found: dict[str, FlexValue]) -> bytes:
        merged = {**found, **values}
        return write_map({key: value for key, value in merged.items() if value is not None})

    monkeypatch.setattr(encoder, "write_map", with_changes)
    return to_tflite(network)


def problem_of(data: bytes) -> str:
    """Return the error for a file; "" if there is none."""
    try:
        load(data, name="m").validate()
    except FerruleError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", NETWORKS)
def test_each_option_is_taken_or_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = NETWORKS[name]
    for key, value in itertools.product(sorted(keys_of(network, monkeypatch)), EXTREMES):
        problem = problem_of(changed(network, monkeypatch, **{key: value}))
        wanted = rf"operator 0 CUSTOM 'Signal.*({key}|expected)" if problem or not isinstance(value, int) else "^$"
        assert re.search(wanted, problem), (key, value, problem)


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_further_and_missing_options_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = NETWORKS[name]
    for change in ({"further": 1}, *({key: None} for key in sorted(keys_of(network, monkeypatch)))):
        with pytest.raises(ModelError, match=r"operator 0 CUSTOM 'Signal\w+' .*its custom options are "):
            load(changed(network, monkeypatch, **change), name="m")


@pytest.mark.parametrize(
    ("name", "key", "value", "text"),
    [
        ("signal_rfft_int16", "fft_length", 14, "its fft_length is 14, expected an even number from 4 to 32768"),
        ("signal_rfft_int16", "fft_length", 8, "its fft_length is 8, expected at least the 15 samples of 'x'"),
        ("signal_irfft_int16", "fft_length", 18, "its fft_length is 18, expected 16, the last extent of 'x' less 2"),
        ("signal_rfft_int16", "T", 2, "its option 'T' is 2, expected 7 for input 'x'"),
        ("signal_stacker_int16", "num_channels", 3, "its option 'num_channels' is 3, expected 4 for input 'x'"),
        ("signal_window_int16", "shift", 32, "its shift is 32, expected 0 to 31"),
        ("signal_framer_int16", "frame_step", 4, "its frame_step is 4, expected a divisor of the 6 samples"),
        ("signal_delay_int16", "delay_length", 2**31 - 1, "its delay_length is 2147483647, expected 0 to 1048576"),
        ("signal_filter_bank_uint32", "num_channels", 3, "its widths have 3 elements, expected num_channels + 1, 4"),
        ("signal_energy_int16", "end_index", 7, "its end_index is 7, expected 0 to 6"),
    ],
)
def test_what_is_refused(name: str, key: str, value: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((ModelError, UnsupportedError)) as caught:
        load(changed(NETWORKS[name], monkeypatch, **{key: value}), name="m")
    assert text in str(caught.value)
    assert "operator 0 CUSTOM 'Signal" in str(caught.value)


def test_hidden_states_are_added_and_left_out() -> None:
    network = preprocessor()
    data = to_tflite(network)
    again = load(data, name="preprocessor")
    (state,) = again.states
    assert (state.name, state.initial.tolist()) == (f"{again.layers[7].name}_noise", [0, 0])
    generator = np.random.default_rng(5)
    samples = [[generator.integers(-(2**15), 2**15, (1, 30)).astype(np.int16) >> run % 9] for run in range(20)]
    values = again.initial_state()
    found = [again.run(sample, state=values) for sample in samples]
    assert_array_equal(found, tflm_sequence(data, samples))
    assert any(output.any() for (output,) in found)


def test_a_state_of_its_own_is_not_hidden() -> None:
    network = Network("own")
    network.add_input(NETWORKS["signal_delay_int16"].inputs[0])
    result = network.add_signal_delay_layer("x", delay_length=4)
    network.set_outputs([result, network.states[0].result])
    with pytest.raises(UnsupportedError, match="keeps its own state, expected input 1 to be a state that"):
        to_tflite(network)


def test_a_hidden_state_in_a_branch_changes_when_the_branch_runs() -> None:
    import tflite

    delay = operator([0], [1], code=1)
    delay["CustomOptions"] = write_map({"delay_length": 3})
    branches = [
        graph("then", [tensor("x", (4,), "INT16"), tensor("y", (4,), "INT16")], [0], [1], delay),
        graph("else", [tensor("x", (4,), "INT16")], [0], [0]),
    ]
    calls = operator([0, 1], [2], table("IfOptions", ThenSubgraphIndex=1, ElseSubgraphIndex=2), code=0)
    tensors = [tensor("c", (1,), "BOOL"), tensor("x", (4,), "INT16"), tensor("y", (4,), "INT16")]
    codes = [
        table("OperatorCode", DeprecatedBuiltinCode=tflite.BuiltinOperator.IF, BuiltinCode=tflite.BuiltinOperator.IF),
        table("OperatorCode", DeprecatedBuiltinCode=32, BuiltinCode=32, CustomCode="SignalDelay"),
    ]
    main = graph("main", tensors, [0, 1], [2], calls)
    data = write(table("Model", Version=3, OperatorCodes=codes, Subgraphs=[main, *branches], Buffers=[table("Buffer")]))
    network = load(data, name="m")
    flags = [True, True, False, False, True, False, True]
    samples = [
        [np.array([flag]), np.arange(4 * run + 1, 4 * run + 5).astype(np.int16)] for run, flag in enumerate(flags)
    ]
    values = network.initial_state()
    found = [network.run(sample, state=values) for sample in samples]
    assert_array_equal(found, tflm_sequence(data, samples))
    assert found[4][0].tolist() == [6, 7, 8, 17]
