/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings are those of Armv7-M ARM, A5 and A6, with the additions of Armv8-M ARM, C2. */
#include "operation.h"

enum { SP = 13, LR = 14, PC = 15 };

#define BIT(place) (UINT64_C(1) << (place))

static uint32_t field(uint32_t value, uint32_t low, uint32_t bits)
{
    return value >> low & ((1u << bits) - 1u);
}

static uint64_t unless_pc(uint32_t place)
{
    return place == PC ? 0 : BIT(place);
}

static uint8_t ones(uint32_t value)
{
    uint8_t found = 0;
    for (; value != 0; value &= value - 1) {
        ++found;
    }
    return found;
}

bool ferrule_operation_accesses(uint32_t kind)
{
    return (kind >= FERRULE_LOAD && kind <= FERRULE_STORE_MULTIPLE) || kind == FERRULE_TABLE ||
           (kind >= FERRULE_FLOAT_LOAD && kind <= FERRULE_FLOAT_STORE_MULTIPLE);
}

bool ferrule_operation_is_load(uint32_t kind)
{
    return kind == FERRULE_LOAD || kind == FERRULE_LOAD_NARROW || kind == FERRULE_FLOAT_LOAD ||
           kind == FERRULE_EXCLUSIVE;
}

bool ferrule_operation_is_store(uint32_t kind)
{
    return kind == FERRULE_STORE || kind == FERRULE_STORE_REGISTER || kind == FERRULE_FLOAT_STORE;
}

bool ferrule_operation_is_product(uint32_t kind)
{
    return kind >= FERRULE_MULTIPLY && kind <= FERRULE_ACCUMULATE_LONG;
}

bool ferrule_operation_is_float(uint32_t kind)
{
    return (kind >= FERRULE_FLOAT_ADD && kind <= FERRULE_FLOAT_ROOT) || kind >= FERRULE_DOUBLE_ADD;
}

/* Turns an operation that writes the program counter into a jump. */
static void find_jump(struct ferrule_operation *found, uint32_t jump)
{
    if ((found->writes & BIT(PC)) != 0) {
        found->writes &= ~BIT(PC);
        found->jump = (uint8_t)jump;
    }
}

static void access(struct ferrule_operation *found, bool load, uint32_t target)
{
    if (load) {
        found->writes |= BIT(target);
        find_jump(found, FERRULE_JUMP_LOADED);
    } else {
        found->data |= BIT(target);
    }
}

static void place_at(struct ferrule_operation *found, uint32_t base, int32_t offset)
{
    found->addresses = unless_pc(base);
    found->base = (uint8_t)base;
    found->offset = (int16_t)offset;
}

static void move_multiple(struct ferrule_operation *found, bool load, uint32_t base, uint32_t list,
                          bool written_back)
{
    found->kind = load ? FERRULE_LOAD_MULTIPLE : FERRULE_STORE_MULTIPLE;
    found->count = ones(list);
    found->addresses = BIT(base);
    found->writes_base = written_back ? BIT(base) : 0;
    if (load) {
        found->writes = list;
        find_jump(found, FERRULE_JUMP_LOADED);
    } else {
        found->data = list;
    }
}

static void narrow_data(struct ferrule_operation *found, uint32_t code) /* 0x4000 to 0x43FF */
{
    const uint32_t target = field(code, 0, 3);
    const uint32_t source = field(code, 3, 3);
    const uint32_t kind = field(code, 6, 4);
    const bool only_source = kind == 9 || kind == 15;            /* RSB, MVN */
    const bool compares = kind == 8 || kind == 10 || kind == 11; /* TST, CMP, CMN */
    const bool carries = kind == 5 || kind == 6;                 /* ADC, SBC */
    found->kind = kind == 13 ? FERRULE_MULTIPLY : FERRULE_ALU;
    found->early = (kind >= 2 && kind <= 4) || kind == 7; /* LSL, LSR, ASR, ROR */
    found->reads =
        BIT(source) | (only_source ? 0 : BIT(target)) | (carries ? BIT(FERRULE_FLAGS) : 0);
    found->writes = BIT(FERRULE_FLAGS) | (compares ? 0 : BIT(target));
}

