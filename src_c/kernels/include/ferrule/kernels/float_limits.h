/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Limits of results that were stored without them. Any context; the functions keep no state.
 */
#ifndef FERRULE_KERNELS_FLOAT_LIMITS_H_INCLUDED
#define FERRULE_KERNELS_FLOAT_LIMITS_H_INCLUDED

#include <stdint.h>

/**
 * @brief Clamp results, as `ferrule_clamp_f32` does.
 *
 * `total` is finite only if all of them are. For cores with an FPU.
 */
void ferrule_limit_f32(float *values, int32_t count, float low, float high, float total);

#endif
