/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the core: unicorn executes instructions, and this file does everything in between. */
#include <stddef.h>

#include "checks.h"
#include "cortex_m.h"
#include "exceptions.h"
#include "system_control.h"
#include "systick.h"
#include "timing.h"

/* Values of unicorn's enums uc_err and uc_mem_type, and its exception numbers. */
enum { UC_ERR_OK = 0, UC_ERR_INSN_INVALID = 10, UC_ERR_RESOURCE = 20 };
enum { UC_MEM_FETCH_UNMAPPED = 21, UC_MEM_FETCH_PROT = 24 };
enum {
    TRAP_SWI = 2,
    TRAP_PREFETCH_ABORT = 3,
    TRAP_DATA_ABORT = 4,
    TRAP_BKPT = 7,
    TRAP_EXCEPTION_EXIT = 8,
    TRAP_SEMIHOST = 16,
    TRAP_NOCP = 17,
    TRAP_INVSTATE = 18,
    TRAP_STKOF = 19,
    TRAP_UNALIGNED = 22,
};

#define XPSR_EXCEPTION   0x1FFu
#define XPSR_THUMB       (1u << 24)
#define EXC_RETURN_LEAST 0xFF000000u
#define SCR_SEVONPEND    (1u << 4)
#define DEMCR_MON_EN     (1u << 16)
#define DFSR_BKPT        (1u << 1)

/* Encodings of hints (Armv7-M ARM, A7.7.261 to A7.7.263), without the condition of an IT block. */
#define WFE_NARROW   0xBF20u
#define YIELD_NARROW 0xBF10u
#define WFI_NARROW   0xBF30u
#define SEV_NARROW   0xBF40u
#define HINT_WIDE    0xF3AFu
#define WFE_WIDE     0x8002u
#define YIELD_WIDE   0x8001u
#define WFI_WIDE     0x8003u
#define SEV_WIDE     0x8004u

/* Limit of naps in one run, so that devices that never wake the core cannot block the host. */
enum { NAPS = 1 << 16 };

static void call_due(struct ferrule_core *core)
{
    const uint64_t time = ferrule_core_time(core);
    ferrule_systick_advance(core, time);
    for (uint32_t i = 0; i < FERRULE_CORE_TIMERS; ++i) {
        struct ferrule_timer *timer = &core->timers[i];
        if (timer->due <= time) {
            timer->due = FERRULE_NEVER;
            timer->expire(timer->context);
        }
    }
}

static bool wakes(struct ferrule_core *core)
{
    int32_t priority;
    const struct ferrule_nvic *nvic = &core->nvic;
    const uint32_t next = ferrule_nvic_next(nvic, &priority);
    if (next != 0 && priority < ferrule_core_waking_priority(core)) {
        return true;
    }
    if (core->asleep != FERRULE_SLEEPS_FOR_EVENT) {
        return false;
    }
    if ((core->words[FERRULE_SCS_SCR / 4] & SCR_SEVONPEND) != 0) {
        for (uint32_t i = 0; i < FERRULE_EXCEPTIONS / 32; ++i) {
            core->event |= nvic->pending.words[i];
        }
    }
    const bool event = core->event != 0;
    core->event = 0;
    return event;
}

/* Lets time pass until the next event. WFE may end without an event, but WFI may not end without an
 * interrupt. */
static void nap(struct ferrule_core *core)
{
    const uint64_t next = ferrule_core_next_event(core);
    if (wakes(core)) {
        core->asleep = FERRULE_AWAKE;
    } else if (next != FERRULE_NEVER) {
        core->slept += next - ferrule_core_time(core);
        if (core->guest->timing != NULL) {
            ferrule_waits_interrupt(&core->guest->timing->waits, core->guest);
        }
    } else if (core->asleep == FERRULE_SLEEPS_FOR_EVENT) {
        core->asleep = FERRULE_AWAKE;
    } else {
        ferrule_guest_stop(core->guest, FERRULE_GUEST_ASLEEP);
    }
}

static uint32_t halfword(struct ferrule_guest *guest, uint32_t address)
{
    uint32_t word = 0;
    (void)ferrule_guest_load(guest, address & ~3u, &word); /* 0 is not a hint */
    return (address & 2u) != 0 ? word >> 16 : word & 0xFFFFu;
}

/* unicorn ends a block after WFE and YIELD, and reports both as invalid instructions. */
static bool ends_with(struct ferrule_guest *guest, uint32_t end, uint32_t narrow, uint32_t wide)
{
    const uint32_t last = halfword(guest, end - 2);
    return end == guest->block_address + guest->block_bytes &&
           (last == narrow || (last == wide && halfword(guest, end - 4) == HINT_WIDE));
}

/* unicorn executes SEV as a no-operation, so it is searched for where it matters: before WFE. */
static bool has_sent_event(struct ferrule_guest *guest)
{
    const uint32_t end = guest->block_address + guest->block_bytes;
    for (uint32_t at = guest->block_address; at < end; at += 2) {
        const uint32_t code = halfword(guest, at);
        if (code == SEV_NARROW || (code == HINT_WIDE && halfword(guest, at + 2) == SEV_WIDE)) {
            return true;
        }
    }
    return false;
}