static void narrow_high(struct ferrule_operation *found, uint32_t code) /* 0x4400 to 0x47FF */
{
    const uint32_t target = field(code, 0, 3) | (code >> 4 & 8u);
    const uint32_t source = field(code, 3, 4);
    switch (field(code, 8, 2)) {
    case 0: /* ADD */
        found->early = true;
        found->reads = unless_pc(source) | unless_pc(target);
        found->writes = BIT(target);
        find_jump(found, FERRULE_JUMP_INDIRECT);
        break;
    case 1: /* CMP */
        found->reads = unless_pc(source) | unless_pc(target);
        found->writes = BIT(FERRULE_FLAGS);
        break;
    case 2: /* MOV */
        found->early = true;
        found->reads = unless_pc(source);
        found->writes = BIT(target);
        find_jump(found, FERRULE_JUMP_INDIRECT);
        break;
    default: /* BX, BLX */
        found->kind = FERRULE_BRANCH;
        found->jump = FERRULE_JUMP_INDIRECT;
        found->reads = BIT(source);
        found->writes = (code & 0x0080u) != 0 ? BIT(LR) : 0;
        break;
    }
}

static void narrow_indexed(struct ferrule_operation *found, uint32_t code) /* 0x5000 to 0x5FFF */
{
    const uint32_t kind = field(code, 9, 3);
    const bool load = kind >= 3;
    found->kind = (uint8_t)(!load       ? FERRULE_STORE_REGISTER
                            : kind == 4 ? FERRULE_LOAD
                                        : FERRULE_LOAD_NARROW);
    found->addresses = BIT(field(code, 3, 3)) | BIT(field(code, 6, 3));
    access(found, load, field(code, 0, 3));
}

static void narrow_placed(struct ferrule_operation *found, uint32_t code) /* 0x6000 to 0x9FFF */
{
    static const uint8_t SHIFTS[] = {2, 0, 1, 2}; /* words, bytes, halfwords, words of the stack */
    const bool load = (code & 0x0800u) != 0;
    const uint32_t kind = (code >> 12) - 6;
    const bool stack = kind == 3;
    found->kind = (uint8_t)(!load           ? FERRULE_STORE
                            : kind % 3 == 0 ? FERRULE_LOAD
                                            : FERRULE_LOAD_NARROW);
    place_at(found, stack ? SP : field(code, 3, 3),
             (int32_t)((stack ? field(code, 0, 8) : field(code, 6, 5)) << SHIFTS[kind]));
    access(found, load, stack ? field(code, 8, 3) : field(code, 0, 3));
}

static void narrow_miscellaneous(struct ferrule_operation *found, uint32_t code) /* 0xB000 on */
{
    const uint32_t low = field(code, 0, 3);
    switch (field(code, 8, 4)) {
    case 0x0: /* ADD, SUB of SP */
        found->early = true;
        found->reads = found->writes = BIT(SP);
        break;
    case 0x1: /* CBZ, CBNZ */
    case 0x3:
    case 0x9:
    case 0xB:
        found->kind = FERRULE_BRANCH;
        found->jump = FERRULE_JUMP_DIRECT;
        found->conditional = true;
        found->reads = BIT(low);
        break;
    case 0x2: /* SXTB, ... */
        found->kind = FERRULE_FIELD;
        found->reads = BIT(field(code, 3, 3));
        found->writes = BIT(low);
        break;
    case 0xA: /* REV, ... */
        found->kind = FERRULE_FIELD;
        found->shifted = BIT(field(code, 3, 3));
        found->writes = BIT(low);
        break;
    case 0x4: /* PUSH */
    case 0x5:
        move_multiple(found, false, SP, field(code, 0, 8) | field(code, 8, 1) << LR, true);
        break;
    case 0xC: /* POP */
    case 0xD:
        move_multiple(found, true, SP, field(code, 0, 8) | field(code, 8, 1) << PC, true);
        break;
    case 0x6:
        found->kind = FERRULE_STATE;
        break;
    case 0xF: {
        const uint32_t mask = field(code, 0, 4);
        found->kind = mask != 0 ? FERRULE_IT : FERRULE_NOP;
        found->count = (mask & 1u) != 0 ? 4 : (mask & 2u) != 0 ? 3 : (mask & 4u) != 0 ? 2 : 1;
        break;
    }
    default:
        found->kind = FERRULE_NOP;
        break;
    }
}

