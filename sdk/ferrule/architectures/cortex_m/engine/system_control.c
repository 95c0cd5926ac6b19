/* SPDX-License-Identifier: Apache-2.0 */
#include "system_control.h"

#include <stddef.h>

#include "ownership.h"
#include "systick.h"

#define AIRCR_KEY           0x05FA0000u
#define AIRCR_KEY_READ      0xFA050000u
#define AIRCR_KEY_MASK      0xFFFF0000u
#define AIRCR_VECTCLRACTIVE (1u << 1)
#define AIRCR_SYSRESETREQ   (1u << 2)
#define AIRCR_KEPT_8        0x6008u /* BFHFNMINS, PRIS, SYSRESETREQS: stored, without effect */
#define ICSR_NMIPENDSET     (1u << 31)
#define ICSR_PENDSVSET      (1u << 28)
#define ICSR_PENDSVCLR      (1u << 27)
#define ICSR_PENDSTSET      (1u << 26)
#define ICSR_PENDSTCLR      (1u << 25)
#define ICSR_ISRPENDING     (1u << 22)
#define ICSR_RETTOBASE      (1u << 11)
#define CCR_USERSETMPEND    (1u << 1)
#define CCR_UNALIGN_TRP     (1u << 3)
#define CCR_STKALIGN        (1u << 9)
#define CCR_NONBASETHRDENA  (1u << 0)
#define DEMCR_TRCENA        (1u << 24)
#define CPUID_PART          0xFFF0u
#define CPUID_PART_M0_PLUS  0xC600u
#define CPUID_PART_M7       0xC270u
/* Of a Cortex-M7 with caches of 16 KiB: 4 ways of 128 lines of 32 bytes (its TRM, 3.3.3 and 3.3.4).
 * The caches hold nothing, so maintaining them has no effect. */
#define CLIDR_M7          0x09000003u
#define CCSIDR_M7_DATA    0xF00FE019u
#define FPCCR_ASPEN_LSPEN 0xC0000000u
#define FPCCR_LSPACT      (1u << 0)
#define XPSR_EXCEPTION    0x1FFu
#define MPU_RBAR_VALID    (1u << 4)
#define MPU_RBAR_REGION   0xFu
#define LINES_PER_WORD    32u

/* Bits of SHCSR and the exceptions whose state they hold (Armv7-M ARM, B3.2.13). */
struct handler_bit {
    uint32_t bit;
    uint32_t exception;
};
static const struct handler_bit ACTIVE_BITS[] = {
    {0, FERRULE_MEM_MANAGE}, {1, FERRULE_BUS_FAULT},     {3, FERRULE_USAGE_FAULT},
    {7, FERRULE_SVCALL},     {8, FERRULE_DEBUG_MONITOR}, {10, FERRULE_PENDSV},
    {11, FERRULE_SYSTICK},
};
static const struct handler_bit MORE_ACTIVE_BITS[] = {
    {2, FERRULE_HARD_FAULT}, /* in Armv8-M only, and read-only here */
    {5, FERRULE_NMI},
};
static const struct handler_bit PENDING_BITS[] = {
    {12, FERRULE_USAGE_FAULT},
    {13, FERRULE_MEM_MANAGE},
    {14, FERRULE_BUS_FAULT},
    {15, FERRULE_SVCALL},
};
static const struct handler_bit ENABLED_BITS[] = {
    {16, FERRULE_MEM_MANAGE},
    {17, FERRULE_BUS_FAULT},
    {18, FERRULE_USAGE_FAULT},
};
#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static uint32_t gather(const struct ferrule_exception_set *set, const struct handler_bit *bits,
                       size_t count)
{
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
        value |= (uint32_t)ferrule_set_has(set, bits[i].exception) << bits[i].bit;
    }
    return value;
}

static void scatter(struct ferrule_exception_set *set, const struct handler_bit *bits, size_t count,
                    uint32_t value)
{
    for (size_t i = 0; i < count; ++i) {
        ferrule_set_put(set, bits[i].exception, (value >> bits[i].bit & 1u) != 0);
    }
}

/* Returns word `index` of a set's interrupt lines. */
static uint32_t lines(const struct ferrule_exception_set *set, uint32_t index)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < LINES_PER_WORD; ++i) {
        const uint32_t exception = FERRULE_FIRST_LINE + LINES_PER_WORD * index + i;
        if (exception < FERRULE_EXCEPTIONS) {
            value |= (uint32_t)ferrule_set_has(set, exception) << i;
        }
    }
    return value;
}

