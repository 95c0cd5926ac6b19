/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Comparisons and logical operators of two tensors with broadcasting. Any context; the
 * kernels keep no state between calls.
 *
 * The output of a logical operator may share memory with an input of the same shape.
 */
#ifndef FERRULE_KERNELS_COMPARE_H_INCLUDED
#define FERRULE_KERNELS_COMPARE_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/binary.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_COMPARE_SHIFT 8 /* fractional bits of int8 values before they are scaled */

/** Comparisons of int8. */
struct ferrule_compare_params {
    struct ferrule_broadcast shape;
    struct ferrule_term first;
    struct ferrule_term second;
};

/** @brief Return whether two values are equal, of float32. */
void ferrule_equal_f32(const struct ferrule_broadcast *shape, const float *first,
                       const float *second, bool *output);
/** @brief Return whether two values are equal, of int8. */
void ferrule_equal_s8(const struct ferrule_compare_params *params, const int8_t *first,
                      const int8_t *second, bool *output);
/** @brief Return whether two values are equal, of int32. */
void ferrule_equal_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                       const int32_t *second, bool *output);
/** @brief Return whether two values are equal, of int64. */
void ferrule_equal_s64(const struct ferrule_broadcast *shape, const int64_t *first,
                       const int64_t *second, bool *output);
/** @brief Return whether two values are equal, of bool. */
void ferrule_equal_bool(const struct ferrule_broadcast *shape, const bool *first,
                        const bool *second, bool *output);
/** @brief Return whether two values differ, of float32. */
void ferrule_not_equal_f32(const struct ferrule_broadcast *shape, const float *first,
                           const float *second, bool *output);
/** @brief Return whether two values differ, of int8. */
void ferrule_not_equal_s8(const struct ferrule_compare_params *params, const int8_t *first,
                          const int8_t *second, bool *output);
/** @brief Return whether two values differ, of int32. */
void ferrule_not_equal_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                           const int32_t *second, bool *output);
/** @brief Return whether two values differ, of int64. */
void ferrule_not_equal_s64(const struct ferrule_broadcast *shape, const int64_t *first,
                           const int64_t *second, bool *output);
/** @brief Return whether two values differ, of bool. */
void ferrule_not_equal_bool(const struct ferrule_broadcast *shape, const bool *first,
                            const bool *second, bool *output);
/** @brief Return whether the first value is below the second, of float32. */
void ferrule_less_f32(const struct ferrule_broadcast *shape, const float *first,
                      const float *second, bool *output);
/** @brief Return whether the first value is below the second, of int8. */
void ferrule_less_s8(const struct ferrule_compare_params *params, const int8_t *first,
                     const int8_t *second, bool *output);
/** @brief Return whether the first value is below the second, of int32. */
void ferrule_less_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                      const int32_t *second, bool *output);
/** @brief Return whether the first value is below the second, of int64. */
void ferrule_less_s64(const struct ferrule_broadcast *shape, const int64_t *first,
                      const int64_t *second, bool *output);
/** @brief Return whether the first value is at most the second, of float32. */
void ferrule_less_equal_f32(const struct ferrule_broadcast *shape, const float *first,
                            const float *second, bool *output);
/** @brief Return whether the first value is at most the second, of int8. */
void ferrule_less_equal_s8(const struct ferrule_compare_params *params, const int8_t *first,
                           const int8_t *second, bool *output);
/** @brief Return whether the first value is at most the second, of int32. */
void ferrule_less_equal_s32(const struct ferrule_broadcast *shape, const int32_t *first,
                            const int32_t *second, bool *output);
/** @brief Return whether the first value is at most the second, of int64. */
void ferrule_less_equal_s64(const struct ferrule_broadcast *shape, const int64_t *first,
                            const int64_t *second, bool *output);
/** @brief Return whether both values are true. */
void ferrule_logical_and_bool(const struct ferrule_broadcast *shape, const bool *first,
                              const bool *second, bool *output);
/** @brief Return whether one of two values is true. */
void ferrule_logical_or_bool(const struct ferrule_broadcast *shape, const bool *first,
                             const bool *second, bool *output);

#ifdef __cplusplus
}
#endif

#endif
