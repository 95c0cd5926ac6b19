/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The comparisons of a type. A source file defines these macros, FERRULE_PARAMS and, where it
 * needs them, FERRULE_LOCALS and FERRULE_SHAPE as in elementwise.inc.h, then includes this file:
 *
 * FERRULE_NAME(operator)   name of a kernel
 * FERRULE_TYPE             element type of both inputs
 * FERRULE_IS_ORDERED       1 for types with LESS and LESS_EQUAL, too, otherwise 0
 * FERRULE_FIRST_VALUE(x)   what is compared of an element of the first input
 * FERRULE_SECOND_VALUE(y)  the same of the second input
 */
#include "ferrule/kernels/compare.h"

#if !defined(FERRULE_NAME) || !defined(FERRULE_TYPE) || !defined(FERRULE_IS_ORDERED)
#error "define the macros listed at the top of this file"
#endif

#define FERRULE_INPUTS 2
#define FERRULE_FIRST  FERRULE_TYPE
#define FERRULE_SECOND FERRULE_TYPE
#define FERRULE_OUTPUT bool

#define FERRULE_KERNEL       FERRULE_NAME(equal)
#define FERRULE_RESULT(x, y) (FERRULE_FIRST_VALUE(x) == FERRULE_SECOND_VALUE(y))
#include "ferrule/kernels/elementwise.inc.h"
#undef FERRULE_KERNEL
#undef FERRULE_RESULT

#define FERRULE_KERNEL       FERRULE_NAME(not_equal)
#define FERRULE_RESULT(x, y) (FERRULE_FIRST_VALUE(x) != FERRULE_SECOND_VALUE(y))
#include "ferrule/kernels/elementwise.inc.h"
#undef FERRULE_KERNEL
#undef FERRULE_RESULT

#if FERRULE_IS_ORDERED
#define FERRULE_KERNEL       FERRULE_NAME(less)
#define FERRULE_RESULT(x, y) (FERRULE_FIRST_VALUE(x) < FERRULE_SECOND_VALUE(y))
#include "ferrule/kernels/elementwise.inc.h"
#undef FERRULE_KERNEL
#undef FERRULE_RESULT

#define FERRULE_KERNEL       FERRULE_NAME(less_equal)
#define FERRULE_RESULT(x, y) (FERRULE_FIRST_VALUE(x) <= FERRULE_SECOND_VALUE(y))
#include "ferrule/kernels/elementwise.inc.h"
#undef FERRULE_KERNEL
#undef FERRULE_RESULT
#endif