static void write_lines(struct ferrule_core *core, uint32_t bank, uint32_t index, uint32_t value)
{
    struct ferrule_nvic *nvic = &core->nvic;
    for (uint32_t i = 0; i < LINES_PER_WORD; ++i) {
        const uint32_t exception = FERRULE_FIRST_LINE + LINES_PER_WORD * index + i;
        if ((value >> i & 1u) == 0 || exception >= nvic->count) {
            continue;
        }
        switch (bank) {
        case FERRULE_SCS_ISER:
        case FERRULE_SCS_ICER:
            ferrule_set_put(&nvic->enabled, exception, bank == FERRULE_SCS_ISER);
            break;
        case FERRULE_SCS_ISPR:
            ferrule_set_put(&nvic->pending, exception, true);
            break;
        case FERRULE_SCS_ICPR:
            ferrule_nvic_clear_pending(nvic, exception);
            break;
        default:
            break;
        }
    }
}

static uint32_t read_line_bank(const struct ferrule_core *core, uint32_t offset)
{
    const uint32_t index = (offset & 0x7Fu) / 4;
    switch (offset & ~0x7Fu) {
    case FERRULE_SCS_ISER:
    case FERRULE_SCS_ICER:
        return lines(&core->nvic.enabled, index);
    case FERRULE_SCS_ISPR:
    case FERRULE_SCS_ICPR:
        return lines(&core->nvic.pending, index);
    case FERRULE_SCS_IABR:
        return lines(&core->nvic.active, index);
    default:
        return core->words[offset / 4];
    }
}

/* Returns the priorities of four exceptions, starting with `exception`. */
static uint32_t read_priorities(const struct ferrule_nvic *nvic, uint32_t exception)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < 4 && exception + i < nvic->count; ++i) {
        value |= (uint32_t)(uint16_t)nvic->priority[exception + i] << (8 * i);
    }
    return value;
}

static void write_priorities(struct ferrule_nvic *nvic, uint32_t exception, uint32_t value)
{
    for (uint32_t i = 0; i < 4 && exception + i < nvic->count; ++i) {
        nvic->priority[exception + i] = (int16_t)(value >> (8 * i) & nvic->priority_mask);
    }
}

static uint32_t read_icsr(struct ferrule_core *core)
{
    const struct ferrule_nvic *nvic = &core->nvic;
    int32_t priority;
    const uint32_t next = ferrule_nvic_next(nvic, &priority);
    uint32_t value = ferrule_guest_read(core->guest, FERRULE_XPSR) & XPSR_EXCEPTION;
    value |= ferrule_nvic_active_count(nvic) <= 1 ? ICSR_RETTOBASE : 0u;
    value |= next << 12;
    value |= ferrule_set_has(&nvic->pending, FERRULE_SYSTICK) ? ICSR_PENDSTSET : 0u;
    value |= ferrule_set_has(&nvic->pending, FERRULE_PENDSV) ? ICSR_PENDSVSET : 0u;
    value |= ferrule_set_has(&nvic->pending, FERRULE_NMI) ? ICSR_NMIPENDSET : 0u;
    for (uint32_t i = FERRULE_FIRST_LINE; i < nvic->count; ++i) {
        if (ferrule_set_has(&nvic->pending, i)) {
            return value | ICSR_ISRPENDING;
        }
    }
    return value;
}

static void write_icsr(struct ferrule_nvic *nvic, uint32_t value)
{
    if ((value & ICSR_NMIPENDSET) != 0) {
        ferrule_set_put(&nvic->pending, FERRULE_NMI, true);
    }
    if ((value & (ICSR_PENDSVSET | ICSR_PENDSVCLR)) != 0) {
        ferrule_set_put(&nvic->pending, FERRULE_PENDSV, (value & ICSR_PENDSVSET) != 0);
    }
    if ((value & (ICSR_PENDSTSET | ICSR_PENDSTCLR)) != 0) {
        ferrule_set_put(&nvic->pending, FERRULE_SYSTICK, (value & ICSR_PENDSTSET) != 0);
    }
}

static uint32_t read_shcsr(const struct ferrule_core *core)
{
    const size_t more = core->architecture >= 8 ? COUNT_OF(MORE_ACTIVE_BITS) : 0;
    return gather(&core->nvic.active, MORE_ACTIVE_BITS, more) | core->words[FERRULE_SCS_SHCSR / 4] |
           gather(&core->nvic.active, ACTIVE_BITS, COUNT_OF(ACTIVE_BITS)) |
           gather(&core->nvic.pending, PENDING_BITS, COUNT_OF(PENDING_BITS)) |
           gather(&core->nvic.enabled, ENABLED_BITS, COUNT_OF(ENABLED_BITS));
}

