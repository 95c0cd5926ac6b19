/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/batch_matmul.h"
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"

enum {
    COLUMNS = 4,                   /* of a block */
    RUN = FERRULE_HAS_MVE ? 8 : 2, /* products of a column that are adjacent in a block */
    NEXT_RUN = COLUMNS * RUN,      /* elements from the products of a column to the next ones */
    RUN_BYTES = 2 * RUN            /* from a column to the next */
};

/* A row times whole blocks of columns. */
struct row {
    const int16_t *data;
    int16_t *output;
    int32_t columns;
    int32_t multiplier;
    int32_t right; /* as in the parameters, less by one without vectors */
    const int16_t *blocks;
    int32_t length; /* products, or steps of two without vectors */
};

_Static_assert(sizeof(void *) != 4 || offsetof(struct row, blocks) == 20, "used below");

/*
 * A sum of 64 bits times the multiplier is needed in units of 2^32 only: the high word of the low
 * word's product, plus the low word of the high word's.
 */
#if FERRULE_HAS_MVE

__attribute__((naked, noinline, aligned(4))) static void multiply_row(__attribute__((unused))
                                                                      const struct row *row)
{
    __asm__("push {r4-r11, lr}\n\t"
            "sub sp, #36\n\t"
            "movs r1, #0\n\t"
            "vdup.32 q0, r1\n\t"
            "vstrw.32 q0, [sp]\n\t"
            "vstrw.32 q0, [sp, #16]\n\t"
            "ldrd r12, r6, [r0]\n\t"
            "str r12, [sp, #32]\n\t"
            "ldrd r1, r7, [r0, #20]\n\t"
            "ldr r12, [r0, #8]\n\t"
            "ldrd r2, r3, [r0, #12]\n\t"
            "vdup.32 q3, r2\n\t"
            "rsbs r3, r3, #0\n\t"
            "push {r2, r3}\n\t"
            "1:\n\t" /* a block */
            "add r2, sp, #8\n\t"
            "ldr r0, [sp, #40]\n\t"
            "ldm r2, {r2-r5, r8-r11}\n\t"
            "dlstp.16 lr, r7\n\t"
            "2:\n\t"
            "vldrh.u16 q0, [r0], #16\n\t"
            "vldrh.u16 q1, [r1], #16\n\t"
            "vmlaldava.s16 r2, r3, q0, q1\n\t"
            "vldrh.u16 q2, [r1], #16\n\t"
            "vmlaldava.s16 r4, r5, q0, q2\n\t"
            "vldrh.u16 q1, [r1], #16\n\t"
            "vmlaldava.s16 r8, r9, q0, q1\n\t"
            "vldrh.u16 q2, [r1], #16\n\t"
            "vmlaldava.s16 r10, r11, q0, q2\n\t"
            "letp lr, 2b\n\t"
            "vmov q0[2], q0[0], r2, r8\n\t"
            "vmov q0[3], q0[1], r4, r10\n\t"
            "vmov q1[2], q1[0], r3, r9\n\t"
            "vmov q1[3], q1[1], r5, r11\n\t"
            "ldrd r2, r3, [sp]\n\t"
            "vmulh.u32 q0, q0, q3\n\t"
            "vmul.i32 q1, q1, r2\n\t"
            "vadd.i32 q1, q1, q0\n\t"
            "vrshl.s32 q1, r3\n\t"
            "vqmovnb.s32 q1, q1\n\t"
            "vstrh.32 q1, [r6], #8\n\t"
            "subs r12, #4\n\t"
            "bgt 1b\n\t"
            "add sp, #44\n\t"
            "pop {r4-r11, pc}\n\t");
}

#elif FERRULE_HAS_DSP

/* Two products of four columns. */
#define STEP                                                                                       \
    "ldr r10, [r0], #4\n\t"                                                                        \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlald r2, r3, r10, r12\n\t"                                                                  \
    "smlald r4, r5, r10, lr\n\t"                                                                   \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlald r6, r7, r10, r12\n\t"                                                                  \
    "smlald r8, r9, r10, lr\n\t"
