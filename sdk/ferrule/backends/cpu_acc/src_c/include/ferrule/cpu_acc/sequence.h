/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Several kernel calls by one call, since each call from Python takes about a microsecond.
 */
#ifndef FERRULE_CPU_ACC_SEQUENCE_H_INCLUDED
#define FERRULE_CPU_ACC_SEQUENCE_H_INCLUDED

#include <stdint.h>

#define FERRULE_HOST_ARGUMENTS 10

/** A kernel call; all kernels return nothing and take pointers only. */
struct ferrule_host_call {
    void (*function)(void); /**< cast from the kernel's own type */
    int32_t count;          /**< of arguments: 2 to FERRULE_HOST_ARGUMENTS */
    void *arguments[FERRULE_HOST_ARGUMENTS];
};

/** The parameters of ferrule_host_copy. */
struct ferrule_host_copy_params {
    int64_t bytes;
};

/** @brief Make the calls in order. */
void ferrule_host_run(const struct ferrule_host_call *calls, int32_t count);

/** @brief Copy a tensor's elements to a tensor of another shape; they do not overlap. */
void ferrule_host_copy(const struct ferrule_host_copy_params *params, const void *input,
                       void *output);

#endif
