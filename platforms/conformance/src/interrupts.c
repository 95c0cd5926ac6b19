/* SPDX-License-Identifier: Apache-2.0 */
/* An interrupt may notify, cancel and read the clock, and is refused everything else. */
#include "bench.h"

#include <stddef.h>

#include "ferrule/platform.h"
#include "report.h"

static ferrule_device_t *const device = &bench_devices[0].handle;
static ferrule_device_t unused;
static volatile bool was_called;
static uint32_t refused;
static uint32_t calls;
static uint32_t clock_us;

static void note(int32_t status)
{
    calls++;
    refused += status == FERRULE_ERR_INTERRUPT ? 1u : 0u;
}

static void call_everything(void)
{
    uint8_t bytes[4] = {0};
    void *context = NULL;
    struct ferrule_stop stop;

    ferrule_stop_begin(&stop, NULL);
    note(ferrule_device_init(&unused));
    note(conformance_bind(device, &bench_driver, NULL));
    note(ferrule_device_activate(device));
    note(ferrule_device_open(device));
    note(ferrule_device_open_for(device, 0, &stop));
    note(ferrule_device_close(device));
    note(ferrule_device_deactivate(device));
    note(ferrule_device_destroy(device));
    note(ferrule_device_context(device, &bench_driver, &context));
    note(ferrule_device_copy_to(device, 0, bytes, sizeof bytes));
    note(ferrule_device_copy_from(device, bytes, 0, sizeof bytes));
    note(ferrule_device_submit(device, &bench_driver, NULL));
    note(ferrule_device_finish(device, 0));
    note(ferrule_device_abort(device));
    clock_us = ferrule_platform_now_us();
    ferrule_stop_request(&stop);
    ferrule_device_notify(device);
    was_called = true;
}

void check_interrupts(void)
{
    uint32_t begin;

    report_group("interrupts");
    report_status("open", ferrule_device_open(device), FERRULE_OK);
    bench_interrupt(call_everything);
    begin = ferrule_platform_now_us(); /* the report above takes time */
    conformance_alarm(500);
    while (!was_called) {
    }
    bench_interrupt(NULL);
    report_number("calls that were refused", refused, calls, calls);
    report_number("us on the clock", clock_us - begin, 0, 2u * bench_tick_us() + BENCH_SLACK_US);
    report_status("close", ferrule_device_close(device), FERRULE_OK);
}
