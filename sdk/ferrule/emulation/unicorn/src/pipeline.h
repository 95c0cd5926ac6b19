/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a core's pipeline makes of a sequence of instructions. The state after each instruction says
 * all that later ones depend on, so that the sum does not depend on how a sequence is divided.
 */
#ifndef FERRULE_EMULATION_PIPELINE_H
#define FERRULE_EMULATION_PIPELINE_H

#include "operation.h"

/* The numbers of a core; ferrule/timing/core_timing.py describes each and has the same order. */
/* clang-format off */
#define FERRULE_CORE_TIMING(each) \
    each(alu) each(nop) each(field) each(multiply) each(load) each(store) each(multiple) \
    each(multiple_words) each(branch) each(refill_direct) each(refill_link) \
    each(refill_indirect) each(refill_load) each(special) each(state) each(barrier) \
    each(exception_entry) each(exception_exit) each(exception_chain) each(shifted) \
    each(accumulate) each(multiply_long) each(accumulate_long) each(divide_least) \
    each(divide_most) each(load_double) each(store_double) each(store_register) \
    each(table_branch) each(it) each(it_folds) each(refill_unaligned) each(load_pipelined) \
    each(load_after_store) each(address_early) each(shifted_early) each(alu_latency) \
    each(shifted_latency) each(field_latency) each(multiply_latency) each(load_latency) \
    each(load_narrow_latency) each(load_multiply) each(accumulate_late) each(store_late) \
    each(multiply_flags) each(unaligned) each(float_add) each(float_multiply) \
    each(float_accumulate) each(float_fused) each(float_divide) each(float_root) \
    each(float_holds) each(float_move) each(float_transfer) each(float_transfer_double) \
    each(float_status) each(float_load) each(float_store) each(float_load_double) \
    each(float_store_double) each(float_multiple) each(float_multiple_words) \
    each(float_add_latency) each(float_multiply_latency) each(float_accumulate_latency) \
    each(float_fused_latency) each(float_move_latency) each(float_transfer_latency) \
    each(float_load_latency) each(float_accumulate_late) each(float_fused_late) \
    each(float_store_late) each(float_unit) each(double_add) each(double_multiply) \
    each(double_accumulate) each(double_divide) each(double_add_latency) \
    each(double_multiply_latency) each(double_accumulate_latency) each(issue) each(pair_loads) \
    each(alu_forward) each(flags_refill) each(predictor_bits) each(mispredict)
/* clang-format on */

#define FERRULE_FIELD_OF(name) uint32_t name;
struct ferrule_core_timing {
    FERRULE_CORE_TIMING(FERRULE_FIELD_OF)
};
#undef FERRULE_FIELD_OF

/* `left` counts the cycles until a result can be used, from two cycles before the next cycle in
 * which an instruction may begin; so a result with 2 can be used then, and one with 1 in the cycle
 * of the instruction before, with which a second one may begin. */
struct ferrule_pipeline {
    uint64_t loaded; /* results of loads that are not older than the last cycle */
    uint8_t left[FERRULE_PLACES];
    uint8_t unit_left; /* the same for the floating-point unit */
    uint8_t kind;      /* of the last instruction; FERRULE_NONE: none */
    uint8_t bytes;
    uint8_t alone; /* nonzero: another instruction may begin in the same cycle */
    uint8_t sets_flags;
    uint8_t it_left; /* instructions left in an IT block */
    uint8_t base;    /* of its address */
    uint8_t shifts;  /* it needed the shifter before the arithmetic */
    int16_t offset;
};

enum { FERRULE_NONE = 255 };

/* Where an instruction leads, and what that takes beyond its own cycles. */
struct ferrule_passage {
    uint32_t cycles;
    uint32_t refill; /* if it jumps */
    bool jumps;
    bool conditional;
};

void ferrule_pipeline_clear(struct ferrule_pipeline *pipeline);

/* Lets cycles pass in which nothing begins. */
void ferrule_pipeline_pass(struct ferrule_pipeline *pipeline, uint32_t cycles);

/* Executes an instruction; a division takes its least time. */
struct ferrule_passage ferrule_pipeline_step(const struct ferrule_core_timing *core,
                                             struct ferrule_pipeline *pipeline,
                                             const struct ferrule_operation *operation);

/* Returns how much longer than the least time a division takes. */
uint32_t ferrule_pipeline_division(const struct ferrule_core_timing *core, uint32_t dividend,
                                   uint32_t divisor, bool is_signed);

#endif
