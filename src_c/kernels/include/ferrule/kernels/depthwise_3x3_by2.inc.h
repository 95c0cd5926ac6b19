/* SPDX-License-Identifier: Apache-2.0 */
/* The weights and the steps of a window of 3x3 that slides by 2; internal to the kernels. */

enum { TURN = 5, TURN_WORDS = LINES * TURN, OUTPUTS = 1 };

/* Each of the three rotations has w0, w1 of the three places, then w2 of places 0 and 1 in one
 * word, and that of place 2 in the upper half of the last. Place p has the weights of line
 * (p - oldest) mod 3. */
static void turn(const int32_t *weights, uint32_t *turned)
{
    for (int32_t oldest = 0; oldest < LINES; ++oldest) {
        uint32_t a = (uint32_t)weights[(LINES - oldest) % LINES];
        uint32_t b = (uint32_t)weights[(LINES + 1 - oldest) % LINES];
        uint32_t c = (uint32_t)weights[(LINES + 2 - oldest) % LINES];

        turned[0] = ferrule_depthwise_even(a);
        turned[1] = ferrule_depthwise_even(b);
        turned[2] = ferrule_depthwise_even(c);
        turned[3] = (ferrule_depthwise_odd(a) >> 16) | (ferrule_depthwise_odd(b) & 0xffff0000u);
        turned[4] = ferrule_depthwise_odd(c);
        turned += TURN;
    }
}

#if FERRULE_HAS_DSP
/* The sum in r12 to int8; `free` is a register. */
#if FERRULE_IS_EXACT
#define REQUANTIZE(free) EXACT("r12", "lr", free, "32", "36")
#else
#define REQUANTIZE(free) FERRULE_PROVED_BIASED("r12", "lr")
#endif

/* As in steps of 1, with one accumulator, r12; the weights are in r2 to r6, the bias is in r7, the
 * multiplier in lr. */
#define STEP(x, y, z, next)                                                                        \
    "ldr " next ", [r0, #12]!\n\t"                                                                 \
    "smlad r12, " x ", r2, r7\n\t"                                                                 \
    "ldr " x ", [r0, #4]\n\t"                                                                      \
    "smlabb r12, " next ", r5, r12\n\t"                                                            \
    "smlad r12, " y ", r3, r12\n\t"                                                                \
    "ldr " y ", [r0, #8]\n\t"                                                                      \
    "smlabt r12, " x ", r5, r12\n\t"                                                               \
    "smlad r12, " z ", r4, r12\n\t"                                                                \
    "smlabt r12, " y ", r6, r12\n\t" REQUANTIZE(z) "ldr " z ", [sp, #12]\n\t"                      \
                                                   "strb r12, [r1]\n\t"                            \
                                                   "add r1, r1, " z "\n\t"

/* clang-format off */
#define ENTRIES                                                                                    \
    "tbb [pc, r8]\n\t"                                                                             \
    ".byte 2, 10, 18, 26\n\t"                                                                      \
    FOUR_ENTRIES

#define LOOP FOUR_STEPS("16")
/* clang-format on */

/*
 * The stack: 0 output line; 4 offset of the weights in a channel; 12 step bytes; 16 the last words
 * of a line; 20 next channel; 24 end of channels; 28 entry; 32 rounding; 36 right shift.
 */
static void store_line(const struct ferrule_depthwise_line *line)
{
    register const struct ferrule_depthwise_line *r0 __asm__("r0") = line;

    __asm__ volatile("push {r4-r11}\n\t"
                     "sub sp, #40\n\t"
                     "ldm r0, {r1-r6}\n\t"
                     "str r6, [sp, #12]\n\t"
                     "str r2, [sp, #24]\n\t"
                     "add r4, r4, r4, lsl #2\n\t"
                     "lsl r4, r4, #2\n\t"
                     "add r4, r4, #24\n\t"
                     "strd r3, r4, [sp]\n\t"
                     "rsb r9, r5, #0\n\t"
                     "and r9, r9, #3\n\t"
                     "str r9, [sp, #28]\n\t"
                     "mov r12, r1\n"
                     "0:\n\t"
                     "add r11, r12, #92\n\t"
                     "str r11, [sp, #20]\n\t" LOAD_EXACT("32") "ldm r12, {r0, r1, r7-r9, lr}\n\t"
                                                               "str r9, [sp, #16]\n\t"
                                                               "ldrd r8, r9, [sp]\n\t"
                                                               "add r1, r1, r8\n\t"
                                                               "add r12, r12, r9\n\t"
                                                               "ldm r12, {r2-r6}\n\t"
                                                               "ldr r8, [sp, #28]\n\t" ENTRIES LOOP
                                                               "ldrd r12, r11, [sp, #20]\n\t"
                                                               "cmp r12, r11\n\t"
                                                               "bne 0b\n\t"
                                                               "add sp, #40\n\t"
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
        const uint32_t *weights = &channel->weights[TURN * line->oldest];
        const uint32_t third[LINES] = {weights[3] << 16, weights[3], weights[4]};
        const uint32_t *words = channel->words;
        int8_t *output = line->output + channel->offset_bytes;

        for (int32_t step = 0; step < line->steps; ++step) {
            uint32_t sum = (uint32_t)channel->bias;

            for (int32_t i = 0; i < LINES; ++i) {
                sum = ferrule_dual_multiply_add(words[i], weights[i], sum);
                sum = ferrule_low_high_multiply_add(words[LINES + i], third[i], sum);
            }
            *output = requantized(sum, channel);
            output += line->step_bytes;
            words += LINES;
        }
    }
}
#endif
