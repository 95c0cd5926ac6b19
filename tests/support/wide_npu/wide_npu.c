/* SPDX-License-Identifier: Apache-2.0 */
#include "wide_npu.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/device.h"
#include "ferrule/port.h"

enum { ID = 0x00, STATUS = 0x04, FIRST = 0x08, SECOND = 0x0C, OUTPUT = 0x10, COUNT = 0x14 };
#define ID_VALUE 0x45444957u
#define DONE     1u

static int32_t check(void *context)
{
    const struct wide_npu *npu = context;

    return ferrule_mmio_read32(npu->base + ID) == ID_VALUE ? FERRULE_OK : FERRULE_ERR_UNAVAILABLE;
}

static int32_t copy_to(void *context, uint32_t device_offset, const void *source, size_t bytes)
{
    const struct wide_npu *npu = context;

    memcpy(npu->memory + device_offset, source, bytes);
    ferrule_cache_clean(npu->memory + device_offset, bytes);
    return FERRULE_OK;
}

static int32_t copy_from(void *context, void *destination, uint32_t device_offset, size_t bytes)
{
    const struct wide_npu *npu = context;

    ferrule_cache_invalidate(npu->memory + device_offset, bytes);
    memcpy(destination, npu->memory + device_offset, bytes);
    return FERRULE_OK;
}

/* The device accesses memory only during the core's write that starts it. */
const struct ferrule_driver wide_npu_driver = {.name = "wide_npu",
                                               .is_passive = true,
                                               .check = check,
                                               .copy_to = copy_to,
                                               .copy_from = copy_from,
                                               .memory_bytes = 16384};

int32_t wide_npu_maximum(void *resource_handle, const void *first, const void *second, void *output,
                         uint32_t count)
{
    void *context = NULL;
    const int32_t status = ferrule_device_context(resource_handle, &wide_npu_driver, &context);

    if (status != FERRULE_OK) {
        return status;
    }
    const struct wide_npu *npu = context;
    ferrule_mmio_write32(npu->base + FIRST, ferrule_bus_address(first));
    ferrule_mmio_write32(npu->base + SECOND, ferrule_bus_address(second));
    ferrule_mmio_write32(npu->base + OUTPUT, ferrule_bus_address(output));
    ferrule_port_barrier();
    ferrule_mmio_write32(npu->base + COUNT, count); /* starts the device, which takes no time */
    return ferrule_mmio_read32(npu->base + STATUS) == DONE ? FERRULE_OK : FERRULE_ERR_DEVICE;
}

int32_t wide_npu_maximum_inside(void *resource_handle, uint32_t first, uint32_t second,
                                uint32_t output, uint32_t count)
{
    void *context = NULL;
    const int32_t status = ferrule_device_context(resource_handle, &wide_npu_driver, &context);

    if (status != FERRULE_OK) {
        return status;
    }
    const struct wide_npu *npu = context;
    return wide_npu_maximum(resource_handle, npu->memory + first, npu->memory + second,
                            npu->memory + output, count);
}
