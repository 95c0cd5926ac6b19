/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file SVDF with vector instructions (MVE), for a type of the state. A kernel's source file
 * defines FERRULE_STATE and FERRULE_KERNEL, and for the assembler
 *
 * FERRULE_NEWEST(q, values)  stores the frames in a vector of int16, post-incremented
 * FERRULE_SIZE               b or h
 * FERRULE_BITS               8 or 16
 * FERRULE_SCALE              log2 of the bytes of a frame
 *
 * then includes this file.
 */
#include "ferrule/kernels/svdf_tile.inc.h"

#if FERRULE_HAS_MVE

/* A factor: what shifts to the left and, as negative numbers, to the right and to the sign. Without
 * a shift to the right nothing is rounded twice. */
struct ferrule_vector_factor {
    int32_t multiplier;
    int32_t left;
    int32_t right;
    int32_t below;
};

static inline struct ferrule_vector_factor vector_factor(int32_t multiplier, int32_t shift)
{
    return (struct ferrule_vector_factor){multiplier, shift > 0 ? shift : 0, shift < 0 ? shift : 0,
                                          shift < 0 ? -31 : -32};
}

/* The newest frames of whole blocks of filters. */
static void newest_frames(const struct ferrule_svdf_rows_params *params, const int32_t *sums,
                          FERRULE_STATE *newest, int32_t filled)
{
    const struct ferrule_vector_factor factor =
        vector_factor(params->state_multiplier, params->state_shift);

    __asm__ volatile("vdup.32 q3, %[below]\n\t"
                     "vdup.8 q4, %[zero_point]\n\t"
                     "dls lr, %[blocks]\n\t"
                     "1:\n\t"
                     "vldrw.u32 q0, [%[sums]], #16\n\t"
                     "vldrw.u32 q1, [%[sums]], #16\n\t"
                     "vshl.s32 q0, %[left]\n\t"
                     "vshl.s32 q1, %[left]\n\t"
                     "vqrdmulh.s32 q0, q0, %[multiplier]\n\t"
                     "vqrdmulh.s32 q1, q1, %[multiplier]\n\t"
                     "vshl.u32 q2, q0, q3\n\t"
                     "vsub.i32 q0, q0, q2\n\t"
                     "vshl.u32 q2, q1, q3\n\t"
                     "vsub.i32 q1, q1, q2\n\t"
                     "vrshl.s32 q0, %[right]\n\t"
                     "vrshl.s32 q1, %[right]\n\t"
                     "vqmovnb.s32 q0, q0\n\t"
                     "vqmovnt.s32 q0, q1\n\t" FERRULE_NEWEST("q0", "%[newest]") "le lr, 1b\n\t"
                     : [sums] "+r"(sums), [newest] "+l"(newest)
                     : [blocks] "r"(filled / FERRULE_VECTOR_CHANNELS), [left] "r"(factor.left),
                       [multiplier] "r"(factor.multiplier), [right] "r"(factor.right),
                       [below] "r"(factor.below), [zero_point] "r"(params->state_zero_point)
                     : "lr", "q0", "q1", "q2", "q3", "q4", "memory");
}

/* Puts the newest frame of each filter behind its others, and sums the products. */
static void sum_products(FERRULE_STATE *next, const FERRULE_STATE *weights,
                         const FERRULE_STATE *newest, int32_t *sums, int32_t filters,
                         int32_t memory)
{
    const FERRULE_STATE *frames;
    const FERRULE_STATE *factors;
    int32_t sum;

    __asm__ volatile("1:\n\t"
                     "ldrs" FERRULE_SIZE " %[sum], [%[newest]], #%c[bytes]\n\t"
                     "mov %[frames], %[next]\n\t"
                     "add %[next], %[next], %[memory], lsl #" FERRULE_SCALE "\n\t"
                     "str" FERRULE_SIZE " %[sum], [%[next], #-%c[bytes]]\n\t"
                     "mov %[factors], %[weights]\n\t"
                     "add %[weights], %[weights], %[memory], lsl #" FERRULE_SCALE "\n\t"
                     "movs %[sum], #0\n\t"
                     "dlstp." FERRULE_BITS " lr, %[memory]\n\t"
                     "2:\n\t"
                     "vldr" FERRULE_SIZE ".u" FERRULE_BITS " q0, [%[frames]], #16\n\t"
                     "vldr" FERRULE_SIZE ".u" FERRULE_BITS " q1, [%[factors]], #16\n\t"
                     "vmladava.s" FERRULE_BITS " %[sum], q0, q1\n\t"
                     "letp lr, 2b\n\t"
                     "str %[sum], [%[sums]], #4\n\t"
                     "subs %[filters], %[filters], #1\n\t"
                     "bne 1b\n\t"
                     : [next] "+r"(next), [weights] "+r"(weights), [newest] "+r"(newest),
                       [sums] "+r"(sums), [filters] "+r"(filters), [frames] "=&r"(frames),
                       [factors] "=&r"(factors), [sum] "=&Te"(sum)
                     : [memory] "r"(memory), [bytes] "i"(sizeof(FERRULE_STATE))
                     : "cc", "lr", "q0", "q1", "memory");
}

