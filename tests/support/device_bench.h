/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICE_BENCH_H
#define DEVICE_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_CALLS 128u

/* One call as reported to on_device. */
struct bench_call {
    uint32_t index;
    uint32_t device;
    uint32_t call;
    int32_t status;
};

/* The call that fails, counted from 0 over all devices; UINT32_MAX for none. */
struct bench {
    uint32_t calls;   /* calls so far: the device API, and operators on devices */
    uint32_t fail_at; /* the value of `calls` at which a call fails */
    uint32_t driver_calls;
    uint32_t driver_fail_at;
    int32_t fault; /* what the failing call returns */
    uint32_t traced;
    struct bench_call trace[BENCH_CALLS];
};
extern struct bench bench;

#endif /* DEVICE_BENCH_H */
