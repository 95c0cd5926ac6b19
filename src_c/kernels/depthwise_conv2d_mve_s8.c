/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d_mve.h"

/* A row of the output: the rows of the image under its windows, null outside the image. */
struct band {
    const struct ferrule_depthwise_conv2d_mve_s8_params *params;
    const int8_t *rows[FERRULE_MVE_ROWS];
    const int8_t *outside; /* a pixel outside the image */
    bool inside;           /* whether all rows are inside the image */
};

/* Set the lanes of a step of neighbouring pixels. */
static void set_lanes(const struct ferrule_depthwise_conv2d_mve_s8_params *params, int32_t pixels,
                      struct ferrule_mve_depthwise *run)
{
    int32_t lanes = pixels * params->window.input_c;
    int32_t whole = (lanes + FERRULE_MVE_BYTES - 1) / FERRULE_MVE_BYTES * FERRULE_MVE_BYTES;

    run->lanes = lanes;
    run->tap_step = lanes * params->window.stride_w - whole;
    run->output_step = lanes - whole;
}

/* Set the addresses of a row of taps, `step` bytes apart; `outside` if their offset is not below
 * the limit. Returns the next place. */
static inline const int8_t **set_row(const int8_t **tap, int32_t taps, const int8_t *row,
                                     int32_t offset, int32_t step, uint32_t limit,
                                     const int8_t *outside)
{
#if FERRULE_HAS_MVE
    const int8_t *address;

    __asm__ volatile(
        "1:\n\t"
        "cmp %[offset], %[limit]\n\t"
        "add %[address], %[row], %[offset]\n\t"
        "csel %[address], %[address], %[outside], lo\n\t"
        "str %[address], [%[tap]], #4\n\t"
        "add %[offset], %[offset], %[step]\n\t"
        "subs %[taps], %[taps], #1\n\t"
        "bne 1b\n\t"
        : [tap] "+r"(tap), [taps] "+r"(taps), [offset] "+r"(offset), [address] "=&r"(address)
        : [row] "r"(row), [step] "r"(step), [limit] "r"(limit), [outside] "r"(outside)
        : "cc", "memory");
#else
    for (; taps > 0; --taps) {
        *tap++ = (uint32_t)offset < limit ? row + offset : outside;
        offset += step;
    }
#endif
    return tap;
}

/* Set the taps of the pixel whose window begins at column x, then compute `count` steps of
 * `together` pixels. */
__attribute__((noinline)) static void compute(const struct band *band, int32_t x, int32_t count,
                                              int32_t together, struct ferrule_mve_depthwise *run)
{
    const struct ferrule_depthwise_conv2d_mve_s8_params *params = band->params;
    const struct ferrule_window *window = &params->window;
    int32_t step = window->dilation_w * window->input_c;
    uint32_t line_bytes = (uint32_t)(window->input_w * window->input_c);
    const int8_t **first = run->list != NULL ? run->list : run->taps;
    const int8_t **end = first + (run->list != NULL ? 2 * run->pairs : FERRULE_MVE_TAPS);
    const int8_t **tap = first;

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        const int8_t *row = band->rows[i];

        tap = set_row(tap, window->kernel_w, row, x * window->input_c, step,
                      row != NULL ? line_bytes : 0, band->outside);
    }
    while (tap != end) {
        *tap++ = *first; /* its weight is 0 */
    }
    run->count = count;
    if (run->lanes != together * window->input_c) {
        set_lanes(params, together, run);
    }
    if (together > 1) {
        params->compute(run);
    } else {
        params->single(run);
    }
    run->output += count * run->lanes;
}

__attribute__((noinline)) static void compute_row(const struct band *band,
                                                  struct ferrule_mve_depthwise *run)
{
    const struct ferrule_window *window = &band->params->window;
    int32_t reach = (window->kernel_w - 1) * window->dilation_w;
    int32_t x = -window->pad_left;

    for (int32_t left = window->output_w; left > 0;) {
        int32_t room = window->input_w - 1 - reach - x;
        int32_t count = 1;
        int32_t together = 1;

        if (band->inside && x >= 0 && room >= 0) {
            count = room / window->stride_w + 1;
            count = count < left ? count : left;
            if (count >= band->params->together) {
                together = band->params->together;
                count -= count % together;
            }
        }
        compute(band, x, together > 1 ? count / together : count, together, run);
        left -= count;
        x += count * window->stride_w;
    }
}

void ferrule_depthwise_conv2d_mve_s8(const struct ferrule_depthwise_conv2d_mve_s8_params *params,
                                     const int8_t *input, int8_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->window;
    int32_t line_bytes = window->input_w * window->input_c;
    int32_t taps = window->kernel_h * window->kernel_w;
    int32_t pairs = taps > FERRULE_MVE_TAPS ? (taps + 1) / 2 : 0;
    const int8_t **list = scratch;
    int8_t *outside = (int8_t *)(list + 2 * pairs);
    struct band band = {.params = params, .outside = outside};
    struct ferrule_mve_depthwise run = {
        .stream = params->stream,
        .output = output,
        .zero_point = params->output.zero_point,
        .low = params->output.low,
        .high = params->output.high,
        .list = pairs > 0 ? list : NULL,
        .pairs = pairs,
    };

    (void)ferrule_mve_fill(outside, window->input_c, params->input_zero_point);
    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            int32_t y = i * window->stride_h - window->pad_top;

            band.inside = true;
            for (int32_t k = 0; k < window->kernel_h; ++k) {
                bool inside = y >= 0 && y < window->input_h;

                band.rows[k] = inside ? input + y * line_bytes : NULL;
                band.inside = band.inside && inside;
                y += window->dilation_h;
            }
            compute_row(&band, &run);
        }
        input += window->input_h * line_bytes;
    }
}
