/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Conversion of the sums of a channel to stored int8 values.
 */
#ifndef FERRULE_KERNELS_STORE_SUMS_H_INCLUDED
#define FERRULE_KERNELS_STORE_SUMS_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/multiply.h"
#include "ferrule/kernels/requantize_dsp.h"

/** Store the values of `count` sums of a channel, a positive number, `step_bytes` apart. */
typedef void ferrule_store_sums_of(const int32_t *sums, int32_t count, const int32_t *scale,
                                   int8_t *output, int32_t step_bytes,
                                   const struct ferrule_output_s8 *limits);

/** @brief For outputs with ferrule_is_plain(), for those with ferrule_is_whole_s8(), and for any;
 * `scale` has FERRULE_PLAIN_SCALE_WORDS. */
void ferrule_store_sums_plain(const int32_t *sums, int32_t count, const int32_t *scale,
                              int8_t *output, int32_t step_bytes,
                              const struct ferrule_output_s8 *limits);
void ferrule_store_sums_whole(const int32_t *sums, int32_t count, const int32_t *scale,
                              int8_t *output, int32_t step_bytes,
                              const struct ferrule_output_s8 *limits);
void ferrule_store_sums(const int32_t *sums, int32_t count, const int32_t *scale, int8_t *output,
                        int32_t step_bytes, const struct ferrule_output_s8 *limits);

/** @brief The same by the rules SINGLE and ONNX, for any outputs. */
void ferrule_store_sums_single(const int32_t *sums, int32_t count, const int32_t *scale,
                               int8_t *output, int32_t step_bytes,
                               const struct ferrule_output_s8 *limits);
void ferrule_store_sums_onnx(const int32_t *sums, int32_t count, const int32_t *scale,
                             int8_t *output, int32_t step_bytes,
                             const struct ferrule_output_s8 *limits);

/** @brief For sums times 256 that began with the bias and constants in the proved form of
 * requantize_dsp.h. The multiplier's highest bit, which it ignores, tells those who multiply that
 * the sums are times 128. */
void ferrule_store_sums_proved(const int32_t *sums, int32_t count, const int32_t *scale,
                               int8_t *output, int32_t step_bytes,
                               const struct ferrule_output_s8 *limits);

#endif