static void write_shcsr(struct ferrule_core *core, uint32_t value)
{
    scatter(&core->nvic.active, ACTIVE_BITS, COUNT_OF(ACTIVE_BITS), value);
    scatter(&core->nvic.pending, PENDING_BITS, COUNT_OF(PENDING_BITS), value);
    scatter(&core->nvic.enabled, ENABLED_BITS, COUNT_OF(ENABLED_BITS), value);
    core->words[FERRULE_SCS_SHCSR / 4] = value & (1u << 19); /* SECUREFAULTENA */
}

static void write_aircr(struct ferrule_core *core, uint32_t value)
{
    if ((value & AIRCR_KEY_MASK) != AIRCR_KEY) {
        return;
    }
    core->nvic.group = core->architecture < 7 ? 0u : value >> 8 & 7u;
    if (core->architecture >= 8) {
        core->words[FERRULE_SCS_AIRCR / 4] = value & AIRCR_KEPT_8;
    }
    if ((value & AIRCR_SYSRESETREQ) != 0) {
        ferrule_guest_stop(core->guest, FERRULE_GUEST_RESET);
    }
}

/* Returns the base or attributes of a region; the window has three aliases of both registers, which
 * in Armv8-M refer to the next regions. */
static uint32_t *region_register(struct ferrule_core *core, uint32_t offset)
{
    const uint32_t pair = (offset - FERRULE_SCS_MPU_RBAR) / 8;
    uint32_t region = core->words[FERRULE_SCS_MPU_RNR / 4];
    if (core->architecture >= 8 && pair != 0) {
        region = (region & ~3u) + pair;
    }
    return &core->regions[(offset - FERRULE_SCS_MPU_RBAR) / 4 % 2][region % FERRULE_CORE_REGIONS];
}

static void write_region(struct ferrule_core *core, uint32_t offset, uint32_t value)
{
    const bool base = (offset - FERRULE_SCS_MPU_RBAR) % 8 == 0;
    if (core->architecture < 8 && base) {
        if ((value & MPU_RBAR_VALID) != 0) {
            core->words[FERRULE_SCS_MPU_RNR / 4] = value & MPU_RBAR_REGION;
        }
        value &= ~(MPU_RBAR_VALID | MPU_RBAR_REGION);
        value |= core->words[FERRULE_SCS_MPU_RNR / 4];
    }
    *region_register(core, offset) = value;
}

static bool is_region(uint32_t offset)
{
    return offset >= FERRULE_SCS_MPU_RBAR && offset < FERRULE_SCS_MPU_END;
}

/* Whether a core has a register: Armv6-M has few of them (Armv6-M ARM, B3.2 to B3.5), and a
 * Cortex-M0 has no VTOR and no MPU. */
static bool exists(const struct ferrule_core *core, uint32_t offset)
{
    const bool plus = (core->words[FERRULE_SCS_CPUID / 4] & CPUID_PART) == CPUID_PART_M0_PLUS;
    if (core->architecture >= 7) {
        return true;
    }
    switch (offset) {
    case FERRULE_SCS_ACTLR:
    case FERRULE_SCS_ISER:
    case FERRULE_SCS_ICER:
    case FERRULE_SCS_ISPR:
    case FERRULE_SCS_ICPR:
    case FERRULE_SCS_CPUID:
    case FERRULE_SCS_ICSR:
    case FERRULE_SCS_AIRCR:
    case FERRULE_SCS_SCR:
    case FERRULE_SCS_CCR:
    case FERRULE_SCS_SHPR + 4:
    case FERRULE_SCS_SHPR + 8:
        return true;
    case FERRULE_SCS_VTOR:
    case FERRULE_SCS_MPU_TYPE:
    case FERRULE_SCS_MPU_CTRL:
    case FERRULE_SCS_MPU_RNR:
    case FERRULE_SCS_MPU_RBAR:
    case FERRULE_SCS_MPU_RBAR + 4:
        return plus;
    default:
        return (offset >= FERRULE_SYSTICK_CONTROL && offset <= FERRULE_SYSTICK_CALIBRATION) ||
               (offset >= FERRULE_SCS_IPR && offset < FERRULE_SCS_IPR + core->nvic.count);
    }
}

