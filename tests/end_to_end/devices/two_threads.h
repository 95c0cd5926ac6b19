/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWO_THREADS_H
#define TWO_THREADS_H

#include <stdint.h>

/* Initialise and bind the devices; return the first error. */
int32_t shared_start(void);
/* Run the model `runs` times in the calling thread, in separate memory; return the first error,
 * or 1 if an output is wrong. */
int32_t shared_run(int32_t runs, const int8_t *x, const int8_t *h, const int8_t *late);
/* The sum of the devices' activations. */
uint32_t shared_activations(void);

#endif /* TWO_THREADS_H */
