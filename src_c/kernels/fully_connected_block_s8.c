/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/fully_connected.h"

#include <stddef.h>

#include "ferrule/kernels/requantize_dsp.h"

#if FERRULE_HAS_DSP

/* Two products of four channels: r2 and r4 are the sums of the packed channels 0 and 1, then 2 and
 * 3, r3 and r5 those of the even channels alone. */
#define STEP(x, w01, w23)                                                                          \
    "smlad r2, " x ", " w01 ", r2\n\t"                                                             \
    "smlad r4, " x ", " w23 ", r4\n\t"                                                             \
    "sxtb16 " w01 ", " w01 "\n\t"                                                                  \
    "sxtb16 " w23 ", " w23 "\n\t"                                                                  \
    "smlad r3, " x ", " w01 ", r3\n\t"                                                             \
    "smlad r5, " x ", " w23 ", r5\n\t"
#define WORD(x0, x1) "ldm r1!, {r10, r11, r12, lr}\n\t" STEP(x0, "r10", "r11") STEP(x1, "r12", "lr")
/* Eight products: of the widened row in 108 bytes of code, of the row itself in 128. */
#define WIDENED "ldm.w r0!, {r6-r9}\n\t" WORD("r6", "r7") WORD("r8", "r9")
#define DIRECT_WORD(x0, x1)                                                                        \
    "ldr " x1 ", [r0], #4\n\t"                                                                     \
    "sxtb16 " x0 ", " x1 "\n\t"                                                                    \
    "sxtb16 " x1 ", " x1 ", ror #8\n\t" WORD(x0, x1)
#define DIRECT DIRECT_WORD("r6", "r7") DIRECT_WORD("r8", "r9")
/* The same for two channels, in 56 and 76 bytes of code; r4 and r5 are not used. */
#define PAIR                                                                                       \
    "ldm.w r1!, {r10, r11, r12, lr}\n\t"                                                           \
    "smlad r2, r6, r10, r2\n\t"                                                                    \
    "sxtb16 r10, r10\n\t"                                                                          \
    "smlad r2, r7, r11, r2\n\t"                                                                    \
    "sxtb16 r11, r11\n\t"                                                                          \
    "smlad r2, r8, r12, r2\n\t"                                                                    \
    "sxtb16 r12, r12\n\t"                                                                          \
    "smlad r2, r9, lr, r2\n\t"                                                                     \
    "sxtb16 lr, lr\n\t"                                                                            \
    "smlad r3, r6, r10, r3\n\t"                                                                    \
    "smlad r3, r7, r11, r3\n\t"                                                                    \
    "smlad r3, r8, r12, r3\n\t"                                                                    \
    "smlad r3, r9, lr, r3\n\t"
#define WIDENED_PAIR "ldm.w r0!, {r6-r9}\n\t" PAIR
#define DIRECT_PAIR                                                                                \
    "ldr r7, [r0], #4\n\t"                                                                         \
    "ldr r9, [r0], #4\n\t"                                                                         \
    "sxtb16 r6, r7\n\t"                                                                            \
    "sxtb16 r7, r7, ror #8\n\t"                                                                    \
    "sxtb16 r8, r9\n\t"                                                                            \
    "sxtb16 r9, r9, ror #8\n\t" PAIR

