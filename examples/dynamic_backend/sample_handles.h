/* SPDX-License-Identifier: Apache-2.0 */
/** @file The tensor handles of the sample backend: memory of its own, or a region that they import.
 */
#ifndef EXAMPLE_SAMPLE_HANDLES_H
#define EXAMPLE_SAMPLE_HANDLES_H

#include "layer.h"

/** The sample's only factory of handles. */
extern const struct ferrule_handles sample_handles;

/** @brief Return the elements of a tensor, which has a handle of the sample or data of the host. */
void *sample_elements(const struct ferrule_tensor *tensor);

/**
 * @brief Begin or end the processor's access to a tensor, which may lie in a dma-buf.
 *
 * @retval FERRULE_ERR_DEVICE Linux refuses it
 */
int32_t sample_access(const struct ferrule_tensor *tensor, bool begin);

#endif
