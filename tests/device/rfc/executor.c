/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

uint32_t sample_opened;
uint32_t sample_closed;
static int32_t failure;

void sample_fail(int32_t status)
{
    failure = status;
}

int32_t sample_open(tvm_device_t *tvm_dev)
{
    return TVMDeviceOpen(tvm_dev);
}

int32_t sample_close(tvm_device_t *tvm_dev)
{
    return TVMDeviceClose(tvm_dev);
}

/* An operator receives its device as an opaque resource handle. */
static int32_t my_operator(uint8_t *value, uint8_t step, void *resource_handle)
{
    if (failure != FERRULE_OK && step == 2) {
        return failure;
    }
    return my_accelerator_invoke((tvm_device_t *)resource_handle, value, step);
}

static int32_t operator_on(tvm_device_t *tvm_dev, uint8_t *value, uint8_t step)
{
    int32_t status = TVMDeviceOpen(tvm_dev);
    int32_t closed;

    if (status != FERRULE_OK) {
        return status;
    }
    sample_opened++;
    status = my_operator(value, step, tvm_dev);
    closed = TVMDeviceClose(tvm_dev);
    if (closed == FERRULE_OK) {
        sample_closed++;
    }
    return status != FERRULE_OK ? status : closed;
}

int32_t tvmgen_mynetwork_run(uint8_t *value, const struct tvmgen_mynetwork_devices *devices)
{
    int32_t status = operator_on(devices->accelerator0, value, 1);

    return status != FERRULE_OK ? status : operator_on(devices->accelerator1, value, 2);
}
