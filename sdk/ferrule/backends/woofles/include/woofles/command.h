/* SPDX-License-Identifier: Apache-2.0 */
/** @file The commands of woofles, with their layout in memory; generated from command.py. */
#ifndef WOOFLES_COMMAND_H
#define WOOFLES_COMMAND_H

#include <stdint.h>

#define WOOFLES_COMMAND_WORDS 40u

enum woofles_operation {
    WOOFLES_ADD = 1,
    WOOFLES_MUL = 2,
    WOOFLES_FULLY_CONNECTED = 3,
    WOOFLES_CONV_2D = 4,
};

/** The error that stopped the device, in STATUS.CODE. */
enum woofles_error {
    WOOFLES_ERROR_NONE = 0,
    WOOFLES_ERROR_COMMAND = 1,
    WOOFLES_ERROR_SHAPE = 2,
    WOOFLES_ERROR_BUS = 3,
    WOOFLES_ERROR_QUEUE = 4,
};

/** Addresses are bus addresses; numbers are signed. Reserved words are zero, and the last word is
 * the inverted sum of all words before it. */
struct woofles_command {
    uint32_t operation;
    uint32_t sequence;
    uint32_t input;
    uint32_t second;
    uint32_t bias;
    uint32_t output;
    uint32_t multipliers;
    uint32_t shifts;
    int32_t count;
    int32_t input_zero_point;
    int32_t second_zero_point;
    int32_t output_zero_point;
    int32_t activation_min;
    int32_t activation_max;
    int32_t left_shift;
    int32_t input_multiplier;
    int32_t input_shift;
    int32_t second_multiplier;
    int32_t second_shift;
    int32_t output_multiplier;
    int32_t output_shift;
    int32_t input_height;
    int32_t input_width;
    int32_t input_channels;
    int32_t output_height;
    int32_t output_width;
    int32_t output_channels;
    int32_t kernel_height;
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t padding_top;
    int32_t padding_left;
    uint32_t reserved[4];
    uint32_t checksum;
};

#endif /* WOOFLES_COMMAND_H */
