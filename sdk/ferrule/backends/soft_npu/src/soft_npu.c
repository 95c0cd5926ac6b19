/* SPDX-License-Identifier: Apache-2.0 */
#include "soft_npu/soft_npu.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/device.h"

#define LOST 0xA5 /* contents of the memory after a loss of power */

/* Counts the call, and returns the status of the fault hook. */
static int32_t begin(struct soft_npu *npu, enum soft_npu_call call)
{
    const uint32_t number = npu->calls++;

    return npu->fault == NULL ? FERRULE_OK : npu->fault(npu->fault_context, call, number);
}

static int32_t begin_active(struct soft_npu *npu, enum soft_npu_call call)
{
    const int32_t status = begin(npu, call);

    return status == FERRULE_OK && !npu->active ? FERRULE_ERR_DEVICE : status;
}

static int32_t npu_activate(void *context)
{
    struct soft_npu *npu = context;
    int32_t status;

    if (npu == NULL || npu->memory == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    status = begin(npu, SOFT_NPU_ACTIVATE);
    npu->active = status == FERRULE_OK;
    return status;
}

static int32_t npu_deactivate(void *context)
{
    struct soft_npu *npu = context;
    const int32_t status = begin(npu, SOFT_NPU_DEACTIVATE);

    npu->active = false;
    (void)memset(npu->memory, LOST, npu->bytes);
    return status;
}

static int32_t npu_check(void *context)
{
    return begin_active(context, SOFT_NPU_CHECK);
}

static bool is_inside(const struct soft_npu *npu, uint32_t offset, size_t bytes)
{
    return offset <= npu->bytes && bytes <= npu->bytes - offset;
}

static int32_t npu_copy_to(void *context, uint32_t device_offset, const void *source, size_t bytes)
{
    struct soft_npu *npu = context;
    const int32_t status = begin_active(npu, SOFT_NPU_COPY_TO);

    if (status != FERRULE_OK) {
        return status;
    }
    if (!is_inside(npu, device_offset, bytes)) {
        return FERRULE_ERR_ARGUMENT;
    }
    (void)memcpy(npu->memory + device_offset, source, bytes);
    return FERRULE_OK;
}

static int32_t npu_copy_from(void *context, void *destination, uint32_t device_offset, size_t bytes)
{
    struct soft_npu *npu = context;
    const int32_t status = begin_active(npu, SOFT_NPU_COPY_FROM);

    if (status != FERRULE_OK) {
        return status;
    }
    if (!is_inside(npu, device_offset, bytes)) {
        return FERRULE_ERR_ARGUMENT;
    }
    (void)memcpy(destination, npu->memory + device_offset, bytes);
    return FERRULE_OK;
}

const struct ferrule_driver soft_npu_driver = {
    .name = "soft_npu",
    .is_passive = true, /* the core does its work */
    .activate = npu_activate,
    .deactivate = npu_deactivate,
    .check = npu_check,
    .copy_to = npu_copy_to,
    .copy_from = npu_copy_from,
    .memory_bytes = UINT32_MAX, /* the actual size is in each device's context */
};

int32_t soft_npu_execute(void *resource_handle, void (*program)(uint8_t *memory))
{
    void *context = NULL;
    int32_t status = ferrule_device_context(resource_handle, &soft_npu_driver, &context);

    if (status != FERRULE_OK) {
        return status;
    }
    if (program == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    status = begin_active(context, SOFT_NPU_EXECUTE);
    if (status == FERRULE_OK) {
        program(((struct soft_npu *)context)->memory);
    }
    return status;
}
