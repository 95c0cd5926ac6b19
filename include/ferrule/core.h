/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The core: what the C sources need of an architecture. This is the only header that asks
 * which one it is; each has a header in ferrule/core with the same names. Compile with
 * -DFERRULE_CORE_HEADER='"my_core.h"' for another one, as tests of the counters on a host do.
 */
#ifndef FERRULE_CORE_H
#define FERRULE_CORE_H

#ifdef FERRULE_CORE_HEADER
#include FERRULE_CORE_HEADER
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#include "ferrule/core/cortex_m.h"
#else
#include "ferrule/core/process.h"
#endif

#endif /* FERRULE_CORE_H */
