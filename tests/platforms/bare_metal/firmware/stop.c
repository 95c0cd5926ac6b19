/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that fail, and what is left of the device; UART_BASE is defined on the command line. The
 * device is a timer of the board: its interrupt handler writes to memory, as a device would by DMA.
 * A device that ignores its abort writes 3 ms later. A second timer cancels. */
#include "guest.h"
#include "startup.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/platform/bare_metal.h"
#include "ferrule/platform/interrupt.h"
#include "ferrule/port.h"

#define VTOR     0xE000ED08u
#define VECTORS  64u
#define SYSTEM   16u
#define DEVICE   0x40000000u /* CMSDK timers (DDI 0479) of 25 MHz */
#define CANCEL   0x40001000u
#define LINE     8u /* of the device; that of the second timer is the next */
#define CONTROL  0x0u
#define VALUE    0x4u
#define RELOAD   0x8u
#define CLEAR    0xCu
#define RUNNING  0x9u /* enabled, with its interrupt */
#define US       25u
#define LATE_US  3000u
#define LIMIT_US 1000u

enum how { TIME_OUT, DEADLINE, CANCELLED };

static void (*table[VECTORS])(void) __attribute__((aligned(512)));
static ferrule_device_t npu0;
static struct ferrule_stop stop;
static volatile uint8_t memory[8];
static volatile bool is_done;
static bool is_deaf;
static bool is_polled;

static void start_timer(uint32_t timer, uint32_t us)
{
    REGISTER(timer + VALUE) = us * US;
    REGISTER(timer + RELOAD) = us * US;
    REGISTER(timer + CONTROL) = RUNNING;
}

static void end_timer(uint32_t timer)
{
    REGISTER(timer + CONTROL) = 0;
    REGISTER(timer + CLEAR) = 1;
}

static void on_device(void)
{
    end_timer(DEVICE);
    for (uint32_t i = 0; i < sizeof memory; i++) {
        memory[i] = 0x5A;
    }
    is_done = true;
    ferrule_device_notify(&npu0);
}

static void on_cancel(void)
{
    end_timer(CANCEL);
    ferrule_stop_request(&stop);
}

static int32_t submit(void *context, const void *command)
{
    (void)context;
    (void)command;
    is_done = false;
    start_timer(DEVICE, LATE_US);
    return FERRULE_OK;
}

static bool is_over(void *context)
{
    (void)context;
    return is_done;
}

static uint32_t poll_us(void *context)
{
    (void)context;
    return is_polled ? 0u : FERRULE_WAIT_DEFAULT;
}

static int32_t finish(void *context)
{
    (void)context;
    return FERRULE_OK;
}

/* It succeeds also for a device that ignores it. */
static int32_t stop_device(void *context)
{
    (void)context;
    if (!is_deaf) {
        end_timer(DEVICE);
    }
    return FERRULE_OK;
}

static bool is_stopped(void *context)
{
    (void)context;
    return REGISTER(DEVICE + CONTROL) == 0u;
}

static const struct ferrule_driver driver = {
    .name = "timer",
    .submit = submit,
    .is_over = is_over,
    .poll_us = poll_us,
    .finish = finish,
    .abort = stop_device,
    .is_stopped = is_stopped,
};

static void start(void)
{
    for (uint32_t i = 0; i < SYSTEM; i++) {
        table[i] = ferrule_vectors[i].handler;
    }
    table[SYSTEM + LINE] = on_device;
    table[SYSTEM + LINE + 1u] = on_cancel;
    REGISTER(VTOR) = (uint32_t)(uintptr_t)table;
    ferrule_interrupt_enable(LINE);
    ferrule_interrupt_enable(LINE + 1u);
}

/* The operator of a driver without commands in flight, or a command. */
static int32_t run(bool in_flight, uint32_t timeout_us)
{
    int32_t status;

    if (!in_flight) {
        (void)submit(NULL, NULL);
        return ferrule_device_wait(&npu0, is_over, timeout_us);
    }
    status = ferrule_device_submit(&npu0, &driver, &driver);
    return status != FERRULE_OK ? status : ferrule_device_finish(&npu0, timeout_us);
}

/* Whether memory changes until the device, or 1 ms, are over. */
static uint32_t is_written(void)
{
    const uint32_t begin = ferrule_platform_now_us();

    for (uint32_t i = 0; i < sizeof memory; i++) {
        memory[i] = 0xA5;
    }
    while (REGISTER(DEVICE + CONTROL) != 0u || ferrule_platform_now_us() - begin < LIMIT_US) {
    }
    return memory[0] != 0xA5u;
}

static void give_up(enum how how, bool in_flight)
{
    (void)ferrule_device_init(&npu0);
    put_word((uint32_t)ferrule_device_bind(&npu0, NULL, NULL, &driver, NULL));
    put_word((uint32_t)ferrule_device_activate(&npu0));
    (void)memset(&stop, 0, sizeof stop);
    stop.has_deadline = how == DEADLINE;
    stop.deadline_us = ferrule_platform_now_us() + LIMIT_US;
    put_word((uint32_t)ferrule_device_open_for(&npu0, 0, &stop));
    if (how == CANCELLED) {
        start_timer(CANCEL, LIMIT_US);
    }
    put_word((uint32_t)run(in_flight, how == TIME_OUT ? LIMIT_US : 100u * LIMIT_US));
    put_word((uint32_t)ferrule_device_close(&npu0));
    put_word((uint32_t)ferrule_device_deactivate(&npu0));
    put_word((uint32_t)ferrule_device_activate(&npu0));
    put_word(ferrule_device_is_lost(&npu0));
    put_word(is_written());
    put_word((uint32_t)ferrule_device_recover(&npu0));
    put_word(ferrule_device_is_lost(&npu0));
    (void)ferrule_device_deactivate(&npu0);
    put_word((uint32_t)ferrule_device_destroy(&npu0));
}

int main(void)
{
    start_uart();
    start();
    for (uint32_t number = 0; number < 24u; number++) {
        is_deaf = (number & 1u) != 0u;
        is_polled = (number & 2u) != 0u;
        give_up((enum how)(number / 8u), (number & 4u) != 0u);
    }
    for (;;) {
    }
}
