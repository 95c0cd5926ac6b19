/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/store_sums.h"

/* Copies of the constants and limits stay in registers. */
#define STORE(store)                                                                               \
    do {                                                                                           \
        const int32_t constants[] = {scale[0], scale[1], scale[2], scale[3]};                      \
        const struct ferrule_output_s8 output_limits = *limits;                                    \
                                                                                                   \
        for (int32_t i = 0; i < count; ++i) {                                                      \
            *output = store(sums[i], constants, &output_limits, false);                            \
            output += step_bytes;                                                                  \
        }                                                                                          \
    } while (false)

void ferrule_store_sums_single(const int32_t *sums, int32_t count, const int32_t *scale,
                               int8_t *output, int32_t step_bytes,
                               const struct ferrule_output_s8 *limits)
{
    STORE(ferrule_store_plain_single);
}

void ferrule_store_sums_onnx(const int32_t *sums, int32_t count, const int32_t *scale,
                             int8_t *output, int32_t step_bytes,
                             const struct ferrule_output_s8 *limits)
{
    STORE(ferrule_store_plain_onnx);
}
