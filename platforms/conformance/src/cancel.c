/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is cancelled from an interrupt, or has a deadline, stops to wait. */
#include "bench.h"

#include "ferrule/platform.h"
#include "report.h"

#define WHEN_US     20000u
#define SLICE_US    10000u /* how long a run may wait for a lock before it looks */
#define DEADLINE_US 25000u

static struct bench_device *const device = &bench_devices[0];
static struct ferrule_stop stop;
static volatile uint32_t requested_us;
static int32_t status;
static uint32_t returned_us;
static uint32_t waited_us;

static void request(void)
{
    requested_us = conformance_now_us();
    ferrule_stop_request(&stop);
}

static void begin(const uint32_t *deadline_us)
{
    ferrule_stop_begin(&stop, deadline_us);
    report_status("open", ferrule_device_open_for(&device->handle, 1000, &stop), FERRULE_OK);
    device->is_over = false;
}

static void check_waits(void)
{
    uint32_t start;
    uint32_t deadline;

    report_group("cancel of a wait for a device");
    begin(NULL);
    bench_interrupt(request);
    conformance_alarm(WHEN_US);
    status = bench_wait(device, 1000000u);
    returned_us = conformance_now_us();
    bench_interrupt(NULL);
    report_status("wait", status, FERRULE_ERR_CANCELLED);
    report_number("us until it returns", returned_us - requested_us, 0, BENCH_SLACK_US);
    report_status("close", ferrule_device_close(&device->handle), FERRULE_OK);

    report_group("deadline of a wait for a device");
    start = conformance_now_us();
    deadline = ferrule_platform_now_us() + DEADLINE_US;
    begin(&deadline);
    status = bench_wait(device, 1000000u);
    /* the clock may have been up to a tick behind */
    report_status("wait", status, FERRULE_ERR_TIMEOUT);
    report_number("us until it returns", bench_since(start), DEADLINE_US - bench_tick_us(),
                  DEADLINE_US + bench_tick_us() + BENCH_SLACK_US);
    report_status("close", ferrule_device_close(&device->handle), FERRULE_OK);
}

static void want(uint32_t thread)
{
    const uint32_t start = conformance_now_us();

    (void)thread;
    status = ferrule_device_open_for(&device->handle, 900000u, &stop);
    returned_us = conformance_now_us();
    waited_us = returned_us - start;
}

static void check_lock(void)
{
    uint32_t deadline;

    report_group("cancel of a wait for the lock");
    report_status("open", ferrule_device_open(&device->handle), FERRULE_OK);
    ferrule_stop_begin(&stop, NULL);
    bench_spawn(0, want, 3);
    conformance_sleep(WHEN_US / 1000u);
    report_status("destroy meanwhile", ferrule_device_destroy(&device->handle), FERRULE_ERR_BUSY);
    bench_interrupt(request);
    conformance_alarm(13000);
    bench_join(0);
    bench_interrupt(NULL);
    report_status("wait", status, FERRULE_ERR_CANCELLED);
    report_number("us until it returns", returned_us - requested_us, 0,
                  SLICE_US + 2u * bench_tick_us() + BENCH_SLACK_US);

    report_group("deadline of a wait for the lock");
    deadline = ferrule_platform_now_us() + DEADLINE_US;
    ferrule_stop_begin(&stop, &deadline);
    bench_spawn(0, want, 5);
    bench_join(0);
    report_status("wait", status, FERRULE_ERR_TIMEOUT);
    report_number("us until it returns", waited_us, DEADLINE_US - bench_tick_us(),
                  DEADLINE_US + bench_tick_us() + BENCH_SLACK_US);
    report_status("close", ferrule_device_close(&device->handle), FERRULE_OK);
}

void check_cancel(void)
{
    check_waits();
    check_lock();
}
