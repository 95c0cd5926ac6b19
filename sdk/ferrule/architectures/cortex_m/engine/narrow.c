/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings are those of Armv7-M ARM, A5 and A6, with the additions of Armv8-M ARM, C2. */
#include "decoding.h"

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

void ferrule_decode_narrow(struct ferrule_operation *found, uint32_t code)
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