static void handle_invalid(struct ferrule_core *core, uint32_t address)
{
    struct ferrule_guest *guest = core->guest;
    if ((ferrule_guest_read(guest, FERRULE_XPSR) & XPSR_THUMB) == 0) {
        ferrule_exception_fault(core, FERRULE_USAGE_FAULT, FERRULE_CFSR_INVSTATE, 0);
    } else if (ends_with(guest, address, WFE_NARROW, WFE_WIDE)) {
        core->event |= has_sent_event(guest);
        core->asleep = FERRULE_SLEEPS_FOR_EVENT;
        if (guest->timing != NULL) {
            ferrule_timing_arrive(guest->timing, guest, address);
        }
    } else if (!ends_with(guest, address, YIELD_NARROW, YIELD_WIDE)) {
        ferrule_guest_rewind(guest, address);
        ferrule_exception_fault(core, FERRULE_USAGE_FAULT, FERRULE_CFSR_UNDEFINSTR, 0);
    }
}

static void handle_refusal(struct ferrule_core *core)
{
    struct ferrule_guest *guest = core->guest;
    const struct ferrule_guest_fault *access = &guest->fault;
    const bool fetch = access->type == UC_MEM_FETCH_UNMAPPED || access->type == UC_MEM_FETCH_PROT;
    ferrule_guest_rewind(guest, access->program_counter);
    ferrule_guest_write(guest, FERRULE_PC, access->program_counter | 1u);
    if (access->type == FERRULE_GUEST_UNALIGNED) {
        ferrule_exception_fault(core, FERRULE_USAGE_FAULT, FERRULE_CFSR_UNALIGNED, 0);
        return;
    }
    if (access->type == UC_MEM_FETCH_PROT &&
        ferrule_guest_allow_code(guest, (uint32_t)access->address)) {
        return;
    }
    if (fetch) {
        ferrule_exception_fault(core, FERRULE_BUS_FAULT, FERRULE_CFSR_IBUSERR, 0);
        return;
    }
    core->words[FERRULE_SCS_BFAR / 4] = (uint32_t)access->address;
    ferrule_exception_fault(core, FERRULE_BUS_FAULT,
                            FERRULE_CFSR_PRECISERR | FERRULE_CFSR_BFARVALID, 0);
}

static void handle_breakpoint(struct ferrule_core *core)
{
    if (core->guest->breakpoints != 0) {
        ferrule_guest_stop(core->guest, FERRULE_GUEST_BREAKPOINT);
        return;
    }
    if ((core->words[FERRULE_SCS_DEMCR / 4] & DEMCR_MON_EN) != 0) {
        core->words[FERRULE_SCS_DFSR / 4] |= DFSR_BKPT;
        ferrule_exception_raise(core, FERRULE_DEBUG_MONITOR);
        return;
    }
    ferrule_exception_fault(core, FERRULE_HARD_FAULT, 0, FERRULE_HFSR_DEBUGEVT);
}

static void handle_exit(struct ferrule_core *core, uint32_t address)
{
    const uint32_t status = ferrule_guest_read(core->guest, FERRULE_XPSR);
    const uint32_t exc_return = address | ((status & XPSR_THUMB) != 0 ? 1u : 0u);
    if ((status & XPSR_EXCEPTION) == 0 || exc_return < EXC_RETURN_LEAST) {
        ferrule_exception_fault(core, FERRULE_MEM_MANAGE, FERRULE_CFSR_IACCVIOL, 0);
        return;
    }
    ferrule_exception_return(core, exc_return);
}

static void handle_trap(struct ferrule_core *core, uint32_t trap, uint32_t address)
{
    ferrule_guest_rewind(core->guest, address);
    switch (trap) {
    case TRAP_SWI:
        ferrule_exception_raise(core, FERRULE_SVCALL);
        break;
    case TRAP_PREFETCH_ABORT:
        ferrule_exception_fault(core, FERRULE_MEM_MANAGE, FERRULE_CFSR_IACCVIOL, 0);
        break;
    case TRAP_DATA_ABORT:
    case TRAP_UNALIGNED:
        ferrule_exception_fault(core, FERRULE_USAGE_FAULT, FERRULE_CFSR_UNALIGNED, 0);
        break;
    case TRAP_BKPT:
    case TRAP_SEMIHOST:
        handle_breakpoint(core);
        break;
    case TRAP_EXCEPTION_EXIT:
        handle_exit(core, address);
        break;
    case TRAP_NOCP:
        ferrule_exception_fault(core, FERRULE_USAGE_FAULT, FERRULE_CFSR_NOCP, 0);
        break;
    case TRAP_INVSTATE:
        ferrule_exception_fault(core, FERRULE_USAGE_FAULT, FERRULE_CFSR_INVSTATE, 0);
        break;
    case TRAP_STKOF:
        ferrule_exception_fault(core, FERRULE_USAGE_FAULT, FERRULE_CFSR_STKOF, 0);
        break;
    default:
        ferrule_guest_stop(core->guest, FERRULE_GUEST_EXCEPTION);
        break;
    }
}

