# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers which combine tensors, such as ADD, BATCH_MATMUL and MAXIMUM."""

from __future__ import annotations

from ferrule.graph import LayerType, Quantization
from ferrule.network.builder import LayerBuilder, adding, row_of
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import ADD, MUL, SUB, BinaryDescriptor
from ferrule.operators.elementwise.comparison import LOGICAL_AND, LOGICAL_OR
from ferrule.operators.elementwise.division import DIV, FLOOR_DIV, FLOOR_MOD
from ferrule.operators.elementwise.functions_of_two import BITWISE_XOR, MAXIMUM, MINIMUM, ElementwiseBinaryDescriptor
from ferrule.operators.operator import Operator
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor


class ArithmeticLayers(LayerBuilder):
    """Methods that add arithmetic layers.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `quantization` is that of the output. `left` and `right` name tensors that broadcast by numpy's rules.
    If a layer is not valid, the method raises ModelError or UnsupportedError with the reason and adds nothing.
    """

    def _add_arithmetic(
        self,
        row: Operator,
        left: str,
        right: str,
        *,
        activation: Activation = Activation.NONE,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        descriptor = BinaryDescriptor(activation=activation)
        return self._append(descriptor, [left, right], name=name, row=row, quantization=quantization)[0]

    def _add_extremum(self, row: Operator, left: str, right: str, *, name: str | None = None) -> str:
        return self._append_like(left, row.descriptor(), right, name=name, row=row)

    def _add_pair(self, row: Operator, left: str, right: str, *, name: str | None = None) -> str:
        return self._append(row.descriptor(), [left, right], name=name, row=row)[0]

    add_add_layer = adding(ADD, _add_arithmetic, "Add ADD: left + right.")
    add_sub_layer = adding(SUB, _add_arithmetic, "Add SUB: left - right.")
    add_mul_layer = adding(MUL, _add_arithmetic, "Add MUL: left * right, element by element.")
    add_div_layer = adding(DIV, _add_arithmetic, "Add DIV: left / right; int32 is rounded towards zero.")
    add_maximum_layer = adding(
        MAXIMUM, _add_extremum, "Add MAXIMUM: the larger of two elements. The output has the quantisation of `left`."
    )
    add_minimum_layer = adding(
        MINIMUM, _add_extremum, "Add MINIMUM: the smaller of two elements. The output has the quantisation of `left`."
    )
    add_floor_div_layer = adding(FLOOR_DIV, _add_pair, "Add FLOOR_DIV: left / right, rounded down.")
    add_floor_mod_layer = adding(
        FLOOR_MOD, _add_pair, "Add FLOOR_MOD: the remainder of left / right, with the sign of `right`."
    )
    add_bitwise_xor_layer = adding(BITWISE_XOR, _add_pair, "Add BITWISE_XOR: the bits that differ, of int32.")
    add_logical_and_layer = adding(LOGICAL_AND, _add_pair, "Add LOGICAL_AND: whether both elements are true.")
    add_logical_or_layer = adding(LOGICAL_OR, _add_pair, "Add LOGICAL_OR: whether one element is true.")

    def add_elementwise_binary_layer(self, type_: LayerType, left: str, right: str, *, name: str | None = None) -> str:
        """Add a function of two tensors without parameters, such as BITWISE_XOR; ModelError lists the valid types."""
        row = row_of(type_, ElementwiseBinaryDescriptor, "an elementwise function of two tensors without parameters")
        return self._add_pair(row, left, right, name=name)

    def add_batch_matmul_layer(
        self,
        left: str,
        right: str,
        *,
        adj_x: bool = False,
        adj_y: bool = False,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add BATCH_MATMUL: the products of the matrices in the last two axes; the axes before them broadcast.

        With `adj_x`, the matrices of `left` are transposed; with `adj_y`, those of `right`.
        """
        descriptor = BatchMatmulDescriptor(adj_x=adj_x, adj_y=adj_y)
        return self._append(descriptor, [left, right], name=name, quantization=quantization)[0]
