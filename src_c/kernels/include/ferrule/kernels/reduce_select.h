/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Reductions that select an element, or its index. Any context; the kernels keep no state
 * between calls.
 */
#ifndef FERRULE_KERNELS_REDUCE_SELECT_H_INCLUDED
#define FERRULE_KERNELS_REDUCE_SELECT_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/reduce.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_reduce_select_params {
    struct ferrule_reduce_loops kept;
    struct ferrule_reduce_loops reduced;
};

/** The input is [outer, extent, inner], the output [outer, inner]. */
struct ferrule_arg_select_params {
    int32_t outer;
    int32_t extent;
    int32_t inner;
};

/** @brief The largest or the smallest element; of equal ones the first, no NaN, and an infinity
 * only if it is larger (or smaller) than all finite numbers. The output may share memory with the
 * input.
 */
void ferrule_reduce_max_s8(const struct ferrule_reduce_select_params *params, const int8_t *input,
                           int8_t *output);
void ferrule_reduce_min_s8(const struct ferrule_reduce_select_params *params, const int8_t *input,
                           int8_t *output);
void ferrule_reduce_max_f32(const struct ferrule_reduce_select_params *params, const float *input,
                            float *output);
void ferrule_reduce_min_f32(const struct ferrule_reduce_select_params *params, const float *input,
                            float *output);

/** @brief Whether any element, or all elements, are true; the output may share memory with the
 * input. */
void ferrule_reduce_any_bool(const struct ferrule_reduce_select_params *params, const bool *input,
                             bool *output);
void ferrule_reduce_all_bool(const struct ferrule_reduce_select_params *params, const bool *input,
                             bool *output);

/** @brief The index of the largest or the smallest element, of equal ones the first; a NaN only if
 * it is the first element. */
void ferrule_arg_max_s8(const struct ferrule_arg_select_params *params, const int8_t *input,
                        int32_t *output);
void ferrule_arg_min_s8(const struct ferrule_arg_select_params *params, const int8_t *input,
                        int32_t *output);
void ferrule_arg_max_f32(const struct ferrule_arg_select_params *params, const float *input,
                         int32_t *output);
void ferrule_arg_min_f32(const struct ferrule_arg_select_params *params, const float *input,
                         int32_t *output);

#ifdef __cplusplus
}
#endif

#endif
