/* SPDX-License-Identifier: Apache-2.0 */
/* The weights and the steps of a window of 3x3 that slides by 1; internal to the kernels. */

enum { TURN_WORDS = 2 * (2 * LINES - 1), OUTPUTS = 2 };

/* Line j of the window is at place (oldest + j) % 3, so place p uses the weights of line (p -
 * oldest) mod 3, which start at word 2 * (2 - oldest + p). */
static void turn(const int32_t *weights, uint32_t *turned)
{
    for (int32_t j = 0; j < 2 * LINES - 1; ++j) {
        uint32_t word = (uint32_t)weights[(j + 1) % LINES];

        turned[2 * j] = ferrule_depthwise_even(word);
        turned[2 * j + 1] = ferrule_depthwise_odd(word);
    }
}

#if FERRULE_HAS_DSP
/* Two sums, or one, to int8; `free` is a register. */
#if FERRULE_IS_EXACT
#define REQUANTIZE(a, b, free)                                                                     \
    "ldr " free ", [sp, #12]\n\t"                                                                  \
    "smmulr " a ", " a ", " free "\n\t"                                                            \
    "smmulr " b ", " b ", " free "\n\t"                                                            \
    "ldr " free ", [sp, #48]\n\t"                                                                  \
    "add " a ", " a ", " a ", asr #31\n\t"                                                         \
    "add " b ", " b ", " b ", asr #31\n\t"                                                         \
    "add " a ", " a ", " free "\n\t"                                                               \
    "add " b ", " b ", " free "\n\t"                                                               \
    "ldr " free ", [sp, #52]\n\t"                                                                  \
    "asr " a ", " a ", " free "\n\t"                                                               \
    "asr " b ", " b ", " free "\n\t"                                                               \
    "ssat " a ", #8, " a "\n\t"                                                                    \
    "ssat " b ", #8, " b "\n\t"
#define REQUANTIZE_ONE(a, free) "ldr " free ", [sp, #12]\n\t" EXACT(a, free, free, "48", "52")
#else
#define REQUANTIZE(a, b, free)                                                                     \
    "ldr " free ", [sp, #12]\n\t" FERRULE_PROVED_BIASED(a, free) FERRULE_PROVED_BIASED(b, free)
#define REQUANTIZE_ONE(a, free) "ldr " free ", [sp, #12]\n\t" FERRULE_PROVED_BIASED(a, free)
#endif

/* Weights stay in r2 to r7. Words of the lines in scratch: the current ones in x, y and z, the
 * next one of x in `next`, then each register takes the next word of the line after it; after
 * four steps, all registers have their first places again. Accumulators are r12 and lr. */
#define STEP(x, y, z, next)                                                                        \
    "ldr " next ", [r0, #12]!\n\t"                                                                 \
    "ldrd r12, lr, [sp]\n\t"                                                                       \
    "smlad r12, " x ", r2, r12\n\t"                                                                \
    "smlatb lr, " x ", r2, lr\n\t"                                                                 \
    "smlabt r12, " next ", r3, r12\n\t"                                                            \
    "smlad lr, " next ", r3, lr\n\t"                                                               \
    "ldr " x ", [r0, #4]\n\t"                                                                      \
    "smlad r12, " y ", r4, r12\n\t"                                                                \
    "smlatb lr, " y ", r4, lr\n\t"                                                                 \
    "smlabt r12, " x ", r5, r12\n\t"                                                               \
    "smlad lr, " x ", r5, lr\n\t"                                                                  \
    "ldr " y ", [r0, #8]\n\t"                                                                      \
    "smlad r12, " z ", r6, r12\n\t"                                                                \
    "smlatb lr, " z ", r6, lr\n\t"                                                                 \
    "smlabt r12, " y ", r7, r12\n\t"                                                               \
    "smlad lr, " y ", r7, lr\n\t" REQUANTIZE("r12", "lr", z) "ldr " z ", [sp, #16]\n\t"            \
                                                             "strb r12, [r1]\n\t"                  \
                                                             "strb lr, [r1, " z "]\n\t"            \
                                                             "add r1, r1, " z ", lsl #1\n\t"

/* clang-format off */
#define ENTRIES                                                                                    \
    "tbb [pc, r8]\n\t"                                                                             \
    ".byte 3, 11, 19, 27, 35, 0\n\t"                                                               \
    FOUR_ENTRIES                                                                       \
    ENTER("r8", "r9", "r10", "5f")

#define LOOP FOUR_STEPS("8")

