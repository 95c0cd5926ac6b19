/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/exponential.h"

float ferrule_tanhf(float x)
{
    float magnitude = x < 0.0f ? -x : x;

    /* below 1e-4, x^2 / 3 is below a quarter of an ULP; zeros keep their sign */
    if (magnitude < 1e-4f || x != x) {
        return x;
    }

    /* above 9.1, 1 - tanh is below a quarter of an ULP */
    float result = magnitude > 9.1f ? 1.0f : ferrule_usual_tanh(magnitude);

    return x < 0.0f ? -result : result;
}
