/* SPDX-License-Identifier: Apache-2.0 */
/** @file A device in software that goes on beside the core: it does its work at random times
 * between the start of a command and its end, in order. */
#ifndef LATE_NPU_H
#define LATE_NPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/driver.h"
#include "ferrule/section.h" /* placement of the memory */

enum { LATE_NPU_MOST = 4 };

/** A program, or a copy if there is none. */
struct late_npu_command {
    void (*program)(uint8_t *memory);
    uint8_t *target;
    const uint8_t *source;
    size_t bytes;
};

/** One device; the context of its driver. */
struct late_npu {
    uint8_t *memory;
    uint32_t depth; /* of this device; the driver's is that of all */
    struct late_npu_command queue[LATE_NPU_MOST];
    uint32_t count; /* in the queue; the oldest is the first */
    uint32_t done;  /* of these */
    bool active;
};

extern uint32_t late_npu_dice;     /* the state of the random numbers of all devices */
extern uint32_t late_npu_calls;    /* calls of all drivers */
extern uint32_t late_npu_fault_at; /* the number of the call that fails */
extern const struct ferrule_driver late_npu_driver;

int32_t late_npu_execute(void *resource_handle, void (*program)(uint8_t *memory));
int32_t late_npu_start(void *resource_handle, void (*program)(uint8_t *memory));

#endif
