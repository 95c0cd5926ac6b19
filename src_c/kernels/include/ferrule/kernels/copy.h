/* SPDX-License-Identifier: Apache-2.0 */
/* Moves elements between tensors of any layout. Every function is reentrant; input and output must
 * not overlap. */
#ifndef FERRULE_KERNELS_COPY_H
#define FERRULE_KERNELS_COPY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_COPY_AXES 6

struct ferrule_copy_params {
    int32_t first;                             /* axis that is used: those before have extent 1 */
    int32_t extents[FERRULE_COPY_AXES];        /* outermost first, 1 where unused */
    int32_t input_strides[FERRULE_COPY_AXES];  /* may be negative */
    int32_t output_strides[FERRULE_COPY_AXES]; /* may be negative */
    int32_t input_offset;                      /* of the first element */
    int32_t output_offset;
    int32_t run; /* bytes contiguous in both tensors; only for ferrule_copy_runs */
};

struct ferrule_fill_params {
    int32_t count;  /* elements */
    uint32_t value; /* the element's bits in the low bytes */
};

/** @brief Copy a run of bytes at each index; strides and offsets are in bytes. */
void ferrule_copy_runs(const struct ferrule_copy_params *params, const void *input, void *output);

/** @brief Copy an 8-bit element at each index; strides and offsets are in elements. */
void ferrule_copy_8(const struct ferrule_copy_params *params, const void *input, void *output);

/** @brief Copy a 16-bit element at each index; strides and offsets are in elements. */
void ferrule_copy_16(const struct ferrule_copy_params *params, const void *input, void *output);

/** @brief Copy a 32-bit element at each index; strides and offsets are in elements. */
void ferrule_copy_32(const struct ferrule_copy_params *params, const void *input, void *output);

/** @brief Copy a 64-bit element at each index; strides and offsets are in elements. */
void ferrule_copy_64(const struct ferrule_copy_params *params, const void *input, void *output);

/** @brief Set 8-bit elements. */
void ferrule_fill_8(const struct ferrule_fill_params *params, void *output);

/** @brief Set 16-bit elements. */
void ferrule_fill_16(const struct ferrule_fill_params *params, void *output);

/** @brief Set 32-bit elements. */
void ferrule_fill_32(const struct ferrule_fill_params *params, void *output);

#ifdef __cplusplus
}
#endif

#endif
