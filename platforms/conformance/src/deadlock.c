/* SPDX-License-Identifier: Apache-2.0 */
/* Two models use the same two devices, which each numbers in the opposite order. */
#include "bench.h"

#include <stddef.h>

#include "ferrule/held.h"
#include "report.h"

enum { RUNS = 100, MODELS = 2 }; /* of each model */

static uint32_t runs;
static uint32_t timeouts;
static uint32_t failures;
static uint32_t meetings; /* runs that began while the other model was running */
static volatile uint32_t inside;
static volatile bool must_end;

/* The first device works, and the run has the second one open meanwhile. */
static int32_t work(struct ferrule_held *held)
{
    static const uint32_t all[] = {0, 1};
    const uint32_t us = 700;
    int32_t status = ferrule_held_begin(held, NULL);

    if (status == FERRULE_OK) {
        status = ferrule_held_next(held, 0);
    }
    if (status == FERRULE_OK) {
        status = ferrule_held_activate(held, 0);
    }
    if (status == FERRULE_OK) {
        status = ferrule_held_activate(held, 1);
    }
    if (status == FERRULE_OK) {
        status = ferrule_held_open_set(held, all, 2);
    }
    if (status == FERRULE_OK) {
        status = ferrule_device_submit(held->handles[0], &bench_driver, &us);
        status = ferrule_held_ran(held, 0, status);
    }
    if (status == FERRULE_OK) {
        status = ferrule_held_finish(held, 0, 0, FERRULE_WAIT_DEFAULT);
    }
    return ferrule_held_end(held, status);
}

static void model(uint32_t thread)
{
    ferrule_device_t *const handles[] = {&bench_devices[thread].handle,
                                         &bench_devices[1u - thread].handle};
    struct ferrule_held_entry entries[2u * FERRULE_HELD_PER_DEVICE];

    for (uint32_t run = 0; run < RUNS && !must_end; run++) {
        struct ferrule_held held = {
            .handles = handles, .entries = entries, .capacity = 2u * FERRULE_HELD_PER_DEVICE};
        int32_t status;

        meetings += inside;
        inside++;
        status = work(&held);
        inside--;
        runs++;
        timeouts += status == FERRULE_ERR_TIMEOUT ? 1u : 0u;
        failures += status != FERRULE_OK && status != FERRULE_ERR_TIMEOUT ? 1u : 0u;
        must_end = status != FERRULE_OK; /* further ones would take their time */
    }
}

void check_deadlock(void)
{
    report_group("deadlock of two models");
    bench_spawn(0, model, 3);
    bench_spawn(1, model, 3);
    bench_join(0);
    bench_join(1);
    report_number("runs", runs, MODELS * RUNS, MODELS * RUNS);
    report_number("time-outs", timeouts, 0, 0);
    report_number("other failures", failures, 0, 0);
    report_number("runs that met another", meetings, RUNS, MODELS * RUNS);
}
