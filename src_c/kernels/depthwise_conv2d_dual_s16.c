/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dual_s16.h"

enum {
    TAPS = 3, /* pixels in a row of the window */
    ROW_WORDS = 2
};

static inline uint32_t load_pair(const int16_t *source)
{
    uint32_t word;
    FERRULE_COPY_WORD(&word, source);
    return word;
}

/* Sums of two channels, of a pixel and, for two pixels, of the next one. */
struct pair_sums {
    uint32_t low;
    uint32_t high;
    uint32_t next_low;
    uint32_t next_high;
};

/* The windows of a row of pixels, without the rows that are outside the image. */
struct windows {
    const int16_t *lines; /* the first row, column 0 */
    int32_t row_bytes;
    int32_t tap_bytes;
    int32_t rows;
    int32_t weights; /* words to skip */
};

/* Sum the windows of two pixels for two channels. */
static inline struct pair_sums sum_two(const struct windows *windows, const int16_t *pixel,
                                       const int16_t *next, const int32_t *weights)
{
    struct pair_sums sums = {0, 0, 0, 0};
    const int32_t *end = weights + ROW_WORDS * windows->rows;

#if FERRULE_HAS_DSP
    uint32_t data;
    uint32_t word;
    uint32_t tap;
#define TAP(offset)                                                                                \
    "ldr %[data], [%[pixel]" offset "]\n\t"                                                        \
    "smlabb %[low], %[data], %[tap], %[low]\n\t"                                                   \
    "smlatt %[high], %[data], %[tap], %[high]\n\t"                                                 \
    "ldr %[data], [%[next]" offset "]\n\t"                                                         \
    "smlabb %[next_low], %[data], %[tap], %[next_low]\n\t"                                         \
    "smlatt %[next_high], %[data], %[tap], %[next_high]\n\t"
    __asm__("1:\n\t"
            "ldr %[word], [%[weights]], #4\n\t"
            "sxtb16 %[tap], %[word]\n\t" TAP("") "sxtb16 %[tap], %[word], ror #8\n\t" TAP(
                ", %[step]") "ldr %[word], [%[weights]], #4\n\t"
                             "sxtb16 %[tap], %[word]\n\t" TAP(
                                 ", %[step], lsl #1") "add %[pixel], %[pixel], %[row]\n\t"
                                                      "add %[next], %[next], %[row]\n\t"
                                                      "ldr %[data], %[end]\n\t"
                                                      "cmp %[weights], %[data]\n\t"
                                                      "bne 1b\n\t"
            : [low] "+r"(sums.low), [high] "+r"(sums.high), [next_low] "+r"(sums.next_low),
              [next_high] "+r"(sums.next_high), [pixel] "+r"(pixel), [next] "+r"(next),
              [weights] "+r"(weights), [data] "=&r"(data), [word] "=&r"(word), [tap] "=&r"(tap)
            : [step] "r"(windows->tap_bytes), [row] "r"(windows->row_bytes), [end] "m"(end)
            : "cc", "memory");
#undef TAP
#else
    int32_t step = windows->tap_bytes / 2;

    for (; weights != end; weights += ROW_WORDS) {
        uint32_t taps[TAPS] = {ferrule_even_bytes((uint32_t)weights[0]),
                               ferrule_odd_bytes((uint32_t)weights[0]),
                               ferrule_even_bytes((uint32_t)weights[1])};

        for (int32_t j = 0; j < TAPS; ++j) {
            uint32_t data = load_pair(pixel + j * step);

            sums.low = ferrule_low_low_multiply_add(data, taps[j], sums.low);
            sums.high = ferrule_high_high_multiply_add(data, taps[j], sums.high);
            data = load_pair(next + j * step);
            sums.next_low = ferrule_low_low_multiply_add(data, taps[j], sums.next_low);
            sums.next_high = ferrule_high_high_multiply_add(data, taps[j], sums.next_high);
        }
        pixel += windows->row_bytes / 2;
        next += windows->row_bytes / 2;
    }
#endif
    return sums;
}

static inline void add(struct pair_sums *sums, const int16_t *pixel, uint32_t weights)
{
    uint32_t data = load_pair(pixel);

    sums->low = ferrule_low_low_multiply_add(data, weights, sums->low);
    sums->high = ferrule_high_high_multiply_add(data, weights, sums->high);
}

/* Sum the window of one pixel for two channels, without the columns that are outside the image;
 * `pixel` is the first one inside. */
static inline struct pair_sums sum_one(const struct windows *windows, const int16_t *pixel,
                                       struct ferrule_taps inside, const int32_t *weights)
{
    struct pair_sums sums = {0, 0, 0, 0};
    int32_t step = windows->tap_bytes / 2;
    bool first = inside.first == 0 && inside.end > 0;
    bool middle = inside.first <= 1 && inside.end > 1;
    bool last = inside.end == TAPS && inside.first < TAPS;