/* The stack: 0 place in the loop, 4 end of the row, 8 row, 12 end of the weights, 16 output. */
#define LOOPS(name, type, pair, code_bytes, shift, start, store)                                   \
    __attribute__((naked, noinline, aligned(4))) void name(                                        \
        const struct ferrule_block_row *row __attribute__((unused)),                               \
        const int32_t *weights __attribute__((unused)),                                            \
        const int32_t *end __attribute__((unused)), type *output __attribute__((unused)))          \
    {                                                                                              \
        __asm__("push {r4-r11, lr}\n\t"                                                            \
                "sub sp, sp, #20\n\t"                                                              \
                "ldrd r4, r5, [r0]\n\t"                                                            \
                "add r6, r4, r5, lsl #" shift "\n\t"                                               \
                "strd r6, r4, [sp, #4]\n\t"                                                        \
                "strd r2, r3, [sp, #12]\n\t"                                                       \
                "rsb r5, r5, #0\n\t"                                                               \
                "and r5, r5, #3\n\t"                                                               \
                "movs r6, #" code_bytes "\n\t"                                                     \
                "mul r5, r5, r6\n\t"                                                               \
                "adr.w r6, 20f\n\t"                                                                \
                "add r6, r6, r5\n\t"                                                               \
                "orr r6, r6, #1\n\t"                                                               \
                "str r6, [sp]\n\t"                                                                 \
                "15:\n\t"                                                                          \
                "ldr r0, [sp, #8]\n\t" start "ldr pc, [sp]\n\t"                                    \
                "20:\n\t" pair pair pair pair "ldr r12, [sp, #4]\n\t"                              \
                "cmp r0, r12\n\t"                                                                  \
                "bne 20b\n\t" store "ldr r12, [sp, #12]\n\t"                                       \
                "cmp r1, r12\n\t"                                                                  \
                "bne.w 15b\n\t"                                                                    \
                "add sp, sp, #20\n\t"                                                              \
                "pop {r4-r11, pc}\n\t");                                                           \
    }

/* Loops that store int8. */
#define FUNCTION(name, pair, code_bytes, shift, start, store)                                      \
    LOOPS(name, int8_t, pair, code_bytes, shift, start "movs r3, #0\n\tmovs r5, #0\n\t",           \
          APART store)
/* The odd channels alone. */
#define APART                                                                                      \
    "sub r2, r2, r3\n\t"                                                                           \
    "sub r4, r4, r5\n\t"

/* The sums of the packed channels start with the constants of channels 1 and 3. */
#define START_PROVED "ldrd r2, r4, [r1], #8\n\t"
#define START_EXACT                                                                                \
    "movs r2, #0\n\t"                                                                              \
    "movs r4, #0\n\t"
#define PROVED(a, b)                                                                               \
    "ldm r1!, {r6-r8}\n\t" FERRULE_PROVED_ONE(a, "r6", "r7", ", lsl #8")                           \
        FERRULE_PROVED_COMPLETE_ONE(b, "r8")
#define EXACT(a, shift) "ldm r1!, {r6-r9}\n\t" FERRULE_EXACT_ONE(a, "r6", "r7", "r8", "r9", shift)

#define STORE_TWO                                                                                  \
    "ldr r0, [sp, #16]\n\t"                                                                        \
    "strb r3, [r0], #1\n\t"                                                                        \
    "strb r2, [r0], #1\n\t"                                                                        \
    "str r0, [sp, #16]\n\t"
#define STORE_FOUR                                                                                 \
    "ldr r0, [sp, #16]\n\t"                                                                        \
    "strb r3, [r0], #1\n\t"                                                                        \
    "strb r2, [r0], #1\n\t"                                                                        \
    "strb r5, [r0], #1\n\t"                                                                        \
    "strb r4, [r0], #1\n\t"                                                                        \
    "str r0, [sp, #16]\n\t"
#define EXACT_TWO(even, odd, shift)                                                                \
    EXACT(even, ", lsl #1")                                                                        \
    EXACT(odd, shift)
#define PROVED_BLOCK PROVED("r3", "r2") PROVED("r5", "r4") STORE_FOUR
#define EXACT_BLOCK                                                                                \
    EXACT_TWO("r3", "r2", ", asr #7")                                                              \
    EXACT_TWO("r5", "r4", ", asr #7")                                                              \
    STORE_FOUR
#define PIECES_BLOCK                                                                               \
    EXACT_TWO("r3", "r2", ", lsl #1")                                                              \
    EXACT_TWO("r5", "r4", ", lsl #1")                                                              \
    STORE_FOUR

/* The sums of a piece begin with those of the even channels before it, so that they differ from
 * them by the piece's sums of the odd channels. The stack has also: 20 sums of the odd channels, 28
 * end of the first piece, 32 end of the piece. */
