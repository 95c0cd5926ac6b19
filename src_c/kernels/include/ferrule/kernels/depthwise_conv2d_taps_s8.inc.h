/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of DEPTHWISE_CONV_2D with any window, two taps at a time, for each rule of
 * rounding. A kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_IS_PROVED if it has proved constants and widened weights; otherwise the following ones
 * FERRULE_STORE     returns a stored value, as ferrule_store_s8 does
 * FERRULE_IS_PLAIN  whether it may be called with `plain`
 *
 * and FERRULE_ROUNDS_TWICE if the rule is TFLM's.
 */
#include "ferrule/kernels/depthwise_conv2d.h"
#include "ferrule/kernels/requantize_dsp.h"

#if !defined(FERRULE_KERNEL) ||                                                                    \
    !(defined(FERRULE_IS_PROVED) || (defined(FERRULE_STORE) && defined(FERRULE_IS_PLAIN)))
#error "define the macros listed at the top of this file"
#endif

/*
 * Pixel by pixel: scratch has a pointer to the pixel of each tap, or to a pixel of zero points
 * where the tap is outside. Two taps are multiplied at once, for each of four channels.
 */
enum { FOUR = 4 };

/* Load up to four channels, without reading beyond them. */
static inline uint32_t load(const int8_t *pixel, int32_t channels)
{
    if (channels == FOUR) {
        return ferrule_load_word(pixel);
    }
    uint32_t word = 0;
    for (int32_t c = channels - 1; c >= 0; --c) {
        word = (word << 8) | (uint8_t)pixel[c];
    }
    return word;
}

#ifdef FERRULE_IS_PROVED

#if FERRULE_HAS_DSP
/* What is stored at once: a pixel. The assembler relies on the members' order. */
struct fours {
    int32_t pairs;    /* of taps, a positive number */
    int32_t channels; /* a positive multiple of four */
    int8_t *output;
};

/* r0: taps, r1: weights, r2: the first of four channels, r4 to r7: their sums. */
#define TWO_TAPS                                                                                   \
    "ldrd r8, r9, [r0], #8\n\t"                                                                    \
    "ldr r8, [r8, r2]\n\t"                                                                         \
    "ldr r9, [r9, r2]\n\t"                                                                         \
    "ldm r1!, {r10, r11, lr}\n\t"                                                                  \
    "pkhbt r12, r8, r9, lsl #16\n\t"                                                               \
    "pkhtb r8, r9, r8, asr #16\n\t"                                                                \
    "sxtb16 r9, r12\n\t"                                                                           \
    "smlad r4, r9, r10, r4\n\t"                                                                    \
    "sxtb16 r12, r12, ror #8\n\t"                                                                  \
    "smlad r5, r12, r11, r5\n\t"                                                                   \
    "ldr r11, [r1], #4\n\t"                                                                        \
    "sxtb16 r9, r8\n\t"                                                                            \
    "smlad r6, r9, lr, r6\n\t"                                                                     \
    "sxtb16 r8, r8, ror #8\n\t"                                                                    \
    "smlad r7, r8, r11, r7\n\t"

/* The plain C below for all channels in fours; returns the words after theirs. Two pairs of taps
 * are multiplied in a turn, one in the first if they are odd. */
static const int32_t *store_fours(const int8_t *const *taps, const int32_t *words,
                                  const struct fours *fours)
{
    register const int8_t *const *r0 __asm__("r0") = taps;
    register const int32_t *r1 __asm__("r1") = words;
    register const struct fours *r2 __asm__("r2") = fours;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldm r2, {r4-r6}\n\t"
                     "push {r4-r6}\n\t"
                     "mov r2, #0\n"
                     "1:\n\t"
                     "ldm r1!, {r4-r7}\n\t"
                     "ldr r3, [sp]\n\t"
                     "lsls lr, r3, #31\n\t"
                     "bmi 3f\n"
                     "2:\n\t" TWO_TAPS "3:\n\t" TWO_TAPS "subs r3, r3, #2\n\t"
                     "bgt 2b\n\t"
                     "ldm sp, {r3, r8, r12}\n\t"
                     "sub r0, r0, r3, lsl #3\n\t"
                     "add r12, r12, r2\n\t"
                     "add r2, r2, #4\n\t"
                     "cmp r2, r8\n\t"
                     "ldm r1!, {r8-r11}\n\t" FERRULE_PROVED_COMPLETE_ONE("r4", "r8")
                         FERRULE_PROVED_COMPLETE_ONE("r5", "r9")
                             FERRULE_PROVED_COMPLETE_ONE("r6", "r10")
                                 FERRULE_PROVED_COMPLETE_ONE("r7", "r11") "strb r4, [r12]\n\t"
                                                                          "strb r5, [r12, #1]\n\t"
                                                                          "strb r6, [r12, #2]\n\t"
                                                                          "strb r7, [r12, #3]\n\t"
                                                                          "blt 1b\n\t"
                                                                          "add sp, sp, #12\n\t"
                                                                          "pop {r4-r11}"
                     : "+r"(r0), "+r"(r1), "+r"(r2)
                     :
                     : "r3", "r12", "lr", "cc", "memory");
    return r1;
}
#endif

