/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file SELECT_V2: elements of one of two tensors, with broadcasting. Any context; the kernels keep
 * no state between calls. Strides are in elements.
 */
#ifndef FERRULE_KERNELS_SELECT_H_INCLUDED
#define FERRULE_KERNELS_SELECT_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_SELECT_AXES 5

struct ferrule_select_params {
    int32_t extents[FERRULE_SELECT_AXES]; /**< outermost first, 1 where unused */
    int32_t condition_strides[FERRULE_SELECT_AXES];
    int32_t first_strides[FERRULE_SELECT_AXES];  /**< of the elements where the condition is true */
    int32_t second_strides[FERRULE_SELECT_AXES]; /**< of the others */
};

/** @brief Select 8-bit elements. */
void ferrule_select_8(const struct ferrule_select_params *params, const void *condition,
                      const void *first, const void *second, void *output);

/** @brief Select 16-bit elements. */
void ferrule_select_16(const struct ferrule_select_params *params, const void *condition,
                       const void *first, const void *second, void *output);

/** @brief Select 32-bit elements. */
void ferrule_select_32(const struct ferrule_select_params *params, const void *condition,
                       const void *first, const void *second, void *output);

/** @brief Select 64-bit elements. */
void ferrule_select_64(const struct ferrule_select_params *params, const void *condition,
                       const void *first, const void *second, void *output);

#ifdef __cplusplus
}
#endif

#endif