#define PIECES_FUNCTION(name, pair, code_bytes, shift, store)                                      \
    __attribute__((naked, noinline, aligned(4))) void name(                                        \
        const struct ferrule_block_row *row __attribute__((unused)),                               \
        const int32_t *weights __attribute__((unused)),                                            \
        const int32_t *end __attribute__((unused)), int8_t *output __attribute__((unused)))        \
    {                                                                                              \
        __asm__("push {r4-r11, lr}\n\t"                                                            \
                "sub sp, sp, #36\n\t"                                                              \
                "ldrd r4, r5, [r0]\n\t"                                                            \
                "add r6, r4, r5, lsl #" shift "\n\t"                                               \
                "strd r6, r4, [sp, #4]\n\t"                                                        \
                "strd r2, r3, [sp, #12]\n\t"                                                       \
                "subs r6, r5, #1\n\t"                                                              \
                "and r6, r6, #" FERRULE_TEXT(                                                      \
                    FERRULE_PIECE_PAIRS) " - 1\n\t"                                                \
                                         "adds r6, r6, #1\n\t"                                     \
                                         "add r6, r4, r6, lsl #" shift "\n\t"                      \
                                         "str r6, [sp, #28]\n\t"                                   \
                                         "rsb r5, r5, #0\n\t"                                      \
                                         "and r5, r5, #3\n\t"                                      \
                                         "movs r6, #" code_bytes "\n\t"                            \
                                         "mul r5, r5, r6\n\t"                                      \
                                         "adr.w r6, 20f\n\t"                                       \
                                         "add r6, r6, r5\n\t"                                      \
                                         "orr r6, r6, #1\n\t"                                      \
                                         "str r6, [sp]\n\t"                                        \
                                         "15:\n\t"                                                 \
                                         "ldr r0, [sp, #8]\n\t"                                    \
                                         "ldr r12, [sp, #28]\n\t"                                  \
                                         "str r12, [sp, #32]\n\t"                                  \
                                         "movs r2, #0\n\t"                                         \
                                         "movs r3, #0\n\t"                                         \
                                         "movs r4, #0\n\t"                                         \
                                         "movs r5, #0\n\t"                                         \
                                         "strd r2, r3, [sp, #20]\n\t"                              \
                                         "ldr pc, [sp]\n\t"                                        \
                                         "20:\n\t" pair pair pair pair "ldr r12, [sp, #32]\n\t"    \
                                         "cmp r0, r12\n\t"                                         \
                                         "bne.w 20b\n\t"                                           \
                                         "ldrd r6, r7, [sp, #20]\n\t"                              \
                                         "ldr r8, [sp, #4]\n\t"                                    \
                                         "sub r2, r2, r3\n\t"                                      \
                                         "sub r4, r4, r5\n\t"                                      \
                                         "add r6, r6, r2, asr #8\n\t"                              \
                                         "add r7, r7, r4, asr #8\n\t"                              \
                                         "cmp r0, r8\n\t"                                          \
                                         "beq 21f\n\t"                                             \
                                         "strd r6, r7, [sp, #20]\n\t"                              \
                                         "add r12, r12, #" FERRULE_TEXT(                           \
                                             FERRULE_PIECE_PAIRS) " << " shift "\n\t"              \
                                                                  "str r12, [sp, #32]\n\t"         \
                                                                  "mov r2, r3\n\t"                 \
                                                                  "mov r4, r5\n\t"                 \
                                                                  "b.w 20b\n\t"                    \
                                                                  "21:\n\t"                        \
                                                                  "mov r2, r6\n\t"                 \
                                                                  "mov r4, r7\n\t" store           \
                                                                  "ldr r12, [sp, #12]\n\t"         \
                                                                  "cmp r1, r12\n\t"                \
                                                                  "bne.w 15b\n\t"                  \
                                                                  "add sp, sp, #36\n\t"            \
                                                                  "pop {r4-r11, pc}\n\t");         \
    }
