/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>

#include "ferrule/kernels/batch_matmul_mve.h"

enum { LANES = FERRULE_MVE_LANES, BYTES = FERRULE_MVE_BYTES };

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

/* Copy bytes to vectors that are four vectors apart, zeros behind the last byte. */
static void spread(int8_t *target, const int8_t *source, int32_t bytes)
{
#if FERRULE_HAS_MVE
    __asm__ volatile("1:\n\t"
                     "vctp.8 %[bytes]\n\t"
                     "subs %[bytes], %[bytes], #16\n\t"
                     "vpst\n\t"
                     "vldrbt.u8 q0, [%[source]], #16\n\t"
                     "vstrb.8 q0, [%[target]], #64\n\t"
                     "bgt 1b\n\t"
                     : [target] "+r"(target), [source] "+r"(source), [bytes] "+r"(bytes)
                     :
                     : "cc", "q0", "memory");
#else
    for (int32_t k = 0; k < bytes || k % BYTES != 0; ++k) {
        target[k / BYTES * LANES * BYTES + k % BYTES] = k < bytes ? source[k] : 0;
    }
#endif
}

/* Return the sum of `count` vectors' bytes; the vectors are `step` bytes apart. */
static int32_t sum_vectors(const int8_t *data, int32_t count, int32_t step)
{
    int32_t sum = 0;

#if FERRULE_HAS_MVE
    __asm__ volatile("mov r12, #0\n\t"
                     "dls lr, %[count]\n\t"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[data]]\n\t"
                     "add %[data], %[data], %[step]\n\t"
                     "vaddva.s8 r12, q0\n\t"
                     "le lr, 1b\n\t"
                     "mov %[sum], r12\n\t"
                     : [data] "+r"(data), [sum] "=r"(sum)
                     : [count] "r"(count), [step] "r"(step)
                     : "r12", "lr", "q0", "memory");
#else
    for (int32_t i = 0; i < count; ++i) {
        for (int32_t k = 0; k < BYTES; ++k) {
            sum += data[i * step + k];
        }
    }
#endif
    return sum;
}

/* Return the sum of bytes. */
static int32_t sum_bytes(const int8_t *data, int32_t bytes)
{
    int32_t sum = 0;

#if FERRULE_HAS_MVE
    __asm__ volatile("mov r12, #0\n\t"
                     "dlstp.8 lr, %[bytes]\n\t"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[data]], #16\n\t"
                     "vaddva.s8 r12, q0\n\t"
                     "letp lr, 1b\n\t"
                     "mov %[sum], r12\n\t"
                     : [data] "+r"(data), [sum] "=r"(sum)
                     : [bytes] "r"(bytes)
                     : "r12", "lr", "q0", "memory");
#else
    for (int32_t k = 0; k < bytes; ++k) {
        sum += data[k];
    }
#endif
    return sum;
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
        for (int32_t c = 0; c < LANES; ++c) {
            spread(weights + c * BYTES, right + (c < count ? c : count - 1) * shape->right.line,
                   depth);
        }
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
    for (int32_t c = 0; c < LANES; ++c) {
        int32_t column = first + (c < count ? c : count - 1);

        block[c] = both - params->left_zero_point *
                              sum_vectors(weights + c * BYTES, params->vectors, LANES * BYTES);
        if (params->bias != NULL) {
            block[c] += params->bias[column];
        }
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
    const int32_t *terms; /* null if they add nothing */
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
    if (params->right_zero_point != 0 || params->row_bias != NULL) {
        for (int32_t i = 0; i < count; ++i) {
            terms[i] = params->row_bias != NULL ? params->row_bias[first + i] : 0;
            if (params->right_zero_point != 0) {
                terms[i] -= params->right_zero_point * sum_bytes(rows.data + i * depth, depth);
            }
        }
        terms[count] = terms[count - 1];
        rows.terms = terms;
    }
    return rows;
}

static void multiply(const struct ferrule_batch_matmul_mve_s8_params *params, const int8_t *left,
                     const int8_t *right, int8_t *output, int32_t *scratch)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const bool listed = (params->kind & FERRULE_MVE_LISTED) != 0;
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

            ferrule_mve_store_rows(&weights, rows.data, rows.step, rows.terms,
                                   output + i * params->row_step + (listed ? 0 : first), count);
        }
    }
}

void ferrule_batch_matmul_mve_s8(const struct ferrule_batch_matmul_mve_s8_params *params,
                                 const int8_t *left, const int8_t *right, int8_t *output,
                                 void *scratch)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const int32_t *at_left = shape->left.batches;
    const int32_t *at_right = shape->right.batches;

    for (int32_t i = 0; i < shape->batches[0]; ++i) {
        for (int32_t j = 0; j < shape->batches[1]; ++j) {
            for (int32_t k = 0; k < shape->batches[2]; ++k) {
                multiply(params, left + i * at_left[0] + j * at_left[1] + k * at_left[2],
                         right + i * at_right[0] + j * at_right[1] + k * at_right[2], output,
                         scratch);
                output += shape->rows * shape->columns;
            }
        }
    }
}