static uint32_t read_word(struct ferrule_core *core, uint32_t offset)
{
    if (!exists(core, offset)) {
        return 0;
    }
    if (offset >= FERRULE_SYSTICK_CONTROL && offset <= FERRULE_SYSTICK_CALIBRATION) {
        return ferrule_systick_read(core, offset);
    }
    if (offset >= FERRULE_SCS_ISER && offset < FERRULE_SCS_IPR) {
        return read_line_bank(core, offset);
    }
    if (offset >= FERRULE_SCS_IPR && offset < FERRULE_SCS_IPR + FERRULE_EXCEPTIONS) {
        return read_priorities(&core->nvic, offset - FERRULE_SCS_IPR + FERRULE_FIRST_LINE);
    }
    if (offset >= FERRULE_SCS_SHPR && offset < FERRULE_SCS_SHCSR) {
        return read_priorities(&core->nvic, offset - FERRULE_SCS_SHPR + FERRULE_MEM_MANAGE);
    }
    if (is_region(offset)) {
        return *region_register(core, offset);
    }
    switch (offset) {
    case FERRULE_SCS_ICTR:
        return (core->nvic.count - FERRULE_FIRST_LINE - 1) / LINES_PER_WORD;
    case FERRULE_SCS_ICSR:
        return read_icsr(core);
    case FERRULE_SCS_AIRCR:
        return AIRCR_KEY_READ | core->words[offset / 4] | core->nvic.group << 8;
    case FERRULE_SCS_SHCSR:
        return read_shcsr(core);
    default:
        return core->words[offset / 4];
    }
}

/* Returns whether a register merely holds its value; unknown registers read as zero and ignore
 * writes. */
static bool is_plain(uint32_t offset)
{
    switch (offset) {
    case FERRULE_SCS_ACTLR:
    case FERRULE_SCS_SCR:
    case FERRULE_SCS_MMFAR:
    case FERRULE_SCS_BFAR:
    case 0xD3C: /* AFSR */
    case 0xD84: /* CSSELR */
    case FERRULE_SCS_CPACR:
    case FERRULE_SCS_MPU_CTRL:
    case FERRULE_SCS_MPU_RNR:
    case 0xDC0: /* MPU_MAIR0 */
    case 0xDC4: /* MPU_MAIR1 */
    case 0xDD0: /* SAU_CTRL */
    case 0xDD8: /* SAU_RNR, RBAR, RLAR, SFSR, SFAR */
    case 0xDDC:
    case 0xDE0:
    case 0xDE4:
    case 0xDE8:
    case FERRULE_SCS_FPCAR:
    case 0xF3C: /* FPDSCR */
        return true;
    default:
        return offset >= FERRULE_SCS_ITNS && offset < FERRULE_SCS_IPR;
    }
}

static void maintain(struct ferrule_core *core, uint32_t operation, uint32_t address)
{
    if (core->guest->ownership != NULL) {
        ferrule_ownership_maintain(core->guest->ownership, operation, address);
    }
}

static void write_other(struct ferrule_core *core, uint32_t offset, uint32_t value)
{
    switch (offset) {
    case FERRULE_SCS_ICSR:
        write_icsr(&core->nvic, value);
        break;
    case FERRULE_SCS_VTOR:
        core->words[offset / 4] = value & ~0x7Fu;
        break;
    case FERRULE_SCS_AIRCR:
        write_aircr(core, value);
        break;
    case FERRULE_SCS_SHCSR:
        write_shcsr(core, value);
        break;
    case FERRULE_SCS_DEMCR:
        core->words[offset / 4] = value;
        if (core->enable_trace != NULL) {
            core->enable_trace(core->trace_unit, (value & DEMCR_TRCENA) != 0);
        }
        break;
    case FERRULE_SCS_STIR:
        value = FERRULE_FIRST_LINE + (value & XPSR_EXCEPTION);
        if (value < core->nvic.count) {
            ferrule_set_put(&core->nvic.pending, value, true);
        }
        break;
    case FERRULE_SCS_CCR:
        core->words[offset / 4] = value;
        core->guest->wants_traps = (value & CCR_UNALIGN_TRP) != 0;
        break;
    case FERRULE_SCS_FPCCR:
        core->words[offset / 4] = value & ~FPCCR_LSPACT; /* the FPU's state is never saved lazily */
        break;
    case FERRULE_SCS_DCIMVAC:
        maintain(core, FERRULE_CACHE_INVALIDATES, value);
        break;
    case FERRULE_SCS_DCISW:
        maintain(core, FERRULE_CACHE_INVALIDATES | FERRULE_CACHE_ALL, value);
        break;
    case FERRULE_SCS_DCCMVAU:
    case FERRULE_SCS_DCCMVAC:
        maintain(core, FERRULE_CACHE_CLEANS, value);
        break;
    case FERRULE_SCS_DCCSW:
        maintain(core, FERRULE_CACHE_CLEANS | FERRULE_CACHE_ALL, value);
        break;
    case FERRULE_SCS_DCCIMVAC:
        maintain(core, FERRULE_CACHE_CLEANS | FERRULE_CACHE_INVALIDATES, value);
        break;
    case FERRULE_SCS_DCCISW:
        maintain(core, FERRULE_CACHE_CLEANS | FERRULE_CACHE_INVALIDATES | FERRULE_CACHE_ALL, value);
        break;
    default:
        if (is_plain(offset)) {
            core->words[offset / 4] = value;
        }
        break;
    }
}

