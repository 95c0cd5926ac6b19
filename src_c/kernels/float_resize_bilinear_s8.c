/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/resize.h"
#include "ferrule/kernels/round_even.h"

/* The four pixels of one output pixel: upper left, upper right, lower left and lower right. */
struct corners {
    const int8_t *pixels[4];
    float weights[4];
};

static void store_pixel(const struct ferrule_float_resize_bilinear_params *params,
                        const struct corners *corners, int8_t *output)
{
    const int32_t zero_point = params->output_zero_point;
    const float low = (float)(INT8_MIN - zero_point);
    const float high = (float)(INT8_MAX - zero_point);

    for (int32_t c = 0; c < params->channels; ++c) {
        float sum = 0.0f;

        for (int32_t k = 0; k < 4; ++k) {
            float value = (float)(corners->pixels[k][c] - params->zero_point) * params->scale;

            sum += corners->weights[k] * value;
        }
        output[c] =
            (int8_t)(ferrule_round_even(sum / params->output_scale, low, high) + zero_point);
    }
}

void ferrule_float_resize_bilinear_s8(const struct ferrule_float_resize_bilinear_params *params,
                                      const int8_t *input, int8_t *output)
{
    const int32_t channels = params->channels;
    const int32_t row_elements = params->input_w * channels;

    for (int32_t b = 0; b < params->batches; ++b) {
        for (int32_t i = 0; i < params->output_h; ++i) {
            for (int32_t j = 0; j < params->output_w; ++j) {
                struct corners corners;

                for (int32_t k = 0; k < 4; ++k) {
                    const int32_t row = i + (k >> 1) * params->output_h;
                    const int32_t column = j + (k & 1) * params->output_w;

                    corners.pixels[k] = input + params->rows[row] * row_elements +
                                        params->columns[column] * channels;
                    corners.weights[k] = params->row_weights[row] * params->column_weights[column];
                }
                store_pixel(params, &corners, output);
                output += channels;
            }
        }
        input += params->input_h * row_elements;
    }
}
