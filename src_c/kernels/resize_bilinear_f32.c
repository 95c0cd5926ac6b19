/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/resize.h"

void ferrule_resize_bilinear_f32(const struct ferrule_resize_bilinear_f32_params *params,
                                 const float *input, float *output)
{
    const int32_t channels = params->channels;
    const int32_t row_elements = params->input_w * channels;

    for (int32_t b = 0; b < params->batches; ++b) {
        for (int32_t i = 0; i < params->output_h; ++i) {
            const float below = params->row_weights[i];
            const float above = 1.0f - below;
            const float *upper = input + params->rows[i] * row_elements;
            const float *lower = below != 0.0f ? upper + row_elements : upper;

            for (int32_t j = 0; j < params->output_w; ++j) {
                const float right = params->column_weights[j];
                const float left = 1.0f - right;
                const int32_t first = params->columns[j] * channels;
                const int32_t second = right != 0.0f ? first + channels : first;

                for (int32_t c = 0; c < channels; ++c) {
                    const float top = upper[first + c] * left + upper[second + c] * right;
                    const float bottom = lower[first + c] * left + lower[second + c] * right;

                    *output++ = top * above + bottom * below;
                }
            }
        }
        input += params->input_h * row_elements;
    }
}
