/* SPDX-License-Identifier: Apache-2.0 */
/* Template, included once per instruction set: loops that compilers vectorise. */

FERRULE_TARGET void
FERRULE_NAMED(ferrule_host_sum_s8)(const struct ferrule_host_sum_s8_params *params,
                                   const int8_t *first, const int8_t *second, int8_t *output)
{
    const struct ferrule_host_sum_s8_params sum = *params;

    for (int32_t i = 0; i < sum.elements; ++i) {
        int32_t value = (first[i] * sum.first + second[i] * sum.second + sum.offset) >> sum.shift;

        output[i] = (int8_t)ferrule_clamp(value, sum.low, sum.high);
    }
}

/* The part of a window inside the image. */
struct inside {
    const int8_t *corner;
    int32_t rows;
    int32_t columns;
};

static struct inside inside_of(const struct ferrule_window *window, const int8_t *image,
                               int32_t row, int32_t column)
{
    int32_t y = row * window->stride_h - window->pad_top;
    int32_t x = column * window->stride_w - window->pad_left;
    struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
    struct ferrule_taps columns = ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);
    struct inside inside = {image + ((y + rows.first) * window->input_w + x + columns.first) *
                                        window->input_c,
                            rows.end - rows.first, columns.end - columns.first};

    return inside;
}

/* The quotient is rounded to nearest, halves away from zero. */
FERRULE_TARGET static void store_mean(const struct ferrule_pool2d_params *params,
                                      const struct inside *inside, int32_t *sums, int8_t *output)
{
    int32_t channels = params->window.input_c;
    int32_t count = inside->rows * inside->columns;

    for (int32_t c = 0; c < channels; ++c) {
        sums[c] = 0;
    }
    for (int32_t i = 0; i < inside->rows; ++i) {
        const int8_t *pixel = inside->corner + i * params->window.input_w * channels;

        for (int32_t j = 0; j < inside->columns; ++j) {
            for (int32_t c = 0; c < channels; ++c) {
                sums[c] += pixel[c];
            }
            pixel += channels;
        }
    }
    for (int32_t c = 0; c < channels; ++c) {
        int32_t mean = (sums[c] > 0 ? sums[c] + count / 2 : sums[c] - count / 2) / count;

        output[c] = (int8_t)ferrule_clamp(mean, params->low, params->high);
    }
}

FERRULE_TARGET static void store_maximum(const struct ferrule_pool2d_params *params,
                                         const struct inside *inside, int8_t *output)
{
    int32_t channels = params->window.input_c;
    int8_t low = (int8_t)params->low;
    int8_t high = (int8_t)params->high;

    for (int32_t c = 0; c < channels; ++c) {
        output[c] = low;
    }
    for (int32_t i = 0; i < inside->rows; ++i) {
        const int8_t *pixel = inside->corner + i * params->window.input_w * channels;

        for (int32_t j = 0; j < inside->columns; ++j) {
            for (int32_t c = 0; c < channels; ++c) {
                output[c] = pixel[c] > output[c] ? pixel[c] : output[c];
            }
            pixel += channels;
        }
    }
    for (int32_t c = 0; c < channels; ++c) {
        output[c] = output[c] > high ? high : output[c];
    }
}

void FERRULE_NAMED(ferrule_host_average_pool2d_s8)(const struct ferrule_pool2d_params *params,
                                                   const int8_t *input, int8_t *output,
                                                   void *scratch)
{
    const struct ferrule_window *window = &params->window;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                struct inside inside = inside_of(window, input, i, j);

                store_mean(params, &inside, scratch, output);
                output += window->input_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}

void FERRULE_NAMED(ferrule_host_max_pool2d_s8)(const struct ferrule_pool2d_params *params,
                                               const int8_t *input, int8_t *output)
{
    const struct ferrule_window *window = &params->window;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                struct inside inside = inside_of(window, input, i, j);

                store_maximum(params, &inside, output);
                output += window->input_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
