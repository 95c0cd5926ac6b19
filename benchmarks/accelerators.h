/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks/accelerators.py has a driver do. */
#ifndef ACCELERATORS_H
#define ACCELERATORS_H

#include <stdint.h>

/** @brief Read a register so many times. */
uint32_t bench_read(uintptr_t base, uint32_t times);

/** @brief Have the device copy so many bytes, so many times. */
void bench_copy(uintptr_t base, uint32_t source, uint32_t target, uint32_t bytes, uint32_t times);

#endif
