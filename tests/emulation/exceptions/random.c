/* SPDX-License-Identifier: Apache-2.0 */
/* Random changes of priorities, masks and pending exceptions, drawn from SEED, in thread mode
 * and in handlers. */
#include "trace.h"

enum { STEPS = 150, LINES = 6, FIRST = LINE_A };

static uint32_t state = SEED * 2654435761u + 1u;
static uint32_t steps;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (state >> 8) % below;
}

static void pend_system(uint32_t which)
{
    static const uint32_t bits[] = {PEND_PENDSV, PEND_SYSTICK, 1u << 27, 1u << 25, PEND_NMI};
    ICSR = bits[which];
}

static void act(void)
{
    const uint32_t line = FIRST + draw(LINES);
    const uint32_t value = draw(256);
    switch (draw(12)) {
    case 0:
        IPR[line] = (uint8_t)value;
        break;
    case 1:
        SHPR[draw(2) != 0 ? PENDSV : SYSTICK] = (uint8_t)value;
        break;
    case 2:
        AIRCR = 0x05FA0000u | draw(8) << 8;
        break;
    case 3:
        SET_MASK(basepri, draw(3) == 0 ? value : 0u);
        break;
    case 4:
        SET_MASK(basepri_max, value);
        break;
    case 5:
        SET_MASK(primask, draw(2));
        break;
    case 6:
        SET_MASK(faultmask, draw(4) == 0);
        break;
    case 7:
        ISER = 1u << line;
        break;
    case 8:
        if (draw(2) != 0) {
            ICER = 1u << line;
        } else {
            ICPR = 1u << line;
        }
        break;
    case 9:
        pend_system(draw(5));
        break;
    case 10:
        ISPR = value << FIRST & 0x3Fu << FIRST; /* several lines at once */
        break;
    default:
        ISPR = 1u << line;
        break;
    }
    barrier();
}

static void note_state(const char *name)
{
    say(name);
    note("", ipsr());
    note("icsr", ICSR);
    note("pending", ISPR & 0x3Fu << FIRST);
    note("active", IABR);
}

static void handler(void)
{
    note_state("in");
    for (uint32_t i = draw(4); i > 0 && steps < STEPS; --i) {
        ++steps;
        act();
    }
    note_state("out");
}

int main(void)
{
    begin();
    handle(NMI, handler);
    handle(PENDSV, handler);
    handle(SYSTICK, handler);
    for (uint32_t i = 0; i < LINES; ++i) {
        handle(LINE0 + FIRST + i, handler);
        IPR[FIRST + i] = (uint8_t)draw(256);
    }
    ISER = 0x3Fu << FIRST;
    while (steps < STEPS) {
        ++steps;
        act();
        note_state("thread");
    }
    SET_MASK(faultmask, 0);
    SET_MASK(primask, 0);
    SET_MASK(basepri, 0);
    note_state("end");
    end();
}
