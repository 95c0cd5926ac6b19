/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>

#include "weights.h"

#define MAX_EXTENT 65536u /* no number of an order is larger */
#define MAX_TILE   8u

/* The weights that are left of a stream. */
struct source {
    const int16_t *next;
    uint64_t left;
};

/* A part of the kernel, of a block of output channels and a block of input channels. */
struct tile {
    uint32_t first_output;
    uint32_t end_output;
    uint32_t first_input;
    uint32_t end_input;
    uint32_t top;
    uint32_t height;
    uint32_t left;
    uint32_t width;
};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool is_sound(const struct ferrule_weight_order *order, uint64_t out_count)
{
    const uint32_t extents[] = {
        order->ofm_depth,        order->input_channels,    order->kernel_height,
        order->kernel_width,     order->ofm_block_depth,   order->ifm_block_depth,
        order->ofm_ublock_depth, order->input_group_depth, order->tile_height,
        order->tile_width,       order->tap_multiple,
    };

    for (uint32_t i = 0; i < sizeof extents / sizeof extents[0]; ++i) {
        if (extents[i] == 0 || extents[i] > MAX_EXTENT) {
            return false;
        }
    }
    if (order->tile_height > MAX_TILE || order->tile_width > MAX_TILE) {
        return false;
    }
    const uint64_t taps = (uint64_t)order->kernel_height * order->kernel_width;
    const uint64_t kernels = taps * order->ofm_depth; /* 2^48 at most */
    return out_count % order->input_channels == 0 && out_count / order->input_channels == kernels;
}

/* Stores the weights of one tap: a group of input channels for each output channel of a group. */
static bool put_group(const struct ferrule_weight_order *order, const struct tile *tile,
                      uint32_t output, uint32_t tap, uint32_t input, struct source *source,
                      int16_t *out)
{
    const uint32_t row = tile->top + tap / tile->width;
    const uint32_t column = tile->left + tap % tile->width;
    const uint32_t inputs =
        input < tile->end_input ? least(order->input_group_depth, tile->end_input - input) : 0;
    const uint64_t count = (uint64_t)order->ofm_ublock_depth * order->input_group_depth;

    if (count > source->left) {
        return false;
    }
    for (uint32_t i = 0; i < order->ofm_ublock_depth && output + i < order->ofm_depth; ++i) {
        if (tap >= tile->width * tile->height) {
            break;
        }
        const uint64_t kernel =
            ((uint64_t)(output + i) * order->kernel_height + row) * order->kernel_width + column;
        for (uint32_t j = 0; j < inputs; ++j) {
            out[kernel * order->input_channels + input + j] =
                source->next[(uint64_t)i * order->input_group_depth + j];
        }
    }
    source->next += count;
    source->left -= count;
    return true;
}

/* The groups of input channels are outside of those of output channels in the part-kernel order,
 * and inside of the taps otherwise. */
static bool put_tile(const struct ferrule_weight_order *order, const struct tile *tile,
                     uint32_t end_input, struct source *source, int16_t *out)
{
    const uint32_t multiple = order->tap_multiple;
    const uint32_t taps = (tile->height * tile->width + multiple - 1) / multiple * multiple;
    const uint32_t step = order->input_group_depth;
    const uint32_t all = end_input - tile->first_input;
    const uint32_t inner = order->is_part_kernel != 0 ? step : all;

    for (uint32_t outer = 0; outer < all; outer += inner) {
        for (uint32_t output = tile->first_output; output < tile->end_output;
             output += order->ofm_ublock_depth) {
            for (uint32_t tap = 0; tap < taps; ++tap) {
                for (uint32_t input = outer; input < outer + inner; input += step) {
                    if (!put_group(order, tile, output, tap, tile->first_input + input, source,
                                   out)) {
                        return false;
                    }
                }
            }
        }
    }
    return true;
}

static bool put_block(const struct ferrule_weight_order *order, struct tile *tile,
                      struct source *source, int16_t *out)
{
    const bool clips = order->is_part_kernel != 0;
    const uint32_t end_input = clips ? tile->end_input : tile->first_input + order->ifm_block_depth;

    for (tile->top = 0; tile->top < order->kernel_height; tile->top += order->tile_height) {
        tile->height = least(order->tile_height, order->kernel_height - tile->top);
        for (tile->left = 0; tile->left < order->kernel_width; tile->left += order->tile_width) {
            tile->width = least(order->tile_width, order->kernel_width - tile->left);
            if (!put_tile(order, tile, end_input, source, out)) {
                return false;
            }
        }
    }
    return true;
}

int32_t ferrule_weights_arrange(const int16_t *stream, uint64_t count,
                                const struct ferrule_weight_order *order, int16_t *out,
                                uint64_t out_count)
{
    struct source source = {.next = stream, .left = count};
    struct tile tile = {.first_output = 0};

    if (!is_sound(order, out_count)) {
        return FERRULE_WEIGHTS_ORDER;
    }
    for (; tile.first_output < order->ofm_depth; tile.first_output += order->ofm_block_depth) {
        tile.end_output =
            tile.first_output + least(order->ofm_block_depth, order->ofm_depth - tile.first_output);
        for (tile.first_input = 0; tile.first_input < order->input_channels;
             tile.first_input += order->ifm_block_depth) {
            tile.end_input = tile.first_input + least(order->ifm_block_depth,
                                                      order->input_channels - tile.first_input);
            if (!put_block(order, &tile, &source, out)) {
                return FERRULE_WEIGHTS_ORDER;
            }
        }
    }
    return FERRULE_WEIGHTS_DONE;
}