#define STEP_BYTES "28"
#define SCALE(low, high)                                                                           \
    "umull lr, " low ", " low ", r10\n\t"                                                          \
    "mla " high ", " high ", r10, " low "\n\t"                                                     \
    "asr " high ", " high ", r12\n\t"                                                              \
    "add " high ", " high ", #1\n\t"                                                               \
    "ssat " high ", #16, " high ", asr #1\n\t"

/* The frame: eight words of zeros, the place in the loop, so that the first pass has 1 to 4 steps,
 * data, output, columns left, multiplier, shift. The function is aligned, since ADR rounds its
 * place down to a multiple of four. */
__attribute__((naked, noinline, aligned(4))) static void multiply_row(__attribute__((unused))
                                                                      const struct row *row)
{
    __asm__("push {r4-r11, lr}\n\t"
            "sub sp, sp, #60\n\t"
            "ldm r0, {r2-r8}\n\t"
            "strd r2, r3, [sp, #36]\n\t"
            "strd r4, r5, [sp, #44]\n\t"
            "str r6, [sp, #52]\n\t"
            "mov r1, r7\n\t"
            "add r11, r2, r8, lsl #2\n\t"
            "rsb r8, r8, #0\n\t"
            "and r8, r8, #3\n\t"
            "movs r4, #" STEP_BYTES "\n\t"
            "adr.w r5, 2f\n\t"
            "mla r8, r8, r4, r5\n\t"
            "orr r8, r8, #1\n\t"
            "str r8, [sp, #32]\n\t"
            "movs r2, #0\n\t"
            "movs r3, #0\n\t"
            "strd r2, r3, [sp]\n\t"
            "strd r2, r3, [sp, #8]\n\t"
            "strd r2, r3, [sp, #16]\n\t"
            "strd r2, r3, [sp, #24]\n\t"
            "1:\n\t" /* a block */
            "ldr r0, [sp, #36]\n\t"
            "mov r2, sp\n\t"
            "ldm r2, {r2-r9}\n\t"
            "ldr pc, [sp, #32]\n\t"
            ".balign 4\n\t"
            "2:\n\t" STEP STEP STEP STEP "cmp r0, r11\n\t"
            "bne.w 2b\n\t"
            "ldrd r10, r12, [sp, #48]\n\t" SCALE("r2", "r3") SCALE("r4", "r5") SCALE("r6", "r7")
                SCALE("r8", "r9") "ldrd r0, r2, [sp, #40]\n\t"
                                  "pkhbt r3, r3, r5, lsl #16\n\t"
                                  "pkhbt r7, r7, r9, lsl #16\n\t"
                                  "str r3, [r0], #4\n\t"
                                  "str r7, [r0], #4\n\t"
                                  "subs r2, r2, #4\n\t"
                                  "strd r0, r2, [sp, #40]\n\t"
                                  "bgt.w 1b\n\t"
                                  "add sp, sp, #60\n\t"
                                  "pop {r4-r11, pc}\n\t");
}

#else

static void multiply_row(const struct row *row)
{
    const int16_t *block = row->blocks;
    const int64_t rounding = (int64_t)1 << (32 + row->right);

    for (int32_t c = 0; c < row->columns; ++c) {
        const int16_t *data = row->data;
        const int16_t *run = block + c % COLUMNS * RUN;
        int64_t sum = 0;

        for (int32_t left = row->length; left > 0; --left) {
            sum += (int32_t)data[0] * run[0] + (int64_t)((int32_t)data[1] * run[1]);
            data += RUN;
            run += NEXT_RUN;
        }
        sum = (sum * row->multiplier + rounding) >> (33 + row->right);
        row->output[c] = (int16_t)ferrule_saturate_s16((int32_t)sum);
        block += c % COLUMNS == COLUMNS - 1 ? NEXT_RUN * row->length : 0;
    }
}

#endif

static int32_t block_elements(const struct ferrule_batch_matmul_shape *shape)
{
    return (shape->depth + RUN - 1) / RUN * NEXT_RUN;
}

