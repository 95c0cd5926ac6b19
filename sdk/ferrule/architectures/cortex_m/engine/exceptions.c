/* SPDX-License-Identifier: Apache-2.0 */
#include "exceptions.h"

#include <stddef.h>

#include "system_control.h"
#include "timing.h"

#define XPSR_EXCEPTION 0x1FFu
#define XPSR_ALIGNED   (1u << 9)
#define XPSR_SFPA      (1u << 20) /* in a stacked xPSR of Armv8-M */
#define XPSR_THUMB     (1u << 24)

#define CONTROL_NPRIV (1u << 0)
#define CONTROL_SPSEL (1u << 1)
#define CONTROL_FPCA  (1u << 2)
#define CONTROL_SFPA  (1u << 3)

/* Bits of EXC_RETURN; with all others set, the same in Armv7-M and in secure Armv8-M. */
#define RETURN_SPSEL    (1u << 2)
#define RETURN_THREAD   (1u << 3)
#define RETURN_NO_FLOAT (1u << 4)
#define RETURN_BASE     0xFFFFFFE1u
#define RETURN_FIXED    0xFFFFFFE3u

#define CCR_NONBASETHRDENA (1u << 0)
#define CCR_STKALIGN       (1u << 9)
#define SCR_SLEEPONEXIT    (1u << 1)
#define FPCCR_ASPEN        (1u << 31)

enum {
    BASIC_WORDS = 8,
    FLOAT_WORDS = 26, /* with s0 to s15, FPSCR and a reserved word */
    FRAME_PC = 6,
    FRAME_XPSR = 7,
    FRAME_FPSCR = 24,
};

static const enum ferrule_register FRAME[] = {
    FERRULE_R0, FERRULE_R1, FERRULE_R2, FERRULE_R3, FERRULE_R12, FERRULE_LR, FERRULE_PC,
};

static uint64_t read_double(struct ferrule_guest *guest, int32_t index)
{
    uint64_t value = 0;
    (void)guest->read_register(guest->engine, guest->register_ids[FERRULE_D0] + index, &value);
    return value;
}

static void write_double(struct ferrule_guest *guest, int32_t index, uint64_t value)
{
    (void)guest->write_register(guest->engine, guest->register_ids[FERRULE_D0] + index, &value);
}

/* Unprivileged thread mode cannot write CONTROL, and handler mode of Armv7-M cannot write its
 * SPSEL. The privilege is therefore changed first, in handler mode, and the rest in thread mode. */
static void leave_thread_control(struct ferrule_core *core, uint32_t control)
{
    struct ferrule_guest *guest = core->guest;
    if ((control & CONTROL_NPRIV) != 0) {
        ferrule_guest_write(guest, FERRULE_IEPSR, XPSR_THUMB | FERRULE_HARD_FAULT);
        ferrule_guest_write(guest, FERRULE_CONTROL, control & ~CONTROL_NPRIV);
        ferrule_guest_write(guest, FERRULE_IEPSR, XPSR_THUMB);
    }
    ferrule_guest_write(guest, FERRULE_CONTROL, 0);
    if ((control & CONTROL_NPRIV) != 0) {
        ferrule_guest_write(guest, FERRULE_CONTROL, CONTROL_NPRIV);
    }
}

enum passage { ENTRY, CHAIN, EXIT };

/* Adds the time of an exception's entry, of a change of handlers, or of a return. */
static void spend(struct ferrule_core *core, enum passage passage)
{
    struct ferrule_timing *timing = core->guest->timing;
    if (timing != NULL) {
        const uint32_t cycles = passage == ENTRY   ? timing->core.exception_entry
                                : passage == CHAIN ? timing->core.exception_chain
                                                   : timing->core.exception_exit;
        ferrule_timing_drain(timing, core->guest, cycles);
    }
}

