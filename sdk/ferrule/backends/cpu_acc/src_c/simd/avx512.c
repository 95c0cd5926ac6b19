/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#include "avx512.h"

#ifdef FERRULE_HOST_TILES
#include "tiles.h"
#endif

#include "kernels.inc.h"

#include "plain.inc.h"
#endif
