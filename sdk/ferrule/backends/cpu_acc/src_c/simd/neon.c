/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__aarch64__)
#include "neon.h"

#include "kernels.inc.h"

#include "plain.inc.h"
#endif
