/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one int8, tabulated. Every function is reentrant and may write its output over its
 * input if the elements have the same size. */
#ifndef FERRULE_KERNELS_LOOKUP_H
#define FERRULE_KERNELS_LOOKUP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_lookup_s8_params {
    const int8_t *table; /* 256 results, indexed by the input as uint8 */
    int32_t elements;
};

struct ferrule_lookup_s8_s16_params {
    const int16_t *table; /* 256 results, indexed by the input as uint8 */
    int32_t elements;
};

struct ferrule_lookup_s8_s32_params {
    const int32_t *table; /* 256 results, indexed by the input as uint8 */
    int32_t elements;
};

/** @brief output[i] = table[(uint8_t)input[i]], int8 to int8. */
void ferrule_lookup_s8(const struct ferrule_lookup_s8_params *params, const int8_t *input,
                       int8_t *output);

/** @brief output[i] = table[(uint8_t)input[i]], int8 to int16. */
void ferrule_lookup_s8_s16(const struct ferrule_lookup_s8_s16_params *params, const int8_t *input,
                           int16_t *output);

/** @brief output[i] = table[(uint8_t)input[i]], int8 to int32. */
void ferrule_lookup_s8_s32(const struct ferrule_lookup_s8_s32_params *params, const int8_t *input,
                           int32_t *output);

#ifdef __cplusplus
}
#endif

#endif
