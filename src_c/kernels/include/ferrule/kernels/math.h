/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of float32 in float32 arithmetic, and one of double, without libm. Every function is
 * reentrant and raises no errors. The error bounds hold with and without fused multiply-add; the
 * unit is the spacing of float32 at the exact result. */
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

/** @brief e to the power of x, less 1, for x <= 0: NaN for NaN, -1 below -17.5, zeros keep their
 * sign; the error is below 1.02 ULP (at most 1.010 over all of float32). */
float ferrule_expm1f(float x);

/** @brief Natural logarithm: NaN for NaN and negative numbers, minus infinity for zeros; the error
 * is below 1 ULP (at most 0.835 in [0.5, 2], and for every third of all numbers). */
float ferrule_logf(float x);

/** @brief Square root, rounded correctly: NaN for NaN and negative numbers, zeros keep their sign.
 */
float ferrule_sqrtf(float x);

/** @brief Sine of any finite number: NaN for NaN and infinities, zeros keep their sign; the error
 * is below 1 ULP (at most 0.824 for every fourth of all numbers). */
float ferrule_sinf(float x);

/** @brief Cosine of any finite number: NaN for NaN and infinities; the error is below 1 ULP (at
 * most 0.829 for every fourth of all numbers). */
float ferrule_cosf(float x);

/** @brief e to the power of x, in double: NaN for NaN, infinity above 709.79, 0 below -745.14; the
 * error is below 1 ULP of double, for normal results. */
double ferrule_exp(double x);

/** @brief The exact remainder of x / y with the sign of x: NaN for NaN, for an infinite x and if y
 * is zero. */
float ferrule_fmodf(float x, float y);

#ifdef __cplusplus
}
#endif

#endif
