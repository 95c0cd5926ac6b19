/* SPDX-License-Identifier: Apache-2.0 */
/* The four functions of <string.h> that compilers call implicitly. A word may be read at any
 * address: compilers emit one load if the core allows it, otherwise byte loads. Written words are
 * always aligned. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Without these, a compiler may turn the loop of memcpy into a call of memcpy. */
#if defined(__clang__)
#define NO_IDIOMS __attribute__((no_builtin))
#elif defined(__GNUC__)
#define NO_IDIOMS __attribute__((optimize("no-tree-loop-distribute-patterns")))
#else
#define NO_IDIOMS
#endif

#define WORD sizeof(uint32_t)
#define MANY (8 * WORD)

struct __attribute__((packed, may_alias)) any_word {
    uint32_t value; // cppcheck-suppress unusedStructMember ; load() reads it
};

typedef uint32_t __attribute__((may_alias)) aligned_word;

static inline uint32_t load(const uint8_t *from)
{
    return ((const struct any_word *)(const void *)from)->value;
}

static inline void store(uint8_t *to, uint32_t value)
{
    *(aligned_word *)(void *)to = value;
}

NO_IDIOMS static void copy_up(uint8_t *to, const uint8_t *from, size_t bytes)
{
    while (bytes > 0 && ((uintptr_t)to % WORD) != 0) {
        *to++ = *from++;
        bytes--;
    }
#if defined(__thumb__)
    /* Many words at once have to be aligned in both places. */
    if (bytes >= MANY && ((uintptr_t)from % WORD) == 0) {
        const size_t rest = bytes % MANY;

        bytes -= rest;
        __asm__ volatile(".syntax unified\n"
                         "1:\n\t"
#if defined(__thumb2__)
                         "ldmia %[from]!, {r3-r6, r8-r11}\n\t"
                         "stmia %[to]!, {r3-r6, r8-r11}\n\t"
#else
                         "ldmia %[from]!, {r3-r6}\n\t"
                         "stmia %[to]!, {r3-r6}\n\t"
                         "ldmia %[from]!, {r3-r6}\n\t"
                         "stmia %[to]!, {r3-r6}\n\t"
#endif
                         "subs %[bytes], %[bytes], #32\n\t"
                         "bne 1b"
                         : [to] "+l"(to), [from] "+l"(from), [bytes] "+l"(bytes)
                         :
                         : "r3", "r4", "r5", "r6",
#if defined(__thumb2__)
                           "r8", "r9", "r10", "r11",
#endif
                           "cc", "memory");
        bytes = rest;
    }
#endif
    while (bytes >= 4 * WORD) {
        uint32_t a = load(from);
        uint32_t b = load(from + WORD);
        uint32_t c = load(from + 2 * WORD);
        uint32_t d = load(from + 3 * WORD);
        store(to, a);
        store(to + WORD, b);
        store(to + 2 * WORD, c);
        store(to + 3 * WORD, d);
        to += 4 * WORD;
        from += 4 * WORD;
        bytes -= 4 * WORD;
    }
    while (bytes >= WORD) {
        store(to, load(from));
        to += WORD;
        from += WORD;
        bytes -= WORD;
    }
    while (bytes > 0) {
        *to++ = *from++;
        bytes--;
    }
}

/* Both pointers are one past the last byte. */
NO_IDIOMS static void copy_down(uint8_t *to, const uint8_t *from, size_t bytes)
{
    while (bytes > 0 && ((uintptr_t)to % WORD) != 0) {
        *--to = *--from;
        bytes--;
    }
    while (bytes >= WORD) {
        to -= WORD;
        from -= WORD;
        store(to, load(from));
        bytes -= WORD;
    }
    while (bytes > 0) {
        *--to = *--from;
        bytes--;
    }
}

NO_IDIOMS void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    copy_up(to, from, bytes);
    return to;
}

NO_IDIOMS void *memmove(void *to, const void *from, size_t bytes)
{
    if ((uintptr_t)to - (uintptr_t)from >= bytes) {
        copy_up(to, from, bytes); /* the target lies before the source, or after its end */
    } else {
        copy_down((uint8_t *)to + bytes, (const uint8_t *)from + bytes, bytes);
    }
    return to;
}

NO_IDIOMS void *memset(void *to, int value, size_t bytes)
{
    uint8_t *at = to;
    uint8_t byte = (uint8_t)value;
    uint32_t word = byte * UINT32_C(0x01010101);

    while (bytes > 0 && ((uintptr_t)at % WORD) != 0) {
        *at++ = byte;
        bytes--;
    }
    while (bytes >= 4 * WORD) {
        store(at, word);
        store(at + WORD, word);
        store(at + 2 * WORD, word);
        store(at + 3 * WORD, word);
        at += 4 * WORD;
        bytes -= 4 * WORD;
    }
    while (bytes > 0) {
        *at++ = byte;
        bytes--;
    }
    return to;
}

NO_IDIOMS int memcmp(const void *one, const void *other, size_t bytes)
{
    const uint8_t *a = one;
    const uint8_t *b = other;

    while (bytes >= WORD && load(a) == load(b)) {
        a += WORD;
        b += WORD;
        bytes -= WORD;
    }
    for (; bytes > 0; bytes--) {
        if (*a != *b) {
            return *a < *b ? -1 : 1;
        }
        a++;
        b++;
    }
    return 0;
}
