/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/lstm_gates.h"

enum { FERRULE_MULTIPLE = FERRULE_VECTOR_CHANNELS };

#if FERRULE_HAS_MVE

/* What the assembler below reads in this order. */
struct factor {
    int32_t multiplier;
    int32_t right; /* the shift as a negative number */
};

struct gate {
    struct factor input;
    struct factor recurrent;
    int32_t input_left;
    int32_t recurrent_left;
    const int16_t *table;
    const int16_t *next; /* entry of the table */
    int32_t input_below; /* a shift that leaves the sign; less for a factor without a shift to */
    int32_t recurrent_below; /* the right, whose result is not rounded twice */
    int32_t blocks;          /* of eight units */
};

_Static_assert(offsetof(struct gate, input_below) == 32, "used in the assembler below");

struct cells {
    int32_t update;
    int32_t multiplier;
    int32_t right;
    const int16_t *table;
    const int16_t *next;
    int32_t most;
    struct factor hidden;
    int32_t zero_point;
    int32_t low;
    int32_t high;
};

_Static_assert(offsetof(struct cells, low) == 36, "used in the assembler below");

/* Scales the sums of eight units: the even ones, then the odd ones. Of `below`, see above. */
#define SCALED(result, sums, multiplier, right, left, below)                                       \
    "vldrw.u32 q0, [" sums "], #16\n\t"                                                            \
    "vldrw.u32 q1, [" sums "], #16\n\t"                                                            \
    "vshl.s32 q0, " left "\n\t"                                                                    \
    "vshl.s32 q1, " left "\n\t"                                                                    \
    "vqrdmulh.s32 q0, q0, " multiplier "\n\t"                                                      \
    "vqrdmulh.s32 q1, q1, " multiplier "\n\t"                                                      \
    "vshl.u32 q4, q0, " below "\n\t"                                                               \
    "vsub.i32 q0, q0, q4\n\t"                                                                      \
    "vshl.u32 q4, q1, " below "\n\t"                                                               \
    "vsub.i32 q1, q1, q4\n\t"                                                                      \
    "vrshl.s32 q0, " right "\n\t"                                                                  \
    "vrshl.s32 q1, " right "\n\t"                                                                  \
    "vqmovnb.s32 " result ", q0\n\t"                                                               \
    "vqmovnt.s32 " result ", q1\n\t"

/*
 * A gate's values from sums in Q3.12: q2 is the argument, q7 has what brings its magnitude to the
 * table, so that the upper half of the product is the entry and the lower half the place between
 * two entries. At the stack pointer are the distances of the four-unit halves of a vector.
 */
#define GATE(name, scale, constants, function, sign)                                               \
    __attribute__((naked, aligned(4))) static void name(                                           \
        __attribute__((unused)) const struct gate *gate,                                           \
        __attribute__((unused)) const int32_t *given, __attribute__((unused)) const int32_t *kept, \
        __attribute__((unused)) int16_t *values)                                                   \
    {                                                                                              \
        __asm__("push {r4-r11, lr}\n\t"                                                            \
                "vpush {d8-d15}\n\t"                                                               \
                "sub sp, #20\n\t"                                                                  \
                "movs r4, #0\n\t"                                                                  \
                "movs r5, #32\n\t"                                                                 \
                "strd r4, r4, [sp]\n\t"                                                            \
                "strd r5, r4, [sp, #8]\n\t"                                                        \
                "ldrd r4, r5, [r0, #32]\n\t"                                                       \
                "vdup.32 q5, r4\n\t"                                                               \
                "vdup.32 q6, r5\n\t"                                                               \
                "movw r4, #" scale "\n\t"                                                          \
                "vdup.16 q7, r4\n\t"                                                               \
                "ldr lr, [r0, #40]\n\t"                                                            \
                "ldm r0, {r4-r11}\n\t" constants "dls lr, lr\n\t"                                  \
                "1:\n\t" SCALED("q2", "r1", "r4", "r5", "r8", "q5")                                \
                    SCALED("q3", "r2", "r6", "r7", "r9",                                           \
                           "q6") "vqadd.s16 q2, q2, q3\n\t"                                        \
                                 "vabs.s16 q0, q2\n\t"                                             \
                                 "vmul.i16 q1, q0, q7\n\t"                                         \
                                 "vmulh.u16 q0, q0, "                                              \
                                 "q7\n\t" function "vpt.s16 lt, q2, zr\n\t"                        \
                                 "vnegt.s16 q3, q3\n\t" sign "vldrw.u32 q0, [sp]\n\t"              \
                                 "vstrd.64 q3, [r3, q0]\n\t"                                       \
                                 "adds r3, #64\n\t"                                                \
                                 "le lr, 1b\n\t"                                                   \
                                 "add sp, #20\n\t"                                                 \
                                 "vpop {d8-d15}\n\t"                                               \
                                 "pop {r4-r11, pc}\n\t");                                          \
    }

