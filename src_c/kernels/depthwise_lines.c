/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/depthwise_lines.h"

enum { LINES = FERRULE_DEPTHWISE_LINES, FOUR = FERRULE_DEPTHWISE_CHANNELS };

/* The four channels in scratch, which may repeat the last one. */
struct four {
    int32_t
        offsets[FOUR - 1]; /* of the second, third and fourth channel from the first, in bytes */
    int32_t channel_words; /* of the lines of a channel */
    const int8_t *source;  /* the first channel of the first pixel */
};

/* Two pixels of four adjacent channels, `pairs` times (at least once): bytes 0 to 3 of a pixel go
 * to the lines of channels 0 to 3. */
static void widen_pairs(const int8_t *source, int32_t step_bytes, int32_t pairs, uint32_t *target,
                        int32_t channel_words)
{
#if FERRULE_HAS_DSP
    register const int8_t *r0 __asm__("r0") = source;
    register int32_t r1 __asm__("r1") = step_bytes;
    register int32_t r2 __asm__("r2") = pairs;
    register uint32_t *r3 __asm__("r3") = target;
    register int32_t r12 __asm__("r12") = 4 * channel_words;

    __asm__ volatile("push {r4-r11}\n\t"
                     "add r4, r3, r12\n\t"
                     "add r5, r4, r12\n\t"
                     "add r6, r5, r12\n"
                     "1:\n\t"
                     "ldr r8, [r0, r1]\n\t"
                     "ldr r7, [r0]\n\t"
                     "add r0, r0, r1, lsl #1\n\t"
                     "pkhbt r9, r7, r8, lsl #16\n\t"
                     "pkhtb r10, r8, r7, asr #16\n\t"
                     "sxtb16 r11, r9\n\t"
                     "sxtb16 r9, r9, ror #8\n\t"
                     "sxtb16 r12, r10\n\t"
                     "sxtb16 r10, r10, ror #8\n\t"
                     "str r11, [r3], #12\n\t"
                     "str r9, [r4], #12\n\t"
                     "str r12, [r5], #12\n\t"
                     "str r10, [r6], #12\n\t"
                     "subs r2, r2, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r11}"
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r12)
                     :
                     : "cc", "memory");
#else
    for (; pairs > 0; --pairs) {
        for (int32_t c = 0; c < FOUR; ++c) {
            target[c * channel_words] = ferrule_pair(source[c], source[step_bytes + c]);
        }
        source += 2 * step_bytes;
        target += LINES;
    }
#endif
}

/* The same for channels at any offsets from the first. */
static void gather_pairs(const int8_t *source, int32_t step_bytes, int32_t pairs, uint32_t *target,
                         const struct four *four)
{
#if FERRULE_HAS_DSP
    register const int8_t *r0 __asm__("r0") = source;
    register int32_t r1 __asm__("r1") = step_bytes;
    register int32_t r2 __asm__("r2") = pairs;
    register uint32_t *r3 __asm__("r3") = target;
    register const struct four *r12 __asm__("r12") = four;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldm r12, {r4-r6, r12}\n\t"
                     "lsl r12, r12, #2\n\t"
                     "add r7, r12, r12, lsl #1\n"
                     "1:\n\t"
                     "ldrsb r8, [r0]\n\t"
                     "ldrsb r9, [r0, r4]\n\t"
                     "ldrsb r10, [r0, r5]\n\t"
                     "ldrsb r11, [r0, r6]\n\t"
                     "add r0, r0, r1\n\t"
                     "ldrsb lr, [r0]\n\t"
                     "pkhbt r8, r8, lr, lsl #16\n\t"
                     "ldrsb lr, [r0, r4]\n\t"
                     "pkhbt r9, r9, lr, lsl #16\n\t"
                     "ldrsb lr, [r0, r5]\n\t"
                     "pkhbt r10, r10, lr, lsl #16\n\t"
                     "ldrsb lr, [r0, r6]\n\t"
                     "pkhbt r11, r11, lr, lsl #16\n\t"
                     "add r0, r0, r1\n\t"
                     "str r9, [r3, r12]\n\t"
                     "str r10, [r3, r12, lsl #1]\n\t"
                     "str r11, [r3, r7]\n\t"
                     "str r8, [r3], #12\n\t"
                     "subs r2, r2, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r11}"
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r12)
                     :
                     : "lr", "cc", "memory");
