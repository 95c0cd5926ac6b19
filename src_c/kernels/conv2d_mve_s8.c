/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d_mve.h"

static void convolve(const struct ferrule_conv2d_mve_s8_params *params, const int8_t *input,
                     int8_t *output, void *scratch)
{
    const struct ferrule_view *view = &params->image.view;
    const int32_t output_h = params->image.window.output_h;
    const int32_t row_bytes = ferrule_mve_row_bytes(&params->image);
    struct ferrule_mve_batch batch = {.count = 0};
    int32_t count;

    while ((count = ferrule_mve_collect(&params->image, input, &batch, scratch)) != 0) {
        int32_t number = batch.row / output_h; /* of the image */
        int32_t place = number * view->image + (batch.row - number * output_h) * view->row +
                        batch.column * view->column + batch.group * view->group_output;

        ferrule_mve_store_apart(
            &params->weights, params->weights.stream + batch.group * params->weights.words, scratch,
            row_bytes, NULL, output + place, params->image.apart * view->column, count);
    }
}

void ferrule_conv2d_mve_s8(const struct ferrule_conv2d_mve_s8_params *params, const int8_t *input,
                           int8_t *output, void *scratch)
{
    bool more = true;

    for (; more; ++params) {
        convolve(params, input, output + params->image.view.first, scratch);
        more = params->image.view.more != 0;
    }
}