/* Handles an end of the emulation without an error: sleep, a breakpoint or a single step. */
static void handle_end(struct ferrule_core *core, uint32_t address, uint64_t count)
{
    struct ferrule_guest *guest = core->guest;
    if (ends_with(guest, address, WFI_NARROW, WFI_WIDE)) {
        core->asleep = FERRULE_SLEEPS_FOR_INTERRUPT;
    } else if (count != 0) {
        ferrule_guest_rewind(guest, address);
    } else {
        ferrule_guest_stop(guest, FERRULE_GUEST_BREAKPOINT);
    }
    if (guest->timing != NULL) {
        ferrule_timing_arrive(guest->timing, guest, address);
    }
}

/* Starts the emulation, and again after each pause in which checks of addresses are added; returns
 * unicorn's error. */
static int emulate(struct ferrule_core *core, uint64_t count)
{
    struct ferrule_guest *guest = core->guest;
    const uint32_t thumb = (ferrule_guest_read(guest, FERRULE_XPSR) & XPSR_THUMB) != 0 ? 1u : 0u;
    int error;
    for (;;) {
        guest->paused = FERRULE_GUEST_GOES_ON;
        guest->block_bytes = 0;
        guest->aligned = 0;
        ferrule_checks_set_traps(guest);
        if (ferrule_timing_wants_switch(guest->timing) &&
            !ferrule_waits_switch(&guest->timing->waits, guest)) {
            guest->error = UC_ERR_RESOURCE;
            guest->paused = FERRULE_GUEST_PAUSES;
            ferrule_guest_stop(guest, FERRULE_GUEST_ERROR);
            return UC_ERR_OK;
        }
        ferrule_core_set_limit(core);
        error = guest->start_emulation(guest->engine, ferrule_guest_read(guest, FERRULE_PC) | thumb,
                                       0, 0, count);
        if (guest->paused < FERRULE_GUEST_LACKS_CHECKS) {
            return error;
        }
        ferrule_checks_add(guest);
        if (guest->stop != FERRULE_GUEST_RUNS) {
            return error;
        }
    }
}

/* Executes until a check is needed, or `count` instructions if that is not 0. */
static void execute(struct ferrule_core *core, uint64_t count)
{
    struct ferrule_guest *guest = core->guest;
    guest->exception = 0;
    guest->fault.type = 0;
    const int error = emulate(core, count);
    ferrule_checks_restore_base(guest);
    const uint32_t address = ferrule_guest_read(guest, FERRULE_PC);
    if (guest->fault.type != 0) {
        handle_refusal(core);
    } else if (guest->exception != 0) {
        handle_trap(core, guest->exception, address);
    } else if (error == UC_ERR_INSN_INVALID) {
        handle_invalid(core, address);
    } else if (error != UC_ERR_OK) {
        guest->error = (uint32_t)error;
        ferrule_guest_stop(guest, FERRULE_GUEST_ERROR);
    } else if (guest->paused == 0) {
        handle_end(core, address, count);
    }
    guest->block_bytes = 0;
}

enum ferrule_guest_stop ferrule_core_run(struct ferrule_core *core, uint64_t instructions)
{
    struct ferrule_guest *guest = core->guest;
    guest->stop = FERRULE_GUEST_RUNS;
    guest->budget = guest->entered + instructions;
    for (uint32_t naps = 0; guest->stop == FERRULE_GUEST_RUNS;) {
        call_due(core);
        if (guest->stop != FERRULE_GUEST_RUNS) {
            break;
        }
        if (guest->entered >= guest->budget || naps >= NAPS) {
            guest->stop = FERRULE_GUEST_BUDGET;
        } else if (core->asleep != FERRULE_AWAKE) {
            ++naps;
            nap(core);
        } else {
            const uint32_t exception = ferrule_core_takeable(core);
            if (exception != 0) {
                ferrule_exception_enter(core, exception);
            } else {
                execute(core, 0);
            }
        }
    }
    return (enum ferrule_guest_stop)guest->stop;
}

enum ferrule_guest_stop ferrule_core_step(struct ferrule_core *core)
{
    struct ferrule_guest *guest = core->guest;
    guest->stop = FERRULE_GUEST_RUNS;
    guest->budget = UINT64_MAX;
    call_due(core);
    for (uint32_t naps = 0; core->asleep != FERRULE_AWAKE && guest->stop == FERRULE_GUEST_RUNS;) {
        if (++naps > NAPS) {
            guest->stop = FERRULE_GUEST_BUDGET;
            break;
        }
        nap(core);
        call_due(core);
    }
    if (guest->stop != FERRULE_GUEST_RUNS) {
        return (enum ferrule_guest_stop)guest->stop;
    }
    const uint32_t exception = ferrule_core_takeable(core);
    if (exception != 0) {
        ferrule_exception_enter(core, exception);
    } else {
        if (guest->timing != NULL) {
            ferrule_waits_stop(&guest->timing->waits, guest);
            guest->timing->steps = 1;
        }
        execute(core, 1);
        if (guest->timing != NULL) {
            guest->timing->steps = 0;
        }
    }
    return (enum ferrule_guest_stop)guest->stop;
}
