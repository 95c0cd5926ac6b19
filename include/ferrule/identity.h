/* SPDX-License-Identifier: Apache-2.0 */
/** @file The identity of a firmware: what it was generated from, and how it was compiled. */
#ifndef FERRULE_IDENTITY_H
#define FERRULE_IDENTITY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_IDENTITY_MAGIC   0x44495246u /* "FRID" in memory */
#define FERRULE_IDENTITY_VERSION 1u
#define FERRULE_DIGEST_BYTES     16u /* of each digest: the first half of a SHA-256 */
#define FERRULE_IDENTITY_TEXTS   4u

#ifndef FERRULE_COMPILER
#if defined(__clang__)
#define FERRULE_COMPILER __VERSION__ /* begins with the compiler's name */
#elif defined(__GNUC__)
#define FERRULE_COMPILER "GCC " __VERSION__
#else
#define FERRULE_COMPILER ""
#endif
#endif

#ifndef FERRULE_FLAGS
/** The flags that select the core, and the optimization level; the build defines it as a string. */
#define FERRULE_FLAGS ""
#endif

/** The texts of an identity; an empty text is one that the build does not state. */
#define FERRULE_IDENTITY_TEXT(platform, board)                                                     \
    platform "\0" board "\0" FERRULE_COMPILER "\0" FERRULE_FLAGS

/** The identity of a firmware; generated, const, in the section `.ferrule_identity`. */
struct ferrule_identity {
    uint32_t magic;                      /* FERRULE_IDENTITY_MAGIC */
    uint32_t version;                    /* FERRULE_IDENTITY_VERSION, of this struct */
    uint8_t model[FERRULE_DIGEST_BYTES]; /* of the network as it was given */
    uint8_t plan[FERRULE_DIGEST_BYTES]; /* of its division over devices, its order and its memory */
    uint8_t
        sources[FERRULE_DIGEST_BYTES]; /* of all generated C, Ferrule's C and the linker script */
    char text[]; /* FERRULE_IDENTITY_TEXTS texts, each with its zero: platform, board, compiler,
                    flags */
};

/** The sizes that the linker script states: of code, constants, weights, data, bss, workspaces and
 * stack. */
#define FERRULE_SIZES 7u

#if defined(__ELF__)
/** The sizes in bytes; Ferrule's linker scripts define it, and its address is null with others. */
extern const uint32_t ferrule_sizes[FERRULE_SIZES] __attribute__((weak));
#endif

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_IDENTITY_H */
