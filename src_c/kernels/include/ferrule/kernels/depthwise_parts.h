/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What kernels of DEPTHWISE_CONV_2D share: the parts of the image of a dilated window, the
 * channels that are widened together, and output channels that have no weights.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_PARTS_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_PARTS_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

/** One axis of a layer. */
struct ferrule_axis {
    int32_t input_extent;
    int32_t output_extent;
    int32_t input_bytes;  /**< between neighbouring indices */
    int32_t output_bytes; /**< between neighbouring indices */
    int32_t stride;       /**< of the window */
    int32_t dilation;     /**< of the window */
    int32_t pad;          /**< before the first index */
    int32_t parts; /**< of the outputs: the dilation, divided by what the stride divides, too */
    int32_t part_stride; /**< of the window in a part: stride * parts / dilation */
};

/** The part of an axis to which every `parts`-th output belongs, where the window is not dilated.
 */
struct ferrule_axis_part {
    int32_t input_offset;  /**< of the first index, in bytes */
    int32_t output_offset; /**< the same */
    int32_t inputs;
    int32_t outputs;
    int32_t input_bytes;
    int32_t output_bytes;
    int32_t stride;
    int32_t pad;
};

/** @brief Return a part of an axis; `index` is that of its first output. */
struct ferrule_axis_part ferrule_axis_part(const struct ferrule_axis *axis, int32_t index);

/** The most channels in scratch at a time. */
enum { FERRULE_WINDOW_GROUP = 4 };

/** The channels that are widened together. */
struct ferrule_window_group {
    int32_t offsets[FERRULE_WINDOW_GROUP - 1]; /**< of the others from the first one, in bytes */
    int32_t channel_words;                     /**< from a channel to the next one in scratch */
    int32_t step_bytes;                        /**< between neighbouring pixels */
    int32_t word_bytes; /**< between the first pixels of neighbouring words */
    bool is_adjacent;   /**< whether they are four neighbouring ones */
};

/** @brief Place the first `count` input channels in a group; the last one stands for missing ones.
 */
static inline void ferrule_place_group(struct ferrule_window_group *group, const int16_t *inputs,
                                       int32_t count)
{
    for (int32_t i = 1; i < FERRULE_WINDOW_GROUP; ++i) {
        group->offsets[i - 1] = inputs[i < count ? i : count - 1] - inputs[0];
    }
    group->is_adjacent = group->offsets[0] == 1 && group->offsets[1] == 2 && group->offsets[2] == 3;
}

/** Pixels of a line of one part that become words of a row. */
struct ferrule_window_run {
    int32_t source_bytes; /**< from the first pixel of the line to that of the first whole word */
    int32_t target;       /**< index of that word in the line */
    int32_t count;        /**< whole words */
    bool has_left;        /**< whether only the second pixel of the word before is inside */
    bool has_right;       /**< whether only the first pixel of the word after is inside */
};

/** Lines that are widened together. */
struct ferrule_window_lines {
    int32_t count;        /**< a positive number */
    int32_t source_bytes; /**< between neighbouring lines */
    int32_t target_words; /**< the same */
};

/** The output channels that have no weights. */
struct ferrule_dead {
    int32_t count;
    const int16_t *channels; /**< their places in an output pixel, ascending */
    const int8_t *fixed;     /**< an output pixel, whose values there they store */
};

/** @brief Store these channels in all pixels. */
void ferrule_store_dead(const struct ferrule_dead *dead, int8_t *output, int32_t pixels,
                        int32_t pixel_bytes);

#endif
