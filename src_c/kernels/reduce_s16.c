/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/reduce.h"
#include "ferrule/kernels/walk.h"

/* Adjacent channels that are added up together. */
#if FERRULE_HAS_MVE
enum { BLOCK = 8 };
#elif FERRULE_HAS_DSP
enum { BLOCK = 4 };
#else
enum { BLOCK = 1 };
#endif

/* Add elements that are `stride` apart to the sums of a block of channels; the sums wrap. */
static inline void add_block(const int16_t *element, int32_t count, int32_t stride, uint32_t *sums)
{
#if FERRULE_HAS_MVE
    __asm__ volatile("vldrw.u32 q0, [%[sums]]\n\t"
                     "vldrw.u32 q1, [%[sums], #16]\n\t"
                     "dls lr, %[count]\n\t"
                     "1:\n\t"
                     "vldrh.s32 q2, [%[element]]\n\t"
                     "vldrh.s32 q3, [%[element], #8]\n\t"
                     "add %[element], %[element], %[step]\n\t"
                     "vadd.i32 q0, q0, q2\n\t"
                     "vadd.i32 q1, q1, q3\n\t"
                     "le lr, 1b\n\t"
                     "vstrw.32 q0, [%[sums]]\n\t"
                     "vstrw.32 q1, [%[sums], #16]\n\t"
                     : [element] "+l"(element)
                     : [count] "r"(count), [step] "r"(2 * stride), [sums] "r"(sums)
                     : "lr", "q0", "q1", "q2", "q3", "memory");
#elif FERRULE_HAS_DSP
    uint32_t a = sums[0];
    uint32_t b = sums[1];
    uint32_t c = sums[2];
    uint32_t d = sums[3];

    for (; count > 0; --count) {
        const uint32_t low = ferrule_load_word((const int8_t *)element);
        const uint32_t high = ferrule_load_word((const int8_t *)&element[2]);

        a += (uint32_t)(int16_t)low;
        b += (uint32_t)((int32_t)low >> 16);
        c += (uint32_t)(int16_t)high;
        d += (uint32_t)((int32_t)high >> 16);
        element += stride;
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
#else
    uint32_t sum = sums[0];

    for (; count > 0; --count) {
        const int32_t value = *element;

        sum += (uint32_t)value;
        element += stride;
    }
    sums[0] = sum;
#endif
}

/* Return the sum of adjacent elements; it wraps. */
static inline uint32_t sum_of_run(const int16_t *element, int32_t count)
{
    uint32_t sum = 0;
#if FERRULE_HAS_MVE
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n\t"
                     "1:\n\t"
                     "vldrh.u16 q0, [%[element]], #16\n\t"
                     "vaddva.s16 %[sum], q0\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [element] "+l"(element), [sum] "+Te"(sum)
                     : [count] "r"(count)
                     : "lr", "q0", "memory");
#else
#if FERRULE_HAS_DSP
    for (; count > 3; count -= 4) {
        sum =
            ferrule_dual_multiply_add(ferrule_load_word((const int8_t *)element), 0x00010001, sum);
        sum = ferrule_dual_multiply_add(ferrule_load_word((const int8_t *)&element[2]), 0x00010001,
                                        sum);
        element += 4;
    }
#endif
    for (; count > 0; --count) {
        const int32_t value = *element++;

        sum += (uint32_t)value;
    }
#endif
    return sum;
}

/* Set the sums of a block of channels. */
static __attribute__((noinline)) void sum_block(const struct ferrule_reduce_loops *over,
                                                const int16_t *input, uint32_t *sums)
{
    struct ferrule_walk walk = {.offset = 0};

    for (int32_t c = 0; c < BLOCK; ++c) {
        sums[c] = 0;
    }
    do {
        add_block(input + walk.offset, over->extents[3], over->strides[3], sums);
    } while (ferrule_walk_next(&walk, over, 3));
}

/* Return the sum of any elements. */
static __attribute__((noinline)) uint32_t sum_of(const struct ferrule_reduce_loops *over,
                                                 const int16_t *input)
{
    const int32_t extent = over->extents[3];
    const int32_t stride = over->strides[3];
    struct ferrule_walk walk = {.offset = 0};
    uint32_t sum = 0;

    do {
        const int16_t *element = input + walk.offset;

        if (stride == 1) {
            sum += sum_of_run(element, extent);
        } else {
            for (int32_t i = 0; i < extent; ++i) {
                const int32_t value = element[i * stride];

                sum += (uint32_t)value;
            }
        }
    } while (ferrule_walk_next(&walk, over, 3));
    return sum;
}

static int16_t result(const struct ferrule_reduce_int_params *params, uint32_t sum)
{
    const int32_t centred = ferrule_add_wrap((int32_t)sum, params->offset);
    const int32_t value = ferrule_requantize(centred, params->multiplier, params->shift);

    return (int16_t)ferrule_clamp(ferrule_add_wrap(value, params->output_zero_point), INT16_MIN,
                                  INT16_MAX);
}

void ferrule_reduce_s16(const struct ferrule_reduce_int_params *params, const int16_t *input,
                        int16_t *output)
{
    const struct ferrule_reduce_loops *kept = &params->kept;
    const struct ferrule_reduce_loops *reduced = &params->reduced;
    const int32_t stride = kept->strides[3];
    const int32_t rows = reduced->extents[0] * reduced->extents[1] * reduced->extents[2];
    const bool is_run = rows == 1 && reduced->strides[3] == 1;
    const int32_t block = stride == 1 && !is_run ? BLOCK : 1;
    struct ferrule_walk walk = {.offset = 0};
    uint32_t sums[BLOCK];

    do {
        const int16_t *element = input + walk.offset;
        int32_t channels;

        for (int32_t left = kept->extents[3]; left > 0; left -= channels) {
            channels = left < block ? 1 : block;
            if (is_run) {
                sums[0] = sum_of_run(element, reduced->extents[3]);
            } else if (channels > 1) {
                sum_block(reduced, element, sums);
            } else {
                sums[0] = sum_of(reduced, element);
            }
            for (int32_t c = 0; c < channels; ++c) {
                *output++ = result(params, sums[c]);
            }
            element += channels * stride;
        }
    } while (ferrule_walk_next(&walk, kept, 3));
}