/* Sums in Q3.12 do not reach the end of the table. */
#define LOGISTIC                                                                                   \
    "vldrh.u16 q3, [r10, q0, uxtw #1]\n\t"                                                         \
    "vldrh.u16 q4, [r11, q0, uxtw #1]\n\t"                                                         \
    "vsub.i16 q4, q4, q3\n\t"                                                                      \
    "vmulh.u16 q4, q4, q1\n\t"                                                                     \
    "vrhadd.u16 q3, q3, q4\n\t"
#define TANH                                                                                       \
    "vcmp.u16 cs, q0, r0\n\t"                                                                      \
    "vpnot\n\t"                                                                                    \
    "vpstt\n\t"                                                                                    \
    "vldrht.u16 q3, [r10, q0, uxtw #1]\n\t"                                                        \
    "vldrht.u16 q4, [r11, q0, uxtw #1]\n\t"                                                        \
    "vsub.i16 q4, q4, q3\n\t"                                                                      \
    "vrmulh.u16 q4, q4, q1\n\t"                                                                    \
    "vadd.i16 q3, q3, q4\n\t"                                                                      \
    "vpnot\n\t"                                                                                    \
    "vpst\n\t"                                                                                     \
    "vdupt.16 q3, r12\n\t"

GATE(logistic_gate, "384", "movw r12, #16384\n\t", LOGISTIC, "vadd.i16 q3, q3, r12\n\t")
GATE(tanh_gate, "768", "movw r12, #32767\n\tmovs r0, #255\n\t", TANH, "")

/* Four units at a time, in lanes of 32 bits. q5 and q6 are the cell's limits, q7 the end of the
 * table. */
