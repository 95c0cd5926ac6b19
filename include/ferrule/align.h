/* SPDX-License-Identifier: Apache-2.0 */
/** @file The alignment of an object, in a declaration that C and C++ read alike. */
#ifndef FERRULE_ALIGN_H
#define FERRULE_ALIGN_H

/** Begins a declaration: the object's address is a multiple of `bytes`. */
#ifdef __cplusplus
#define FERRULE_ALIGNAS(bytes) alignas(bytes)
#else
#define FERRULE_ALIGNAS(bytes) _Alignas(bytes)
#endif

#endif /* FERRULE_ALIGN_H */
