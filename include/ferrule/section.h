/* SPDX-License-Identifier: Apache-2.0 */
/** @file Where the linker puts weights and workspaces; define a macro beforehand to place them
 * elsewhere. */
#ifndef FERRULE_SECTION_H
#define FERRULE_SECTION_H

#ifndef FERRULE_WEIGHTS
#if defined(__ELF__) && defined(__arm__)
/** In front of a const array: constants of the network, in the memory that the board has for
 * weights. */
#define FERRULE_WEIGHTS __attribute__((section(".ferrule_weights")))
#else
#define FERRULE_WEIGHTS
#endif
#endif

#ifndef FERRULE_WORKSPACE
#if defined(__ELF__) && defined(__arm__)
/** In front of an uninitialised array: memory that is not cleared at reset, in the memory for
 * workspaces. */
#define FERRULE_WORKSPACE __attribute__((section(".ferrule_workspace")))
#else
#define FERRULE_WORKSPACE
#endif
#endif

#endif /* FERRULE_SECTION_H */
