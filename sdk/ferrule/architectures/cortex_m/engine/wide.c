/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings are those of Armv7-M ARM, A5 and A6, with the additions of Armv8-M ARM, C2. */
#include "decoding.h"

/* LDRD, STRD, exclusive accesses, table branches: 0xE840 and others. */
static void wide_double(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const bool load = (first & 0x0010u) != 0;
    const uint32_t base = field(first, 0, 4);
    const uint32_t target = field(second, 12, 4);
    found->addresses = unless_pc(base);
    if ((first & 0x0120u) != 0) {
        const uint64_t both = BIT(target) | BIT(field(second, 8, 4));
        found->kind = load ? FERRULE_LOAD_DOUBLE : FERRULE_STORE_DOUBLE;
        found->writes = load ? both : 0;
        found->data = load ? 0 : both;
        found->writes_base = (first & 0x0020u) != 0 ? BIT(base) : 0;
    } else if ((first & 0xFFF0u) == 0xE8D0u && (second & 0xFFE0u) == 0xF000u) {
        found->kind = FERRULE_TABLE;
        found->jump = FERRULE_JUMP_LOADED;
        found->addresses |= BIT(field(second, 0, 4));
    } else {
        const uint32_t status = (first & 0x0080u) != 0 ? field(second, 0, 4) : field(second, 8, 4);
        found->kind = FERRULE_EXCLUSIVE;
        found->writes = load ? BIT(target) : unless_pc(status);
        found->data = load ? 0 : BIT(target);
    }
}

static void compare_or_write(struct ferrule_operation *found, uint32_t operation, bool flags,
                             uint32_t target)
{
    const bool may_compare = operation == 0 || operation == 4 || operation == 8 || operation == 13;
    found->writes =
        (flags ? BIT(FERRULE_FLAGS) : 0) | (flags && may_compare && target == PC ? 0 : BIT(target));
    if (operation == 10 || operation == 11) {
        found->reads |= BIT(FERRULE_FLAGS);
    }
}

/* Data processing with a register, which may be shifted: 0xEA00 to 0xEBFF. */
static void wide_register(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const uint32_t operation = field(first, 5, 4);
    const uint32_t one = field(first, 0, 4);
    const uint32_t other = field(second, 0, 4);
    const bool moves = one == PC && (operation == 2 || operation == 3);
    const bool shifts = (second & 0x70F0u) != 0 && !(moves && operation == 2);
    compare_or_write(found, operation, (first & 0x0010u) != 0, field(second, 8, 4));
    found->reads |= moves ? 0 : unless_pc(one);
    if (operation == 6) { /* PKHBT, PKHTB */
        found->kind = FERRULE_FIELD;
        found->shifted = BIT(other);
    } else if (shifts) {
        found->kind = FERRULE_SHIFTED;
        found->shifted = BIT(other);
    } else {
        found->reads |= BIT(other);
        found->early = operation == 8 || operation == 13 || (moves && operation == 2);
    }
}

/* Data processing with a constant: 0xF000 to 0xF7FF, whose second halfword begins with 0. */
static void wide_constant(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const uint32_t one = field(first, 0, 4);
    const uint32_t target = field(second, 8, 4);
    if ((first & 0x0200u) == 0) {
        const uint32_t operation = field(first, 5, 4);
        const bool shifted = (first & 0x0400u) != 0 || (second & 0x4000u) != 0;
        compare_or_write(found, operation, (first & 0x0010u) != 0, target);
        found->kind = shifted ? FERRULE_SHIFTED : FERRULE_ALU;
        found->reads |= unless_pc(one);
        found->early = !shifted && (operation == 2 || operation == 8 || operation == 13);
        return;
    }
    const uint32_t kind = field(first, 4, 5);
    found->writes = BIT(target);
    found->early = kind < 16;
    if (kind == 4 || kind == 12) { /* MOVW, MOVT */
        found->reads = kind == 12 ? BIT(target) : 0;
    } else if (kind < 16) { /* ADDW, SUBW, ADR */
        found->reads = unless_pc(one);
    } else {
        found->kind = FERRULE_FIELD;
        found->shifted = unless_pc(one);
        found->reads = kind == 22 ? BIT(target) : 0; /* BFI, BFC */
    }
}

/* Branches and miscellaneous control: 0xF000 to 0xF7FF, whose second halfword begins with 1. */
static void wide_control(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const bool conditional = (second & 0x1000u) == 0;
    if ((second & 0x5000u) != 0 || (first & 0x0380u) != 0x0380u) {
        const bool link = (second & 0x4000u) != 0;
        found->kind = FERRULE_BRANCH;
        found->jump = link ? FERRULE_JUMP_LINK : FERRULE_JUMP_DIRECT;
        found->conditional = conditional && !link;
        found->writes = link ? BIT(LR) : 0;
    } else if ((first & 0xFFE0u) == 0xF380u) { /* MSR */
        found->kind = FERRULE_SPECIAL;
        found->reads = unless_pc(field(first, 0, 4));
    } else if ((first & 0xFFE0u) == 0xF3E0u) { /* MRS */
        found->kind = FERRULE_SPECIAL;
        found->writes = BIT(field(second, 8, 4));
    } else {
        const uint32_t option = field(second, 4, 4);
        const bool barrier = first == 0xF3BFu && option >= 4 && option <= 6;
        found->kind = barrier ? FERRULE_BARRIER : FERRULE_NOP;
    }
}

