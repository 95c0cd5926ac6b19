/* SPDX-License-Identifier: Apache-2.0 */
/* Before the kernel runs there is one thread, and it may make all calls. */
#include "bench.h"
#include "report.h"

#define CALLS 8

static struct bench_device early;
static int32_t statuses[CALLS];
static bool was_tried;

void conformance_before_the_kernel(void)
{
    int32_t *next = statuses;

    *next++ = ferrule_device_init(&early.handle);
    *next++ = conformance_bind(&early.handle, &bench_driver, &early);
    *next++ = ferrule_device_activate(&early.handle);
    *next++ = ferrule_device_open(&early.handle);
    early.is_over = true;
    *next++ = bench_wait(&early, FERRULE_WAIT_DEFAULT);
    *next++ = ferrule_device_close(&early.handle);
    *next++ = ferrule_device_deactivate(&early.handle);
    *next++ = ferrule_device_destroy(&early.handle);
    was_tried = true;
}

void check_before_the_kernel(void)
{
    static const char *const names[CALLS] = {"init", "bind",  "activate",   "open",
                                             "wait", "close", "deactivate", "destroy"};

    report_group("before the kernel");
    report_note("tried", was_tried ? 1u : 0u);
    for (uint32_t i = 0; was_tried && i < CALLS; i++) {
        report_status(names[i], statuses[i], FERRULE_OK);
    }
}