PIECES_FUNCTION(ferrule_block_row_pieces, WIDENED, "108", "4", PIECES_BLOCK)
PIECES_FUNCTION(ferrule_block_row_direct_pieces, DIRECT, "128", "3", PIECES_BLOCK)
FUNCTION(ferrule_block_row_proved, WIDENED, "108", "4", START_PROVED, PROVED_BLOCK)
FUNCTION(ferrule_block_row_exact, WIDENED, "108", "4", START_EXACT, EXACT_BLOCK)
FUNCTION(ferrule_block_row_direct_proved, DIRECT, "128", "3", START_PROVED, PROVED_BLOCK)
FUNCTION(ferrule_block_row_direct_exact, DIRECT, "128", "3", START_EXACT, EXACT_BLOCK)

#define PROVED_TWO        PROVED("r3", "r2") STORE_TWO
#define EXACT_PAIR(shift) EXACT_TWO("r3", "r2", shift) STORE_TWO

PIECES_FUNCTION(ferrule_block_row_pair_pieces, WIDENED_PAIR, "56", "4", EXACT_PAIR(", lsl #1"))
PIECES_FUNCTION(ferrule_block_row_pair_direct_pieces, DIRECT_PAIR, "76", "3",
                EXACT_PAIR(", lsl #1"))
FUNCTION(ferrule_block_row_pair_proved, WIDENED_PAIR, "56", "4", "ldr r2, [r1], #4\n\t", PROVED_TWO)
FUNCTION(ferrule_block_row_pair_exact, WIDENED_PAIR, "56", "4", START_EXACT, EXACT_PAIR(", asr #7"))
FUNCTION(ferrule_block_row_pair_direct_proved, DIRECT_PAIR, "76", "3", "ldr r2, [r1], #4\n\t",
         PROVED_TWO)
FUNCTION(ferrule_block_row_pair_direct_exact, DIRECT_PAIR, "76", "3", START_EXACT,
         EXACT_PAIR(", asr #7"))

/* Twice the sums; the packed channels lie in reverse order, so that one instruction stores all. */
#define STORE_SUMS                                                                                 \
    APART                                                                                          \
    "asr r2, r2, #7\n\t"                                                                           \
    "lsl r3, r3, #1\n\t"                                                                           \
    "asr r4, r4, #7\n\t"                                                                           \
    "lsl r5, r5, #1\n\t"                                                                           \
    "ldr r0, [sp, #16]\n\t"                                                                        \
    "stm r0!, {r2-r5}\n\t"                                                                         \
    "str r0, [sp, #16]\n\t"
/* Two products of four channels with weights of 16 bits; eight products in 84 bytes of code. */
#define WIDE_STEP(x)                                                                               \
    "ldm r1!, {r10, r11, r12, lr}\n\t"                                                             \
    "smlad r2, " x ", r10, r2\n\t"                                                                 \
    "smlad r3, " x ", r11, r3\n\t"                                                                 \
    "smlad r4, " x ", r12, r4\n\t"                                                                 \
    "smlad r5, " x ", lr, r5\n\t"
#define WIDE                                                                                       \
    "ldm.w r0!, {r6-r9}\n\t" WIDE_STEP("r6") WIDE_STEP("r7") WIDE_STEP("r8") WIDE_STEP("r9")
#define STORE_WIDE_SUMS                                                                            \
    "lsl r2, r2, #1\n\t"                                                                           \
    "lsl r3, r3, #1\n\t"                                                                           \
    "lsl r4, r4, #1\n\t"                                                                           \
    "lsl r5, r5, #1\n\t"                                                                           \
    "ldr r0, [sp, #16]\n\t"                                                                        \
    "stm r0!, {r2-r5}\n\t"                                                                         \
    "str r0, [sp, #16]\n\t"
#define START_SUMS "ldm r1!, {r2-r5}\n\t"

LOOPS(ferrule_block_row_wide_sums, int32_t, WIDE, "84", "4", START_SUMS, STORE_WIDE_SUMS)
LOOPS(ferrule_block_row_sums, int32_t, WIDENED, "108", "4", START_SUMS, STORE_SUMS)

#else

/* How the sums of two channels become stored values. */
enum form { PROVED, EXACT, PIECES };

/* The sums of two channels; that of the second is times 256, or times 1 if they are added in
 * pieces. */