#define CELLS(name, type, store)                                                                   \
    __attribute__((naked, aligned(4))) static void name(                                           \
        __attribute__((unused)) const struct cells *cells,                                         \
        __attribute__((unused)) const int16_t *gates, __attribute__((unused)) int16_t *cell,       \
        __attribute__((unused)) type *shown, __attribute__((unused)) int32_t units)                \
    {                                                                                              \
        __asm__("push {r4-r11, lr}\n\t"                                                            \
                "vpush {d8-d15}\n\t"                                                               \
                "ldr lr, [sp, #100]\n\t"                                                           \
                "ldrd r4, r5, [r0, #36]\n\t"                                                       \
                "vdup.16 q5, r4\n\t"                                                               \
                "vdup.16 q6, r5\n\t"                                                               \
                "movs r4, #255\n\t"                                                                \
                "vdup.32 q7, r4\n\t"                                                               \
                "mov r12, r0\n\t"                                                                  \
                "ldr r0, [r12, #32]\n\t"                                                           \
                "ldm r12, {r4-r11}\n\t"                                                            \
                "dlstp.32 lr, lr\n\t"                                                              \
                "1:\n\t"                                                                           \
                "vldrh.s32 q0, [r1, #8]\n\t"                                                       \
                "vldrh.s32 q1, [r2]\n\t"                                                           \
                "vmul.i32 q0, q0, q1\n\t"                                                          \
                "vldrh.s32 q1, [r1]\n\t"                                                           \
                "vldrh.s32 q2, [r1, #16]\n\t"                                                      \
                "vmul.i32 q1, q1, q2\n\t"                                                          \
                "vrshr.s32 q0, q0, #1\n\t"                                                         \
                "vrshr.s32 q1, q1, #1\n\t" FERRULE_MVE_BELOW("q0", "q2") FERRULE_MVE_BELOW(        \
                    "q1", "q2") "vrshr.s32 q0, q0, #14\n\t"                                        \
                                "vrshl.s32 q1, r4\n\t"                                             \
                                "vqmovnb.s32 q0, q0\n\t"                                           \
                                "vqmovnb.s32 q1, q1\n\t"                                           \
                                "vqadd.s16 q0, q0, q1\n\t"                                         \
                                "vmax.s16 q0, q0, q5\n\t"                                          \
                                "vmin.s16 q0, q0, q6\n\t"                                          \
                                "vmovlb.s16 q0, q0\n\t"                                            \
                                "vstrh.32 q0, [r2], #8\n\t"                                        \
                                "vmul.i32 q1, q0, r5\n\t"                                          \
                                "vrshl.s32 q1, r6\n\t"                                             \
                                "vabs.s32 q2, q1\n\t"                                              \
                                "vshr.u32 q3, q2, #8\n\t"                                          \
                                "vand q2, q2, q7\n\t"                                              \
                                "vcmp.u32 hi, q7, q3\n\t"                                          \
                                "vpstt\n\t"                                                        \
                                "vldrht.u32 q4, [r7, q3, uxtw #1]\n\t"                             \
                                "vldrht.u32 q0, [r8, q3, uxtw #1]\n\t"                             \
                                "vsub.i32 q0, q0, q4\n\t"                                          \
                                "vmul.i32 q0, q0, q2\n\t"                                          \
                                "vrshr.s32 q0, q0, #8\n\t"                                         \
                                "vadd.i32 q4, q4, q0\n\t"                                          \
                                "vpnot\n\t"                                                        \
                                "vpst\n\t"                                                         \
                                "vdupt.32 q4, r9\n\t"                                              \
                                "vpt.s32 lt, q1, zr\n\t"                                           \
                                "vnegt.s32 q4, q4\n\t"                                             \
                                "vldrh.s32 q0, [r1, #24]\n\t"                                      \
                                "vmul.i32 q0, q0, q4\n\t"                                          \
                                "vqrdmulh.s32 q0, q0, r10\n\t" FERRULE_MVE_BELOW(                  \
                                    "q0", "q2") "vrshl.s32 q0, r11\n\t"                            \
                                                "vadd.i32 q0, q0, r0\n\t" store "adds r1, #32\n\t" \
                                                "letp lr, 1b\n\t"                                  \
                                                "vpop {d8-d15}\n\t"                                \
                                                "pop {r4-r11, pc}\n\t");                           \
    }

CELLS(advance_cells, int8_t,
      "vqmovnb.s32 q0, q0\n\tvqmovnb.s16 q0, q0\n\tvstrb.32 q0, [r3], #4\n\t")
CELLS(advance_cells_s16, int16_t, "vqmovnb.s32 q0, q0\n\tvstrh.32 q0, [r3], #8\n\t")

static int32_t below_of(int32_t shift)
{
    return shift < 0 ? -31 : -32;
}

static struct cells cells_of(const struct ferrule_lstm_scaling *scaling)
{
    const int32_t clip = scaling->cell_clip;

    return (struct cells){
        scaling->update.shift,
        scaling->cell.multiplier,
        -scaling->cell.shift,
        scaling->cell.table,
        scaling->cell.table + 1,
        INT16_MAX,
        {scaling->hidden.multiplier, scaling->hidden.shift},
        scaling->hidden_zero_point,
        clip < 0 ? INT16_MIN : -clip,
        clip < 0 ? INT16_MAX : clip,
    };
}

