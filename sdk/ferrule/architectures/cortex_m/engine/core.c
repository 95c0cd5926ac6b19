/* SPDX-License-Identifier: Apache-2.0 */
#include "cortex_m.h"

#include <stddef.h>
#include <string.h>

#include "system_control.h"
#include "systick.h"
#include "timing.h"

#define XPSR_EXCEPTION   0x1FFu
#define CONTROL_NPRIV    1u
#define CCR_USERSETMPEND (1u << 1)
#define CCR_DC           (1u << 16)

/* The private peripheral bus and the system control space in it (Armv7-M ARM, B3.1). */
#define PRIVATE_ADDRESS 0xE0000000u
#define PRIVATE_BYTES   0x00100000u
#define SYSTEM_CONTROL  0xE000E000u

uint64_t ferrule_core_bytes(void)
{
    return sizeof(struct ferrule_core);
}

uint64_t ferrule_fault_bytes(void)
{
    return sizeof(struct ferrule_fault);
}

uint64_t ferrule_core_config_bytes(void)
{
    return sizeof(struct ferrule_core_config);
}

void ferrule_core_reset(struct ferrule_core *core, struct ferrule_guest *guest,
                        const struct ferrule_core_config *config)
{
    *core = (struct ferrule_core){.guest = guest, .architecture = config->architecture};
    memcpy(core->register_ids, config->register_ids, sizeof core->register_ids);
    ferrule_nvic_reset(&core->nvic, config->lines, config->priority_mask);
    ferrule_systick_reset(&core->systick);
    ferrule_system_control_reset(core, config->cpu_id, config->vector_table);
    for (uint32_t i = 0; i < FERRULE_CORE_TIMERS; ++i) {
        core->timers[i].due = FERRULE_NEVER;
    }
    guest->core = core;
}

int32_t ferrule_core_register(const struct ferrule_core *core, uint32_t number)
{
    return core->register_ids[number];
}

bool ferrule_core_caches(const struct ferrule_core *core)
{
    return (core->words[FERRULE_SCS_CCR / 4] & CCR_DC) != 0;
}

void ferrule_core_attach_trace(struct ferrule_core *core,
                               void (*enable)(void *unit, uint32_t enabled), void *unit)
{
    core->enable_trace = enable;
    core->trace_unit = unit;
}

const struct ferrule_fault *ferrule_core_fault(const struct ferrule_core *core)
{
    return &core->fault;
}

uint64_t ferrule_core_time(const struct ferrule_core *core)
{
    return core->guest->elapsed + core->slept;
}

uint64_t ferrule_core_exact_time(const struct ferrule_core *core)
{
    return core->guest->now + core->slept;
}

void ferrule_core_contend(struct ferrule_core *core, uint64_t units)
{
    if (core->asleep == FERRULE_AWAKE) {
        core->guest->elapsed += units;
    }
}

void ferrule_core_look(struct ferrule_core *core)
{
    core->masked = 0;
    core->guest->limit = 0;
}

void ferrule_core_set_line(struct ferrule_core *core, uint32_t line, uint32_t level)
{
    const uint32_t exception = FERRULE_FIRST_LINE + line;
    if (exception < core->nvic.count) {
        ferrule_nvic_set_level(&core->nvic, exception, level != 0);
        ferrule_core_look(core);
    }
}

uint32_t ferrule_core_is_line_enabled(const struct ferrule_core *core, uint32_t line)
{
    const uint32_t exception = FERRULE_FIRST_LINE + line;
    return exception < core->nvic.count && ferrule_set_has(&core->nvic.enabled, exception);
}

void ferrule_core_set_timer(struct ferrule_core *core, uint32_t timer, uint64_t due,
                            void (*expire)(void *context), void *context)
{
    const uint64_t now = ferrule_core_time(core); /* a time in the past means now */
    core->timers[timer] =
        (struct ferrule_timer){.due = due < now ? now : due, .expire = expire, .context = context};
    ferrule_core_look(core);
}

uint64_t ferrule_core_next_event(const struct ferrule_core *core)
{
    uint64_t next = ferrule_systick_next(&core->systick);
    for (uint32_t i = 0; i < FERRULE_CORE_TIMERS; ++i) {
        if (core->timers[i].due < next) {
            next = core->timers[i].due;
        }
    }
    return next;
}

