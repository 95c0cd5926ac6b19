/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>

#include "ferrule/kernels/batch_matmul_mve.h"

enum {
    LANES = FERRULE_MVE_LANES,
    BYTES = FERRULE_MVE_BYTES,
    BLOCK_WORDS = LANES + BYTES + LANES + 1 /* of a block that is not listed, with one vector */
};

/* Transpose lines of `count` adjacent bytes, 1 to 4 of them, into four runs that are `run_bytes`
 * apart; of less than four, the last one is repeated. */
static void transpose(int8_t *target, int32_t run_bytes, const int8_t *source, int32_t count,
                      int32_t step, int32_t lines)
{
#if FERRULE_HAS_MVE
    uint32_t places[2 * LANES];

    for (int32_t c = 0; c < LANES; ++c) {
        places[c] = (uint32_t)(c < count ? c : count - 1);
        places[LANES + c] = (uint32_t)(c * run_bytes);
    }
    __asm__ volatile("vldrw.u32 q0, [%[places]]\n\t"
                     "vldrw.u32 q1, [%[places], #16]\n\t"
                     "dls lr, %[lines]\n\t"
                     "1:\n\t"
                     "vldrb.u32 q2, [%[source], q0]\n\t"
                     "add %[source], %[source], %[step]\n\t"
                     "vstrb.32 q2, [%[target], q1]\n\t"
                     "add %[target], %[target], #1\n\t"
                     "le lr, 1b\n\t"
                     : [target] "+r"(target), [source] "+r"(source)
                     : [places] "r"(places), [step] "r"(step), [lines] "r"(lines)
                     : "lr", "q0", "q1", "q2", "memory");
#else
    for (int32_t k = 0; k < lines; ++k) {
        for (int32_t c = 0; c < LANES; ++c) {
            target[k + c * run_bytes] = source[k * step + (c < count ? c : count - 1)];
        }
    }
#endif
}

/* Copy `count` runs of bytes, 1 to 4 that are `line` apart, to vectors that are four vectors apart,
 * zeros behind the last byte; of less than four, the last one is repeated. */
static void spread(int8_t *target, const int8_t *source, int32_t line, int32_t count, int32_t bytes)
{
    if (bytes == BYTES && count == LANES) {
        ferrule_mve_copy_apart(target, BYTES, source, line, BYTES, LANES);
        return;
    }
    for (int32_t c = 0; c < LANES; ++c) {
        const int8_t *from = source + (c < count ? c : count - 1) * line;
#if FERRULE_HAS_MVE
        int8_t *to = target + c * BYTES;
        int32_t left = bytes;

        __asm__ volatile("1:\n\t"
                         "vctp.8 %[left]\n\t"
                         "subs %[left], %[left], #16\n\t"
                         "vpst\n\t"
                         "vldrbt.u8 q0, [%[from]], #16\n\t"
                         "vstrb.8 q0, [%[to]], #64\n\t"
                         "bgt 1b\n\t"
                         : [to] "+r"(to), [from] "+r"(from), [left] "+r"(left)
                         :
                         : "cc", "q0", "memory");
#else
        for (int32_t k = 0; k < bytes || k % BYTES != 0; ++k) {
            target[k / BYTES * LANES * BYTES + c * BYTES + k % BYTES] = k < bytes ? from[k] : 0;
        }
#endif
    }
}

/* Set four sums of packed columns: `start` and what a column's bytes sum to, times `factor`. */
static void sum_columns(int32_t *sums, const int8_t *weights, int32_t vectors, int32_t factor,
                        int32_t start)
{
#if FERRULE_HAS_MVE
    __asm__ volatile(
        "movs r0, #0\n\t"
        "movs r2, #0\n\t"
        "movs r4, #0\n\t"
        "mov r12, #0\n\t"
        "dls lr, %[vectors]\n\t"
        "1:\n\t"
        "vldrb.u8 q0, [%[weights]], #16\n\t"
        "vaddva.s8 r0, q0\n\t"
        "vldrb.u8 q1, [%[weights]], #16\n\t"
        "vaddva.s8 r2, q1\n\t"
        "vldrb.u8 q0, [%[weights]], #16\n\t"
        "vaddva.s8 r4, q0\n\t"
        "vldrb.u8 q1, [%[weights]], #16\n\t"
        "vaddva.s8 r12, q1\n\t"
        "le lr, 1b\n\t"
        "vmov q0[2], q0[0], r0, r4\n\t"
        "vmov q0[3], q0[1], r2, r12\n\t"
        "vmul.i32 q0, q0, %[factor]\n\t"
        "vadd.i32 q0, q0, %[start]\n\t"
        "vstrw.32 q0, [%[sums]]\n\t"
        : [weights] "+r"(weights)
        : [sums] "r"(sums), [vectors] "r"(vectors), [factor] "r"(factor), [start] "r"(start)
        : "r0", "r2", "r4", "r12", "lr", "cc", "q0", "q1", "memory");
#else
    for (int32_t c = 0; c < LANES; ++c) {
        sums[c] = start;
        for (int32_t k = 0; k < BYTES * vectors; ++k) {
            sums[c] += factor * weights[(k / BYTES * LANES + c) * BYTES + k % BYTES];
        }
    }
#endif
}

