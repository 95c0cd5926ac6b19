/* SPDX-License-Identifier: Apache-2.0 */
/* Prints results that depend on the start-up: initialised and zeroed data, the FPU, the compiler's
 * arithmetic routines, and the core's own copies of words. */

#include <stdint.h>
#include <string.h>

#include TEST_HEADER
#include "ferrule/section.h"

#define JOINED(prefix, name) prefix##name
#define NAME(prefix, name)   JOINED(prefix, name)
#define CONFIG               NAME(TEST_DRIVER, _config)

int main(void);

static volatile uint32_t initialised = 0x1234abcdu;
static volatile uint8_t odd[3] = {7, 8, 9};
static volatile uint32_t cleared[64];
static volatile float factor = 1.5f;
static volatile int64_t dividend = INT64_C(99000000693);
static volatile double wide = 0.1;

FERRULE_WEIGHTS static const volatile int16_t weights[4] = {-1, 2, -3, 4};
FERRULE_WORKSPACE static volatile uint8_t workspace[1000];

static const struct CONFIG uart = {
    .base = TEST_UART,
#ifdef TEST_CLOCK_HZ
    .clock_hz = TEST_CLOCK_HZ,
#endif
};

static void put(char symbol)
{
    NAME(TEST_DRIVER, _write)((void *)(uintptr_t)&uart, (uint8_t)symbol);
}

static void print(uint32_t value)
{
    for (int shift = 28; shift >= 0; shift -= 4) {
        put("0123456789abcdef"[(value >> shift) & 15u]);
    }
    put('\n');
}

enum { LONGEST = 100, ROOM = LONGEST + 8 };

static uint8_t source[ROOM];
static uint8_t target[ROOM];

/* Copy and move down so many bytes, and return how many bytes of the target are not as wanted. */
static uint32_t wrong_bytes(uint32_t to, uint32_t from, uint32_t bytes)
{
    uint32_t wrong = 0;

    for (uint32_t i = 0; i < ROOM; i++) {
        source[i] = (uint8_t)(7 * i + 1);
        target[i] = 0xEE;
    }
    (void)memcpy(&target[to], &source[from], bytes);
    for (uint32_t i = 0; i < ROOM; i++) {
        const uint8_t wanted =
            i >= to && i < to + bytes ? (uint8_t)(7 * (i - to + from) + 1) : (uint8_t)0xEE;

        wrong += target[i] != wanted;
    }
    (void)memmove(source, &source[from], bytes);
    for (uint32_t i = 0; i < ROOM; i++) {
        wrong += source[i] != (uint8_t)(7 * (i < bytes ? i + from : i) + 1);
    }
    return wrong;
}

static uint32_t wrong_copies(void)
{
    uint32_t wrong = 0;

    for (uint32_t bytes = 0; bytes <= LONGEST; bytes++) {
        for (uint32_t i = 0; i < 16; i++) {
            wrong += wrong_bytes(i % 4, i / 4 + (i == 0 ? 4 : 0), bytes);
        }
    }
    return wrong;
}

int main(void)
{
    char copy[12];
    uint32_t sum = 0;

    (void)NAME(TEST_DRIVER, _init)(&uart);
    for (uint32_t i = 0; i < 64; i++) {
        sum |= cleared[i];
    }
    workspace[999] = 5;
    (void)memcpy(copy, "copied", 7);
    (void)memmove(copy + 1, copy, 7);
    print(initialised);
    print((uint32_t)odd[0] + odd[1] + odd[2] + workspace[999]);
    print(sum);
    print((uint32_t)(factor * 2.5f * 100.0f));
    print((uint32_t)(dividend / (int64_t)odd[0]));
    print((uint32_t)(wide * 1e9));
    print((uint32_t)(int32_t)weights[2]);
    print((uint32_t)memcmp(copy + 1, "copied", 7));
    print(wrong_copies());
    put('.');
    return 0;
}
