/* SPDX-License-Identifier: Apache-2.0 */
/* CMSIS's header, or the part of it that Arm's driver needs where there is no CMSIS. */
#if __has_include_next(<cmsis_compiler.h>)
#include_next <cmsis_compiler.h>
#else
#ifndef ETHOS_U_ARM_CMSIS_COMPILER_H
#define ETHOS_U_ARM_CMSIS_COMPILER_H

#define __WFE() __asm__ volatile("wfe" : : : "memory")
#define __SEV() __asm__ volatile("sev" : : : "memory")

#endif /* ETHOS_U_ARM_CMSIS_COMPILER_H */
#endif