bool ferrule_core_is_privileged(struct ferrule_core *core)
{
    struct ferrule_guest *guest = core->guest;
    return (ferrule_guest_read(guest, FERRULE_XPSR) & XPSR_EXCEPTION) != 0 ||
           (ferrule_guest_read(guest, FERRULE_CONTROL) & CONTROL_NPRIV) == 0;
}

/* The priority to which PRIMASK (ignored if `asleep`), BASEPRI and FAULTMASK raise the core. */
static int32_t masks(struct ferrule_core *core, bool asleep)
{
    struct ferrule_guest *guest = core->guest;
    const uint32_t status = ferrule_guest_read(guest, FERRULE_XPSR);
    const bool privileged = (status & XPSR_EXCEPTION) != 0 ||
                            (ferrule_guest_read(guest, FERRULE_CONTROL) & CONTROL_NPRIV) == 0;
    int32_t priority = FERRULE_PRIORITY_NONE;
    if (!privileged) { /* the masks read as 0 to unprivileged code */
        ferrule_guest_write(guest, FERRULE_XPSR_ALL, status | FERRULE_HARD_FAULT);
    }
    const int32_t base =
        (int32_t)(ferrule_guest_read(guest, FERRULE_BASEPRI) & core->nvic.priority_mask);
    if (base != 0) {
        priority = ferrule_nvic_group_priority(&core->nvic, base);
    }
    if (!asleep && (ferrule_guest_read(guest, FERRULE_PRIMASK) & 1u) != 0) {
        priority = 0;
    }
    if ((ferrule_guest_read(guest, FERRULE_FAULTMASK) & 1u) != 0) {
        priority = -1;
    }
    if (!privileged) {
        ferrule_guest_write(guest, FERRULE_XPSR_ALL, status);
    }
    return priority;
}

static int32_t least(int32_t one, int32_t other)
{
    return one < other ? one : other;
}

int32_t ferrule_core_priority(struct ferrule_core *core)
{
    return least(ferrule_nvic_active_priority(&core->nvic), masks(core, false));
}

int32_t ferrule_core_waking_priority(struct ferrule_core *core)
{
    return least(ferrule_nvic_active_priority(&core->nvic), masks(core, true));
}

uint32_t ferrule_core_takeable(struct ferrule_core *core)
{
    int32_t priority;
    const uint32_t next = ferrule_nvic_next(&core->nvic, &priority);
    core->masked = 0;
    if (next == 0 || priority >= ferrule_nvic_active_priority(&core->nvic)) {
        return 0;
    }
    if (priority >= masks(core, false)) {
        core->masked = 1;
        return 0;
    }
    return next;
}

bool ferrule_core_permits(struct ferrule_guest *guest, uint32_t address)
{
    struct ferrule_core *core = guest->core;
    const bool private = address - PRIVATE_ADDRESS < PRIVATE_BYTES;
    if (core == NULL || !private || ferrule_core_is_privileged(core)) {
        return true;
    }
    return address - SYSTEM_CONTROL == FERRULE_SCS_STIR &&
           (core->words[FERRULE_SCS_CCR / 4] & CCR_USERSETMPEND) != 0;
}

void ferrule_core_set_limit(struct ferrule_core *core)
{
    struct ferrule_guest *guest = core->guest;
    const uint64_t event = ferrule_core_next_event(core);
    guest->limit = guest->budget;
    guest->due = event == FERRULE_NEVER ? FERRULE_NEVER : event - core->slept;
    if (core->masked != 0) {
        guest->limit = 0; /* changes of the masks are not reported */
    }
}

bool ferrule_core_wants_pause(struct ferrule_guest *guest)
{
    struct ferrule_core *core = guest->core;
    if (guest->stop != FERRULE_GUEST_RUNS || guest->entered >= guest->budget ||
        guest->traps != guest->wants_traps || ferrule_timing_wants_switch(guest->timing) ||
        ferrule_core_time(core) >= ferrule_core_next_event(core)) {
        return true;
    }
    if (!ferrule_core_is_privileged(core)) {
        if (core->masked == 0) {
            return true; /* the mode cannot be changed here to check the masks */
        }
        return false; /* unprivileged code cannot change the masks */
    }
    const bool possible = ferrule_core_takeable(core) != 0;
    ferrule_core_set_limit(core);
    return possible;
}
