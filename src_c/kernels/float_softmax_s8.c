/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/fused.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/softmax.h"

/* Return steps * part / sum for part <= sum, halves to even; the quotient is exact, and rounding it
 * to float64 before would change no result. */
static int32_t share(float part, const struct ferrule_number *sum, int32_t steps)
{
    struct ferrule_number number = ferrule_number(part);
    int32_t shift = sum->exponent - number.exponent;

    if (shift > 36 || number.mantissa == 0) {
        return 0; /* far below a half */
    }
    int64_t divisor = (int64_t)sum->mantissa * ((int64_t)1 << shift) * 2;
    int64_t dividend = (int64_t)number.mantissa * steps * 2 + divisor / 2;
    int64_t result = dividend / divisor;

    return (int32_t)(result * divisor == dividend ? result & ~(int64_t)1 : result);
}

void ferrule_float_softmax_s8(const struct ferrule_float_softmax_params *params,
                              const int8_t *input, int8_t *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        int32_t maximum = input[0];
        float sum = 0.0f;

        for (int32_t i = 1; i < params->depth; ++i) {
            maximum = input[i] > maximum ? input[i] : maximum;
        }

        const float *exponentials = params->exponentials + (255 - maximum);

        for (int32_t i = 0; i < params->depth; ++i) {
            sum += exponentials[input[i]];
        }

        const struct ferrule_number total = ferrule_number(sum);

        for (int32_t i = 0; i < params->depth; ++i) {
            int32_t value = share(exponentials[input[i]], &total, params->steps);

            output[i] = (int8_t)ferrule_clamp(value + params->zero_point, INT8_MIN, INT8_MAX);
        }
        input += params->depth;
        output += params->depth;
    }
}