#else
    for (; pairs > 0; --pairs) {
        const int8_t *second = source + step_bytes;

        target[0] = ferrule_pair(source[0], second[0]);
        for (int32_t c = 1; c < FOUR; ++c) {
            int32_t offset = four->offsets[c - 1];
            target[c * four->channel_words] = ferrule_pair(source[offset], second[offset]);
        }
        source = second + step_bytes;
        target += LINES;
    }
#endif
}

/* Write one half of the words of four channels; the other half is outside and stays. */
static void widen_one(const int8_t *source, uint32_t *target, const struct four *four, int32_t half)
{
    int16_t *halves = (int16_t *)target + half;
    int32_t step = 2 * four->channel_words;

    halves[0] = source[0];
    halves[step] = source[four->offsets[0]];
    halves[2 * step] = source[four->offsets[1]];
    halves[3 * step] = source[four->offsets[2]];
}

/* Fill a line of four channels. */
static void fill(uint32_t *target, int32_t words, uint32_t value)
{
    int32_t channel_words = LINES * words;

    for (; words > 1; words -= 2) {
        target[0] = value;
        target[channel_words] = value;
        target[2 * channel_words] = value;
        target[3 * channel_words] = value;
        target += LINES;
        target[0] = value;
        target[channel_words] = value;
        target[2 * channel_words] = value;
        target[3 * channel_words] = value;
        target += LINES;
    }
    for (int32_t c = 0; words > 0 && c < FOUR; ++c) {
        target[c * channel_words] = value;
    }
}

/* The words of a line that no pixel reaches keep the value of pixels outside. */
static void widen_line(const struct ferrule_depthwise_lines_params *params, const struct four *four,
                       int32_t line, uint32_t *target)
{
    if (line < 0 || line >= params->input_lines) {
        fill(target, params->words,
             ferrule_pair(params->input_zero_point, params->input_zero_point));
        return;
    }

    const int8_t *source = four->source + line * params->input_line_bytes;
    int32_t step_bytes = params->input_step_bytes;
    int32_t left = params->input_steps;
    int32_t room = params->words - params->pad_steps / 2;

    target += LINES * (params->pad_steps / 2);
    if (params->pad_steps % 2 != 0) {
        widen_one(source, target, four, 1);
        source += step_bytes;
        target += LINES;
        left -= 1;
        room -= 1;
    }
    int32_t pairs = left / 2 < room ? left / 2 : room;
    if (left % 2 != 0 && pairs < room) {
        widen_one(source + 2 * pairs * step_bytes, target + LINES * pairs, four, 0);
    }
    if (pairs > 0) {
        if (four->offsets[2] == FOUR - 1 && four->offsets[1] == 2) {
            widen_pairs(source, step_bytes, pairs, target, four->channel_words);
        } else {
            gather_pairs(source, step_bytes, pairs, target, four);
        }
    }
}

static void convolve_four(const struct ferrule_depthwise_lines_params *params,
                          const struct four *four, struct ferrule_depthwise_line *line,
                          uint32_t *lines, const struct ferrule_depthwise_way *way)
{
    int32_t next = -params->pad_lines; /* the input line that is widened next */

    line->oldest = 0; /* which the next line replaces */
    for (int32_t i = 0; i < params->output_lines; ++i) {
        int32_t top = i * params->line_stride - params->pad_lines;

        if (next < top) {
            next = top;
        }
        for (; next < top + LINES; ++next) {
            widen_line(params, four, next, lines + line->oldest);
            line->oldest = line->oldest == LINES - 1 ? 0 : line->oldest + 1;
        }
        way->store_line(line);
        line->output += params->output_line_bytes;
    }
}