static void narrow(struct ferrule_operation *found, uint32_t code)
{
    const uint32_t low = field(code, 0, 3);
    const uint32_t high = field(code, 8, 3);
    found->early = code >> 11 < 0x08 && code >> 11 != 0x05; /* all but CMP */
    switch (code >> 11) {
    case 0x00: /* LSL, LSR, ASR */
    case 0x01:
    case 0x02:
        found->reads = BIT(field(code, 3, 3));
        found->writes = BIT(low) | BIT(FERRULE_FLAGS);
        break;
    case 0x03: /* ADD, SUB */
        found->reads =
            BIT(field(code, 3, 3)) | ((code & 0x0400u) != 0 ? 0 : BIT(field(code, 6, 3)));
        found->writes = BIT(low) | BIT(FERRULE_FLAGS);
        break;
    case 0x04: /* MOV */
        found->writes = BIT(high) | BIT(FERRULE_FLAGS);
        break;
    case 0x05: /* CMP */
        found->reads = BIT(high);
        found->writes = BIT(FERRULE_FLAGS);
        break;
    case 0x06: /* ADD, SUB */
    case 0x07:
        found->reads = BIT(high);
        found->writes = BIT(high) | BIT(FERRULE_FLAGS);
        break;
    case 0x08:
        ((code & 0x0400u) != 0 ? narrow_high : narrow_data)(found, code);
        break;
    case 0x09: /* LDR of a literal */
        found->kind = FERRULE_LOAD;
        found->writes = BIT(high);
        break;
    case 0x0A:
    case 0x0B:
        narrow_indexed(found, code);
        break;
    case 0x14: /* ADR */
        found->early = true;
        found->writes = BIT(high);
        break;
    case 0x15: /* ADD of SP */
        found->early = true;
        found->reads = BIT(SP);
        found->writes = BIT(high);
        break;
    case 0x16:
    case 0x17:
        narrow_miscellaneous(found, code);
        break;
    case 0x18:
    case 0x19:
        move_multiple(found, (code & 0x0800u) != 0, high, field(code, 0, 8),
                      (code & 0x0800u) == 0 || (code >> high & 1u) == 0);
        break;
    case 0x1A: /* B with a condition; UDF, SVC */
    case 0x1B:
        found->kind = field(code, 8, 4) >= 14 ? FERRULE_NOP : FERRULE_BRANCH;
        found->jump = field(code, 8, 4) >= 14 ? FERRULE_JUMP_NONE : FERRULE_JUMP_DIRECT;
        found->conditional = true;
        break;
    case 0x1C:
        found->kind = FERRULE_BRANCH;
        found->jump = FERRULE_JUMP_DIRECT;
        break;
    default:
        narrow_placed(found, code);
        break;
    }
}

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

struct floats {
    bool twice; /* double precision */
    uint64_t target;
    uint64_t one;
    uint64_t other;
};

static uint64_t float_place(uint32_t four, uint32_t extra, bool twice)
{
    const uint32_t number = twice ? (four | extra << 4) * 2 : four << 1 | extra;
    const uint64_t first = number < 32 ? BIT(FERRULE_SINGLE + number) : 0;
    return twice ? first | first << 1 : first;
}

static void float_memory(struct ferrule_operation *found, uint32_t first, uint32_t second,
                         const struct floats *all)
{
    const bool load = (first & 0x0010u) != 0;
    const uint32_t base = field(first, 0, 4);
    const uint32_t words = field(second, 0, 8);
    if ((first & 0xFFE0u) == 0xEC40u) { /* VMOV of two core registers */
        const uint64_t core = BIT(field(second, 12, 4)) | BIT(field(first, 0, 4));
        found->kind = FERRULE_FLOAT_TRANSFER_DOUBLE;
        found->reads = load ? all->other : core;
        found->writes = load ? core : all->other;
        return;
    }
    if ((first & 0x0120u) == 0x0100u) { /* VLDR, VSTR */
        const int32_t distance = (int32_t)(4 * words);
        place_at(found, base, (first & 0x0080u) != 0 ? distance : -distance);
        found->base = (uint8_t)(base == PC ? (uint32_t)FERRULE_PLACES : base);
        found->kind =
            (uint8_t)(load ? (all->twice ? FERRULE_FLOAT_LOAD_DOUBLE : FERRULE_FLOAT_LOAD)
                           : (all->twice ? FERRULE_FLOAT_STORE_DOUBLE : FERRULE_FLOAT_STORE));
        found->writes = load ? all->target : 0;
        found->data = load ? 0 : all->target;
        return;
    }
    found->kind = load ? FERRULE_FLOAT_LOAD_MULTIPLE : FERRULE_FLOAT_STORE_MULTIPLE;
    found->count = (uint8_t)words;
    found->addresses = BIT(base);
    found->writes_base = (first & 0x0020u) != 0 ? BIT(base) : 0;
    const uint64_t target = all->target & (0 - all->target);
    for (uint32_t i = 0; i < words && i < 32; ++i) {
        const uint64_t each = target << i & ~(UINT64_MAX << FERRULE_PLACES);
        *(load ? &found->writes : &found->data) |= each;
    }
}