/* Set what each of `count` rows of adjacent bytes sums to, times `factor`. */
static void sum_rows(int32_t *sums, const int8_t *data, int32_t bytes, int32_t count,
                     int32_t factor)
{
#if FERRULE_HAS_MVE
    int32_t unused = bytes - (bytes + BYTES - 1) / BYTES * BYTES; /* of the last vector */

    __asm__ volatile("1:\n\t"
                     "mov r12, #0\n\t"
                     "dlstp.8 lr, %[bytes]\n\t"
                     "2:\n\t"
                     "vldrb.u8 q0, [%[data]], #16\n\t"
                     "vaddva.s8 r12, q0\n\t"
                     "letp lr, 2b\n\t"
                     "add %[data], %[data], %[unused]\n\t"
                     "mul r12, r12, %[factor]\n\t"
                     "subs %[count], %[count], #1\n\t"
                     "str r12, [%[sums]], #4\n\t"
                     "bne 1b\n\t"
                     : [sums] "+r"(sums), [data] "+r"(data), [count] "+r"(count)
                     : [bytes] "r"(bytes), [unused] "r"(unused), [factor] "r"(factor)
                     : "r12", "lr", "cc", "q0", "memory");
#else
    for (int32_t i = 0; i < count; ++i) {
        sums[i] = 0;
        for (int32_t k = 0; k < bytes; ++k) {
            sums[i] += factor * data[i * bytes + k];
        }
    }
#endif
}

/* Pack four columns from `first` on, or those that exist; return the end of the block. */
static int32_t *pack(const struct ferrule_batch_matmul_mve_s8_params *params, const int8_t *right,
                     int32_t first, int32_t *block)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const int32_t depth = shape->depth;
    const int32_t both = depth * params->left_zero_point * params->right_zero_point;
    int32_t count = shape->columns - first;
    int8_t *weights = (int8_t *)(block + LANES);
    int32_t *constants = block + LANES + BYTES * params->vectors;

    count = count < LANES ? count : LANES;
    right += first * shape->right.line;
    if (shape->right.depth == 1) {
        spread(weights, right, shape->right.line, count, depth);
    } else {
        int8_t *target = weights;

        for (int32_t left = depth; left > 0; left -= BYTES) {
            if (left < BYTES) {
                (void)ferrule_mve_fill(target, LANES * BYTES, 0);
            }
            transpose(target, BYTES, right, count, shape->right.depth, left < BYTES ? left : BYTES);
            right += BYTES * shape->right.depth;
            target += LANES * BYTES;
        }
    }
    sum_columns(block, weights, params->vectors, -params->left_zero_point, both);
    for (int32_t c = 0; params->bias != NULL && c < LANES; ++c) {
        block[c] += params->bias[first + (c < count ? c : count - 1)];
    }
    for (int32_t c = 0; c < LANES; ++c) {
        constants[c] = params->multiplier;
    }
    constants[LANES] = (int32_t)((uint32_t)(uint8_t)params->shift * UINT32_C(0x01010101));
    if ((params->kind & FERRULE_MVE_LISTED) == 0) {
        return constants + LANES + 1;
    }
    uint16_t *positions = (uint16_t *)(constants + LANES + 1);
    for (int32_t c = 0; c < LANES; ++c) {
        positions[c] = (uint16_t)((first + (c < count ? c : count - 1)) * params->column_step);
    }
    return constants + LANES + 3;
}