/* Enters the handler; the registers are saved already, or are those of the previous exception. */
static void take(struct ferrule_core *core, uint32_t exception, uint32_t exc_return)
{
    struct ferrule_guest *guest = core->guest;
    uint32_t vector = 0;
    ferrule_guest_write(guest, FERRULE_IEPSR, XPSR_THUMB | exception);
    const uint32_t control = ferrule_guest_read(guest, FERRULE_CONTROL);
    const uint32_t thread_only = CONTROL_SPSEL | CONTROL_FPCA | CONTROL_SFPA;
    if ((control & thread_only) != 0) {
        ferrule_guest_write(guest, FERRULE_CONTROL, control & ~thread_only);
    }
    ferrule_nvic_activate(&core->nvic, exception);
    core->event = 1;
    ferrule_guest_write(guest, FERRULE_LR, exc_return);
    const uint32_t table = core->words[FERRULE_SCS_VTOR / 4];
    if (!ferrule_guest_load(guest, table + 4 * exception, &vector)) {
        if (exception == FERRULE_HARD_FAULT) {
            ferrule_guest_stop(guest, FERRULE_GUEST_LOCKUP);
        } else {
            ferrule_exception_fault(core, FERRULE_HARD_FAULT, 0, FERRULE_HFSR_VECTTBL);
        }
    }
    ferrule_guest_write(guest, FERRULE_IEPSR, ((vector & 1u) != 0 ? XPSR_THUMB : 0u) | exception);
    ferrule_guest_write(guest, FERRULE_PC, vector);
    ferrule_guest_write(guest, FERRULE_CPSR, ferrule_guest_read(guest, FERRULE_CPSR));
    ferrule_core_look(core);
}

/* Writes the exception frame; returns false, and raises a fault, if the stack is not in memory. */
static bool push(struct ferrule_core *core, uint32_t address, uint32_t status, bool with_float)
{
    struct ferrule_guest *guest = core->guest;
    bool stored = true;
    for (uint32_t i = 0; i < sizeof FRAME / sizeof FRAME[0]; ++i) {
        const uint32_t value = ferrule_guest_read(guest, FRAME[i]);
        stored = ferrule_guest_store(guest, address + 4 * i, value) && stored;
    }
    stored = ferrule_guest_store(guest, address + 4 * FRAME_XPSR, status) && stored;
    if (with_float) {
        for (int32_t i = 0; i < 8; ++i) {
            const uint64_t pair = read_double(guest, i);
            const uint32_t at = address + 4 * BASIC_WORDS + 8 * (uint32_t)i;
            stored = ferrule_guest_store(guest, at, (uint32_t)pair) && stored;
            stored = ferrule_guest_store(guest, at + 4, (uint32_t)(pair >> 32)) && stored;
        }
        const uint32_t float_status = ferrule_guest_read(guest, FERRULE_FPSCR);
        stored = ferrule_guest_store(guest, address + 4 * FRAME_FPSCR, float_status) && stored;
    }
    if (!stored) {
        ferrule_exception_fault(core, FERRULE_BUS_FAULT, FERRULE_CFSR_STKERR, 0);
    }
    return stored;
}

void ferrule_exception_enter(struct ferrule_core *core, uint32_t exception)
{
    struct ferrule_guest *guest = core->guest;
    const uint32_t status = ferrule_guest_read(guest, FERRULE_XPSR);
    const uint32_t control = ferrule_guest_read(guest, FERRULE_CONTROL);
    const uint32_t stack = ferrule_guest_read(guest, FERRULE_SP);
    const bool thread = (status & XPSR_EXCEPTION) == 0;
    const bool process = thread && (control & CONTROL_SPSEL) != 0;
    const bool with_float =
        (control & CONTROL_FPCA) != 0 && (core->words[FERRULE_SCS_FPCCR / 4] & FPCCR_ASPEN) != 0;
    const bool align = with_float || (core->words[FERRULE_SCS_CCR / 4] & CCR_STKALIGN) != 0;
    const uint32_t padded = align ? stack & 4u : 0u;
    const uint32_t frame = stack - padded - 4u * (with_float ? FLOAT_WORDS : BASIC_WORDS);
    uint32_t saved = (status & ~XPSR_ALIGNED) | (padded != 0 ? XPSR_ALIGNED : 0u);
    if (core->architecture >= 8 && (control & CONTROL_SFPA) != 0) {
        saved |= XPSR_SFPA;
    }
    spend(core, ENTRY);
    const bool stored = push(core, frame, saved, with_float);
    ferrule_guest_write(guest, FERRULE_SP, frame);
    if (thread) {
        leave_thread_control(core, control);
    }
    if (guest->stop == FERRULE_GUEST_LOCKUP) {
        return;
    }
    const uint32_t late = stored ? 0 : ferrule_core_takeable(core); /* that fault may go first */
    take(core, late != 0 ? late : exception,
         RETURN_BASE | (thread ? RETURN_THREAD : 0u) | (process ? RETURN_SPSEL : 0u) |
             (with_float ? 0u : RETURN_NO_FLOAT));
}

