// SPDX-License-Identifier: Apache-2.0
// DEPTHWISE_CONV_2D: 8 output channels per work item.
// weights: [height][width][channel_stride]; channels: bias, multiplier and shift of each.

// the input values for 8 output channels, starting with `first`; lanes beyond the last channel are undefined
static int8 load_channels(__constant const struct window_parameters *p, __global const char *pixel, int first)
{
    if (p->multiplier == 1 && first + 8 <= p->channels) {
        return convert_int8(vload8(0, pixel + first));
    }
    int lanes[8];
    for (int lane = 0; lane < 8; ++lane) {
        lanes[lane] = pixel[min((first + lane) / p->multiplier, p->channels - 1)];
    }
    return vload8(0, lanes);
}

__kernel void depthwise_conv2d_s8(__constant const struct window_parameters *p, __global const int *channels,
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
            __global const char *source = input + ((image * p->height + in_y) * p->width + in_x) * p->channels;
            __global const char *taps = weights + (y * p->window_width + x) * p->channel_stride + first;
            const int8 values = load_channels(p, source, first) - (int8)(p->input_zero_point);
            sums += as_uint8(values * convert_int8(vload8(0, taps)));
        }
    }
    store_channels(p, channels, sums, first, output + (long)pixel * p->output_channels);
}