static struct ferrule_pair_sums multiply_pair(const struct ferrule_block_row *row, bool direct,
                                              enum form form, int32_t channel_pairs,
                                              const int32_t *weights)
{
    struct ferrule_pair_sums sums = {0, 0};
    const int8_t *bytes = row->data;
    const uint32_t *words = row->data;
    uint32_t second = 0;

    for (int32_t i = 0; i < 2 * row->pairs; ++i) {
        uint32_t pair[2];

        if (direct) {
            ferrule_widen(bytes + 4 * i, 1, pair, 2);
        } else {
            pair[0] = words[2 * i];
            pair[1] = words[2 * i + 1];
        }
        ferrule_add_pair(&sums, pair[0], (uint32_t)weights[0]);
        ferrule_add_pair(&sums, pair[1], (uint32_t)weights[channel_pairs]);
        weights += 2 * channel_pairs;
        if (form == PIECES && (2 * row->pairs - 1 - i) % (2 * FERRULE_PIECE_PAIRS) == 0) {
            second += (uint32_t)((int32_t)(sums.both - sums.a) >> 8);
            sums.both = sums.a;
        }
    }
    return (struct ferrule_pair_sums){.both = form == PIECES ? second : sums.both - sums.a,
                                      .a = sums.a};
}

static void multiply(const struct ferrule_block_row *row, bool direct, enum form form,
                     int32_t channel_pairs, const int32_t *weights, const int32_t *end,
                     int8_t *output)
{
    while (weights != end) {
        const int32_t *biases = weights;
        const int32_t *first = weights + (form == PROVED ? channel_pairs : 0);
        const int32_t *channel = first + 4 * channel_pairs * row->pairs;

        for (int32_t i = 0; i < channel_pairs; ++i) {
            struct ferrule_pair_sums sums =
                multiply_pair(row, direct, form, channel_pairs, first + i);

            if (form == PROVED) {
                output[0] = ferrule_proved_s8((sums.a << 8) + (uint32_t)channel[1], channel[0]);
                output[1] = ferrule_proved_s8(sums.both + (uint32_t)biases[i], channel[2]);
                channel += 3;
            } else {
                uint32_t odd =
                    form == PIECES ? 2u * sums.both : (uint32_t)((int32_t)sums.both >> 7);

                output[0] = ferrule_exact_s8(2u * sums.a, channel);
                output[1] = ferrule_exact_s8(odd, channel + FERRULE_EXACT_WORDS);
                channel += 2 * FERRULE_EXACT_WORDS;
            }
            output += 2;
        }
        weights = channel;
    }
}

#define FUNCTION(name, direct, form, pairs)                                                        \
    void name(const struct ferrule_block_row *row, const int32_t *weights, const int32_t *end,     \
              int8_t *output)                                                                      \
    {                                                                                              \
        multiply(row, direct, form, pairs, weights, end, output);                                  \
    }

FUNCTION(ferrule_block_row_proved, false, PROVED, 2)
FUNCTION(ferrule_block_row_pair_proved, false, PROVED, 1)
FUNCTION(ferrule_block_row_exact, false, EXACT, 2)
FUNCTION(ferrule_block_row_pair_exact, false, EXACT, 1)
FUNCTION(ferrule_block_row_pieces, false, PIECES, 2)
FUNCTION(ferrule_block_row_pair_pieces, false, PIECES, 1)
FUNCTION(ferrule_block_row_direct_proved, true, PROVED, 2)
FUNCTION(ferrule_block_row_pair_direct_proved, true, PROVED, 1)
FUNCTION(ferrule_block_row_direct_exact, true, EXACT, 2)
FUNCTION(ferrule_block_row_pair_direct_exact, true, EXACT, 1)
FUNCTION(ferrule_block_row_direct_pieces, true, PIECES, 2)
FUNCTION(ferrule_block_row_pair_direct_pieces, true, PIECES, 1)

void ferrule_block_row_sums(const struct ferrule_block_row *row, const int32_t *weights,
                            const int32_t *end, int32_t *sums)
{
    while (weights != end) {
        for (int32_t i = 0; i < 2; ++i) {
            const struct ferrule_pair_sums pair =
                multiply_pair(row, false, EXACT, 2, weights + 4 + i);
            const uint32_t a = pair.a + (uint32_t)weights[2 * i + 1];
            const uint32_t both =
                pair.both + (uint32_t)weights[2 * i] - (uint32_t)weights[2 * i + 1];

            *sums++ = (int32_t)both >> 7;
            *sums++ = (int32_t)(2u * a);
        }
        weights += 4 + 8 * row->pairs;
    }
}

