/* SPDX-License-Identifier: Apache-2.0 */
/* A device that does not stop is lost, for all threads, until it is stopped. */
#include "bench.h"

#include <stddef.h>

#include "report.h"

#define LIMIT_US 5000u

static struct bench_device *const device = &bench_devices[0];
static int32_t opened;

static void other(uint32_t thread)
{
    (void)thread;
    opened = ferrule_device_open(&device->handle);
    if (opened == FERRULE_OK) {
        (void)ferrule_device_close(&device->handle);
    }
}

static void try_another(const char *name, int32_t expected)
{
    bench_spawn(0, other, 3);
    bench_join(0);
    report_status(name, opened, expected);
}

void check_loss(void)
{
    const uint32_t for_long = 2000000000u;

    report_group("loss");
    report_status("open", ferrule_device_open(&device->handle), FERRULE_OK);
    device->is_deaf = true;
    report_status("submit", ferrule_device_submit(&device->handle, &bench_driver, &for_long),
                  FERRULE_OK);
    report_status("finish", ferrule_device_finish(&device->handle, LIMIT_US), FERRULE_ERR_DEVICE);
    report_number("is lost", ferrule_device_is_lost(&device->handle) ? 1u : 0u, 1, 1);
    report_status("close", ferrule_device_close(&device->handle), FERRULE_OK);
    try_another("open by another thread", FERRULE_ERR_DEVICE);
    report_status("recover", ferrule_device_recover(&device->handle), FERRULE_ERR_DEVICE);
    device->is_deaf = false;
    report_status("recover when it stops", ferrule_device_recover(&device->handle), FERRULE_OK);
    report_number("is still lost", ferrule_device_is_lost(&device->handle) ? 1u : 0u, 0, 0);
    try_another("open by another thread then", FERRULE_OK);
    report_status("a run then", bench_run(device, LIMIT_US, NULL, 0), FERRULE_OK);
}
