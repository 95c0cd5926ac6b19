/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine asks of the M profile: registers, the length of instructions, addresses. */
#ifndef FERRULE_EMULATION_ARCHITECTURE_H
#define FERRULE_EMULATION_ARCHITECTURE_H

#include <stdbool.h>
#include <stdint.h>

/* Registers, as indices into `register_ids`, which holds unicorn's numbers for them. */
enum ferrule_register {
    FERRULE_R0,
    FERRULE_R1,
    FERRULE_R2,
    FERRULE_R3,
    FERRULE_R12,
    FERRULE_SP,
    FERRULE_LR,
    FERRULE_PC,
    FERRULE_XPSR,     /* used for reading */
    FERRULE_XPSR_ALL, /* used for writing: all fields */
    FERRULE_IEPSR,    /* used for writing: exception number, Thumb and IT bits */
    FERRULE_CPSR,     /* writing it makes unicorn re-evaluate the mode */
    FERRULE_CONTROL,
    FERRULE_PRIMASK,
    FERRULE_BASEPRI,
    FERRULE_FAULTMASK,
    FERRULE_PSP,
    FERRULE_FPSCR,
    FERRULE_D0, /* D1 to D15 follow */
    FERRULE_REGISTERS,
    FERRULE_ARGUMENT = FERRULE_R0, /* of a function; three more follow */
    FERRULE_LINK = FERRULE_LR,     /* its return address, at its first instruction */
};

/* The private peripheral bus, which has no devices (Armv7-M ARM, B3.1). */
#define FERRULE_PRIVATE_ADDRESS 0xE0000000u

/* A halfword that begins with 0b11101, 0b11110 or 0b11111 is the first of two (Armv7-M ARM, A5.1).
 */
static inline uint32_t ferrule_code_width(const uint8_t *code)
{
    return code[1] >= 0xE8 ? 4u : 2u;
}

/* The numbers of a division's registers, from the word at its address (Armv7-M ARM, A7.7.127). */
struct ferrule_division {
    uint32_t dividend;
    uint32_t divisor;
    bool is_signed;
};

static inline struct ferrule_division ferrule_division_of(uint32_t word)
{
    return (struct ferrule_division){
        .dividend = word & 15u, .divisor = word >> 16 & 15u, .is_signed = (word & 0x0020u) == 0};
}

#endif