/* Loads and stores of one register: 0xF800 to 0xF9FF. */
static void wide_single(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const bool load = (first & 0x0010u) != 0;
    const uint32_t size = field(first, 5, 2);
    const uint32_t base = field(first, 0, 4);
    const uint32_t target = field(second, 12, 4);
    if (load && target == PC && size != 2) { /* PLD */
        found->kind = FERRULE_NOP;
        return;
    }
    found->kind = (uint8_t)(!load ? FERRULE_STORE : size == 2 ? FERRULE_LOAD : FERRULE_LOAD_NARROW);
    if (base == PC) {
        access(found, load, target);
        return;
    }
    if ((first & 0x0080u) != 0) {
        place_at(found, base, (int32_t)field(second, 0, 12));
    } else if ((second & 0x0800u) == 0) {
        found->kind = (uint8_t)(load ? found->kind : FERRULE_STORE_REGISTER);
        found->addresses = BIT(base) | BIT(field(second, 0, 4));
    } else {
        const int32_t distance = (int32_t)field(second, 0, 8);
        const bool before = (second & 0x0400u) != 0;
        place_at(found, base, !before ? 0 : (second & 0x0200u) != 0 ? distance : -distance);
        found->writes_base = (second & 0x0100u) != 0 ? BIT(base) : 0;
    }
    access(found, load, target);
}

static void wide_extended(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const uint32_t one = field(first, 0, 4);
    found->writes = BIT(field(second, 8, 4));
    if ((first & 0x0080u) == 0 && (second & 0x00F0u) == 0) { /* shifts by a register */
        found->reads = BIT(one) | BIT(field(second, 0, 4));
        found->writes |= (first & 0x0010u) != 0 ? BIT(FERRULE_FLAGS) : 0;
        found->early = true;
        return;
    }
    const bool extends = (first & 0x0080u) == 0;
    const bool reverses = (first & 0x00F0u) == 0x0090u && (second & 0x00C0u) == 0x0080u;
    found->kind = FERRULE_FIELD;
    if ((extends && one != PC) || reverses) { /* SXTAB, ...; REV, ... */
        found->shifted = BIT(field(second, 0, 4));
        found->reads = extends ? BIT(one) : 0;
    } else if (extends) { /* SXTB, ... */
        found->reads = BIT(field(second, 0, 4));
    } else {
        found->reads = unless_pc(one) | BIT(field(second, 0, 4));
    }
}

static void wide_product(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const uint32_t kind = field(first, 4, 3);
    const uint64_t low = BIT(field(second, 12, 4));
    const uint64_t high = BIT(field(second, 8, 4));
    found->reads = BIT(field(first, 0, 4)) | BIT(field(second, 0, 4));
    if ((first & 0x0080u) == 0) {
        const bool adds = field(second, 12, 4) != PC;
        found->kind = kind == 7 ? FERRULE_FIELD : adds ? FERRULE_ACCUMULATE : FERRULE_MULTIPLY;
        found->accumulated = adds ? low : 0;
        found->writes = high;
    } else if (kind == 1 || kind == 3) {
        found->kind = FERRULE_DIVIDE;
        found->writes = high;
    } else {
        found->kind = kind < 4 ? FERRULE_MULTIPLY_LONG : FERRULE_ACCUMULATE_LONG;
        found->accumulated = kind < 4 ? 0 : low | high;
        found->writes = low | high;
    }
}

void ferrule_decode_wide(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    if ((first & 0xFE40u) == 0xE800u) {
        move_multiple(found, (first & 0x0010u) != 0, field(first, 0, 4), second,
                      (first & 0x0020u) != 0);
    } else if ((first & 0xFE40u) == 0xE840u) {
        wide_double(found, first, second);
    } else if ((first & 0xFE00u) == 0xEA00u) {
        wide_register(found, first, second);
    } else if ((first & 0xEC00u) == 0xEC00u) {
        if ((second & 0x0E00u) == 0x0A00u) {
            ferrule_decode_float(found, first, second);
        }
    } else if ((first & 0xF800u) == 0xF000u) {
        ((second & 0x8000u) != 0 ? wide_control : wide_constant)(found, first, second);
    } else if ((first & 0xFE00u) == 0xF800u) {
        wide_single(found, first, second);
    } else if ((first & 0xFF00u) == 0xFA00u) {
        wide_extended(found, first, second);
    } else if ((first & 0xFF00u) == 0xFB00u) {
        wide_product(found, first, second);
    }
}