/* The last output of an odd number of steps. */
#define LAST_STEP                                                                                  \
    "5:\n\t"                                                                                       \
    "ldr r11, [sp, #44]\n\t"                                                                       \
    "cmp r11, #0\n\t"                                                                              \
    "beq 6f\n\t"                                                                                   \
    "ldr r12, [sp]\n\t"                                                                            \
    "ldr r11, [r0, #12]\n\t"                                                                       \
    "smlad r12, r8, r2, r12\n\t"                                                                   \
    "ldr r8, [r0, #16]\n\t"                                                                        \
    "smlabt r12, r11, r3, r12\n\t"                                                                 \
    "ldr r11, [r0, #20]\n\t"                                                                       \
    "smlad r12, r9, r4, r12\n\t"                                                                   \
    "smlabt r12, r8, r5, r12\n\t"                                                                  \
    "smlad r12, r10, r6, r12\n\t"                                                                  \
    "smlabt r12, r11, r7, r12\n\t"                                                                 \
    REQUANTIZE_ONE("r12", "r10")                                                               \
    "strb r12, [r1]\n"                                                                             \
    "6:\n\t"
/* clang-format on */

/*
 * The stack: 0, 4 bias; 8 the last words of a line; 12 multiplier; 16 step bytes; 20 next channel;
 * 24 end of channels; 28 output line; 32 offset of the weights in a channel; 40 entry; 44 whether
 * the number of steps is odd; 48 rounding; 52 right shift.
 */
static void store_line(const struct ferrule_depthwise_line *line)
{
    register const struct ferrule_depthwise_line *r0 __asm__("r0") = line;

    __asm__ volatile(
        "push {r4-r11}\n\t"
        "sub sp, #56\n\t"
        "ldm r0, {r1-r6}\n\t"
        "str r6, [sp, #16]\n\t"
        "strd r2, r3, [sp, #24]\n\t"
        "rsb r4, r4, #2\n\t"
        "lsl r4, r4, #3\n\t"
        "add r4, r4, #24\n\t"
        "lsr r6, r5, #1\n\t"
        "str r4, [sp, #32]\n\t"
        "and r8, r5, #1\n\t"
        "rsb r9, r6, #0\n\t"
        "and r9, r9, #3\n\t"
        "cmp r6, #0\n\t"
        "it eq\n\t"
        "moveq r9, #4\n\t"
        "strd r9, r8, [sp, #40]\n\t"
        "mov r12, r1\n"
        "0:\n\t"
        "add r11, r12, #92\n\t"
        "str r11, [sp, #20]\n\t" LOAD_EXACT("48") "ldm r12, {r0, r1, r8-r11}\n\t"
                                                  "stm sp, {r8-r11}\n\t"
                                                  "ldrd r8, r9, [sp, #28]\n\t"
                                                  "add r1, r1, r8\n\t"
                                                  "add r12, r12, r9\n\t"
                                                  "ldm r12, {r2-r7}\n\t"
                                                  "ldr r8, [sp, #40]\n\t" ENTRIES LOOP LAST_STEP
                                                  "ldrd r12, r11, [sp, #20]\n\t"
                                                  "cmp r12, r11\n\t"
                                                  "bne 0b\n\t"
                                                  "add sp, #56\n\t"
                                                  "pop {r4-r11}"
        : "+r"(r0)
        :
        : "r1", "r2", "r3", "r12", "lr", "cc", "memory");
}
#else
static void store_line(const struct ferrule_depthwise_line *line)
{
    for (const struct ferrule_depthwise_channel *channel = line->channels; channel != line->end;
         ++channel) {
        const uint32_t *weights = &channel->weights[2 * (LINES - 1 - line->oldest)];
        const uint32_t *words = channel->words;
        int8_t *output = line->output + channel->offset_bytes;

        for (int32_t step = 0; step < line->steps; step += 2) {
            uint32_t even = (uint32_t)channel->bias;
            uint32_t odd = even;

            for (int32_t i = 0; i < LINES; ++i) {
                uint32_t now = words[i];
                uint32_t next = words[LINES + i];

                even = ferrule_dual_multiply_add(now, weights[2 * i], even);
                even = ferrule_low_high_multiply_add(next, weights[2 * i + 1], even);
                odd = ferrule_dual_multiply_add(next, weights[2 * i + 1], odd);
                odd = ferrule_low_high_multiply_add(weights[2 * i], now, odd);
            }
            *output = requantized(even, channel);
            output += line->step_bytes;
            if (step + 1 < line->steps) {
                *output = requantized(odd, channel);
                output += line->step_bytes;
            }
            words += LINES;
        }
    }
}
#endif
