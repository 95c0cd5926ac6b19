/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of DEPTHWISE_CONV_2D with a window of 3x3, for each rule of rounding. A kernel's
 * source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_STORE     returns a stored value, as ferrule_store_s8 does
 * FERRULE_IS_PLAIN  whether it may be called with `plain`
 */
#include <stddef.h>

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STORE) || !defined(FERRULE_IS_PLAIN)
#error "define the macros listed at the top of this file"
#endif
#include <string.h>

#include "ferrule/kernels/depthwise_conv2d.h"

/*
 * One channel at a time. Scratch holds three lines of the channel, widened to 16 bits, two pixels
 * per word; the words of the three lines for the same step are adjacent. A new line replaces the
 * oldest, so the order of the lines in scratch rotates, and the weights rotate with it.
 */
enum { LINES = 3 };

/* Weights of one line of the window: w0, w1 and w1, w2. */
struct line_weights {
    uint32_t w01;
    uint32_t w12;
};

static inline int32_t pixel_or_outside(const struct ferrule_depthwise_conv2d_3x3_s8_params *params,
                                       const int8_t *line, int32_t step)
{
    return step >= 0 && step < params->input_steps ? line[step * params->input_step_bytes]
                                                   : params->input_zero_point;
}

static void widen_line(const struct ferrule_depthwise_conv2d_3x3_s8_params *params,
                       const int8_t *plane, int32_t line, uint32_t *target)
{
    int32_t step_bytes = params->input_step_bytes;
    int32_t step = -params->pad_steps;
    const uint32_t *end = target + LINES * params->words;

    if (line < 0 || line >= params->input_lines) {
        uint32_t outside = ferrule_pair(params->input_zero_point, params->input_zero_point);

        for (; target != end; target += LINES) {
            *target = outside;
        }
        return;
    }

    const int8_t *source = plane + line * params->input_line_bytes;
    for (; step < 0; step += 2) {
        *target = ferrule_pair(pixel_or_outside(params, source, step),
                               pixel_or_outside(params, source, step + 1));
        target += LINES;
    }
    const int8_t *pixel = source + step * step_bytes;
    int32_t pairs = (params->input_steps - step) / 2;
    int32_t room = (int32_t)(end - target) / LINES;
    for (int32_t left = pairs < room ? pairs : room; left > 0; --left) {
        *target = ferrule_pair(pixel[0], pixel[step_bytes]);
        pixel += 2 * step_bytes;
        target += LINES;
        step += 2;
    }
    for (; target != end; target += LINES) {
        *target = ferrule_pair(pixel_or_outside(params, source, step),
                               pixel_or_outside(params, source, step + 1));
        step += 2;
    }
}

/* Sums of two neighbouring outputs. */
struct two_sums {
    uint32_t even;
    uint32_t odd;
};

#if FERRULE_HAS_DSP
/* The plain C below; compilers keep the weights in memory but load them once for each use. */
static inline struct two_sums sum_two(const uint32_t *words, const struct line_weights *weights)
{
    struct two_sums sums;
    uint32_t w01;
    uint32_t w12;
    uint32_t x0;
    uint32_t x1;

    __asm__("ldrd %[w01], %[w12], [%[weights]]\n\t"
            "ldr %[x0], [%[words]]\n\t"
            "ldr %[x1], [%[words], #12]\n\t"
            "smuad %[even], %[x0], %[w01]\n\t"
            "smuad %[odd], %[x1], %[w12]\n\t"
            "smlabt %[even], %[x1], %[w12], %[even]\n\t"
            "smlatb %[odd], %[x0], %[w01], %[odd]\n\t"
            "ldrd %[w01], %[w12], [%[weights], #8]\n\t"
            "ldr %[x0], [%[words], #4]\n\t"
            "ldr %[x1], [%[words], #16]\n\t"
            "smlad %[even], %[x0], %[w01], %[even]\n\t"
            "smlad %[odd], %[x1], %[w12], %[odd]\n\t"
            "smlabt %[even], %[x1], %[w12], %[even]\n\t"
            "smlatb %[odd], %[x0], %[w01], %[odd]\n\t"
            "ldrd %[w01], %[w12], [%[weights], #16]\n\t"
            "ldr %[x0], [%[words], #8]\n\t"
            "ldr %[x1], [%[words], #20]\n\t"
            "smlad %[even], %[x0], %[w01], %[even]\n\t"
            "smlad %[odd], %[x1], %[w12], %[odd]\n\t"
            "smlabt %[even], %[x1], %[w12], %[even]\n\t"
            "smlatb %[odd], %[x0], %[w01], %[odd]\n\t"
            : [even] "=&r"(sums.even), [odd] "=&r"(sums.odd), [w01] "=&r"(w01), [w12] "=&r"(w12),
              [x0] "=&r"(x0), [x1] "=&r"(x1)
            : [words] "r"(words), [weights] "r"(weights),
              "m"(*(const uint32_t (*)[2 * LINES]) words),
              "m"(*(const struct line_weights(*)[LINES])weights)
            : "cc");
    return sums;
}
#else
static inline struct two_sums sum_two(const uint32_t *words, const struct line_weights *weights)
{
    struct two_sums sums = {0, 0};

    for (int32_t i = 0; i < LINES; ++i) {
        uint32_t x0 = words[i];
        uint32_t x1 = words[LINES + i];

        sums.even = ferrule_dual_multiply_add(x0, weights[i].w01, sums.even);
        sums.even = ferrule_low_high_multiply_add(x1, weights[i].w12, sums.even);
        sums.odd = ferrule_dual_multiply_add(x1, weights[i].w12, sums.odd);
        sums.odd = ferrule_low_high_multiply_add(weights[i].w01, x0, sums.odd);
    }
    return sums;
}
#endif