/* Store up to four channels; their words are four biases, four words per two taps, and four
 * multipliers. */
static void store_four(const int8_t *const *taps, const int32_t *words, int32_t first,
                       int32_t channels, int32_t pairs, int8_t *output)
{
    uint32_t sums[FOUR];

    for (int32_t c = 0; c < FOUR; ++c) {
        sums[c] = (uint32_t)words[c];
    }
    words += FOUR;
    for (; pairs > 0; --pairs) {
        uint32_t a = load(taps[0] + first, channels);
        uint32_t b = load(taps[1] + first, channels);

        for (int32_t c = 0; c < FOUR; ++c) {
            uint32_t data = ferrule_pair((int8_t)(a >> (8 * c)), (int8_t)(b >> (8 * c)));

            sums[c] = ferrule_dual_multiply_add(data, (uint32_t)words[c], sums[c]);
        }
        taps += 2;
        words += FOUR;
    }
    for (int32_t c = 0; c < channels; ++c) {
        output[first + c] = ferrule_proved_s8(sums[c], words[c]);
    }
}

static inline void store_pixel(const struct ferrule_depthwise_conv2d_taps_s8_params *params,
                               const int8_t *const *taps, int8_t *output, bool plain)
{
    const int32_t channels = params->window.input_c;
    const int32_t pairs = (params->window.kernel_h * params->window.kernel_w + 1) / 2;
    const int32_t *words = params->weights;
    int32_t first = 0;

    (void)plain;
#if FERRULE_HAS_DSP
    if (channels >= FOUR) {
        const struct fours fours = {
            .pairs = pairs, .channels = channels / FOUR * FOUR, .output = output};

        words = store_fours(taps, words, &fours);
        first = fours.channels;
    }
#endif
    for (; first < channels; first += FOUR) {
        store_four(taps, words, first, channels - first < FOUR ? channels - first : FOUR, pairs,
                   output);
        words += FOUR * (pairs + 2);
    }
}

#else

#if FERRULE_HAS_DSP
/* r0: taps, r1: weights, r2: the first of four channels, r4 to r7: their sums. */
#define TWO_TAPS                                                                                   \
    "ldrd r8, r9, [r0], #8\n\t"                                                                    \
    "ldr r8, [r8, r2]\n\t"                                                                         \
    "ldr r9, [r9, r2]\n\t"                                                                         \
    "ldrd r10, r11, [r1], #8\n\t"                                                                  \
    "pkhbt r12, r8, r9, lsl #16\n\t"                                                               \
    "pkhtb r8, r9, r8, asr #16\n\t"                                                                \
    "sxtb16 r9, r12\n\t"                                                                           \
    "sxtb16 lr, r10\n\t"                                                                           \
    "smlad r4, r9, lr, r4\n\t"                                                                     \
    "sxtb16 r12, r12, ror #8\n\t"                                                                  \
    "sxtb16 r10, r10, ror #8\n\t"                                                                  \
    "smlad r5, r12, r10, r5\n\t"                                                                   \
    "sxtb16 r9, r8\n\t"                                                                            \
    "sxtb16 lr, r11\n\t"                                                                           \
    "smlad r6, r9, lr, r6\n\t"                                                                     \
    "sxtb16 r8, r8, ror #8\n\t"                                                                    \
    "sxtb16 r11, r11, ror #8\n\t"                                                                  \
    "smlad r7, r8, r11, r7\n\t"

/* The plain C below for four channels; pairs is positive. */
static void sum_words(const int8_t *const *taps, const int32_t *weights, int32_t first,
                      int32_t pairs, uint32_t *sums)
{
    register const int8_t *const *r0 __asm__("r0") = taps;
    register const int32_t *r1 __asm__("r1") = weights;
    register int32_t r2 __asm__("r2") = first;
    register int32_t r3 __asm__("r3") = pairs;
    register uint32_t *r12 __asm__("r12") = sums;

    __asm__ volatile("push {r4-r12}\n\t"
                     "mov r4, #0\n\t"
                     "mov r5, #0\n\t"
                     "mov r6, #0\n\t"
                     "mov r7, #0\n"
                     "1:\n\t" TWO_TAPS "subs r3, r3, #1\n\t"
                     "bne 1b\n\t"
                     "ldr r12, [sp, #32]\n\t"
                     "stm r12, {r4-r7}\n\t"
                     "pop {r4-r12}"
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r12)
                     :
                     : "lr", "cc", "memory");
}

