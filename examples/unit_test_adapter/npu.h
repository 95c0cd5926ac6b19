/* SPDX-License-Identifier: Apache-2.0 */
/** @file A vendor's driver: an accelerator that adds two numbers. */
#ifndef NPU_H
#define NPU_H

#include <stdint.h>

#include "ferrule/driver.h"

/** One accelerator: the context of its driver. */
struct npu {
    uintptr_t base; /* address of its registers */
};

extern const struct ferrule_driver npu_driver;

/** @brief Add two numbers on the accelerator; this thread must have its handle open. */
int32_t npu_add(void *resource_handle, uint32_t a, uint32_t b, uint32_t *sum);

#endif /* NPU_H */