static inline void store_line(const struct ferrule_depthwise_conv2d_3x3_s8_params *params,
                              const uint32_t *words, const struct line_weights *weights,
                              const struct ferrule_scale *scale, int8_t *output, bool plain)
{
    int32_t step_bytes = params->output_step_bytes;
    const struct ferrule_output_s8 common = params->output;
    const struct ferrule_scale local = *scale;
    int32_t steps = params->output_steps;

    if (params->step_stride == 2) {
        for (; steps > 0; --steps) {
            struct two_sums sums = sum_two(words, weights);

            *output = FERRULE_STORE(2u * sums.even, &local, &common, plain);
            output += step_bytes;
            words += LINES;
        }
        return;
    }
    for (; steps > 1; steps -= 2) {
        struct two_sums sums = sum_two(words, weights);

        *output = FERRULE_STORE(2u * sums.even, &local, &common, plain);
        output += step_bytes;
        *output = FERRULE_STORE(2u * sums.odd, &local, &common, plain);
        output += step_bytes;
        words += LINES;
    }
    if (steps > 0) {
        *output = FERRULE_STORE(2u * sum_two(words, weights).even, &local, &common, plain);
    }
}

static inline void convolve_plane(const struct ferrule_depthwise_conv2d_3x3_s8_params *params,
                                  const int8_t *plane, int8_t *output, const int32_t *weights,
                                  const struct ferrule_scale *scale, uint32_t *lines, bool plain)
{
    int32_t next = -params->pad_lines; /* the input line that is widened next */
    int32_t oldest = 0; /* the place of the oldest line, which the next line replaces */
    struct line_weights turned[2 * LINES - 1];

    /* Line j of the window is at place (oldest + j) % 3, so place p uses the weights of line (p -
     * oldest) mod 3. */
    for (int32_t j = 0; j < 2 * LINES - 1; ++j) {
        uint32_t word = (uint32_t)weights[(j + 1) % LINES];

        turned[j].w01 = ferrule_even_bytes(word);
        turned[j].w12 = ferrule_odd_bytes(word);
    }
    for (int32_t i = 0; i < params->output_lines; ++i) {
        int32_t top = i * params->line_stride - params->pad_lines;

        if (next < top) {
            next = top;
        }
        for (; next < top + LINES; ++next) {
            widen_line(params, plane, next, lines + oldest);
            oldest = oldest == LINES - 1 ? 0 : oldest + 1;
        }
        store_line(params, lines, turned + (LINES - 1 - oldest), scale, output, plain);
        output += params->output_line_bytes;
    }
}

static inline void convolve(const struct ferrule_depthwise_conv2d_3x3_s8_params *params,
                            const int8_t *input, int8_t *output, uint32_t *lines, bool plain)
{
    int32_t odd = 2 * params->output.zero_point + 1;

    int32_t output_pixels = params->output_lines * params->output_steps;

    for (int32_t b = 0; b < params->batches; ++b) {
        const int32_t *weights = params->weights;
        const int32_t *channel = params->scales;

        for (int32_t i = 0; params->fixed != NULL && i < output_pixels; ++i) {
            (void)memcpy(output + i * params->channels, params->fixed, (size_t)params->channels);
        }
        for (int32_t c = 0; c < params->live_c; ++c) {
            struct ferrule_scale scale = ferrule_scale_of(channel, odd);
            int32_t position = params->positions[c];

            convolve_plane(params, input + position, output + position, weights, &scale, lines,
                           plain);
            weights += LINES;
            channel += FERRULE_CHANNEL_WORDS;
        }
        input += params->input_lines * params->input_steps * params->channels;
        output += output_pixels * params->channels;
    }
}

void FERRULE_KERNEL(const struct ferrule_depthwise_conv2d_3x3_s8_params *params,
                    const int8_t *input, int8_t *output, void *scratch)
{
    if (FERRULE_IS_PLAIN(&params->output)) {
        convolve(params, input, output, scratch, true);
    } else {
        convolve(params, input, output, scratch, false);
    }
}
