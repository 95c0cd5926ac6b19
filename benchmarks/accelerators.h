/* SPDX-License-Identifier: Apache-2.0 */
/* The driver functions that benchmarks/accelerators.py measures. */
#ifndef ACCELERATORS_H
#define ACCELERATORS_H

#include <stdint.h>

/** @brief Read a register `times` times. */
uint32_t bench_read(uintptr_t base, uint32_t times);

/** @brief Let the device copy `bytes` bytes, `times` times. */
void bench_copy(uintptr_t base, uint32_t source, uint32_t target, uint32_t bytes, uint32_t times);

#endif