/* Rows of the left matrix, and what they add to the sums of all columns. */
struct rows {
    const int8_t *data;
    int32_t step;
    const int32_t *terms; /* null if they add nothing, unless they have 16 bytes */
};

static struct rows collect(const struct ferrule_batch_matmul_mve_s8_params *params,
                           const int8_t *left, int32_t first, int32_t count, int32_t *terms)
{
    const struct ferrule_batch_matmul_strides *strides = &params->shape.left;
    const int32_t depth = params->shape.depth;
    int8_t *copied = (int8_t *)(terms + params->rows + 1);
    struct rows rows = {copied, depth, NULL};

    left += first * strides->line;
    if (strides->depth != 1) {
        for (int32_t i = 0; i < count; i += LANES) {
            transpose(copied + i * depth, depth, left + i * strides->line,
                      count - i < LANES ? count - i : LANES, strides->depth, depth);
        }
    } else if (depth % BYTES == 0) {
        rows.data = left;
    } else {
        ferrule_mve_copy(copied, left, count * depth);
    }
    if (params->right_zero_point != 0 || params->row_bias != NULL || depth == BYTES) {
        sum_rows(terms, rows.data, depth, count, -params->right_zero_point);
        for (int32_t i = 0; params->row_bias != NULL && i < count; ++i) {
            terms[i] += params->row_bias[first + i];
        }
        terms[count] = terms[count - 1];
        rows.terms = terms;
    }
    return rows;
}

#if FERRULE_HAS_MVE
/* The sums of a row of 16 bytes and the four columns in q0 to q3. */
#define SUM_ROW(sums)                                                                              \
    "vldrb.u8 q4, [%[data]], #16\n\t"                                                              \
    "vmladav.s8 r0, q4, q0\n\t"                                                                    \
    "vmladav.s8 r2, q4, q2\n\t"                                                                    \
    "vmov " sums "[2], " sums "[0], r0, r2\n\t"                                                    \
    "vmladav.s8 r0, q4, q1\n\t"                                                                    \
    "vmladav.s8 r2, q4, q3\n\t"                                                                    \
    "vmov " sums "[3], " sums "[1], r0, r2\n\t"
#define LOAD_BLOCK                                                                                 \
    "vldrw.u32 q5, [%[block]]\n\t"                                                                 \
    "vldrb.u8 q0, [%[block], #16]\n\t"                                                             \
    "vldrb.u8 q1, [%[block], #32]\n\t"                                                             \
    "vldrb.u8 q2, [%[block], #48]\n\t"                                                             \
    "vldrb.u8 q3, [%[block], #64]\n\t"
/* Add the biases of the columns and the terms of the rows. */
#define ADD_TERMS                                                                                  \
    "ldrd r0, r2, [%[terms]], #8\n\t"                                                              \
    "vadd.i32 q6, q6, q5\n\t"                                                                      \
    "vadd.i32 q7, q7, q5\n\t"                                                                      \
    "vadd.i32 q6, q6, r0\n\t"                                                                      \
    "vadd.i32 q7, q7, r2\n\t"
#define HIGH(sums)  "vqrdmulh.s32 " sums ", " sums ", %[multiplier]\n\t"
#define SHIFT(sums) "vrshl.s32 " sums ", %[shift]\n\t"
#define BELOW(sums) FERRULE_MVE_BELOW(sums, "q4")
#define NONE(sums)
/* Join the sums as halfwords, those of q7 above those of q6, and store them. */
#define STORE_PAIR                                                                                 \
    "vqmovnb.s32 q6, q6\n\t"                                                                       \
    "vqmovnt.s32 q6, q7\n\t"                                                                       \
    "vqadd.s16 q6, q6, %[zero_point]\n\t"                                                          \
    "vqmovnb.s16 q6, q6\n\t"                                                                       \
    "vshr.u32 q7, q6, #16\n\t"                                                                     \
    "vstrb.32 q6, [%[output]]\n\t"                                                                 \
    "add %[output], %[output], %[output_step]\n\t"                                                 \
    "vstrb.32 q7, [%[output]]\n\t"                                                                 \
    "add %[output], %[output], %[output_step]\n\t"