/* Store the values of the channels from `first` to `end`, the end excluded, in all pixels. */
static void store_fixed(const struct ferrule_depthwise_lines_params *params, int32_t first,
                        int32_t end, int8_t *output)
{
    int32_t pixels = params->output_lines * params->output_steps;
    int32_t pixel_bytes = params->channels;

    for (; end - first >= FOUR; first += FOUR) {
        uint32_t word = ferrule_load_word(params->fixed + first);
        int8_t *pixel = output + first;

        for (int32_t left = pixels; left > 0; --left) {
            FERRULE_COPY_WORD(pixel, &word);
            pixel += pixel_bytes;
        }
    }
    for (; first < end; ++first) {
        int8_t value = params->fixed[first];
        int8_t *pixel = output + first;

        for (int32_t left = pixels; left > 0; --left) {
            *pixel = value;
            pixel += pixel_bytes;
        }
    }
}

static void store_all_fixed(const struct ferrule_depthwise_lines_params *params, int8_t *output)
{
    int32_t first = 0;

    for (int32_t i = 0; i < params->live_c; ++i) {
        store_fixed(params, first, params->positions[i], output);
        first = params->positions[i] + 1;
    }
    store_fixed(params, first, params->channels, output);
}

static uint32_t half(uint32_t weights)
{
    return ((weights >> 1) & 0x7fff7fffu) | (weights & 0x80008000u);
}

static void convolve(const struct ferrule_depthwise_lines_params *params, const int8_t *input,
                     int8_t *output, uint32_t *lines, const struct ferrule_depthwise_way *way)
{
    const int32_t *weights = params->weights;
    const int32_t *scale = params->scales;
    struct four four = {.channel_words = LINES * params->words};
    struct ferrule_depthwise_channel channels[FOUR];
    struct ferrule_depthwise_line line = {.channels = channels,
                                          .steps = params->output_steps,
                                          .step_bytes = params->output_step_bytes};

    for (int32_t done = 0; done < params->live_c; done += FOUR) {
        const int16_t *positions = params->positions + done;
        int32_t last = params->live_c - done < FOUR ? params->live_c - done - 1 : FOUR - 1;

        for (int32_t i = 0; i <= last; ++i) {
            struct ferrule_depthwise_channel *channel = &channels[i];

            channel->words = lines + i * four.channel_words;
            channel->end = channel->words + LINES * (params->output_steps / way->outputs);
            channel->offset_bytes = positions[i];
            channel->bias = scale[1];
            channel->bias_again = scale[1];
            channel->multiplier = (int32_t)((uint32_t)scale[0] & (uint32_t)INT32_MAX);
            way->turn(weights, channel->weights);
            for (int32_t k = 0; scale[0] < 0 && k < way->words; ++k) {
                channel->weights[k] = half(channel->weights[k]);
            }
            weights += LINES;
            scale += FERRULE_PROVED_WORDS;
        }
        for (int32_t i = 1; i < FOUR; ++i) {
            four.offsets[i - 1] = positions[i < last ? i : last] - positions[0];
        }
        four.source = input + positions[0];
        line.end = channels + last + 1;
        line.output = output;
        convolve_four(params, &four, &line, lines, way);
    }
}

void ferrule_depthwise_lines(const struct ferrule_depthwise_lines_params *params,
                             const int8_t *input, int8_t *output, uint32_t *scratch,
                             const struct ferrule_depthwise_way *way)
{
    for (int32_t i = 0; i < LINES; ++i) {
        fill(scratch + i, params->words,
             ferrule_pair(params->input_zero_point, params->input_zero_point));
    }
    for (int32_t b = 0; b < params->batches; ++b) {
        convolve(params, input, output, scratch, way);
        if (params->fixed != NULL) {
            store_all_fixed(params, output);
        }
        input += params->input_lines * params->input_steps * params->channels;
        output += params->output_lines * params->output_steps * params->channels;
    }
}
