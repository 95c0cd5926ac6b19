// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR: one element per work item. rows, columns: for each of the output's the two pixels that it lies
// between, and the weight of the second one.

struct resize_corners {
    int upper_left, upper_right, lower_left, lower_right; // indices of the input's elements
    int row_weight, column_weight;
};

static struct resize_corners corners_of(__constant const struct window_parameters *p, __global const int *rows,
                                        __global const int *columns, int element)
{
    const int pixel = element / p->channels;
    const int line = pixel / p->output_width;
    const int image = line / p->output_height;
    __global const int *row = rows + 3 * (line - image * p->output_height);
    __global const int *column = columns + 3 * (pixel - line * p->output_width);
    const int channel = element - pixel * p->channels;
    const int upper = (image * p->height + row[0]) * p->width;
    const int lower = (image * p->height + row[1]) * p->width;
    struct resize_corners found;
    found.upper_left = (upper + column[0]) * p->channels + channel;
    found.upper_right = (upper + column[1]) * p->channels + channel;
    found.lower_left = (lower + column[0]) * p->channels + channel;
    found.lower_right = (lower + column[1]) * p->channels + channel;
    found.row_weight = row[2];
    found.column_weight = column[2];
    return found;
}

// weights of 10 bits; halves are rounded away from zero
__kernel void resize_bilinear_s8(__constant const struct window_parameters *p, __global const int *rows,
                                 __global const int *columns, __global const char *input, __global char *output,
                                 const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items) {
        return;
    }
    const struct resize_corners at = corners_of(p, rows, columns, element);
    const int lower = at.row_weight, upper = 1024 - lower;
    const int left = input[at.upper_left] * upper + input[at.lower_left] * lower;
    const int right = input[at.upper_right] * upper + input[at.lower_right] * lower;
    const int sum = left * (1024 - at.column_weight) + right * at.column_weight;
    const int magnitude = ((sum < 0 ? -sum : sum) + (1 << 19)) >> 20;
    output[element] = (char)(sum < 0 ? -magnitude : magnitude);
}

#ifdef cl_khr_fp64
// weights are the bits of float32
__kernel void resize_bilinear_f32(__constant const struct window_parameters *p, __global const int *rows,
                                  __global const int *columns, __global const float *input, __global float *output,
                                  const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items) {
        return;
    }
    const struct resize_corners at = corners_of(p, rows, columns, element);
    const double lower = as_float(at.row_weight), later = as_float(at.column_weight);
    const double left = input[at.upper_left] * (1.0 - lower) + input[at.lower_left] * lower;
    const double right = input[at.upper_right] * (1.0 - lower) + input[at.lower_right] * lower;
    output[element] = convert_float(left * (1.0 - later) + right * later);
}
#endif