#ifdef FERRULE_ROUNDS_TWICE
/* What is stored at once: a pixel. */
struct fours {
    int32_t pairs;         /* of taps, a positive number */
    int32_t odd;           /* 2 * zero point + 1 */
    int32_t channels;      /* a positive multiple of four */
    const int32_t *scales; /* of the channels */
    int8_t *output;
    int32_t zeros[FOUR]; /* with which sums begin */
};

/* r3: the output, r12: scales, lr: 2 * zero point + 1. */
#define STORE_ONE(sum, index)                                                                      \
    "ldm r12!, {r8, r9, r10}\n\t"                                                                  \
    "add " sum ", r8, " sum ", lsl #1\n\t"                                                         \
    "smmulr " sum ", " sum ", r9\n\t"                                                              \
    "lsl r11, lr, r10\n\t"                                                                         \
    "add " sum ", " sum ", " sum ", asr #31\n\t"                                                   \
    "add " sum ", " sum ", r11, asr #1\n\t"                                                        \
    "asr " sum ", " sum ", r10\n\t"                                                                \
    "ssat " sum ", #8, " sum "\n\t"                                                                \
    "strb " sum ", [r3, #" index "]\n\t"

/* The plain C below for outputs with ferrule_is_whole_s8(), for all channels in fours. The members
 * are on the stack. Two pairs of taps are multiplied in a turn, one in the first if they are odd.
 */
static void store_fours(const int8_t *const *taps, const int32_t *weights,
                        const struct fours *fours)
{
    register const int8_t *const *r0 __asm__("r0") = taps;
    register const int32_t *r1 __asm__("r1") = weights;
    register const struct fours *r2 __asm__("r2") = fours;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldm r2, {r4-r12}\n\t"
                     "push {r4-r12}\n\t"
                     "mov r2, #0\n"
                     "1:\n\t"
                     "add r8, sp, #20\n\t"
                     "ldm r8, {r4-r7}\n\t"
                     "ldr r3, [sp]\n\t"
                     "lsls lr, r3, #31\n\t"
                     "bmi 3f\n"
                     "2:\n\t" TWO_TAPS "3:\n\t" TWO_TAPS "subs r3, r3, #2\n\t"
                     "bgt 2b\n\t"
                     "ldrd r3, lr, [sp]\n\t"
                     "sub r0, r0, r3, lsl #3\n\t"
                     "ldrd r12, r3, [sp, #12]\n\t"
                     "add r3, r3, r2\n\t" STORE_ONE("r4", "0") STORE_ONE("r5", "1")
                         STORE_ONE("r6", "2") STORE_ONE("r7", "3") "ldr r3, [sp, #8]\n\t"
                                                                   "str r12, [sp, #12]\n\t"
                                                                   "add r2, r2, #4\n\t"
                                                                   "cmp r2, r3\n\t"
                                                                   "blt 1b\n\t"
                                                                   "add sp, sp, #36\n\t"
                                                                   "pop {r4-r11}"
                     : "+r"(r0), "+r"(r1), "+r"(r2)
                     :
                     : "r3", "r12", "lr", "cc", "memory");
}
#endif
#endif

/* Sums of up to four channels. */
static void sum(const int8_t *const *taps, const int32_t *weights, int32_t first, int32_t channels,
                int32_t pairs, uint32_t *sums)
{
#if FERRULE_HAS_DSP
    if (channels == FOUR) {
        sum_words(taps, weights, first, pairs, sums);
        return;
    }
#endif
    for (int32_t c = 0; c < FOUR; ++c) {
        sums[c] = 0;
    }
    for (; pairs > 0; --pairs) {
        uint32_t a = load(taps[0] + first, channels);
        uint32_t b = load(taps[1] + first, channels);

        for (int32_t c = 0; c < FOUR; ++c) {
            uint32_t data = ferrule_pair((int8_t)(a >> (8 * c)), (int8_t)(b >> (8 * c)));
            uint32_t word = (uint32_t)weights[c / 2] >> (8 * (c % 2));

            sums[c] = ferrule_dual_multiply_add(data, ferrule_even_bytes(word), sums[c]);
        }
        taps += 2;
        weights += 2;
    }
}

static inline void store_four(const struct ferrule_depthwise_conv2d_taps_s8_params *params,
                              const int8_t *const *taps, int32_t first, int32_t channels,
                              int8_t *output, bool plain)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_output_s8 common = params->output;
    int32_t pairs = (window->kernel_h * window->kernel_w + 1) / 2;
    const int32_t *weights = params->weights + first / FOUR * 2 * pairs;
    const int32_t *scale = params->scales + first * FERRULE_CHANNEL_WORDS;
    int32_t odd = 2 * common.zero_point + 1;
    uint32_t sums[FOUR];

    sum(taps, weights, first, channels, pairs, sums);
    for (int32_t c = 0; c < channels; ++c) {
        struct ferrule_scale constants = ferrule_scale_of(scale, odd);

        output[first + c] = FERRULE_STORE(2u * sums[c], &constants, &common, plain);
        scale += FERRULE_CHANNEL_WORDS;
    }
}

