/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "ferrule/kernels/dual_s16.h"

/* Two patches, the weights of two channels, and the sums: of the first patch for both channels,
 * then of the second patch. */
struct dual_sums {
    const int16_t *first;
    const int16_t *second;
    const int32_t *weights;
    const int32_t *weights_end;
    uint32_t sums[4];
};

#if FERRULE_HAS_DSP
/* clang-format off */
#define STEP                                                                                       \
    "ldrd r8, r9, [r3], #8\n\t"                                                                    \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "sxtb16 r10, r8\n\t"                                                                           \
    "sxtb16 r8, r8, ror #8\n\t"                                                                    \
    "sxtb16 r11, r9\n\t"                                                                           \
    "sxtb16 r9, r9, ror #8\n\t"                                                                    \
    "smlad r4, r12, r10, r4\n\t"                                                                   \
    "smlad r5, r12, r11, r5\n\t"                                                                   \
    "smlad r4, lr, r8, r4\n\t"                                                                     \
    "smlad r5, lr, r9, r5\n\t"                                                                     \
    "ldrd r12, lr, [r2], #8\n\t"                                                                   \
    "smlad r6, r12, r10, r6\n\t"                                                                   \
    "smlad r7, r12, r11, r7\n\t"                                                                   \
    "smlad r6, lr, r8, r6\n\t"                                                                     \
    "smlad r7, lr, r9, r7\n\t"

void ferrule_dual_sums_s16(struct dual_sums *sums);

__asm__(".syntax unified\n\t"
        ".pushsection .text.ferrule_dual_sums_s16, \"ax\", %progbits\n\t"
        ".balign 4\n\t"
        ".thumb\n\t"
        ".global ferrule_dual_sums_s16\n\t"
        ".type ferrule_dual_sums_s16, %function\n\t"
        ".thumb_func\n"
        "ferrule_dual_sums_s16:\n\t"
        "push {r0, r4-r11, lr}\n\t"
        "ldm r0, {r1-r3, r8}\n\t"
        "mov r0, r8\n\t"
        "mov r4, #0\n\t"
        "mov r5, #0\n\t"
        "mov r6, #0\n\t"
        "mov r7, #0\n"
        "1:\n\t"
        STEP
        STEP
        "cmp r3, r0\n\t"
        "bne 1b\n\t"
        "pop {r0}\n\t"
        "add r0, r0, #16\n\t"
        "stm r0, {r4-r7}\n\t"
        "pop {r4-r11, pc}\n\t"
        ".size ferrule_dual_sums_s16, . - ferrule_dual_sums_s16\n\t"
        ".popsection");
/* clang-format on */
#else
static void ferrule_dual_sums_s16(struct dual_sums *sums)
{
    const int32_t *weights = sums->weights;

    (void)memset(sums->sums, 0, sizeof sums->sums);
    for (int32_t k = 0; weights != sums->weights_end; k += 4) {
        for (int32_t c = 0; c < 2; ++c) {
            uint32_t word = (uint32_t)*weights++;
            uint32_t low = ferrule_even_bytes(word);
            uint32_t high = ferrule_odd_bytes(word);

            for (int32_t p = 0; p < 2; ++p) {
                const int16_t *data = (p == 0 ? sums->first : sums->second) + k;
                uint32_t *sum = &sums->sums[2 * p + c];

                *sum = ferrule_dual_multiply_add(ferrule_pair(data[0], data[1]), low, *sum);
                *sum = ferrule_dual_multiply_add(ferrule_pair(data[2], data[3]), high, *sum);
            }
        }
    }
}
#endif

/* Copy some elements; rows of a window are short, so memcpy is not called. */
static int16_t *copy(int16_t *target, const int16_t *source, int32_t count)
{
    for (; count > 1; count -= 2) {
        FERRULE_COPY_WORD(target, source);
        target += 2;
        source += 2;
    }
    if (count > 0) {
        *target++ = *source;
    }
    return target;
}