/* Pack a column whose products are adjacent. */
static void pack_column(const int16_t *data, int32_t depth, int16_t *target)
{
#if FERRULE_HAS_MVE
    __asm__ volatile("dlstp.16 lr, %[depth]\n\t"
                     "1:\n\t"
                     "vldrh.u16 q0, [%[data]], #16\n\t"
                     "vstrh.16 q0, [%[target]], #64\n\t"
                     "letp lr, 1b\n\t"
                     : [data] "+r"(data), [target] "+r"(target)
                     : [depth] "r"(depth)
                     : "lr", "q0", "memory");
#else
    for (; depth >= RUN; depth -= RUN) {
        FERRULE_COPY_WORD(target, data);
        data += RUN;
        target += NEXT_RUN;
    }
    if (depth > 0) {
        target[0] = data[0];
        target[1] = 0;
    }
#endif
}

/* Pack a column whose products are `step` elements apart. */
static void pack_apart(const int16_t *data, int32_t step, int32_t depth, int16_t *target)
{
    for (; depth >= RUN; depth -= RUN) {
        for (int32_t k = 0; k < RUN; ++k) {
            target[k] = *data;
            data += step;
        }
        target += NEXT_RUN;
    }
    for (int32_t k = 0; depth > 0 && k < RUN; ++k) {
        target[k] = k < depth ? data[k * step] : (int16_t)0;
    }
}

#if !FERRULE_HAS_MVE
static inline void store_word(int16_t *target, uint32_t word)
{
    FERRULE_COPY_WORD(target, &word);
}
#endif

/* Pack four adjacent columns whose products are `step` elements apart. */
static void pack_across(const int16_t *data, int32_t step, int32_t depth, int16_t *target)
{
#if FERRULE_HAS_MVE
    const uint32_t places[COLUMNS] = {0, RUN_BYTES, 2 * RUN_BYTES, 3 * RUN_BYTES};

    for (; depth > 0; depth -= RUN) {
        int16_t *run = target;

        __asm__ volatile(
            "vldrw.u32 q1, [%[places]]\n\t"
            "dls lr, %[lines]\n\t"
            "1:\n\t"
            "vldrh.u32 q0, [%[data]]\n\t"
            "add %[data], %[data], %[step]\n\t"
            "vstrh.32 q0, [%[run], q1]\n\t"
            "add %[run], %[run], #2\n\t"
            "le lr, 1b\n\t"
            : [data] "+l"(data), [run] "+r"(run)
            : [step] "r"(2 * step), [lines] "r"(depth < RUN ? depth : RUN), [places] "r"(places)
            : "lr", "q0", "q1", "memory");
        target += NEXT_RUN;
    }
#else
    for (; depth > 0; depth -= RUN) {
        const int16_t *next = depth > 1 ? data + step : data;
        const uint32_t kept = depth > 1 ? UINT32_MAX : 0xffffu; /* of the words of two products */
        uint32_t low, high, next_low, next_high;

        FERRULE_COPY_WORD(&low, data);
        FERRULE_COPY_WORD(&high, data + 2);
        FERRULE_COPY_WORD(&next_low, next);
        FERRULE_COPY_WORD(&next_high, next + 2);
        store_word(target, ferrule_pair((int32_t)low, (int32_t)next_low) & kept);
        store_word(target + RUN, ferrule_high_halves(low, next_low) & kept);
        store_word(target + 2 * RUN, ferrule_pair((int32_t)high, (int32_t)next_high) & kept);
        store_word(target + 3 * RUN, ferrule_high_halves(high, next_high) & kept);
        data = next + step;
        target += NEXT_RUN;
    }
#endif
}

