/* SPDX-License-Identifier: Apache-2.0 */
/** @file Functions of both backends for layers: types, sizes, scales, refusals. */
#ifndef EXAMPLE_LAYER_H
#define EXAMPLE_LAYER_H

#include "ferrule/backend.h"

/** A real factor as multiplier * 2^(shift - 31). */
struct factor {
    int32_t multiplier;
    int32_t shift;
};

/** The lowest and highest stored value of an output that follows an activation. */
struct range {
    int32_t low;
    int32_t high;
};

/** @brief Write a reason in the manner of printf, and return the status. */
int32_t refuse(char *reason, size_t reason_bytes, int32_t status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** @brief Return the number of elements. */
size_t element_count(const struct ferrule_tensor *tensor);

/** @brief Return the input with the index, or null if it is absent. */
const struct ferrule_tensor *input_of(const struct ferrule_layer *layer, uint32_t index);

/** @brief Return the only scale; the tensor is quantised per tensor. */
double scale_of(const struct ferrule_tensor *tensor);

/** @brief Return the only zero point; the tensor is quantised per tensor. */
int32_t zero_point_of(const struct ferrule_tensor *tensor);

/** @brief Return a positive factor as a fixed-point number, as TensorFlow Lite rounds it. */
struct factor factor_of(double real);

/** @brief Return the range of stored values after an activation; the tensor is int8. */
struct range range_of(int32_t activation, const struct ferrule_tensor *tensor);

/** @brief Return the real limits of an activation, or those of float32 if it has none. */
void limits_of(int32_t activation, float *low, float *high);

/**
 * @brief Require a present tensor of a type, and quantisation per tensor if it is int8.
 *
 * @retval FERRULE_ERR_UNSUPPORTED with a reason that names the tensor
 */
int32_t require_tensor(const struct ferrule_tensor *tensor, const char *what, int32_t type,
                       char *reason, size_t reason_bytes);

/** @brief Require weights and an optional bias for data of a type; int8 weights are symmetric. */
int32_t require_weights(const struct ferrule_layer *layer, int32_t type, char *reason,
                        size_t reason_bytes);

#endif