/* The same for an even number of filters with frames of eight bytes, two in a vector. */
static void sum_pairs(FERRULE_STATE *next, const FERRULE_STATE *weights,
                      const FERRULE_STATE *newest, int32_t *sums, int32_t filters)
{
    int32_t first;
    int32_t second;

    __asm__ volatile("movs %[first], #8\n\t"
                     "vctp.8 %[first]\n\t"
                     "dls lr, %[pairs]\n\t"
                     "1:\n\t"
                     "ldrs" FERRULE_SIZE " %[first], [%[newest]], #%c[bytes]\n\t"
                     "ldrs" FERRULE_SIZE " %[second], [%[newest]], #%c[bytes]\n\t"
                     "str" FERRULE_SIZE " %[first], [%[next], #8-%c[bytes]]\n\t"
                     "str" FERRULE_SIZE " %[second], [%[next], #16-%c[bytes]]\n\t"
                     "vldr" FERRULE_SIZE ".u" FERRULE_BITS " q0, [%[next]], #16\n\t"
                     "vldr" FERRULE_SIZE ".u" FERRULE_BITS " q1, [%[weights]], #16\n\t"
                     "vmladav.s" FERRULE_BITS " %[second], q0, q1\n\t"
                     "vpst\n\t"
                     "vmladavt.s" FERRULE_BITS " %[first], q0, q1\n\t"
                     "subs %[second], %[second], %[first]\n\t"
                     "strd %[first], %[second], [%[sums]], #8\n\t"
                     "le lr, 1b\n\t"
                     : [next] "+r"(next), [weights] "+r"(weights), [newest] "+r"(newest),
                       [sums] "+r"(sums), [first] "=&Te"(first), [second] "=&Te"(second)
                     : [pairs] "r"(filters / 2), [bytes] "i"(sizeof(FERRULE_STATE))
                     : "cc", "lr", "q0", "q1", "memory");
}

/* Stores the units from their sums. */
static void store_units(const struct ferrule_svdf_tile *tile, const int32_t *sums)
{
    const struct ferrule_svdf_rows_params *params = tile->params;
    const struct ferrule_vector_factor factor =
        vector_factor(params->output_multiplier, params->output_shift);
    const int32_t *bias = tile->bias;
    int8_t *output = tile->output;

    __asm__ volatile("vdup.32 q2, %[below]\n\t"
                     "dlstp.32 lr, %[units]\n\t"
                     "1:\n\t"
                     "vldrw.u32 q0, [%[sums]], #16\n\t"
                     "vldrw.u32 q1, [%[bias]], #16\n\t"
                     "vadd.i32 q0, q0, q1\n\t"
                     "vshl.s32 q0, %[left]\n\t"
                     "vqrdmulh.s32 q0, q0, %[multiplier]\n\t"
                     "vshl.u32 q1, q0, q2\n\t"
                     "vsub.i32 q0, q0, q1\n\t"
                     "vrshl.s32 q0, %[right]\n\t"
                     "vadd.i32 q0, q0, %[zero_point]\n\t"
                     "vqmovnb.s32 q0, q0\n\t"
                     "vqmovnb.s16 q0, q0\n\t"
                     "vstrb.32 q0, [%[output]], #4\n\t"
                     "letp lr, 1b\n\t"
                     : [sums] "+r"(sums), [bias] "+r"(bias), [output] "+l"(output)
                     : [units] "r"(tile->units), [left] "r"(factor.left),
                       [multiplier] "r"(factor.multiplier), [right] "r"(factor.right),
                       [below] "r"(factor.below), [zero_point] "r"(params->output_zero_point)
                     : "lr", "q0", "q1", "q2", "memory");
}

static void advance(const struct ferrule_svdf_tile *tile, int32_t *sums, int32_t filled)
{
    const struct ferrule_svdf_shape *shape = &tile->params->shape;
    const int32_t filters = tile->units * shape->rank;
    const int32_t moved = (filters * shape->memory - 1) * (int32_t)sizeof(FERRULE_STATE);
    FERRULE_STATE *newest = (FERRULE_STATE *)(void *)(sums + filled);

    newest_frames(tile->params, sums, newest, filled);
    ferrule_mve_copy((int8_t *)(void *)tile->next, (const int8_t *)(const void *)(tile->state + 1),
                     moved);
    if (shape->memory * (int32_t)sizeof(FERRULE_STATE) == 8 && filters % 2 == 0) {
        sum_pairs(tile->next, tile->weights, newest, sums, filters);
    } else {
        sum_products(tile->next, tile->weights, newest, sums, filters, shape->memory);
    }
    if (shape->rank > 1) {
        for (int32_t u = 0; u < tile->units; ++u) {
            int32_t sum = sums[u * shape->rank];

            for (int32_t r = 1; r < shape->rank; ++r) {
                sum = ferrule_add_wrap(sum, sums[u * shape->rank + r]);
            }
            sums[u] = sum;
        }
    }
    store_units(tile, sums);
}

#else

static void advance(const struct ferrule_svdf_tile *tile, int32_t *sums, int32_t filled)
{
    const int32_t filters = tile->units * tile->params->shape.rank;

    ferrule_vector_order(sums, filled);
    ferrule_newest_frames(tile->params, sums, filters);
    ferrule_advance_filters(tile, sums, filters);
    ferrule_store_units(tile, sums);
}

#endif

#define FERRULE_ENGINE(name) ferrule_vector_##name
#define FERRULE_CHANNELS     FERRULE_VECTOR_CHANNELS
#define FERRULE_NEWEST_BYTES 2
#include "ferrule/kernels/svdf_rows.inc.h"
