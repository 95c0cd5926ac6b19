/* SPDX-License-Identifier: Apache-2.0 */
/** @file Linker sections of weights, workspaces and identities; define a macro before including
 * this file to place them elsewhere. */
#ifndef FERRULE_SECTION_H
#define FERRULE_SECTION_H

#include "ferrule/core.h"

#ifndef FERRULE_WEIGHTS
#ifdef FERRULE_CORE_HAS_SECTIONS
/** Prefix of a const array: places network constants in the board's memory for weights. */
#define FERRULE_WEIGHTS __attribute__((section(".ferrule_weights")))
#else
#define FERRULE_WEIGHTS
#endif
#endif

#ifndef FERRULE_WORKSPACE
#ifdef FERRULE_CORE_HAS_SECTIONS
/** Prefix of an uninitialised array: places it in the memory for workspaces, which Ferrule's linker
 * scripts leave uncleared at reset. Another linker script places it with .bss: it takes no flash.
 */
#define FERRULE_WORKSPACE __attribute__((section(".bss.ferrule_workspace")))
#else
#define FERRULE_WORKSPACE
#endif
#endif

#ifndef FERRULE_IN_MEMORY
#ifdef FERRULE_CORE_HAS_SECTIONS
/** Prefix of an uninitialised array: places it in the board's memory of that name, as a part of the
 * workspace that the memory of the other workspaces cannot hold. */
#define FERRULE_IN_MEMORY(name) __attribute__((section(".bss.ferrule_in." #name)))
#else
#define FERRULE_IN_MEMORY(name)
#endif
#endif

#ifndef FERRULE_IDENTITY
#ifdef FERRULE_CORE_HAS_SECTIONS
/** Prefix of the const struct ferrule_identity: places it beside the constants. */
#define FERRULE_IDENTITY __attribute__((section(".ferrule_identity"), used))
#else
#define FERRULE_IDENTITY
#endif
#endif

#endif /* FERRULE_SECTION_H */
