// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV: 8 output channels per work item; weights and channels as those of conv2d_s8. The strides are those of
// the output; the padding is what the window of the image's first pixel has above and left of the output.

__kernel void transpose_conv_s8(__constant const struct window_parameters *p, __global const int *channels,
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
    const int bottom = row - image * p->output_height + p->padding_top;
    const int right = pixel - row * p->output_width + p->padding_left;

    uint8 sums = (uint8)(0);
    for (int y = 0; y < p->window_height; ++y) {
        const int in_y = (bottom - y) / p->stride_h;
        if (bottom < y || in_y >= p->height || in_y * p->stride_h != bottom - y) {
            continue;
        }
        for (int x = 0; x < p->window_width; ++x) {
            const int in_x = (right - x) / p->stride_w;
            if (right < x || in_x >= p->width || in_x * p->stride_w != right - x) {
                continue;
            }
            const int depth = p->channels;
            __global const char *source = input + ((image * p->height + in_y) * p->width + in_x) * depth;
            __global const char *taps = weights + (y * p->window_width + x) * depth * p->channel_stride + first;
            for (int c = 0; c < depth; ++c) {
                const int value = source[c] - p->input_zero_point;
                sums += as_uint8((int8)(value) * convert_int8(vload8(0, taps + c * p->channel_stride)));
            }
        }
    }
    store_channels(p, channels, sums, first, output + (long)pixel * p->output_channels);
}
