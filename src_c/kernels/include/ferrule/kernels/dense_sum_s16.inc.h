/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A function that computes rows of sums of int16 where one of the inputs has half of the
 * common scale, so that its term is exact: the element times 2^14. A source file defines these
 * macros, then includes this file:
 *
 * FERRULE_ROW                    name of the function
 * FERRULE_COMBINE(exact, scaled) the sum of the terms
 * FERRULE_COMBINE_VECTORS        the same in assembler, of q0 and q1 to q0
 */
static int32_t FERRULE_ROW(const struct ferrule_dense_s16 *constants, const int16_t *exact,
                           const int16_t *scaled, int16_t *output, int32_t count)
{
#if FERRULE_HAS_MVE
    int32_t t0;
    int32_t t1;
    int32_t t2;
    int32_t t3;

    __asm__ volatile(FERRULE_DENSE_START
                     "ldr %[t2], [%[constants], #24]\n\t"
                     "vdup.32 q4, %[t2]\n\t"
                     "ldrd %[t2], %[t3], [%[constants], #16]\n\t"
                     "wlstp.32 lr, %[count], 2f\n\t"
                     "1:\n\t"
                     "vldrh.s32 q1, [%[scaled]], #8\n\t"
                     "vshl.i32 q1, q1, #15\n\t"
                     "vqrdmulh.s32 q1, q1, %[t2]\n\t"
                     "vshr.s32 q0, q1, #31\n\t"
                     "vand q0, q0, q4\n\t"
                     "vadd.i32 q1, q1, q0\n\t"
                     "vrshl.s32 q1, %[t3]\n\t"
                     "vldrh.s32 q0, [%[exact]], #8\n\t"
                     "vshl.i32 q0, q0, #14\n\t" FERRULE_COMBINE_VECTORS FERRULE_DENSE_FINISH
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [exact] "+l"(exact), [scaled] "+l"(scaled), [output] "+l"(output),
                       [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3)
                     : [constants] "r"(constants), [count] "r"(count)
                     : "lr", "q0", "q1", "q2", "q3", "q4", "memory");
    return count;
#elif FERRULE_HAS_DSP
    const struct ferrule_dense_s16 own = *constants; /* no store can change it */
    const int32_t right = -own.shift;
    const int32_t rounding = 1 << (right - 1);
    const int32_t term_right = -own.term_shift;
    const int32_t term_rounding = (int32_t)((UINT32_C(1) << term_right) >> 1);
    const uint32_t lows = ferrule_pair(own.low, own.low);
    const uint32_t highs = ferrule_pair(own.high, own.high);

    if (own.away == 0) { /* the other term is exact, too, or its factor is none of int16 */
        if (own.term_multiplier != INT32_C(1) << 30) {
            return 0;
        }
        for (int32_t left = count / 2; left > 0; --left) {
            uint32_t word;
            uint32_t other;

            FERRULE_COPY_WORD(&word, exact);
            FERRULE_COPY_WORD(&other, scaled);

            const int32_t low = FERRULE_COMBINE((int16_t)word, (int16_t)other);
            const int32_t high = FERRULE_COMBINE((int32_t)word >> 16, (int32_t)other >> 16);

            word = ferrule_dense_pair(
                ferrule_dense_scaled(low * (1 << 15), own.multiplier, rounding, right),
                ferrule_dense_scaled(high * (1 << 15), own.multiplier, rounding, right), lows,
                highs);
            FERRULE_COPY_WORD(output, &word);
            exact += 2;
            scaled += 2;
            output += 2;
        }
        return count / 2 * 2;
    }
    for (int32_t left = count / 2; left > 0; --left) {
        uint32_t word;
        uint32_t scaled_word;

        FERRULE_COPY_WORD(&word, exact);
        FERRULE_COPY_WORD(&scaled_word, scaled);

        /* terms of elements times 2^16 */
        int32_t low = ferrule_high_product((int32_t)(scaled_word << 16), own.term_multiplier);
        int32_t high =
            ferrule_high_product((int32_t)(scaled_word & 0xffff0000u), own.term_multiplier);

        low = (low + (low >> 31) + term_rounding) >> term_right;
        high = (high + (high >> 31) + term_rounding) >> term_right;
        low = FERRULE_COMBINE((int32_t)(word << 16) >> 1, 2 * low);
        high = FERRULE_COMBINE((int32_t)(word & 0xffff0000u) >> 1, 2 * high);
        word = ferrule_dense_pair(ferrule_dense_scaled(low, own.multiplier, rounding, right),
                                  ferrule_dense_scaled(high, own.multiplier, rounding, right), lows,
                                  highs);
        FERRULE_COPY_WORD(output, &word);
        exact += 2;
        scaled += 2;
        output += 2;
    }
    return count / 2 * 2;
#else
    (void)constants;
    (void)exact;
    (void)scaled;
    (void)output;
    (void)count;
    return 0;
#endif
}
#undef FERRULE_ROW
#undef FERRULE_COMBINE
#undef FERRULE_COMBINE_VECTORS