#define BOTH(each) each("q6") each("q7")
#define MULTIPLY_PAIRS(below)                                                                      \
    __asm__ volatile(LOAD_BLOCK "dls lr, %[pairs]\n\t"                                             \
                                "1:\n\t" BOTH(SUM_ROW) ADD_TERMS BOTH(HIGH) BOTH(below)            \
                                    BOTH(SHIFT) STORE_PAIR "le lr, 1b\n\t"                         \
                     : [data] "+r"(data), [terms] "+r"(terms), [output] "+l"(output)               \
                     : [block] "r"(block), [output_step] "r"(output_step), [pairs] "r"(pairs),     \
                       [multiplier] "r"(params->multiplier), [shift] "r"(params->shift),           \
                       [zero_point] "r"(params->output.zero_point)                                 \
                     : "r0", "r2", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory")
#endif

/* Multiply pairs of rows of 16 bytes by the four columns of a block, and store them with all values
 * of int8 as limits. */
static void multiply_pairs(const struct ferrule_batch_matmul_mve_s8_params *params,
                           const int32_t *block, const int8_t *data, const int32_t *terms,
                           int8_t *output, int32_t pairs)
{
    const int32_t output_step = params->row_step;
#if FERRULE_HAS_MVE

    if ((params->kind & FERRULE_MVE_GENERAL) != 0) {
        MULTIPLY_PAIRS(BELOW);
    } else {
        MULTIPLY_PAIRS(NONE);
    }
#else
    for (int32_t i = 0; i < 2 * pairs; ++i) {
        for (int32_t c = 0; c < LANES; ++c) {
            int32_t sum = block[c] + terms[i];

            for (int32_t k = 0; k < BYTES; ++k) {
                sum += data[i * BYTES + k] * ferrule_mve_byte(block + LANES, c * BYTES + k);
            }
            output[i * output_step + c] =
                ferrule_mve_store(sum, params->multiplier, params->shift, &params->output);
        }
    }
#endif
}

/* The same for `count` rows, at least two: a last one that has no pair is computed with the row
 * before, once more. */
static void multiply_block(const struct ferrule_batch_matmul_mve_s8_params *params,
                           const int32_t *block, const struct rows *rows, int8_t *output,
                           int32_t count)
{
    multiply_pairs(params, block, rows->data, rows->terms, output, count / 2);
    if (count % 2 != 0) {
        int32_t first = count - 2;

        multiply_pairs(params, block, rows->data + first * BYTES, rows->terms + first,
                       output + first * params->row_step, 1);
    }
}

static void multiply(const struct ferrule_batch_matmul_mve_s8_params *params, const int8_t *left,
                     const int8_t *right, int8_t *output, int32_t *scratch)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const bool listed = (params->kind & FERRULE_MVE_LISTED) != 0;
    const bool held = !listed && shape->depth == BYTES && params->output.low == INT8_MIN &&
                      params->output.high == INT8_MAX; /* whether registers hold a block */
    struct ferrule_mve_weights weights = {.vectors = params->vectors,
                                          .kind = params->kind,
                                          .output_c = params->row_step,
                                          .output = params->output};

    for (int32_t first = 0; first < shape->columns; first += params->tile_columns) {
        int32_t end = first + params->tile_columns;
        int32_t *packed = scratch;

        end = end < shape->columns ? end : shape->columns;
        for (int32_t c = first; c < end; c += LANES) {
            packed = pack(params, right, c, packed);
        }
        weights.stream = scratch;
        weights.words = (int32_t)(packed - scratch);
        for (int32_t i = 0; i < shape->rows; i += params->rows) {
            int32_t count = shape->rows - i < params->rows ? shape->rows - i : params->rows;
            struct rows rows = collect(params, left, i, count, packed);
            int8_t *target = output + i * params->row_step + (listed ? 0 : first);

            if (!held || count < 2) {
                ferrule_mve_store_rows(&weights, rows.data, rows.step, rows.terms, target, count);
                continue;
            }
            for (const int32_t *block = scratch; block != packed; block += BLOCK_WORDS) {
                multiply_block(params, block, &rows, target, count);
                target += LANES;
            }
        }
    }
}

void ferrule_batch_matmul_mve_s8(const struct ferrule_batch_matmul_mve_s8_params *params,
                                 const int8_t *left, const int8_t *right, int8_t *output,
                                 void *scratch)
{
    FERRULE_BATCH_MATMUL_EACH(params, left, right, output, scratch, multiply);
}