/* Return the values of each gate per four units, behind the sums. */
static const int16_t *values_of(const struct ferrule_lstm_rows_params *params, int32_t filled,
                                int32_t *sums)
{
    const struct ferrule_lstm_scaling *scaling = &params->scaling;
    const int32_t *kept = sums + FERRULE_LSTM_GATES * params->tile;
    int16_t *gates = (int16_t *)(void *)(sums + 2 * FERRULE_LSTM_GATES * params->tile);

    for (int32_t i = 0; i < FERRULE_LSTM_GATES; ++i) {
        const struct ferrule_lstm_factor *input = &scaling->input[i];
        const struct ferrule_lstm_factor *recurrent = &scaling->recurrent[i];
        const struct gate gate = {
            {input->multiplier, input->shift < 0 ? input->shift : 0},
            {recurrent->multiplier, recurrent->shift < 0 ? recurrent->shift : 0},
            input->shift > 0 ? input->shift : 0,
            recurrent->shift > 0 ? recurrent->shift : 0,
            scaling->gates.table,
            scaling->gates.table + 1,
            below_of(input->shift),
            below_of(recurrent->shift),
            filled / FERRULE_VECTOR_CHANNELS,
        };

        (i == 2 ? tanh_gate : logistic_gate)(&gate, &sums[i * filled], &kept[i * filled],
                                             &gates[i * FERRULE_MVE_LANES]);
    }
    return gates;
}

static void advance(const struct ferrule_lstm_rows_params *params, int32_t units, int32_t filled,
                    int32_t *sums, int16_t *cell, int8_t *shown)
{
    const struct cells cells = cells_of(&params->scaling);

    advance_cells(&cells, values_of(params, filled, sums), cell, shown, units);
}

static void advance_s16(const struct ferrule_lstm_rows_params *params, int32_t units,
                        int32_t filled, int32_t *sums, int16_t *cell, int16_t *shown)
{
    const struct cells cells = cells_of(&params->scaling);

    advance_cells_s16(&cells, values_of(params, filled, sums), cell, shown, units);
}

#else

static void order(const struct ferrule_lstm_rows_params *params, int32_t filled, int32_t *sums)
{
    ferrule_vector_order(sums, FERRULE_LSTM_GATES * filled);
    ferrule_vector_order(sums + FERRULE_LSTM_GATES * params->tile, FERRULE_LSTM_GATES * filled);
}

static void advance(const struct ferrule_lstm_rows_params *params, int32_t units, int32_t filled,
                    int32_t *sums, int16_t *cell, int8_t *shown)
{
    order(params, filled, sums);
    ferrule_lstm_tile(params, units, filled, sums, cell, shown);
}

static void advance_s16(const struct ferrule_lstm_rows_params *params, int32_t units,
                        int32_t filled, int32_t *sums, int16_t *cell, int16_t *shown)
{
    order(params, filled, sums);
    ferrule_lstm_tile_s16(params, units, filled, sums, cell, shown);
}

#endif

#define FERRULE_CHANNELS   FERRULE_VECTOR_CHANNELS
#define FERRULE_GATE_BYTES 2

#define FERRULE_KERNEL       ferrule_lstm_mve_s8
#define FERRULE_ACTIVATION   int8_t
#define FERRULE_ENGINE(name) ferrule_vector_##name
#define FERRULE_ADVANCE      advance
#include "ferrule/kernels/lstm_rows.inc.h"

#define FERRULE_KERNEL       ferrule_lstm_mve_s16
#define FERRULE_ACTIVATION   int16_t
#define FERRULE_ENGINE(name) ferrule_vector_s16_##name
#define FERRULE_ADVANCE      advance_s16
#include "ferrule/kernels/lstm_rows.inc.h"