/* Pack four columns from `first` on; in place of those that do not exist, the last one. */
static void pack(const struct ferrule_batch_matmul_tile_s16_params *params, const int16_t *right,
                 int32_t first, int16_t *target)
{
    const struct ferrule_batch_matmul_strides *strides = &params->shape.right;
    const int32_t depth = params->shape.depth;
    const int32_t last = params->shape.columns - 1 - first;

    right += first * strides->line;
    if (strides->depth == 1) {
        for (int32_t c = 0; c < COLUMNS; ++c) {
            pack_column(right + (c < last ? c : last) * strides->line, depth, target + c * RUN);
        }
    } else if (strides->line == 1 && last >= COLUMNS - 1) {
        pack_across(right, strides->depth, depth, target);
    } else {
        for (int32_t c = 0; c < COLUMNS; ++c) {
            pack_apart(right + (c < last ? c : last) * strides->line, strides->depth, depth,
                       target + c * RUN);
        }
    }
}

/* The columns of a tile. */
struct tile {
    int32_t first;
    int32_t whole; /* in whole blocks */
    int32_t rest; /* columns of the last block, which ends with the last column if there are four */
};

/* Return a row whose elements are adjacent, in the copy if need be. */
static const int16_t *prepared(const struct ferrule_batch_matmul_shape *shape, const int16_t *row,
                               int16_t *copied)
{
    if (shape->left.depth == 1 && (FERRULE_HAS_MVE || shape->depth % RUN == 0)) {
        return row;
    }
    for (int32_t k = 0; k < shape->depth; ++k) {
        copied[k] = *row;
        row += shape->left.depth;
    }
    if (shape->depth % RUN != 0) {
        copied[shape->depth] = 0;
    }
    return copied;
}

/* All rows times the packed columns. */
static void multiply_rows(const struct ferrule_batch_matmul_tile_s16_params *params,
                          const struct tile *tile, const int16_t *left, int16_t *output,
                          int16_t *packed, int16_t *copied)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const int16_t *last = packed + tile->whole / COLUMNS * block_elements(shape);
    int16_t few[COLUMNS] = {0};
    struct row row = {
        .multiplier = params->multiplier,
        .right = FERRULE_HAS_MVE ? params->right : params->right - 1,
        .length = FERRULE_HAS_MVE ? shape->depth : (shape->depth + RUN - 1) / RUN,
    };

    for (int32_t i = 0; i < shape->rows; ++i) {
        row.data = prepared(shape, left, copied);
        if (tile->whole > 0) {
            row.blocks = packed;
            row.output = output + tile->first;
            row.columns = tile->whole;
            multiply_row(&row);
        }
        if (tile->rest > 0) {
            row.blocks = last;
            row.output = shape->columns < COLUMNS ? few : output + shape->columns - COLUMNS;
            row.columns = COLUMNS;
            multiply_row(&row);
            for (int32_t c = 0; shape->columns < COLUMNS && c < tile->rest; ++c) {
                output[c] = few[c];
            }
        }
        left += shape->left.line;
        output += shape->columns;
    }
}

static void multiply(const struct ferrule_batch_matmul_tile_s16_params *params, const int16_t *left,
                     const int16_t *right, int16_t *output, int16_t *scratch)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const int32_t block = block_elements(shape);
    int16_t *copied = scratch + params->tile_columns / COLUMNS * block;

    for (int32_t first = 0; first < shape->columns; first += params->tile_columns) {
        const int32_t left_over = shape->columns - first;
        const int32_t columns = left_over < params->tile_columns ? left_over : params->tile_columns;
        const struct tile tile = {first, columns - columns % COLUMNS, columns % COLUMNS};
        int16_t *packed = scratch;

        for (int32_t c = 0; c < tile.whole; c += COLUMNS) {
            pack(params, right, first + c, packed);
            packed += block;
        }
        if (tile.rest > 0) {
            pack(params, right, shape->columns < COLUMNS ? 0 : shape->columns - COLUMNS, packed);
        }
        multiply_rows(params, &tile, left, output, scratch, copied);
    }
}

void ferrule_batch_matmul_block_s16(const struct ferrule_batch_matmul_tile_s16_params *params,
                                    const int16_t *left, const int16_t *right, int16_t *output,
                                    void *scratch)
{
    FERRULE_BATCH_MATMUL_EACH(params, left, right, output, scratch, multiply);
}
