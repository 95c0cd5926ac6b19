/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of float32 in float32 arithmetic, without libm. Every function is reentrant and raises
 * no errors. The error bounds hold with and without fused multiply-add; the unit is the spacing of
 * float32 at the exact result. */
#ifndef FERRULE_KERNELS_MATH_H
#define FERRULE_KERNELS_MATH_H

#ifdef __cplusplus
extern "C" {
#endif

/** @brief e to the power of x: NaN for NaN, infinity above 88.72, 0 below -103.98; the error is
 * below 1 ULP (at most 0.920 over all of float32). */
float ferrule_expf(float x);

/** @brief Hyperbolic tangent: NaN for NaN, zeros keep their sign; the error is below 1.5 ULP (at
 * most 1.325 over all of float32). */
float ferrule_tanhf(float x);

#ifdef __cplusplus
}
#endif

#endif
