/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The RFC's program in its first form, over a generated model: init, bind, run, destroy.
 *
 * The program that includes it defines SOFT_NPU and WOOFLES, the platform's devices, and sends the
 * result to where the test reads it. The test defines INPUT, the bytes of the input.
 */
#ifndef FIRST_FORM_H
#define FIRST_FORM_H

#include "tvmgen_mynetwork.h"

struct result {
    int32_t status;
    int8_t y[4];
};

static tvm_device_t accelerators[2]; /* owned by the user, and never copied */

static int32_t run_on(tvm_device_t *soft_npu, tvm_device_t *woofles, struct result *result)
{
    static int8_t x[6] = {INPUT};
    struct tvmgen_mynetwork_inputs inputs = {.x = x};
    struct tvmgen_mynetwork_outputs outputs = {.y = result->y};
    struct tvmgen_mynetwork_devices devices = {.softnpu = soft_npu, .woofles = woofles};
    int32_t status = TVMDevicePlatformBind(soft_npu, SOFT_NPU);

    if (status == FERRULE_OK) {
        status = TVMDevicePlatformBind(woofles, WOOFLES);
    }
    if (status == FERRULE_OK) {
        status = tvmgen_mynetwork_run(&inputs, &outputs, &devices);
    }
    return status;
}

static void infer(struct result *result)
{
    int32_t status = TVMDeviceInit(&accelerators[0]);

    if (status == FERRULE_OK) {
        status = TVMDeviceInit(&accelerators[1]);
    }
    if (status == FERRULE_OK) {
        status = run_on(&accelerators[0], &accelerators[1], result);
    }
    for (uint32_t i = 0; i < 2; i++) {
        int32_t destroyed = TVMDeviceDestroy(&accelerators[i]);
        status = status != FERRULE_OK ? status : destroyed;
    }
    result->status = status;
}

#endif /* FIRST_FORM_H */
