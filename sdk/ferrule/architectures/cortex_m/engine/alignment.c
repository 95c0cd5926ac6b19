/* SPDX-License-Identifier: Apache-2.0 */
#include "alignment.h"

#include <stdbool.h>

enum { SP = 13, LR = 14, PC = 15, REGISTERS = 16 };

/* What is known of a register: it is aligned if a register is at the block's start, by number, or
 * one of these. */
enum { ALIGNED = REGISTERS, UNKNOWN };

struct block {
    uint8_t origin[REGISTERS];
    uint32_t conditional; /* instructions left in an IT block */
};

static uint32_t field(uint32_t value, uint32_t low, uint32_t bits)
{
    return value >> low & ((1u << bits) - 1u);
}

/* Load-acquire and store-release, whose last field holds the size (Armv8-M ARM, C1.2.3). */
static uint32_t mask_of_acquire(uint32_t second)
{
    const uint32_t kind = field(second, 4, 4); /* 8: LDA and STL; 12: exclusive */
    const uint32_t size = kind & 3u;
    return kind < 8 || size == 3 ? 0u : (1u << size) - 1u;
}

static bool is_float_transfer(uint32_t first, uint32_t second) /* VLDR, VLDM, VSTR, VSTM */
{
    return (first & 0xFE00u) == 0xEC00u && (second & 0x0E00u) == 0x0A00u && (first & 0x0180u) != 0;
}

static bool is_double_transfer(uint32_t first) /* LDRD, STRD */
{
    return (first & 0xFE40u) == 0xE840u && (first & 0x0120u) != 0;
}

static bool is_multiple(uint32_t first) /* LDM, STM with 32 bits */
{
    return (first & 0xFE40u) == 0xE800u;
}

static uint32_t mask_of(uint32_t first, uint32_t second)
{
    if ((first & 0xFFE0u) == 0xE8C0u) {
        return mask_of_acquire(second);
    }
    const bool words = (first & 0xF000u) == 0xC000u || is_multiple(first) ||
                       is_double_transfer(first) || is_float_transfer(first, second);
    return words ? 3u : 0u;
}

/* Loads and stores of one halfword or word, which must be aligned if CCR.UNALIGN_TRP is set. */
static struct ferrule_site narrow_single(uint32_t code)
{
    static const uint8_t MASKS[] = {3, 1, 0, 0, 3, 1, 0, 1}; /* STR, STRH, STRB, LDRSB, LDR, ... */
    struct ferrule_site site = {.base = field(code, 3, 3), .index = FERRULE_NO_INDEX};
    if (code >> 12 == 5) {
        site.mask = MASKS[field(code, 9, 3)];
        site.index = field(code, 6, 3);
    } else if (code >> 12 == 6) {
        site.mask = 3;
    } else if (code >> 12 == 8) {
        site.mask = 1;
    }
    return site;
}

static struct ferrule_site wide_single(uint32_t first, uint32_t second)
{
    const uint32_t size = field(first, 5, 2);
    const bool hint = field(second, 12, 4) == PC && size != 2; /* PLD */
    struct ferrule_site site = {.base = field(first, 0, 4), .index = FERRULE_NO_INDEX};
    if ((first & 0xFE00u) != 0xF800u || (first & 0x0110u) == 0x0100u || site.base == PC || hint) {
        return site;
    }
    site.mask = size == 3 ? 0u : (1u << size) - 1u;
    if ((first & 0x0080u) != 0) {
        site.offset = field(second, 0, 12);
    } else if ((second & 0x0800u) == 0) {
        site.index = field(second, 0, 4);
        site.shift = field(second, 4, 2);
    } else if ((second & 0x0400u) != 0) { /* not after the access */
        site.offset = (second & 0x0200u) != 0 ? field(second, 0, 8) : 0u - field(second, 0, 8);
    }
    return site;
}

struct ferrule_site ferrule_site_of(uint32_t first, uint32_t second, uint32_t traps)
{
    const uint32_t base = first >= 0xE800u ? field(first, 0, 4) : field(first, 8, 3);
    const uint32_t mask = mask_of(first, second);
    if (mask == 0 && traps != 0) {
        return first >= 0xE800u ? wide_single(first, second) : narrow_single(first);
    }
    /* SP and the PC of an address are always aligned (Armv7-M ARM, B1.4.1 and A5.1.2). */
    return (struct ferrule_site){
        .mask = base == SP || base == PC ? 0u : mask,
        .base = base,
        .index = FERRULE_NO_INDEX,
    };
}

static void set(struct block *block, uint32_t target, uint32_t origin)
{
    block->origin[target] = (uint8_t)(block->conditional != 0 ? UNKNOWN : origin);
}

static void forget(struct block *block, uint32_t registers)
{
    for (uint32_t i = 0; i < REGISTERS; ++i) {
        if ((registers >> i & 1u) != 0) {
            block->origin[i] = UNKNOWN;
        }
    }
}