static int16_t *clear(int16_t *target, int32_t count)
{
    (void)memset(target, 0, (size_t)count * sizeof *target);
    return target + count;
}

/* Collect the pixels under one window position; those outside the image are zero. */
static void gather(const struct ferrule_conv2d_dual_s16_params *params, const int16_t *image,
                   int32_t y, int32_t x, int16_t *target)
{
    const struct ferrule_window *window = &params->window;
    int32_t channels = window->input_c;
    struct ferrule_taps inside =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    int32_t count = inside.end - inside.first;

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;
        int32_t column = x + inside.first * window->dilation_w;
        const int16_t *source = image + (row * window->input_w + column) * channels;

        if (row < 0 || row >= window->input_h || count == 0) {
            target = clear(target, window->kernel_w * channels);
        } else if (count == window->kernel_w && window->dilation_w == 1) {
            target = copy(target, source, count * channels);
        } else {
            target = clear(target, inside.first * channels);
            for (int32_t j = 0; j < count; ++j) {
                target = copy(target, source, channels);
                source += window->dilation_w * channels;
            }
            target = clear(target, (window->kernel_w - inside.end) * channels);
        }
    }
}

/* Compute and store all channels of two pixels. */
static inline void store_pixels(const struct ferrule_conv2d_dual_s16_params *params,
                                const int16_t *patches, int16_t *first, int16_t *second, bool twice)
{
    const int32_t *channel = params->channels;
    int32_t weight_words = 2 * params->words;
    int32_t floor = params->low >= 0 ? -1 : 0;
    struct dual_sums sums = {
        .first = patches, .second = patches + 4 * params->words, .weights = params->weights};

    for (int32_t left = params->output_c; left > 0; left -= 2) {
        sums.weights_end = sums.weights + weight_words;
        ferrule_dual_sums_s16(&sums);
        sums.weights = sums.weights_end;

        struct ferrule_scale scale = ferrule_scale_of(channel, 1);
        *second++ = ferrule_store_s16(sums.sums[2], &scale, twice, floor);
        *first++ = ferrule_store_s16(sums.sums[0], &scale, twice, floor);
        channel += FERRULE_CHANNEL_WORDS;
        if (left > 1) {
            scale = ferrule_scale_of(channel, 1);
            *second++ = ferrule_store_s16(sums.sums[3], &scale, twice, floor);
            *first++ = ferrule_store_s16(sums.sums[1], &scale, twice, floor);
            channel += FERRULE_CHANNEL_WORDS;
        }
    }
}

static inline void convolve(const struct ferrule_conv2d_dual_s16_params *params,
                            const int16_t *input, int16_t *output, int16_t *patches, bool twice)
{
    const struct ferrule_window *window = &params->window;
    int16_t *waiting = NULL; /* the pixel whose window was read last, if it is not computed */

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                gather(params, input, i * window->stride_h - window->pad_top,
                       j * window->stride_w - window->pad_left,
                       waiting == NULL ? patches : patches + 4 * params->words);
                if (waiting == NULL) {
                    waiting = output;
                } else {
                    store_pixels(params, patches, waiting, output, twice);
                    waiting = NULL;
                }
                output += params->output_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
    if (waiting != NULL) {
        store_pixels(params, patches, waiting, waiting, twice);
    }
}

void ferrule_conv2d_dual_s16(const struct ferrule_conv2d_dual_s16_params *params,
                             const int16_t *input, int16_t *output, void *scratch)
{
    /* The weights of the elements past the last product are zero, and the second pixel of the last
     * pair may not exist; what is read of both must be defined. */
    (void)clear(scratch, 8 * params->words);
    if (params->twice) {
        convolve(params, input, output, scratch, true);
    } else {
        convolve(params, input, output, scratch, false);
    }
    ferrule_clamp_s16(output,
                      params->window.batches * params->window.output_h * params->window.output_w *
                          params->output_c,
                      params->low, params->high);
}
