/* SPDX-License-Identifier: Apache-2.0 */
#include "accelerators.h"

#include "ferrule/port.h"

enum { VALUE = 0x0, SOURCE = 0x4, TARGET = 0x8, BYTES = 0xC, START = 0x10 };

uint32_t bench_read(uintptr_t base, uint32_t times)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < times; ++i) {
        sum += ferrule_mmio_read32(base + VALUE);
    }
    return sum;
}

void bench_copy(uintptr_t base, uint32_t source, uint32_t target, uint32_t bytes, uint32_t times)
{
    ferrule_mmio_write32(base + SOURCE, source);
    ferrule_mmio_write32(base + TARGET, target);
    ferrule_mmio_write32(base + BYTES, bytes);
    for (uint32_t i = 0; i < times; ++i) {
        ferrule_mmio_write32(base + START, 1);
    }
}

#if defined(BENCH_READS)
#include "guest.h"

static uint8_t source[BENCH_BYTES];
static uint8_t target[BENCH_BYTES];

/* A word is sent between the parts, so that the host can time them. */
int main(void)
{
    start_uart();
    put_word(0);
    put_word(bench_read(BENCH_BASE, BENCH_READS));
    bench_copy(BENCH_BASE, (uint32_t)(uintptr_t)source, (uint32_t)(uintptr_t)target, BENCH_BYTES,
               BENCH_COPIES);
    put_word(0);
    for (;;) {
    }
}
#endif
