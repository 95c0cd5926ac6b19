/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lstm_gates.h"

enum { FERRULE_MULTIPLE = 1 };

#if FERRULE_HAS_DSP

/* What the assembler below reads in this order; shifts to the right are less by one. */
struct gate {
    int32_t input;
    int32_t input_shift; /* to the right, or to the left for the functions `up` */
    int32_t recurrent;
    int32_t recurrent_right;
    const int16_t *table;
};

#define SCALED(sum, multiplier, right)                                                             \
    "smmulr " sum ", " sum ", " multiplier "\n\t"                                                  \
    "sub " sum ", " sum ", " sum ", lsr #31\n\t"                                                   \
    "asr " sum ", " sum ", " right "\n\t"                                                          \
    "add " sum ", " sum ", #1\n\t"                                                                 \
    "ssat " sum ", #16, " sum ", asr #1\n\t"

/* Of int16, whose sums are rounded once. */
#define SCALED_ONCE(sum, multiplier, _)                                                            \
    "smmulr " sum ", " sum ", " multiplier "\n\t"                                                  \
    "ssat " sum ", #16, " sum "\n\t"

#define SCALED_UP(sum, multiplier, left)                                                           \
    "lsl " sum ", " sum ", " left "\n\t"                                                           \
    "smmulr " sum ", " sum ", " multiplier "\n\t"                                                  \
    "ssat " sum ", #16, " sum "\n\t"

/* The table between two entries of 2^bits steps; r0 rounds, r9 is 2^bits. */
#define BETWEEN(bits, right)                                                                       \
    "ubfx r12, r11, #0, #" bits "\n\t"                                                             \
    "lsr r11, r11, #" bits "\n\t"                                                                  \
    "ldr r11, [r8, r11, lsl #1]\n\t"                                                               \
    "sub lr, r9, r12\n\t"                                                                          \
    "pkhbt lr, lr, r12, lsl #16\n\t"                                                               \
    "smlad r11, r11, lr, r0\n\t"                                                                   \
    "asr r11, r11, #" right "\n\t"
/* The sign of the position in r10 to the value. */
#define SIGNED "eor r11, r11, r10, asr #31\n\tsub r11, r11, r10, asr #31\n\t"

/* ferrule_lstm_gate, with the same loop from all compilers. */
#define GATE(name, scaled, scaled_kept, constants, function)                                       \
    __attribute__((naked)) static void name(                                                       \
        __attribute__((unused)) const struct gate *gate, __attribute__((unused)) int32_t *given,   \
        __attribute__((unused)) const int32_t *kept, __attribute__((unused)) const int32_t *end)   \
    {                                                                                              \
        __asm__("push {r3-r11, lr}\n\t"                                                            \
                "ldm r0, {r4-r8}\n\t" constants "1:\n\t"                                           \
                "ldr r10, [r1]\n\t"                                                                \
                "ldr r11, [r2], #4\n\t" scaled("r10", "r4", "r5")                                  \
                    scaled_kept("r11", "r6", "r7") "add r10, r10, r11\n\t"                         \
                                                   "ssat r10, #16, r10\n\t"                        \
                                                   "add r10, r10, r10, lsl #1\n\t"                 \
                                                   "eor r11, r10, r10, asr #31\n\t"                \
                                                   "sub r11, r11, r10, asr #31\n\t" function       \
                                                   "str r11, [r1], #4\n\t"                         \
                                                   "cmp r1, r3\n\t"                                \
                                                   "bne 1b\n\t"                                    \
                                                   "pop {r3-r11, pc}\n\t");                        \
    }

#define LOGISTIC                                                                                   \
    "mov r0, #512\n\tmov r9, r0\n\t", BETWEEN("9", "10") SIGNED "add r11, r11, #16384\n\t"
