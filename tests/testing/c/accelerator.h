/* SPDX-License-Identifier: Apache-2.0 */
/** @file An accelerator in the manner of CMSIS-Driver, which always works. */
#ifndef ACCELERATOR_H
#define ACCELERATOR_H

#include "ferrule/platform/cmsis.h"

extern const struct ferrule_cmsis_accelerator test_accelerator;

#endif /* ACCELERATOR_H */
