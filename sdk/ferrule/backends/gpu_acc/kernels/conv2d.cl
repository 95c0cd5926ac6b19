// SPDX-License-Identifier: Apache-2.0
// CONV_2D, one group of channels per launch, and FULLY_CONNECTED: 8 output channels per work item.
// weights: [height][width][input channels][channel_stride]; channels: bias, multiplier and shift of each.

static void store_channels(__constant const struct window_parameters *p, __global const int *channels, uint8 sums,
                           int first, __global char *output)
{
    uint lanes[8];
    vstore8(sums, 0, lanes);
    const int count = min(p->output_channels - first, 8);
    for (int lane = 0; lane < count; ++lane) {
        __global const int *channel = channels + 3 * (first + lane);
        const int sum = (int)(lanes[lane] + (uint)channel[0]);
        output[first + lane] =
            store_s8(rescale(sum, channel[1], channel[2]), p->output_zero_point, p->low, p->high);
    }
}

__kernel void conv2d_s8(__constant const struct window_parameters *p, __global const int *channels,
                        __global const char *weights, __global const char *input, __global char *output,
                        const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int first = 8 * (int)get_global_id(0);
    const int pixel = (int)get_global_id(1);
    if (first >= p->output_channels || pixel >= p->items) {
        return;
    }
    const int row = pixel / p->output_width;
    const int image = row / p->output_height;
    const int top = (row - image * p->output_height) * p->stride_h - p->padding_top;
    const int left = (pixel - row * p->output_width) * p->stride_w - p->padding_left;

    uint8 sums = (uint8)(0);
    for (int y = 0; y < p->window_height; ++y) {
        const int in_y = top + y * p->dilation_h;
        if (in_y < 0 || in_y >= p->height) {
            continue;
        }
        for (int x = 0; x < p->window_width; ++x) {
            const int in_x = left + x * p->dilation_w;
            if (in_x < 0 || in_x >= p->width) {
                continue;
            }
            const int depth = p->channels;
            const int place = (image * p->height + in_y) * p->width + in_x;
            __global const char *source = input + (place * p->groups + p->group) * depth;
            __global const char *taps = weights + (y * p->window_width + x) * depth * p->channel_stride + first;
            for (int c = 0; c < depth; ++c) {
                const int value = source[c] - p->input_zero_point;
                sums += as_uint8((int8)(value) * convert_int8(vload8(0, taps + c * p->channel_stride)));
            }
        }
    }
    const long place = (long)pixel * p->groups + p->group;
    store_channels(p, channels, sums, first, output + place * p->output_channels);
}