static void float_other(struct ferrule_operation *found, uint32_t first, uint32_t second,
                        const struct floats *all) /* VMOV, VABS, VNEG, VSQRT, VCMP, VCVT */
{
    const uint32_t what = field(first, 0, 4);
    const uint32_t which = field(second, 6, 2);
    found->reads = all->other;
    found->writes = all->target;
    if ((which & 1u) == 0) {
        found->kind = FERRULE_FLOAT_MOVE;
        found->reads = 0;
    } else if (what == 4 || what == 5) {
        found->kind = FERRULE_FLOAT_MOVE;
        found->reads = all->other | all->target;
        found->writes = BIT(FERRULE_FLOAT_FLAGS);
    } else if (what == 1 && which == 3) {
        found->kind = all->twice ? FERRULE_DOUBLE_DIVIDE : FERRULE_FLOAT_ROOT;
    } else if (what < 2) {
        found->kind = FERRULE_FLOAT_MOVE;
    } else {
        found->kind = all->twice ? FERRULE_DOUBLE_ADD : FERRULE_FLOAT_ADD;
    }
}

static void float_data(struct ferrule_operation *found, uint32_t first, uint32_t second,
                       const struct floats *all)
{
    static const uint8_t SINGLE[] = {FERRULE_FLOAT_ACCUMULATE, FERRULE_FLOAT_ACCUMULATE,
                                     FERRULE_FLOAT_MULTIPLY,   FERRULE_FLOAT_ADD,
                                     FERRULE_FLOAT_DIVIDE,     FERRULE_FLOAT_FUSED,
                                     FERRULE_FLOAT_FUSED};
    static const uint8_t DOUBLE[] = {FERRULE_DOUBLE_ACCUMULATE, FERRULE_DOUBLE_ACCUMULATE,
                                     FERRULE_DOUBLE_MULTIPLY,   FERRULE_DOUBLE_ADD,
                                     FERRULE_DOUBLE_DIVIDE,     FERRULE_DOUBLE_ACCUMULATE,
                                     FERRULE_DOUBLE_ACCUMULATE};
    const uint32_t operation = field(first, 4, 2) | (first >> 5 & 4u);
    found->reads = all->one | all->other;
    found->writes = all->target;
    if (first >= 0xFE00u) { /* VSEL, VMAXNM, VRINT */
        found->kind = all->twice ? FERRULE_DOUBLE_ADD : FERRULE_FLOAT_ADD;
    } else if (operation == 7) {
        float_other(found, first, second, all);
    } else {
        found->kind = (all->twice ? DOUBLE : SINGLE)[operation];
        found->accumulated = operation < 2 || operation > 4 ? all->target : 0;
    }
}

static void wide_float(struct ferrule_operation *found, uint32_t first, uint32_t second)
{
    const bool twice = (second & 0x0100u) != 0;
    const struct floats all = {
        .twice = twice,
        .target = float_place(field(second, 12, 4), field(first, 6, 1), twice),
        .one = float_place(field(first, 0, 4), field(second, 7, 1), twice),
        .other = float_place(field(second, 0, 4), field(second, 5, 1), twice),
    };
    const uint64_t core = unless_pc(field(second, 12, 4));
    const bool to_core = (first & 0x0010u) != 0;
    if ((first & 0xFE00u) == 0xEC00u) {
        float_memory(found, first, second, &all);
    } else if ((second & 0x0010u) == 0) {
        float_data(found, first, second, &all);
    } else if ((first & 0xFFE0u) == 0xEEE0u) { /* VMRS, VMSR */
        found->kind = FERRULE_FLOAT_STATUS;
        found->reads = to_core ? BIT(FERRULE_FLOAT_FLAGS) : core;
        found->writes =
            to_core ? (core != 0 ? core : BIT(FERRULE_FLAGS)) : BIT(FERRULE_FLOAT_FLAGS);
    } else {
        found->kind = FERRULE_FLOAT_TRANSFER;
        found->reads = to_core ? all.one : core;
        found->writes = to_core ? core : all.one;
    }
}

static void wide(struct ferrule_operation *found, uint32_t first, uint32_t second)
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
            wide_float(found, first, second);
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

struct ferrule_operation ferrule_operation_of(uint32_t first, uint32_t second)
{
    struct ferrule_operation found = {.kind = FERRULE_ALU, .base = FERRULE_PLACES};
    if (first >= 0xE800u) {
        found.bytes = 4;
        wide(&found, first, second);
    } else {
        found.bytes = 2;
        narrow(&found, first);
    }
    return found;
}
