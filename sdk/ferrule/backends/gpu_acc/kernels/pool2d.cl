// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D and MAX_POOL_2D: one element per work item; padded pixels do not count.

struct pool_area {
    int top, bottom, left, right; // bottom and right are exclusive
    int place;                    // index of the channel in the image's first pixel
};

static struct pool_area area_of(__constant const struct window_parameters *p, int element)
{
    const int pixel = element / p->channels;
    const int row = pixel / p->output_width;
    const int image = row / p->output_height;
    const int top = (row - image * p->output_height) * p->stride_h - p->padding_top;
    const int left = (pixel - row * p->output_width) * p->stride_w - p->padding_left;
    struct pool_area area;
    area.top = max(top, 0);
    area.bottom = min(top + p->window_height, p->height);
    area.left = max(left, 0);
    area.right = min(left + p->window_width, p->width);
    area.place = image * p->height * p->width * p->channels + element - pixel * p->channels;
    return area;
}

__kernel void average_pool_2d_s8(__constant const struct window_parameters *p, __global const char *input,
                                 __global char *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items * p->channels) {
        return;
    }
    const struct pool_area area = area_of(p, element);
    int sum = 0;
    for (int y = area.top; y < area.bottom; ++y) {
        for (int x = area.left; x < area.right; ++x) {
            sum += input[area.place + (y * p->width + x) * p->channels];
        }
    }
    // halves are rounded away from zero
    const int count = (area.bottom - area.top) * (area.right - area.left);
    const int magnitude = ((sum < 0 ? -sum : sum) + count / 2) / count;
    output[element] = (char)min(max(sum < 0 ? -magnitude : magnitude, p->low), p->high);
}

__kernel void max_pool_2d_s8(__constant const struct window_parameters *p, __global const char *input,
                             __global char *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items * p->channels) {
        return;
    }
    const struct pool_area area = area_of(p, element);
    int highest = CHAR_MIN;
    for (int y = area.top; y < area.bottom; ++y) {
        for (int x = area.left; x < area.right; ++x) {
            highest = max(highest, (int)input[area.place + (y * p->width + x) * p->channels]);
        }
    }
    output[element] = (char)min(max(highest, p->low), p->high);
}