static bool pop(struct ferrule_core *core, uint32_t address, bool with_float, uint32_t *status)
{
    struct ferrule_guest *guest = core->guest;
    uint32_t words[FLOAT_WORDS] = {0};
    const uint32_t count = with_float ? FLOAT_WORDS - 1u : BASIC_WORDS;
    for (uint32_t i = 0; i < count; ++i) {
        if (!ferrule_guest_load(guest, address + 4 * i, &words[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < FRAME_PC; ++i) {
        ferrule_guest_write(guest, FRAME[i], words[i]);
    }
    ferrule_guest_write(guest, FERRULE_PC, words[FRAME_PC] | 1u);
    *status = words[FRAME_XPSR];
    if (with_float) {
        for (uint32_t i = 0; i < 8; ++i) {
            const uint32_t low = words[BASIC_WORDS + 2 * i];
            const uint32_t high = words[BASIC_WORDS + 2 * i + 1];
            write_double(guest, (int32_t)i, (uint64_t)high << 32 | low);
        }
        ferrule_guest_write(guest, FERRULE_FPSCR, words[FRAME_FPSCR]);
    }
    return true;
}

/* Returns whether EXC_RETURN is valid and the active exceptions allow its target mode. */
static bool is_sound(const struct ferrule_core *core, uint32_t exc_return)
{
    const uint32_t others = ferrule_nvic_active_count(&core->nvic);
    if ((exc_return & RETURN_FIXED) != (RETURN_BASE)) {
        return false;
    }
    if ((exc_return & RETURN_THREAD) == 0) {
        return (exc_return & RETURN_SPSEL) == 0 && others != 0;
    }
    return others == 0 || (core->words[FERRULE_SCS_CCR / 4] & CCR_NONBASETHRDENA) != 0;
}

/* Handles a fault during a return: its handler runs as if the fault had preceded the return. */
static void fail_return(struct ferrule_core *core, uint32_t exc_return, uint32_t fault,
                        uint32_t status)
{
    ferrule_exception_fault(core, fault, status, 0);
    const uint32_t next = ferrule_core_takeable(core);
    if (core->guest->stop == FERRULE_GUEST_RUNS && next != 0) {
        spend(core, CHAIN);
        take(core, next, exc_return);
    }
}

/* Restores the mode; the stack pointers are set already. */
static void resume(struct ferrule_core *core, uint32_t exc_return, uint32_t status)
{
    struct ferrule_guest *guest = core->guest;
    const uint32_t kept = ferrule_guest_read(guest, FERRULE_CONTROL) & CONTROL_NPRIV;
    uint32_t control = kept;
    if ((exc_return & RETURN_SPSEL) != 0) {
        control |= CONTROL_SPSEL;
    }
    if ((exc_return & RETURN_NO_FLOAT) == 0) {
        control |= CONTROL_FPCA;
    }
    if (core->architecture >= 8 && (status & XPSR_SFPA) != 0) {
        control |= CONTROL_SFPA;
    }
    if ((exc_return & RETURN_THREAD) != 0 && kept != 0) {
        ferrule_guest_write(guest, FERRULE_CONTROL, 0); /* privileged until all is written */
    }
    ferrule_guest_write(guest, FERRULE_XPSR_ALL, status);
    ferrule_guest_write(guest, FERRULE_CONTROL, control);
    ferrule_guest_write(guest, FERRULE_CPSR, ferrule_guest_read(guest, FERRULE_CPSR));
}

void ferrule_exception_return(struct ferrule_core *core, uint32_t exc_return)
{
    struct ferrule_guest *guest = core->guest;
    const uint32_t exception = ferrule_guest_read(guest, FERRULE_XPSR) & XPSR_EXCEPTION;
    const bool with_float = (exc_return & RETURN_NO_FLOAT) == 0;
    const enum ferrule_register pointer =
        (exc_return & RETURN_SPSEL) != 0 ? FERRULE_PSP : FERRULE_SP;
    uint32_t status = 0;
    ferrule_nvic_deactivate(&core->nvic, exception);
    core->event = 1;
    if (exception != FERRULE_NMI) {
        ferrule_guest_write(guest, FERRULE_FAULTMASK, 0);
    }
    if (!is_sound(core, exc_return)) {
        fail_return(core, exc_return, FERRULE_USAGE_FAULT, FERRULE_CFSR_INVPC);
        return;
    }
    const uint32_t next = ferrule_core_takeable(core);
    if (next != 0) {
        spend(core, CHAIN);
        take(core, next, exc_return); /* tail-chaining */
        return;
    }
    spend(core, EXIT);
    const uint32_t frame = ferrule_guest_read(guest, pointer);
    if (!pop(core, frame, with_float, &status)) {
        fail_return(core, exc_return, FERRULE_BUS_FAULT, FERRULE_CFSR_UNSTKERR);
        return;
    }
    if (((status & XPSR_EXCEPTION) == 0) != ((exc_return & RETURN_THREAD) != 0)) {
        fail_return(core, exc_return, FERRULE_USAGE_FAULT, FERRULE_CFSR_INVPC);
        return;
    }
    const uint32_t bytes = 4u * (with_float ? FLOAT_WORDS : BASIC_WORDS);
    ferrule_guest_write(guest, pointer, (frame + bytes) | ((status & XPSR_ALIGNED) != 0 ? 4u : 0u));
    resume(core, exc_return, status);
    if ((exc_return & RETURN_THREAD) != 0 &&
        (core->words[FERRULE_SCS_SCR / 4] & SCR_SLEEPONEXIT) != 0) {
        core->asleep = FERRULE_SLEEPS_FOR_INTERRUPT;
    }
    ferrule_core_look(core);
}

void ferrule_exception_raise(struct ferrule_core *core, uint32_t exception)
{
    const int32_t now = ferrule_core_priority(core);
    struct ferrule_nvic *nvic = &core->nvic;
    const int32_t own = ferrule_nvic_group_priority(nvic, nvic->priority[exception]);
    if (exception != FERRULE_HARD_FAULT &&
        (!ferrule_set_has(&nvic->enabled, exception) || own >= now)) {
        exception = FERRULE_HARD_FAULT;
        core->words[FERRULE_SCS_HFSR / 4] |= FERRULE_HFSR_FORCED;
    }
    if (exception == FERRULE_HARD_FAULT && now <= nvic->priority[FERRULE_HARD_FAULT]) {
        ferrule_guest_stop(core->guest, FERRULE_GUEST_LOCKUP);
        return;
    }
    ferrule_set_put(&nvic->pending, exception, true);
    ferrule_core_look(core);
}

static void keep_record(struct ferrule_core *core, uint32_t exception, uint32_t status,
                        uint32_t hard_status)
{
    struct ferrule_guest *guest = core->guest;
    struct ferrule_fault *fault = &core->fault;
    fault->access = guest->fault;
    fault->executed = guest->entered;
    fault->exception = exception;
    fault->status = status;
    fault->hard_status = hard_status;
    for (uint32_t i = 0; i < FERRULE_FAULT_REGISTERS; ++i) {
        (void)guest->read_register(guest->engine, core->register_ids[i], &fault->registers[i]);
    }
}

void ferrule_exception_fault(struct ferrule_core *core, uint32_t exception, uint32_t status,
                             uint32_t hard_status)
{
    keep_record(core, exception, status, hard_status);
    core->words[FERRULE_SCS_CFSR / 4] |= status;
    core->words[FERRULE_SCS_HFSR / 4] |= hard_status;
    ferrule_exception_raise(core, exception);
}
