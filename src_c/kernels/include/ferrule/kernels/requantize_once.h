/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Scaling of accumulators by fixed-point factors, rounded once, by the rules SINGLE and ONNX
 * of ferrule.graph.Rounding.
 *
 * A factor is multiplier * 2^(shift - 31) with 0 <= multiplier < 2^31 and a shift from -31 to 30.
 * All functions are pure. Their results are those of the rule, clamped to -255 to 255: what lies
 * beyond is clamped to int8 anyway, whatever the zero point. They may lie farther beyond, but below
 * 2^30 in magnitude.
 *
 * SINGLE rounds the product, halves up. ONNX rounds the value to float32, then its product with the
 * factor, a float32 number, then that to a whole number, halves to even. Up to 255, the first two
 * change the product by less than 2^-15. Both rules are therefore equal except near halves, where
 * the rule ONNX is computed step by step.
 */
#ifndef FERRULE_KERNELS_REQUANTIZE_ONCE_H_INCLUDED
#define FERRULE_KERNELS_REQUANTIZE_ONCE_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/high_product.h"
#include "ferrule/kernels/requantize.h"

/** @brief Scale by the rule SINGLE, with any factor. */
int32_t ferrule_requantize_single_any(int32_t value, int32_t multiplier, int32_t shift);
/** @brief Scale by the rule ONNX, step by step, with any factor that is a float32 number. */
int32_t ferrule_requantize_onnx_any(int32_t value, int32_t multiplier, int32_t shift);

/**
 * @brief Return how far from a half a product is computed step by step: at least 2^-15.
 *
 * Its unit is 2^-right, with `right` from 1 to 30.
 */
static inline int32_t ferrule_onnx_margin(int32_t right)
{
    return ((INT32_C(1) << right) >> 15) + 1;
}

/** @brief Return whether a product was near a half before a half and the margin were added. */
static inline bool ferrule_onnx_is_near_half(int32_t sum, int32_t right)
{
    return (sum & ((INT32_C(1) << right) - 1)) < 2 * ferrule_onnx_margin(right);
}

/** @brief Scale by the rule SINGLE. */
static inline int32_t ferrule_requantize_single(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t right = -1 - shift; /* of the upper half of the product */

    if (right < 1) {
        return ferrule_requantize_single_any(value, multiplier, shift);
    }
    return (ferrule_high_product_floor(value, multiplier) + (INT32_C(1) << (right - 1))) >> right;
}

/** @brief Scale by the rule ONNX; the factor is a float32 number. */
static inline int32_t ferrule_requantize_onnx(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t right = -1 - shift; /* of the upper half of the product */

    if (right > 0) {
        const int32_t rounding = (INT32_C(1) << (right - 1)) + ferrule_onnx_margin(right);
        const int32_t sum = ferrule_high_product_floor(value, multiplier) + rounding;

        if (!ferrule_onnx_is_near_half(sum, right)) {
            return sum >> right;
        }
    }
    return ferrule_requantize_onnx_any(value, multiplier, shift);
}

#endif