/* The result of an addition or subtraction of a constant. */
static void add(struct block *block, uint32_t target, uint32_t source, uint32_t constant)
{
    if (constant % 4 != 0) {
        forget(block, 1u << target);
    } else if (target != source) {
        set(block, target, block->origin[source]);
    }
}

/* The sum or difference of two registers. */
static void combine(struct block *block, uint32_t target, uint32_t one, uint32_t other)
{
    set(block, target, one == ALIGNED ? other : other == ALIGNED ? one : (uint32_t)UNKNOWN);
}

static void follow_miscellaneous(struct block *block, uint32_t code) /* 0xB000 to 0xBFFF */
{
    const uint32_t kind = field(code, 8, 4);
    if (kind == 0xF && field(code, 0, 4) != 0) { /* IT */
        const uint32_t mask = field(code, 0, 4);
        block->conditional = (mask & 1u) != 0 ? 5 : (mask & 2u) != 0 ? 4 : (mask & 4u) != 0 ? 3 : 2;
    } else if (kind == 0x2 || kind == 0xA) { /* SXTB, ..., REV, ... */
        forget(block, 1u << field(code, 0, 3));
    } else if (kind == 0xC || kind == 0xD) { /* POP */
        forget(block, field(code, 0, 8));
    }
}

static void follow_narrow(struct block *block, uint32_t code)
{
    const uint32_t low = field(code, 0, 3);
    const uint32_t high = field(code, 8, 3);
    switch (code >> 11) {
    case 0x03: /* ADD, SUB with a register or 3 bits */
        if ((code & 0x0400u) != 0) {
            add(block, low, field(code, 3, 3), field(code, 6, 3));
        } else {
            combine(block, low, block->origin[field(code, 3, 3)], block->origin[field(code, 6, 3)]);
        }
        break;
    case 0x00: /* LSL, and MOVS as a shift by 0 */
        set(block, low,
            field(code, 6, 5) >= 2   ? (uint32_t)ALIGNED
            : field(code, 6, 5) == 0 ? block->origin[field(code, 3, 3)]
                                     : (uint32_t)UNKNOWN);
        break;
    case 0x04: /* MOV */
        set(block, high, field(code, 0, 8) % 4 == 0 ? ALIGNED : UNKNOWN);
        break;
    case 0x05: /* CMP */
        break;
    case 0x06: /* ADD, SUB */
    case 0x07:
        add(block, high, high, field(code, 0, 8));
        break;
    case 0x08: /* data processing; ADD, MOV of all registers; BX, BLX */
        if ((code & 0xFF00u) == 0x4600u) {
            set(block, low | (code >> 4 & 8u), block->origin[field(code, 3, 4)]);
        } else if ((code & 0xFF00u) == 0x4400u) {
            const uint32_t target = low | (code >> 4 & 8u);
            combine(block, target, block->origin[target], block->origin[field(code, 3, 4)]);
        } else {
            forget(block, (code & 0xFF00u) == 0x4700u ? 1u << LR
                          : (code & 0x0400u) != 0     ? 1u << (low | (code >> 4 & 8u))
                                                      : 1u << low);
        }
        break;
    case 0x09: /* LDR of a literal; LDR from the stack */
    case 0x13:
        forget(block, 1u << high);
        break;
    case 0x14: /* ADR; ADD of SP: both are multiples of 4 */
    case 0x15:
        set(block, high, ALIGNED);
        break;
    case 0x16:
    case 0x17:
        follow_miscellaneous(block, code);
        break;
    case 0x19: /* LDM */
        forget(block, field(code, 0, 8));
        break;
    case 0x0C: /* STR, STRB, STRH, STR to the stack, STM */
    case 0x0E:
    case 0x10:
    case 0x12:
    case 0x18:
    case 0x1A: /* branches */
    case 0x1B:
    case 0x1C:
        break;
    default: /* shifts and loads */
        forget(block, 1u << low);
        break;
    }
}

/* Loads and stores of one register, 0xF800 to 0xF9FF. */
static void follow_single(struct block *block, uint32_t first, uint32_t second)
{
    const bool written_back = (first & 0x0080u) == 0 && (second & 0x0900u) == 0x0900u;
    if (written_back) {
        add(block, field(first, 0, 4), field(first, 0, 4), field(second, 0, 8));
    }
    if ((first & 0x0010u) != 0) {
        forget(block, 1u << field(second, 12, 4));
    }
}

/* Whether it is ADD or SUB with a constant of at most 8 bits. */
static bool is_wide_addition(uint32_t first, uint32_t second)
{
    const uint32_t operation = first & 0xFBE0u;
    return (second & 0xF000u) == 0 && (first & 0x0400u) == 0 &&
           (operation == 0xF100u || operation == 0xF1A0u || (first & 0xFFF0u) == 0xF200u ||
            (first & 0xFFF0u) == 0xF2A0u);
}

/* ADD, SUB and MOV of a register that is shifted to the left: a shift by 2 or more gives a multiple
 * of 4. Returns false if it is another instruction. */
