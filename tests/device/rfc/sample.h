/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The RFC's programs, corrected: the executor, which is the same on every platform.
 *
 * Its devices struct has pointers, each call's status is checked, and there is a single exit, which
 * closes every open device.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "tvm/runtime/device.h"

struct tvmgen_mynetwork_devices {
    tvm_device_t *host; /* NULL, since operators on the core need no device */
    tvm_device_t *accelerator0;
    tvm_device_t *accelerator1;
};

/** The platform's operator: use the device, and add `step` to `value`. */
int32_t my_accelerator_invoke(tvm_device_t *tvm_dev, uint8_t *value, uint8_t step);

int32_t tvmgen_mynetwork_run(uint8_t *value, const struct tvmgen_mynetwork_devices *devices);

/** Initialise, bind, run and destroy both devices; return the value that 1 becomes, or an error.
 * On Zephyr the test passes the devices. */
int32_t sample_run(const void *first, const void *second);
/** Take one device from Init to Destroy by the merged RFC's names; return the first error. */
int32_t sample_named(const void *first);
/** Let the second operator fail. */
void sample_fail(int32_t status);
/** Wrappers of the inline functions, for tests. */
int32_t sample_open(tvm_device_t *tvm_dev);
int32_t sample_close(tvm_device_t *tvm_dev);
/** Number of successful calls of the generic Open and Close. */
extern uint32_t sample_opened;
extern uint32_t sample_closed;

#endif /* SAMPLE_H */
