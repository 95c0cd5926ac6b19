/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/resize.h"

enum { SQUARE_BITS = 20, SQUARE = FERRULE_RESIZE_WHOLE * FERRULE_RESIZE_WHOLE };

_Static_assert(SQUARE == 1 << SQUARE_BITS, "sums have a fraction of 20 bits");

/* The four pixels of one output pixel: upper left, upper right, lower left and lower right. */
struct corners {
    const int8_t *pixels[4];
    int32_t weights[4];
};

/* Store channels of a pixel; each sum is rounded to a whole number, halves away from zero. */
static void store_pixel(const struct corners *corners, int32_t channels, int8_t *output)
{
    const int8_t *upper_left = corners->pixels[0];
    const int8_t *upper_right = corners->pixels[1];
    const int8_t *lower_left = corners->pixels[2];
    const int8_t *lower_right = corners->pixels[3];
    const int32_t *weights = corners->weights;

#if FERRULE_HAS_MVE
    __asm__ volatile("ldr r12, [%[weights]]\n\t"
                     "vdup.32 q4, r12\n\t"
                     "ldr r12, [%[weights], #4]\n\t"
                     "vdup.32 q5, r12\n\t"
                     "ldr r12, [%[weights], #8]\n\t"
                     "vdup.32 q6, r12\n\t"
                     "ldr r12, [%[weights], #12]\n\t"
                     "vdup.32 q7, r12\n\t"
                     "wlstp.32 lr, %[channels], 2f\n\t"
                     "1:\n\t"
                     "vldrb.s32 q0, [%[a]], #4\n\t"
                     "vldrb.s32 q1, [%[b]], #4\n\t"
                     "vldrb.s32 q2, [%[c]], #4\n\t"
                     "vldrb.s32 q3, [%[d]], #4\n\t"
                     "vmul.i32 q0, q0, q4\n\t"
                     "vmul.i32 q1, q1, q5\n\t"
                     "vmul.i32 q2, q2, q6\n\t"
                     "vmul.i32 q3, q3, q7\n\t"
                     "vadd.i32 q0, q0, q1\n\t"
                     "vadd.i32 q2, q2, q3\n\t"
                     "vadd.i32 q0, q0, q2\n\t"
                     "vshr.s32 q1, q0, #31\n\t"
                     "vadd.i32 q0, q0, q1\n\t"
                     "vrshr.s32 q0, q0, #20\n\t"
                     "vstrb.32 q0, [%[to]], #4\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [a] "+l"(upper_left), [b] "+l"(upper_right), [c] "+l"(lower_left),
                       [d] "+l"(lower_right), [to] "+l"(output)
                     : [channels] "r"(channels), [weights] "r"(weights)
                     : "r12", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory");
#else
    for (int32_t c = 0; c < channels; ++c) {
        const int32_t sum = upper_left[c] * weights[0] + upper_right[c] * weights[1] +
                            lower_left[c] * weights[2] + lower_right[c] * weights[3];

        output[c] = (int8_t)((sum - (int32_t)(sum < 0) + SQUARE / 2) >> SQUARE_BITS);
    }
#endif
}

void ferrule_resize_bilinear_s8(const struct ferrule_resize_bilinear_s8_params *params,
                                const int8_t *input, int8_t *output)
{
    const int32_t channels = params->channels;
    const int32_t row_elements = params->input_w * channels;

    for (int32_t b = 0; b < params->batches; ++b) {
        for (int32_t i = 0; i < params->output_h; ++i) {
            const int32_t below = params->row_weights[i];
            const int32_t above = FERRULE_RESIZE_WHOLE - below;
            const int8_t *upper = input + params->rows[i] * row_elements;
            const int8_t *lower = below != 0 ? upper + row_elements : upper;

            for (int32_t j = 0; j < params->output_w; ++j) {
                const int32_t right = params->column_weights[j];
                const int32_t left = FERRULE_RESIZE_WHOLE - right;
                const int32_t first = params->columns[j] * channels;
                const int32_t second = right != 0 ? first + channels : first;
                const struct corners corners = {
                    {upper + first, upper + second, lower + first, lower + second},
                    {above * left, above * right, below * left, below * right},
                };

                store_pixel(&corners, channels, output);
                output += channels;
            }
        }
        input += params->input_h * row_elements;
    }
}
