/* SPDX-License-Identifier: Apache-2.0 */
/** @file A device in software, with its own memory, on which it runs programs. */
#ifndef SOFT_NPU_SOFT_NPU_H
#define SOFT_NPU_SOFT_NPU_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/driver.h"
#include "ferrule/section.h" /* placement of the memory */

#ifdef __cplusplus
extern "C" {
#endif

/** The calls of the device. */
enum soft_npu_call {
    SOFT_NPU_ACTIVATE,
    SOFT_NPU_DEACTIVATE,
    SOFT_NPU_CHECK,
    SOFT_NPU_COPY_TO,
    SOFT_NPU_COPY_FROM,
    SOFT_NPU_EXECUTE,
};

/** One device; the context of its driver. */
struct soft_npu {
    uint8_t *memory;
    uint32_t bytes; /* of `memory` */
    /* for tests, may be NULL: called first with the number of earlier calls; a result other than
     * FERRULE_OK is returned, and the call has no effect */
    int32_t (*fault)(void *fault_context, enum soft_npu_call call, uint32_t number);
    void *fault_context; /* first argument of `fault` */
    uint32_t calls;      /* number of calls; private to the driver */
    bool active;         /* private to the driver */
};

/** Deactivation overwrites the memory, because a memory without power loses its contents.
 */
extern const struct ferrule_driver soft_npu_driver;

/**
 * @brief Run a program on the memory of a device. For operators: the handle must be open.
 * @param resource_handle  the ferrule_device_t that soft_npu_driver is bound to
 * @return as ferrule_device_context()
 * @retval FERRULE_ERR_ARGUMENT  or `program` is null
 */
int32_t soft_npu_execute(void *resource_handle, void (*program)(uint8_t *memory));

#ifdef __cplusplus
}
#endif

#endif /* SOFT_NPU_SOFT_NPU_H */