static bool follow_shifted(struct block *block, uint32_t first, uint32_t second)
{
    const uint32_t amount = field(second, 12, 3) << 2 | field(second, 6, 2);
    const uint32_t operation = first & 0xFFE0u;
    const uint32_t source = field(first, 0, 4);
    const bool sum = operation == 0xEB00u || operation == 0xEBA0u;
    const bool move = operation == 0xEA40u && source == PC;
    if (field(second, 4, 2) != 0 || (second & 0x8000u) != 0 || !(sum || move)) {
        return false;
    }
    const uint32_t shifted = amount >= 2   ? (uint32_t)ALIGNED
                             : amount == 0 ? block->origin[field(second, 0, 4)]
                                           : (uint32_t)UNKNOWN;
    if (move) {
        set(block, field(second, 8, 4), shifted);
    } else {
        combine(block, field(second, 8, 4), block->origin[source], shifted);
    }
    return true;
}

static void follow_wide(struct block *block, uint32_t first, uint32_t second)
{
    const uint32_t target = field(second, 8, 4);
    const uint32_t both = 1u << target | 1u << field(second, 12, 4);
    if (is_multiple(first)) { /* the base changes by a multiple of 4 */
        forget(block, (first & 0x0010u) != 0 ? second : 0u);
    } else if (is_double_transfer(first)) {
        forget(block, (first & 0x0010u) != 0 ? both : 0u);
    } else if (is_float_transfer(first, second)) {
        return;
    } else if ((first & 0xFE00u) == 0xF800u && (first & 0x0110u) != 0x0100u) {
        follow_single(block, first, second);
    } else if (is_wide_addition(first, second)) {
        add(block, target, field(first, 0, 4), field(second, 0, 8));
    } else if ((first & 0xF800u) == 0xF000u) { /* constants, and branches with link */
        forget(block, 1u << target | (second >> 15) << LR);
    } else if ((first & 0xFE00u) == 0xEA00u && follow_shifted(block, first, second)) {
        return;
    } else if ((first & 0xFE00u) == 0xEA00u || (first & 0xFF00u) == 0xFA00u) {
        forget(block, 1u << target);
    } else if ((first & 0xFF00u) == 0xFB00u) { /* multiplication */
        forget(block, both);
    } else { /* exclusive accesses, coprocessors, undefined instructions */
        forget(block, both | 1u << field(second, 0, 4) | 1u << field(first, 0, 4));
    }
}

static uint32_t halfword(const uint8_t *code)
{
    return code[0] | (uint32_t)code[1] << 8;
}

static void sum_up(const struct block *block, struct ferrule_alignment *alignment)
{
    const uint32_t needed = alignment->needed;
    for (uint32_t i = 0; i < SP; ++i) {
        const uint32_t origin = block->origin[i];
        if (origin == i) {
            alignment->kept |= (uint16_t)(1u << i);
        } else if (origin == ALIGNED || (origin < REGISTERS && (needed >> origin & 1u) != 0)) {
            alignment->gained |= (uint16_t)(1u << i);
        }
    }
}

uint32_t ferrule_alignment_decode(const uint8_t *code, uint32_t bytes, uint32_t traps,
                                  uint32_t conditional, ferrule_is_checked is_checked,
                                  const void *context, struct ferrule_alignment *alignment)
{
    struct block block = {.conditional = conditional != 0 ? 3 : 0}; /* at most 3 are left */
    for (uint32_t i = 0; i < REGISTERS; ++i) {
        block.origin[i] = (uint8_t)i;
    }
    block.origin[SP] = ALIGNED;
    block.origin[PC] = UNKNOWN;
    *alignment = (struct ferrule_alignment){0};
    for (uint32_t at = 0; at < bytes;) {
        const uint32_t first = halfword(code + at);
        const bool wide = first >= 0xE800u;
        const uint32_t second = wide && at + 4 <= bytes ? halfword(code + at + 2) : 0u;
        const struct ferrule_site site = ferrule_site_of(first, second, traps);
        const bool trapped = site.mask != 0 && mask_of(first, second) == 0;
        const uint32_t origin = trapped ? UNKNOWN : block.origin[site.base];
        if (site.mask != 0 && origin != ALIGNED) {
            const bool checked = is_checked(context, at) != 0;
            if (origin == UNKNOWN && !checked) {
                return at;
            }
            if (!checked) {
                alignment->needed |= (uint16_t)(1u << origin);
            } else if (block.conditional == 0 && site.mask == 3 && !trapped) {
                block.origin[site.base] = ALIGNED;
            }
        }
        if (wide) {
            follow_wide(&block, first, second);
        } else {
            follow_narrow(&block, first);
        }
        block.origin[SP] = ALIGNED;
        block.origin[PC] = UNKNOWN;
        block.conditional -= block.conditional != 0;
        at += wide ? 4u : 2u;
    }
    sum_up(&block, alignment);
    return bytes;
}
