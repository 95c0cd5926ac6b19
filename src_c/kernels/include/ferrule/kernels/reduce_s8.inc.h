/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a kernel with sums of int8 over any axes. A kernel's source file defines these
 * names, then includes this file:
 *
 * FERRULE_KERNEL            name of the kernel
 * FERRULE_PARAMS            struct tag of the parameters
 * store(params, sum)        returns the output of a sum; sums wrap at 32 bits
 *
 * An output is written when its inputs and those of earlier outputs have been read; of adjacent
 * inputs, those of FERRULE_CHANNEL_SUMS outputs are read together.
 */
#include "ferrule/kernels/channel_sums.inc.h"
#include "ferrule/kernels/walk.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_PARAMS)
#error "define the names listed at the top of this file"
#endif

/* Set the sums of adjacent channels, at most FERRULE_CHANNEL_SUMS. */
static __attribute__((noinline)) void sum_channels(const struct ferrule_reduce_loops *over,
                                                   const int8_t *input, int32_t channels,
                                                   int32_t *sums)
{
    const struct ferrule_channel_pixels pixels = {over->extents[2], over->extents[3],
                                                  over->strides[2], over->strides[3]};
    struct ferrule_walk walk = {.offset = 0};
    int32_t part[FERRULE_CHANNEL_SUMS];

    for (int32_t c = 0; c < channels; ++c) {
        sums[c] = 0;
    }
    do {
        ferrule_channel_sums(&pixels, input + walk.offset, channels, part);
        for (int32_t c = 0; c < channels; ++c) {
            sums[c] = ferrule_add_wrap(sums[c], part[c]);
        }
    } while (ferrule_walk_next(&walk, over, 2));
}

/* Return the sum of elements of which the innermost ones are adjacent. */
static __attribute__((noinline)) int32_t sum_rows(const struct ferrule_reduce_loops *over,
                                                  const int8_t *input)
{
    struct ferrule_walk walk = {.offset = 0};
    int32_t total = 0;

    do {
        total = ferrule_add_wrap(total, ferrule_sum_run(input + walk.offset, over->extents[3]));
    } while (ferrule_walk_next(&walk, over, 3));
    return total;
}

static __attribute__((noinline)) int32_t sum_row(const int8_t *input, int32_t count)
{
    return ferrule_sum_run(input, count);
}

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const int8_t *input, int8_t *output)
{
    const struct ferrule_reduce_loops *reduced = &params->reduced;
    const int32_t stride = params->kept.strides[3];
    const int32_t most = stride == 1 ? FERRULE_CHANNEL_SUMS : 1;
    struct ferrule_walk walk = {.offset = 0};
    const bool adjacent = reduced->strides[3] == 1;
    const bool row = reduced->extents[0] * reduced->extents[1] * reduced->extents[2] == 1;
    int32_t sums[FERRULE_CHANNEL_SUMS];

    do {
        const int8_t *element = input + walk.offset;
        int32_t channels = most;

        for (int32_t left = params->kept.extents[3]; left > 0; left -= channels) {
            channels = left < most ? left : most;
            if (adjacent) {
                channels = 1;
                sums[0] = row ? sum_row(element, reduced->extents[3]) : sum_rows(reduced, element);
            } else {
                sum_channels(reduced, element, channels, sums);
            }
            for (int32_t c = 0; c < channels; ++c) {
                *output++ = store(params, sums[c]);
            }
            element += channels * stride;
        }
    } while (ferrule_walk_next(&walk, &params->kept, 3));
}
