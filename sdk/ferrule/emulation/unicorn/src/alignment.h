/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that fault on an unaligned address, and the registers of a block whose alignment
 * decides whether they do. Each architecture has the decoders.
 */
#ifndef FERRULE_EMULATION_ALIGNMENT_H
#define FERRULE_EMULATION_ALIGNMENT_H

#include <stdint.h>

enum { FERRULE_NO_INDEX = 16 };

/* An access whose address must be aligned: that of the base, plus offset, plus index << shift. */
struct ferrule_site {
    uint32_t mask;   /* address bits that must be 0; 0: the instruction accepts every address */
    uint32_t base;   /* a register */
    uint32_t offset; /* a constant; it is 0 here if it is always aligned */
    uint32_t index;  /* a register or FERRULE_NO_INDEX */
    uint32_t shift;
};

/* Registers of a block, as bits. A register is aligned if it holds a multiple of 4. */
struct ferrule_alignment {
    uint16_t needed; /* must be aligned at the block's start, or its instructions need checks */
    uint16_t kept;   /* aligned at the block's end if they are at its start */
    uint16_t gained; /* aligned at the block's end, if those needed are at its start */
};

/* Decodes an instruction; `second` is its second halfword, or 0 if it has only one. `traps`:
 * all accesses to halfwords and words must be aligned. */
struct ferrule_site ferrule_site_of(uint32_t first, uint32_t second, uint32_t traps);

/* Returns whether an instruction's address is checked when the instruction executes. */
typedef uint32_t (*ferrule_is_checked)(const void *context, uint32_t offset);

/* Decodes a block, which begins with instructions under an earlier condition if
 * `conditional` is not 0. Returns the offset of
 * the first instruction whose address depends on a value that does not follow from the registers at
 * the block's start and that is not checked, or `bytes` if there is none. */
uint32_t ferrule_alignment_decode(const uint8_t *code, uint32_t bytes, uint32_t traps,
                                  uint32_t conditional, ferrule_is_checked is_checked,
                                  const void *context, struct ferrule_alignment *alignment);

#endif
