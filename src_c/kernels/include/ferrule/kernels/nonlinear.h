/* SPDX-License-Identifier: Apache-2.0 */
/* LOGISTIC, TANH and HARD_SWISH; for int8 they are tables (lookup.h). Every function is reentrant
 * and may write its output over its input. */
#ifndef FERRULE_KERNELS_NONLINEAR_H
#define FERRULE_KERNELS_NONLINEAR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_sigmoid_s16_params {
    const int16_t *table; /* about 65536 / (1 + exp(-i / 24)) - 32768: for LOGISTIC and TANH 513
                             values, i from -256 on; for LSTM 256 values, i from 0 on */
    int32_t multiplier;   /* at most 32767; with shift: brings the input to 1 / 12288 */
    int32_t shift;        /* to the right, 0 to 31 */
    int32_t elements;
};

struct ferrule_nonlinear_f32_params {
    int32_t elements;
};

/** @brief 1 / (1 + exp(-x)) of int16, zero points 0, output scale 2^-15. */
void ferrule_logistic_s16(const struct ferrule_sigmoid_s16_params *params, const int16_t *input,
                          int16_t *output);

/** @brief Hyperbolic tangent of int16, zero points 0, output scale 2^-15. */
void ferrule_tanh_s16(const struct ferrule_sigmoid_s16_params *params, const int16_t *input,
                      int16_t *output);

/** @brief 1 / (1 + exp(-x)) of float32. */
void ferrule_logistic_f32(const struct ferrule_nonlinear_f32_params *params, const float *input,
                          float *output);

/** @brief Hyperbolic tangent of float32. */
void ferrule_tanh_f32(const struct ferrule_nonlinear_f32_params *params, const float *input,
                      float *output);

/** @brief x * min(max(x + 3, 0), 6) / 6 of float32. */
void ferrule_hard_swish_f32(const struct ferrule_nonlinear_f32_params *params, const float *input,
                            float *output);

#ifdef __cplusplus
}
#endif

#endif
