/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Two threads, each of which runs its own model on the same two devices, in opposite orders.
 *
 * The file of a platform defines WORK(), the time that a device works for a call, and includes
 * this file, and then the C of the second model. The test generates the models, and expected.h with
 * an input and the output of each.
 */
#ifndef TWO_MODELS_H
#define TWO_MODELS_H

#include "expected.h"
#include "ferrule_first.h"
#include "ferrule_second.h"
#include "soft_npu/soft_npu.h"

#include <string.h>

#define RUNS 500 /* of each model */

static struct {
    int32_t runs;
    int32_t timeouts;
    int32_t failures; /* other than time-outs */
    int32_t wrong;    /* outputs */
    int32_t meetings; /* runs that began while the other model was running */
} told;
static volatile int32_t inside;
static uint32_t dice = 1;

/* In about a quarter of the calls of a driver, the device works for a while, and the other thread
 * goes on: in the middle of opening the devices, copying and running. Between two runs, nothing
 * lets the other thread run but the order of those that wait for a device. */
static int32_t interrupted(void *context, enum soft_npu_call call, uint32_t number)
{
    (void)context;
    (void)call;
    (void)number;
    dice = dice * 1664525u + 1013904223u;
    if (dice >> 30 == 0u) {
        WORK();
    }
    return FERRULE_OK;
}

static void interrupt_driver(const ferrule_device_t *handle)
{
    ((struct soft_npu *)handle->core.context)->fault = interrupted;
}

static int32_t run_first(const struct ferrule_first_devices *straight)
{
    static int8_t y[sizeof first_y];
    const struct ferrule_first_inputs inputs = {first_x};
    const struct ferrule_first_outputs outputs = {y};
    const int32_t status =
        ferrule_first_run(&inputs, &outputs, &ferrule_first_default_memory, straight, NULL);

    told.wrong += status == FERRULE_OK && memcmp(y, first_y, sizeof y) != 0 ? 1 : 0;
    return status;
}

static int32_t run_second(const struct ferrule_second_devices *crossed)
{
    static int8_t y[sizeof second_y];
    const struct ferrule_second_inputs inputs = {second_x};
    const struct ferrule_second_outputs outputs = {y};
    const int32_t status =
        ferrule_second_run(&inputs, &outputs, &ferrule_second_default_memory, crossed, NULL);

    told.wrong += status == FERRULE_OK && memcmp(y, second_y, sizeof y) != 0 ? 1 : 0;
    return status;
}

/* The program of a thread: 0 runs the first model, 1 the second one. */
static void run_often(uint32_t thread, const struct ferrule_first_devices *straight)
{
    const struct ferrule_second_devices crossed = {.npu0 = straight->npu1, .npu1 = straight->npu0};

    for (uint32_t run = 0; run < RUNS; run++) {
        int32_t status;

        told.meetings += inside;
        inside++;
        status = thread == 0u ? run_first(straight) : run_second(&crossed);
        inside--;
        told.runs++;
        told.timeouts += status == FERRULE_ERR_TIMEOUT ? 1 : 0;
        told.failures += status != FERRULE_OK && status != FERRULE_ERR_TIMEOUT ? 1 : 0;
    }
}

#endif /* TWO_MODELS_H */
