/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICE_BENCH_H
#define DEVICE_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_CALLS 128u

/* What on_device was told. */
struct bench_call {
    uint32_t index;
    uint32_t device;
    uint32_t call;
    int32_t status;
};

/* Which call fails, counted from 0 over all devices; UINT32_MAX: none. */
struct bench {
    uint32_t calls;   /* of the device API, and of operators on devices */
    uint32_t fail_at; /* of `calls` */
    uint32_t driver_calls;
    uint32_t driver_fail_at;
    int32_t fault; /* what the failing call returns */
    uint32_t traced;
    struct bench_call trace[BENCH_CALLS];
};
extern struct bench bench;

#endif /* DEVICE_BENCH_H */