    for (int32_t left = windows->rows; left > 0; --left) {
        const int16_t *at = pixel;

        if (first) {
            add(&sums, at, ferrule_even_bytes((uint32_t)weights[0]));
            at += step;
        }
        if (middle) {
            add(&sums, at, ferrule_odd_bytes((uint32_t)weights[0]));
            at += step;
        }
        if (last) {
            add(&sums, at, ferrule_even_bytes((uint32_t)weights[1]));
        }
        pixel += windows->row_bytes / 2;
        weights += ROW_WORDS;
    }
    return sums;
}

/* Results are rounded once, so there is no right shift. */
static inline int16_t store(uint32_t sum, const int32_t *channel, int32_t floor)
{
    struct ferrule_scale scale = {(uint32_t)channel[0], channel[1], 0, 0};

    return ferrule_store_s16(sum, &scale, false, floor);
}

static inline void store_two(const struct ferrule_depthwise_conv2d_dual_s16_params *params,
                             const struct windows *windows, int32_t x, int16_t *output,
                             int32_t floor)
{
    const struct ferrule_window *window = &params->window;
    const int32_t *weights = params->weights + windows->weights;
    const int32_t *channel = params->channels;
    int32_t weight_words = ROW_WORDS * window->kernel_h;
    int32_t channels = window->input_c;
    const int16_t *pixel = windows->lines + x * channels;
    const int16_t *next = pixel + window->stride_w * channels;

    for (int32_t left = channels; left > 0; left -= 2) {
        struct pair_sums sums = sum_two(windows, pixel, next, weights);
        int16_t *second = output + channels;

        output[0] = store(sums.low, channel, floor);
        output[1] = store(sums.high, channel + FERRULE_CHANNEL_WORDS, floor);
        second[0] = store(sums.next_low, channel, floor);
        second[1] = store(sums.next_high, channel + FERRULE_CHANNEL_WORDS, floor);
        pixel += 2;
        next += 2;
        output += 2;
        weights += weight_words;
        channel += 2 * FERRULE_CHANNEL_WORDS;
    }
}

static void store_one(const struct ferrule_depthwise_conv2d_dual_s16_params *params,
                      const struct windows *windows, int32_t x, int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps inside = ferrule_taps_inside(x, TAPS, window->dilation_w, window->input_w);
    const int32_t *weights = params->weights + windows->weights;
    const int32_t *channel = params->channels;
    int32_t floor = params->low >= 0 ? -1 : 0;
    const int16_t *pixel =
        windows->lines + (x + inside.first * window->dilation_w) * window->input_c;

    for (int32_t left = window->input_c; left > 0; left -= 2) {
        struct pair_sums sums = sum_one(windows, pixel, inside, weights);

        *output++ = store(sums.low, channel, floor);
        *output++ = store(sums.high, channel + FERRULE_CHANNEL_WORDS, floor);
        pixel += 2;
        weights += ROW_WORDS * window->kernel_h;
        channel += 2 * FERRULE_CHANNEL_WORDS;
    }
}

static void store_row(const struct ferrule_depthwise_conv2d_dual_s16_params *params,
                      const int16_t *image, int32_t y, int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    int32_t line = window->input_w * window->input_c;
    struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    struct windows windows = {.lines = image + (y + rows.first * window->dilation_h) * line,
                              .row_bytes = 2 * window->dilation_h * line,
                              .tap_bytes = 2 * window->dilation_w * window->input_c,
                              .rows = rows.end - rows.first,
                              .weights = ROW_WORDS * rows.first};
    int32_t last_x = window->input_w - 1 - (TAPS - 1) * window->dilation_w;
    int32_t x = -window->pad_left;

    for (int32_t left = window->output_w; left > 0;) {
        if (left > 1 && x >= 0 && x + window->stride_w <= last_x && windows.rows > 0) {
            if (params->low >= 0) {
                store_two(params, &windows, x, output, -1);
            } else {
                store_two(params, &windows, x, output, 0);
            }
            output += 2 * window->input_c;
            x += 2 * window->stride_w;
            left -= 2;
        } else {
            store_one(params, &windows, x, output);
            output += window->input_c;
            x += window->stride_w;
            left -= 1;
        }
    }
}

void ferrule_depthwise_conv2d_dual_s16(
    const struct ferrule_depthwise_conv2d_dual_s16_params *params, const int16_t *input,
    int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    int32_t row = window->output_w * window->input_c;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            store_row(params, input, i * window->stride_h - window->pad_top, output);
            ferrule_clamp_s16(output, row, params->low, params->high);
            output += row;
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
