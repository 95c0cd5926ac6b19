/* SPDX-License-Identifier: Apache-2.0 */
/* The device calls of an executor, with a fault at a chosen call. The file HELD_C is included
 * below, so that its calls pass through this bench too. */
#include "device_bench.h"

#include <stddef.h>

#include "ferrule/platform.h"
#include "soft_npu/soft_npu.h"

struct bench bench;

/* Return whether this call is the one that fails. */
static bool fails(void)
{
    return bench.calls++ == bench.fail_at;
}

static int32_t faulty_activate(ferrule_device_t *dev)
{
    return fails() ? bench.fault : ferrule_device_activate(dev);
}

static int32_t faulty_open(ferrule_device_t *dev, uint32_t timeout_us, struct ferrule_stop *stop,
                           struct ferrule_place *kept)
{
    return fails() ? bench.fault : ferrule_device_open_in_turn(dev, timeout_us, stop, kept);
}

static int32_t faulty_copy_to(ferrule_device_t *dev, uint32_t offset, const void *source,
                              size_t bytes)
{
    return fails() ? bench.fault : ferrule_device_copy_to(dev, offset, source, bytes);
}

static int32_t faulty_copy_from(ferrule_device_t *dev, void *destination, uint32_t offset,
                                size_t bytes)
{
    return fails() ? bench.fault : ferrule_device_copy_from(dev, destination, offset, bytes);
}

/* Closing and deactivating release the device even if they fail (ferrule/device.h). */
static int32_t faulty_close(ferrule_device_t *dev)
{
    const bool fault = fails();
    const int32_t status = ferrule_device_close(dev);

    return fault ? bench.fault : status;
}

static int32_t faulty_deactivate(ferrule_device_t *dev)
{
    const bool fault = fails();
    const int32_t status = ferrule_device_deactivate(dev);

    return fault ? bench.fault : status;
}

/* The executor is compiled to call this function in place of soft_npu_execute. */
int32_t bench_execute(void *resource_handle, void (*program)(uint8_t *memory))
{
    return fails() ? bench.fault : soft_npu_execute(resource_handle, program);
}

#define ferrule_device_activate     faulty_activate
#define ferrule_device_open_in_turn faulty_open
#define ferrule_device_copy_to      faulty_copy_to
#define ferrule_device_copy_from    faulty_copy_from
#define ferrule_device_close        faulty_close
#define ferrule_device_deactivate   faulty_deactivate

#include HELD_C

#undef ferrule_device_activate
#undef ferrule_device_open_in_turn
#undef ferrule_device_copy_to
#undef ferrule_device_copy_from
#undef ferrule_device_close
#undef ferrule_device_deactivate

int32_t bench_driver_fault(void *context, enum soft_npu_call call, uint32_t number)
{
    (void)context;
    (void)call;
    (void)number;
    return bench.driver_calls++ == bench.driver_fail_at ? bench.fault : FERRULE_OK;
}

uint32_t bench_activations(const ferrule_device_t *dev)
{
    return ((const struct ferrule_device_core *)dev)->activations;
}

bool bench_is_open(const ferrule_device_t *dev)
{
    return ((const struct ferrule_device_core *)dev)->is_open;
}

void bench_on_device(void *context, uint32_t index, uint32_t device, uint32_t call, int32_t status)
{
    (void)context;
    if (bench.traced < BENCH_CALLS) {
        bench.trace[bench.traced] = (struct bench_call){index, device, call, status};
    }
    bench.traced++;
}
