/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What kernels of DEPTHWISE_CONV_2D share: the parts of the image of a dilated window, the
 * channels that are widened together, and output channels that have no weights.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_PARTS_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_PARTS_H_INCLUDED

#include <stdbool.h>
#include <stddef.h>
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

/** @brief Return the place of a channel in a pixel; without a list, all are in order. */
static inline int32_t ferrule_place(const int16_t *places, int32_t index)
{
    return places != NULL ? places[index] : index;
}

/** @brief Place `count` channels from `first` on in a group, and return the place of the first; the
 * last one stands for missing ones. */
static inline int32_t ferrule_place_group(struct ferrule_window_group *group, const int16_t *places,
                                          int32_t first, int32_t count)
{
    int32_t start = ferrule_place(places, first);

    for (int32_t i = 1; i < FERRULE_WINDOW_GROUP; ++i) {
        int32_t index = first + (i < count ? i : count - 1);

        group->offsets[i - 1] = ferrule_place(places, index) - start;
    }
    group->is_adjacent = group->offsets[0] == 1 && group->offsets[1] == 2 && group->offsets[2] == 3;
    return start;
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
    /** ferrule_store_dead(), or null if there are none: then a model does not contain it. */
    void (*store)(const struct ferrule_dead *dead, int8_t *output, int32_t pixels,
                  int32_t channels);
    const uint32_t *mask; /**< bit c % 32 of word c / 32 is 1 for such a channel c */
    const int8_t *fixed;  /**< an output pixel, whose values there they store */
};

/** @brief Store these channels in all pixels of so many channels. */
void ferrule_store_dead(const struct ferrule_dead *dead, int8_t *output, int32_t pixels,
                        int32_t channels);

#endif
