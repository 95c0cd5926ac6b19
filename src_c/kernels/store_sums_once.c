/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/columns.h"

/* The scales have the zero point. */
#define STORE(sums, count, scale, output, step_bytes, limits, store, plain)                        \
    do {                                                                                           \
        const int32_t constants[] = {(scale)[0], (scale)[1], (scale)[2], (scale)[3]};              \
                                                                                                   \
        for (int32_t i = 0; i < (count); ++i) {                                                    \
            *(output) = store((sums)[i], constants, limits, plain);                                \
            (output) += (step_bytes);                                                              \
        }                                                                                          \
    } while (false)

void ferrule_store_sums_plain_single(const int32_t *sums, int32_t count, const int32_t *scale,
                                     int8_t *output, int32_t step_bytes)
{
    const struct ferrule_output_s8 limits = {0, INT8_MIN, INT8_MAX};

    STORE(sums, count, scale, output, step_bytes, &limits, ferrule_store_plain_single, true);
}

void ferrule_store_sums_single(const int32_t *sums, int32_t count, const int32_t *scale,
                               int8_t *output, int32_t step_bytes, int32_t low, int32_t high)
{
    const struct ferrule_output_s8 limits = {0, low, high};

    STORE(sums, count, scale, output, step_bytes, &limits, ferrule_store_plain_single, false);
}

void ferrule_store_sums_plain_onnx(const int32_t *sums, int32_t count, const int32_t *scale,
                                   int8_t *output, int32_t step_bytes)
{
    const struct ferrule_output_s8 limits = {0, INT8_MIN, INT8_MAX};

    STORE(sums, count, scale, output, step_bytes, &limits, ferrule_store_plain_onnx, true);
}

void ferrule_store_sums_onnx(const int32_t *sums, int32_t count, const int32_t *scale,
                             int8_t *output, int32_t step_bytes, int32_t low, int32_t high)
{
    const struct ferrule_output_s8 limits = {0, low, high};

    STORE(sums, count, scale, output, step_bytes, &limits, ferrule_store_plain_onnx, false);
}
