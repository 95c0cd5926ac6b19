/* SPDX-License-Identifier: Apache-2.0 */
/* Echoes each byte with some bits flipped, by polling, or from the interrupt that TEST_INTERRUPT
 * enables at TEST_ENABLE. With TEST_BROKEN the transmitter is switched off first. */
#include <stddef.h>
#include <stdint.h>

#include TEST_HEADER
#include "ferrule/platform/interrupt.h"
#include "ferrule/port.h"

#define JOINED(prefix, name) prefix##name
#define NAME(prefix, name)   JOINED(prefix, name)

int main(void);

static struct NAME(TEST_DRIVER, _config) uart = {.base = TEST_UART};

#ifdef TEST_BUFFER
static struct TEST_BUFFER buffer;
#endif

static void answer(void)
{
    for (;;) {
        const int32_t byte = NAME(TEST_DRIVER, _read)(&uart);
        if (byte < 0) {
            return;
        }
        NAME(TEST_DRIVER, _write)(&uart, (uint8_t)(byte ^ 0x55));
    }
}

void ferrule_interrupt(uint32_t line)
{
    (void)line;
    answer();
}

int main(void)
{
#ifdef TEST_BUFFER
    uart.buffer = &buffer;
    ferrule_mmio_write32(TEST_UART + 0x50Cu, 6u); /* PSEL.TXD */
    ferrule_mmio_write32(TEST_UART + 0x514u, 8u); /* PSEL.RXD */
#elif defined(TEST_PINS)
    ferrule_mmio_write32(TEST_UART + 0x50Cu, 24u); /* PSELTXD */
    ferrule_mmio_write32(TEST_UART + 0x514u, 25u); /* PSELRXD */
#else
    uart.clock_hz = 16000000u;
#endif
    if (NAME(TEST_DRIVER, _init)(&uart) != 0) {
        return 1;
    }
#ifdef TEST_BROKEN
    ferrule_mmio_write32(TEST_UART + TEST_BROKEN, TEST_BROKEN_VALUE);
#endif
#ifdef TEST_INTERRUPT
    ferrule_mmio_write32(TEST_UART + TEST_ENABLE,
                         ferrule_mmio_read32(TEST_UART + TEST_ENABLE) | TEST_INTERRUPT);
    ferrule_interrupt_enable(TEST_LINE);
    for (;;) {
        __asm__ volatile("wfi");
    }
#else
    for (;;) {
        answer();
    }
#endif
}
