/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of ferrule/port.h on SysTick (Armv7-M ARM, B3.3; Armv8-M ARM, D1.2). It counts periods
 * of 2^24 cycles; an alarm shortens one. Only for ports that define FERRULE_PORT_USES_SYSTICK. */
#include <stdbool.h>
#include <stdint.h>

#include "ferrule/port.h"

#ifdef FERRULE_PORT_USES_SYSTICK

#define SYST_CSR  0xE000E010u
#define SYST_RVR  0xE000E014u
#define SYST_CVR  0xE000E018u
#define SCB_ICSR  0xE000ED04u
#define PERIOD    (1u << 24)
#define LEAST     1024u /* cycles, enough to set the reload value of the next period */
#define START     0x7u  /* ENABLE, TICKINT, and CLKSOURCE: the core's clock */
#define PENDSTSET (1u << 26)
#define TRIES     4096u
#define SECOND_US 1000000u
#define PER_MS    (FERRULE_CLOCK_HZ / 1000u) /* cycles, rounded down */

_Static_assert(FERRULE_CLOCK_HZ >= 1000u, "FERRULE_CLOCK_HZ is the frequency of the core's clock");

static struct {
    bool started;
    uint32_t ends;    /* cycles at the end of the current period */
    uint32_t counted; /* cycles at the last reading in microseconds */
    uint32_t phase;   /* cycles since the last whole second, at that reading */
    uint32_t whole;   /* microseconds up to that second */
} systick;

void ferrule_systick_handler(void);

static bool is_pending(void)
{
    return (ferrule_mmio_read32(SCB_ICSR) & PENDSTSET) != 0u;
}

/* Begins a period; all later ones have the full length. SysTick loads the length a cycle after the
 * value was written, and emulators may need some instructions. */
static void begin_period(uint32_t cycles)
{
    uint32_t tries = 0;

    ferrule_mmio_write32(SYST_RVR, cycles - 1u);
    ferrule_mmio_write32(SYST_CVR, 0u);
    ferrule_mmio_write32(SYST_CSR, START); /* a length of 0 would stop it */
    while (ferrule_mmio_read32(SYST_CVR) == 0u && tries < TRIES) {
        tries++;
    }
    ferrule_mmio_write32(SYST_RVR, PERIOD - 1u);
}

/* The cycles since the start; interrupts are masked. If the period has ended, the handler still has
 * to count it. */
static uint32_t cycles_now(void)
{
    uint32_t left;
    uint32_t ends;

    if (!systick.started) {
        systick.started = true;
        systick.ends = PERIOD;
        begin_period(PERIOD);
    }
    left = ferrule_mmio_read32(SYST_CVR);
    ends = systick.ends;
    if (is_pending()) {
        left = ferrule_mmio_read32(SYST_CVR);
        ends += PERIOD;
    }
    return ends - (left == 0u ? PERIOD : left); /* at 0, the next period has begun */
}

/* Likewise, in microseconds. */
static uint32_t us_now(void)
{
    const uint32_t now = cycles_now();

    systick.phase += now - systick.counted;
    systick.counted = now;
    while (systick.phase >= FERRULE_CLOCK_HZ) {
        systick.phase -= FERRULE_CLOCK_HZ;
        systick.whole += SECOND_US;
    }
#if FERRULE_CLOCK_HZ % 1000u == 0u
    return systick.whole + systick.phase / PER_MS * 1000u + systick.phase % PER_MS * 1000u / PER_MS;
#else
    return systick.whole + (uint32_t)((uint64_t)systick.phase * SECOND_US / FERRULE_CLOCK_HZ);
#endif
}

/* Rounded up; at most a period, after which the caller sets the alarm again. */
static uint32_t cycles_of(uint32_t us)
{
    const uint32_t per_ms = PER_MS + 1u;

    if (us / 1000u >= PERIOD / per_ms) {
        return PERIOD;
    }
    return us / 1000u * per_ms + us % 1000u * per_ms / 1000u + 1u;
}

uint32_t ferrule_port_cycles(void)
{
    const uint32_t masked = ferrule_port_critical_enter();
    const uint32_t now = cycles_now();

    ferrule_port_critical_exit(masked);
    return now;
}

uint32_t ferrule_port_now_us(void)
{
    const uint32_t masked = ferrule_port_critical_enter();
    const uint32_t now = us_now();

    ferrule_port_critical_exit(masked);
    return now;
}

void ferrule_port_alarm(uint32_t after_us)
{
    const uint32_t wanted = cycles_of(after_us);
    const uint32_t cycles = wanted < LEAST ? LEAST : wanted;
    const uint32_t now = cycles_now();

    if (is_pending() || cycles >= systick.ends - now) {
        return; /* the current period ends early enough */
    }
    begin_period(cycles);
    systick.ends = now + cycles;
    if (is_pending()) { /* it was over before the next period got its length */
        begin_period(PERIOD);
    }
}

void ferrule_systick_handler(void)
{
    const uint32_t masked = ferrule_port_critical_enter();

    systick.ends += PERIOD;
    (void)us_now(); /* often enough that `phase` cannot overflow */
    ferrule_port_critical_exit(masked);
}

#endif /* FERRULE_PORT_USES_SYSTICK */
