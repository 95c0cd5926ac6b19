/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CIRCULAR_BUFFER. Any context; the kernels keep no state between calls.
 */
#ifndef FERRULE_KERNELS_CIRCULAR_BUFFER_H_INCLUDED
#define FERRULE_KERNELS_CIRCULAR_BUFFER_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_circular_buffer_params {
    int32_t frame;  /**< elements of a frame */
    int32_t others; /**< elements of all other frames of the buffer */
    int32_t cycles; /**< runs of a period */
};

/**
 * @brief Append a frame to a buffer, whose first frame is dropped, and copy the buffer.
 *
 * The new frames may lie at the old ones, or in front of them; the output has memory of its own.
 */
void ferrule_circular_buffer_s8(const struct ferrule_circular_buffer_params *params,
                                const int8_t *input, const int8_t *frames, int8_t *output,
                                int8_t *next);

/** @brief As ferrule_circular_buffer_s8; a count of runs begins with 0 again after each period. */
void ferrule_circular_buffer_counted_s8(const struct ferrule_circular_buffer_params *params,
                                        const int8_t *input, const int8_t *frames,
                                        const int32_t *count, int8_t *output, int8_t *next,
                                        int32_t *next_count);

/** @brief The part that both kernels have. */
static inline void ferrule_append_frame(const struct ferrule_circular_buffer_params *params,
                                        const int8_t *input, const int8_t *frames, int8_t *output,
                                        int8_t *next)
{
    const int32_t others = params->others;

    for (int32_t i = 0; i < others; ++i) {
        int8_t value = frames[i + params->frame];

        next[i] = value;
        output[i] = value;
    }
    for (int32_t i = 0; i < params->frame; ++i) {
        next[others + i] = input[i];
        output[others + i] = input[i];
    }
}

#ifdef __cplusplus
}
#endif

#endif