/* Writes a register; `merged` is its whole new value, `written` only the written part. */
static void write_word(struct ferrule_core *core, uint32_t offset, uint32_t merged,
                       uint32_t written)
{
    if (!exists(core, offset) || (core->architecture < 7 && offset == FERRULE_SCS_CCR)) {
        return; /* the CCR of Armv6-M is read-only */
    }
    if (offset >= FERRULE_SYSTICK_CONTROL && offset <= FERRULE_SYSTICK_CALIBRATION) {
        ferrule_systick_write(core, offset, merged);
    } else if (offset >= FERRULE_SCS_ISER && offset < FERRULE_SCS_ITNS) {
        write_lines(core, offset & ~0x7Fu, (offset & 0x7Fu) / 4, written);
    } else if (offset >= FERRULE_SCS_IPR && offset < FERRULE_SCS_IPR + FERRULE_EXCEPTIONS) {
        write_priorities(&core->nvic, offset - FERRULE_SCS_IPR + FERRULE_FIRST_LINE, merged);
    } else if (offset >= FERRULE_SCS_SHPR && offset < FERRULE_SCS_SHCSR) {
        if (core->architecture < 7) { /* only SVCall; PendSV and SysTick */
            merged &= offset == FERRULE_SCS_SHPR + 4 ? 0xFF000000u : 0xFFFF0000u;
        }
        write_priorities(&core->nvic, offset - FERRULE_SCS_SHPR + FERRULE_MEM_MANAGE, merged);
    } else if (is_region(offset)) {
        write_region(core, offset, merged);
    } else if (offset == FERRULE_SCS_CFSR || offset == FERRULE_SCS_HFSR ||
               offset == FERRULE_SCS_DFSR) {
        core->words[offset / 4] &= ~written;
    } else if (offset == FERRULE_SCS_ICSR || offset == FERRULE_SCS_STIR) {
        write_other(core, offset, written);
    } else {
        write_other(core, offset, merged);
    }
    ferrule_core_look(core);
}

uint64_t ferrule_system_control_read(void *engine, uint64_t offset, unsigned bytes, void *core)
{
    (void)engine;
    const uint32_t shift = 8u * ((uint32_t)offset & 3u);
    const uint64_t word = read_word(core, (uint32_t)offset & 0xFFCu);
    return word >> shift & ((1ull << (8 * bytes)) - 1);
}

void ferrule_system_control_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                                  void *core)
{
    (void)engine;
    const uint32_t word = (uint32_t)offset & 0xFFCu;
    const uint32_t shift = 8u * ((uint32_t)offset & 3u);
    const uint32_t mask = (uint32_t)((1ull << (8 * bytes)) - 1) << shift;
    const uint32_t written = (uint32_t)(value << shift) & mask;
    const uint32_t before = mask == UINT32_MAX ? 0 : read_word(core, word);
    write_word(core, word, (before & ~mask) | written, written);
}

void ferrule_system_control_reset(struct ferrule_core *core, uint32_t cpu_id, uint32_t vector_table)
{
    core->words[FERRULE_SCS_CPUID / 4] = cpu_id;
    core->words[FERRULE_SCS_VTOR / 4] = vector_table;
    core->words[FERRULE_SCS_CCR / 4] = CCR_STKALIGN |
                                       (core->architecture >= 8 ? CCR_NONBASETHRDENA : 0u) |
                                       (core->architecture < 7 ? CCR_UNALIGN_TRP : 0u);
    if ((cpu_id & CPUID_PART) == CPUID_PART_M7) {
        core->words[FERRULE_SCS_CLIDR / 4] = CLIDR_M7;
        core->words[FERRULE_SCS_CCSIDR / 4] = CCSIDR_M7_DATA;
    }
    core->words[FERRULE_SCS_MPU_TYPE / 4] = FERRULE_CORE_REGIONS << 8;
    core->words[FERRULE_SCS_FPCCR / 4] = core->architecture < 7 ? 0u : FPCCR_ASPEN_LSPEN;
}