#define TANH                                                                                       \
    "mov r0, #128\n\tmov r9, #256\n\t", "cmp r11, #65280\n\t"                                      \
                                        "bge 2f\n\t" BETWEEN("8", "8") "b 3f\n\t"                  \
                                                                       "2:\n\t"                    \
                                                                       "movw r11, #32767\n\t"      \
                                                                       "3:\n\t" SIGNED
#define GATE_OF(name, scaled, scaled_kept, ...) GATE(name, scaled, scaled_kept, __VA_ARGS__)

GATE_OF(logistic_gate, SCALED, SCALED, LOGISTIC)
GATE_OF(tanh_gate, SCALED, SCALED, TANH)
GATE_OF(logistic_gate_up, SCALED_UP, SCALED, LOGISTIC)
GATE_OF(tanh_gate_up, SCALED_UP, SCALED, TANH)
GATE_OF(logistic_gate_once, SCALED_ONCE, SCALED_ONCE, LOGISTIC)
GATE_OF(tanh_gate_once, SCALED_ONCE, SCALED_ONCE, TANH)

static void advance(const struct ferrule_lstm_rows_params *params, int32_t units, int32_t filled,
                    int32_t *sums, int16_t *cells, int8_t *shown)
{
    const struct ferrule_lstm_scaling *scaling = &params->scaling;

    for (int32_t i = 0; i < FERRULE_LSTM_GATES; ++i) {
        const struct ferrule_lstm_factor *input = &scaling->input[i];
        const struct ferrule_lstm_factor *recurrent = &scaling->recurrent[i];
        int32_t *given = &sums[i * filled];
        const int32_t *kept = given + FERRULE_LSTM_GATES * params->tile;

        if (recurrent->shift < 0) {
            const bool up = input->shift >= 0;
            const struct gate gate = {input->multiplier, up ? input->shift : -1 - input->shift,
                                      recurrent->multiplier, -1 - recurrent->shift,
                                      scaling->gates.table};

            if (i == 2) {
                (up ? tanh_gate_up : tanh_gate)(&gate, given, kept, given + units);
            } else {
                (up ? logistic_gate_up : logistic_gate)(&gate, given, kept, given + units);
            }
        } else {
            ferrule_lstm_gate(scaling, i, units, given, kept);
        }
    }
    ferrule_lstm_cells(scaling, units, sums, filled, cells, shown, false);
}

static void advance_s16(const struct ferrule_lstm_rows_params *params, int32_t units,
                        int32_t filled, int32_t *sums, int16_t *cells, int16_t *shown)
{
    const struct ferrule_lstm_scaling *scaling = &params->scaling;

    for (int32_t i = 0; i < FERRULE_LSTM_GATES; ++i) {
        int32_t *given = &sums[i * filled];
        const struct gate gate = {.input = scaling->input[i].multiplier,
                                  .recurrent = scaling->recurrent[i].multiplier,
                                  .table = scaling->gates.table};

        (i == 2 ? tanh_gate_once : logistic_gate_once)(
            &gate, given, given + FERRULE_LSTM_GATES * params->tile, given + units);
    }
    ferrule_lstm_cells(scaling, units, sums, filled, cells, shown, true);
}

#else
#define advance     ferrule_lstm_tile
#define advance_s16 ferrule_lstm_tile_s16
#endif

#define FERRULE_KERNEL       ferrule_lstm_block_s8
#define FERRULE_ACTIVATION   int8_t
#define FERRULE_ENGINE(name) ferrule_block_##name
#define FERRULE_CHANNELS     FERRULE_BLOCK_CHANNELS
#define FERRULE_GATE_BYTES   0
#define FERRULE_ADVANCE      advance
#include "ferrule/kernels/lstm_rows.inc.h"

#define FERRULE_KERNEL       ferrule_lstm_block_s16
#define FERRULE_ACTIVATION   int16_t
#define FERRULE_ENGINE(name) ferrule_block_s16_##name
#define FERRULE_ADVANCE      advance_s16
#include "ferrule/kernels/lstm_rows.inc.h"