static inline void store_pixel(const struct ferrule_depthwise_conv2d_taps_s8_params *params,
                               const int8_t *const *taps, int8_t *output, bool plain)
{
    int32_t channels = params->window.input_c;
    int32_t first = 0;

#if FERRULE_HAS_DSP && defined(FERRULE_ROUNDS_TWICE)
    if (channels >= FOUR && ferrule_is_whole_s8(&params->output)) {
        const struct fours fours = {.pairs =
                                        (params->window.kernel_h * params->window.kernel_w + 1) / 2,
                                    .channels = channels / FOUR * FOUR,
                                    .scales = params->scales,
                                    .output = output,
                                    .odd = 2 * params->output.zero_point + 1};

        store_fours(taps, params->weights, &fours);
        first = fours.channels;
    }
#endif
    for (; channels - first >= FOUR; first += FOUR) {
        store_four(params, taps, first, FOUR, output, plain);
    }
    if (first < channels) {
        store_four(params, taps, first, channels - first, output, plain);
    }
}

#endif

/* Whether all indices of a window along an axis are inside. */
static inline bool is_inside(int32_t first, int32_t kernel, int32_t dilation, int32_t extent)
{
    return first >= 0 && first + (kernel - 1) * dilation < extent;
}

/* Whether all windows are inside. */
static bool are_inside(const struct ferrule_window *window)
{
    return window->pad_top <= 0 && window->pad_left <= 0 &&
           is_inside((window->output_h - 1) * window->stride_h - window->pad_top, window->kernel_h,
                     window->dilation_h, window->input_h) &&
           is_inside((window->output_w - 1) * window->stride_w - window->pad_left, window->kernel_w,
                     window->dilation_w, window->input_w);
}

static void point_inside(const struct ferrule_window *window, const int8_t *first,
                         const int8_t **taps)
{
    const int32_t line = window->dilation_h * window->input_w * window->input_c;
    const int32_t step = window->dilation_w * window->input_c;

    if (window->kernel_w == 1) {
        for (int32_t i = window->kernel_h; i > 0; --i) {
            *taps++ = first;
            first += line;
        }
        return;
    }
    for (int32_t i = window->kernel_h; i > 0; --i) {
        const int8_t *pixel = first;

        for (int32_t j = window->kernel_w; j > 0; --j) {
            *taps++ = pixel;
            pixel += step;
        }
        first += line;
    }
}

static void point(const struct ferrule_window *window, const int8_t *image, int32_t y, int32_t x,
                  const int8_t **taps, const int8_t *outside)
{
    if (is_inside(y, window->kernel_h, window->dilation_h, window->input_h) &&
        is_inside(x, window->kernel_w, window->dilation_w, window->input_w)) {
        point_inside(window, image + (y * window->input_w + x) * window->input_c, taps);
        return;
    }
    for (int32_t i = 0; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;
        bool has_line = row >= 0 && row < window->input_h;
        const int8_t *line = image + (has_line ? row : 0) * window->input_w * window->input_c;

        for (int32_t j = 0; j < window->kernel_w; ++j) {
            int32_t column = x + j * window->dilation_w;

            *taps = has_line && column >= 0 && column < window->input_w
                        ? line + column * window->input_c
                        : outside;
            ++taps;
        }
    }
}

void FERRULE_KERNEL(const struct ferrule_depthwise_conv2d_taps_s8_params *params,
                    const int8_t *input, int8_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->window;
    int32_t count = (window->kernel_h * window->kernel_w + 1) / 2 * 2;
    const int8_t **taps = scratch;
    int8_t *outside = (int8_t *)(taps + count);
#ifdef FERRULE_IS_PROVED
    const bool plain = true; /* all of its outputs are stored alike */
#else
    bool plain = FERRULE_IS_PLAIN(&params->output);
#endif

    taps[count - 1] = input; /* for an odd number of taps; its weights are 0 */
    if (!are_inside(window)) {
        for (int32_t c = 0; c < window->input_c; ++c) {
            outside[c] = (int8_t)params->input_zero_point;
        }
    }
    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                point(window, input, i * window->stride_h - window->pad_top,
                      j * window->stride_w - window->pad_left, taps, outside);
                if (plain) {
                    store_pixel(params, taps, output, true);
                } else {
                    store_pixel(params, taps, output, false);
                }
                output += window->input_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
