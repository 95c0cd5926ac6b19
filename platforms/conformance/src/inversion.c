/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that has the device inherits the priority of one that waits for it, and loses it when it
 * closes the device. */
#include "bench.h"

#include <stddef.h>

#include "report.h"

#define HELD_US 30000u
#define HOG_US  200000u

static ferrule_device_t *const device = &bench_devices[0].handle;
static volatile bool is_held;
static volatile bool is_closed;
static volatile bool hog_is_done;
static bool hog_was_done_when_opened;
static bool hog_was_done_after_close;
static struct ferrule_stop stop;
static struct ferrule_stop *run_stop;
static int32_t status;
static uint32_t waited_us;

static void low(uint32_t thread)
{
    (void)thread;
    (void)ferrule_device_open(device);
    is_held = true;
    bench_burn(HELD_US);
    (void)ferrule_device_close(device);
    is_closed = true;
    hog_was_done_after_close = hog_is_done; /* it can run only after the hog */
}

static void hog(uint32_t thread)
{
    (void)thread;
    bench_burn(HOG_US);
    hog_is_done = true;
}

static void high(uint32_t thread)
{
    const uint32_t begin = conformance_now_us();

    (void)thread;
    status = ferrule_device_open_for(device, 900000u, run_stop);
    waited_us = bench_since(begin);
    hog_was_done_when_opened = hog_is_done;
    if (status == FERRULE_OK) {
        (void)ferrule_device_close(device);
    }
}

static void check(const char *group)
{
    is_held = false;
    is_closed = false;
    hog_is_done = false;
    bench_spawn(0, low, 1);
    while (!is_held) {
        conformance_sleep(1);
    }
    bench_spawn(1, hog, 2);
    bench_spawn(2, high, 5);
    bench_join(2);
    bench_join(1);
    bench_join(0);
    report_group(group);
    report_status("open", status, FERRULE_OK);
    report_number("its wait in us", waited_us, 0, HELD_US + 2u * bench_tick_us() + BENCH_SLACK_US);
    report_number("the thread between was done before", hog_was_done_when_opened ? 1u : 0u, 0, 0);
    report_number("the holder ran on before it", hog_was_done_after_close ? 0u : 1u, 0, 0);
}

void check_inversion(void)
{
    run_stop = NULL;
    check("inversion");
    ferrule_stop_begin(&stop, NULL);
    run_stop = &stop;
    check("inversion with a run");
}
