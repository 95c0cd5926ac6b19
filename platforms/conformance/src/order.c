/* SPDX-License-Identifier: Apache-2.0 */
/* One thread at a time has the device, and the others wait for a bounded time. */
#include "bench.h"
#include "report.h"

#define LIMIT_US 50000u

static ferrule_device_t *const device = &bench_devices[0].handle;
static int32_t opened;
static int32_t closed;
static int32_t tried;
static uint32_t waited_us;

static void stranger(uint32_t thread)
{
    uint32_t begin;

    (void)thread;
    closed = ferrule_device_close(device);
    tried = ferrule_device_open_for(device, 0, NULL);
    begin = conformance_now_us();
    opened = ferrule_device_open_for(device, LIMIT_US, NULL);
    waited_us = bench_since(begin);
}

void check_order(void)
{
    report_group("order");
    report_status("close before open", ferrule_device_close(device), FERRULE_ERR_STATE);
    report_status("open", ferrule_device_open(device), FERRULE_OK);
    report_status("open again", ferrule_device_open(device), FERRULE_ERR_STATE);
    report_status("deactivate while open", ferrule_device_deactivate(device), FERRULE_ERR_BUSY);
    report_status("destroy while open", ferrule_device_destroy(device), FERRULE_ERR_BUSY);
    bench_spawn(0, stranger, 3);
    bench_join(0);
    report_status("close by another thread", closed, FERRULE_ERR_OWNER);
    report_status("open by another thread, without waiting", tried, FERRULE_ERR_BUSY);
    report_status("open by another thread", opened, FERRULE_ERR_TIMEOUT);
    report_number("its wait in us", waited_us, LIMIT_US,
                  LIMIT_US + bench_tick_us() + BENCH_SLACK_US);
    report_status("close", ferrule_device_close(device), FERRULE_OK);
}
