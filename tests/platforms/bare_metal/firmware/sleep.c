/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a device as the host requests, and sends what the waits took; UART_BASE is defined on
 * the command line. The device at ALARM_BASE raises its interrupt some cycles after a write. */
#include "guest.h"
#include "startup.h"

#include <stddef.h>

#include "ferrule/counter.h"
#include "ferrule/platform/bare_metal.h"
#include "ferrule/platform/interrupt.h"
#include "ferrule/port.h"

#define VTOR    0xE000ED08u
#define VECTORS 64u
#define SYSTEM  16u

static void (*table[VECTORS])(void) __attribute__((aligned(512)));
static ferrule_device_t npu0;
static volatile uint32_t interrupts;

static void on_interrupt(void)
{
    REGISTER(ALARM_BASE) = 0; /* lowers the line */
    interrupts++;
    ferrule_device_notify(&npu0);
}

static void start(void)
{
    static const struct ferrule_driver driver = {.name = "alarm", .is_passive = true};

    for (uint32_t i = 0; i < SYSTEM; i++) {
        table[i] = ferrule_vectors[i].handler;
    }
    table[SYSTEM + ALARM_LINE] = on_interrupt;
    REGISTER(VTOR) = (uint32_t)(uintptr_t)table;
    (void)ferrule_device_init(&npu0);
    (void)ferrule_device_bind(&npu0, NULL, NULL, &driver, NULL);
    ferrule_interrupt_enable(ALARM_LINE);
    start_cycle_counter();
}

static uint32_t get_word(void)
{
    uint32_t word = 0;

    for (uint32_t i = 0; i < 4u; i++) {
        word |= (uint32_t)get() << (8u * i);
    }
    return word;
}

/* Lets the interrupt come after each number of cycles, and returns how many waits it did not end in
 * time. */
static uint32_t sweep(uint32_t longest, uint32_t timeout_us)
{
    uint32_t missed = 0;

    for (uint32_t cycles = 1; cycles <= longest; cycles++) {
        const uint32_t us = ferrule_platform_now_us();

        REGISTER(ALARM_BASE) = cycles;
        (void)ferrule_platform_wait(&npu0, timeout_us);
        missed += ferrule_platform_now_us() - us < timeout_us ? 0u : 1u;
    }
    return missed;
}

/* A wait, with its time on three clocks. */
static void wait(uint32_t cycles, uint32_t timeout_us)
{
    if (cycles != 0u) {
        REGISTER(ALARM_BASE) = cycles;
    }
    const uint32_t us = ferrule_platform_now_us();
    const uint32_t passed = ferrule_port_cycles();
    const uint32_t executed = REGISTER(CYCCNT);
    const int32_t status = ferrule_platform_wait(&npu0, timeout_us);
    const uint32_t executed_after = REGISTER(CYCCNT);
    const uint32_t passed_after = ferrule_port_cycles();

    put_word((uint32_t)status);
    put_word(ferrule_platform_now_us() - us);
    put_word(passed_after - passed);
    put_word(executed_after - executed);
}

static void count(uint32_t timeout_us)
{
    struct ferrule_counter counter;
    const uint32_t us = ferrule_platform_now_us();

    ferrule_counter_start(&counter);
    (void)ferrule_platform_wait(&npu0, timeout_us);
    const uint64_t counted = ferrule_counter_read(&counter);
    put_word((uint32_t)counter.source);
    put_word((uint32_t)counted);
    put_word(ferrule_platform_now_us() - us);
}

int main(void)
{
    start_uart();
    start();
    for (;;) {
        const uint8_t command = get();
        const uint32_t first = get_word();
        const uint32_t second = get_word();

        switch (command) {
        case 's':
            put_word(sweep(first, second));
            break;
        case 'w':
            wait(first, second);
            break;
        case 'n':
            ferrule_device_notify(&npu0);
            wait(0, second);
            break;
        default:
            count(second);
            break;
        }
    }
}
