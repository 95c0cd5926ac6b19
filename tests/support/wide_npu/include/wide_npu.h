/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIDE_NPU_H
#define WIDE_NPU_H

#include <stdint.h>

#include "ferrule/driver.h"
#include "ferrule/section.h"

struct wide_npu {
    uintptr_t base;  /* address of the registers */
    uint8_t *memory; /* the device's own memory, in the core's RAM; NULL if it has none */
};

extern const struct ferrule_driver wide_npu_driver;

/* Store the larger of each pair in `output`; all three are multiples of 32. */
int32_t wide_npu_maximum(void *resource_handle, const void *first, const void *second, void *output,
                         uint32_t count);

/* The same with offsets in the device's own memory. */
int32_t wide_npu_maximum_inside(void *resource_handle, uint32_t first, uint32_t second,
                                uint32_t output, uint32_t count);

#endif
