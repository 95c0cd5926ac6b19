/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/resize.h"

enum { SQUARE = FERRULE_RESIZE_WHOLE * FERRULE_RESIZE_WHOLE };

/* The four pixels of one output pixel: upper left, upper right, lower left and lower right. */
struct corners {
    const int8_t *pixels[4];
    int32_t weights[4];
};

static void store_pixel(const struct corners *corners, int32_t channels, int8_t *output)
{
    for (int32_t c = 0; c < channels; ++c) {
        int32_t sum = 0;

        for (int32_t k = 0; k < 4; ++k) {
            sum += corners->pixels[k][c] * corners->weights[k];
        }
        output[c] = (int8_t)((sum > 0 ? sum + SQUARE / 2 : sum - SQUARE / 2) / SQUARE);
    }
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