void ferrule_block_row_wide_sums(const struct ferrule_block_row *row, const int32_t *weights,
                                 const int32_t *end, int32_t *sums)
{
    const uint32_t *words = (const uint32_t *)row->data;

    while (weights != end) {
        for (int32_t c = 0; c < 4; ++c) {
            uint32_t sum = (uint32_t)weights[c];

            for (int32_t i = 0; i < 4 * row->pairs; ++i) {
                sum = ferrule_dual_multiply_add(words[i], (uint32_t)weights[4 + 4 * i + c], sum);
            }
            *sums++ = (int32_t)(2u * sum);
        }
        weights += 4 + 16 * row->pairs;
    }
}

#endif

#if FERRULE_HAS_DSP
#define WIDEN_TWO                                                                                  \
    "ldr r5, [%[from]], #4\n\t"                                                                    \
    "ldr r8, [%[from]], #4\n\t"                                                                    \
    "sxtb16 r4, r5\n\t"                                                                            \
    "sxtb16 r5, r5, ror #8\n\t"                                                                    \
    "sxtb16 r6, r8\n\t"                                                                            \
    "sxtb16 r8, r8, ror #8\n\t"                                                                    \
    "stm %[to]!, {r4, r5, r6, r8}\n\t"
#endif

/* The last bytes are widened separately. */
void ferrule_widen_row(const int8_t *row, int32_t bytes, uint32_t *target)
{
    int32_t words = bytes / 4;

#if FERRULE_HAS_DSP
    const int8_t *from = row;
    uint32_t *to = target;
    int32_t fours = words / 4;

    if (fours > 0) {
        __asm__ volatile("1:\n\t" WIDEN_TWO WIDEN_TWO "subs %[fours], %[fours], #1\n\t"
                         "bne 1b\n\t"
                         : [from] "+r"(from), [to] "+r"(to), [fours] "+r"(fours)
                         :
                         : "r4", "r5", "r6", "r8", "cc", "memory");
    }
    ferrule_widen(from, words % 4, to, 2);
#else
    ferrule_widen(row, words, target, 2);
#endif
    if (bytes % 4 != 0) {
        int8_t rest[4] = {0, 0, 0, 0};

        for (int32_t i = 0; i < bytes % 4; ++i) {
            rest[i] = row[4 * words + i];
        }
        ferrule_widen(rest, 1, target + 2 * words, 2);
    }
}

static void multiply_rows(const struct ferrule_fully_connected_block_s8_params *params,
                          const int8_t *input, int8_t *output, void *scratch)
{
    struct ferrule_block_row row = {scratch, params->words / 2};
    int32_t blocks = params->output_c / 4;
    int32_t left = params->output_c % 4;
    const int32_t *last = params->weights + blocks * params->block_words;

    for (int32_t r = 0; r < params->rows; ++r) {
        if (scratch == NULL) {
            row.data = input;
        } else {
            ferrule_widen_row(input, params->input_c, scratch);
        }
        if (blocks > 0) {
            params->multiply(&row, params->weights, last, output);
        }
        if (left > 0) {
            int8_t rest[4];

            params->multiply_rest(&row, last, last + params->rest_words, rest);
            for (int32_t i = 0; i < left; ++i) {
                output[4 * blocks + i] = rest[i];
            }
        }
        input += params->input_c;
        output += params->output_c;
    }
}

void ferrule_fully_connected_block_s8(const struct ferrule_fully_connected_block_s8_params *params,
                                      const int8_t *input, int8_t *output, void *scratch)
{
    multiply_rows(params, input, output, scratch);
}

void ferrule_fully_connected_direct_block_s8(
    const struct ferrule_fully_connected_block_s8_params *params, const int8_t *input,
    int8_t *output)
{
    multiply_rows(params, input, output, NULL);
}
