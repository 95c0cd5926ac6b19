/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ADD_N: sums of two or more tensors. Any context; the kernels keep no state between calls.
 */
#ifndef FERRULE_KERNELS_ADD_N_H_INCLUDED
#define FERRULE_KERNELS_ADD_N_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/binary.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_add_n_f32_params {
    int32_t elements;
};

struct ferrule_add_n_s8_params {
    int32_t zero_point; /**< of the inputs */
    struct ferrule_result result;
    int32_t elements;
};

/** @brief Add two float32 to 0; the output may share memory with both inputs. */
void ferrule_add_n_f32(const struct ferrule_add_n_f32_params *params, const float *first,
                       const float *second, float *output);

/** @brief Start sums of int16 with the first int8 input. */
void ferrule_add_n_first_s8(const struct ferrule_add_n_s8_params *params, const int8_t *input,
                            void *sums);

/** @brief Add a further int8 input to the sums. */
void ferrule_add_n_next_s8(const struct ferrule_add_n_s8_params *params, const int8_t *input,
                           void *sums);

/** @brief Add the last int8 input to the sums and store the results, over the input if need be. */
void ferrule_add_n_last_s8(const struct ferrule_add_n_s8_params *params, const int8_t *input,
                           const void *sums, int8_t *output);

#ifdef __cplusplus
}
#endif

#endif
