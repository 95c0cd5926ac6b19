/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the device of test_attachment.py, which squares a buffer in place, takes a while, and
 * raises an interrupt. */
#include "trace.h"

#define DEVICE 0x4F000000u
#define LENGTH REGISTER(DEVICE + 0x0u)
#define BUFFER REGISTER(DEVICE + 0x4u)
#define START  REGISTER(DEVICE + 0x8u) /* duration in instructions */
#define STATUS REGISTER(DEVICE + 0xCu) /* 1: done; any write lowers the interrupt line */

static volatile uint32_t done;
static volatile uint32_t interrupted_at;
static int32_t data[4] = {1, -2, 3, -4};

static void finished(void)
{
    interrupted_at = REGISTER(CYCCNT);
    note("status", STATUS);
    note("first", (uint32_t)data[0]);
    note("last", (uint32_t)data[3]);
    STATUS = 0;
    (void)STATUS; /* the line has fallen by the time of this read */
    ++done;
}

int main(void)
{
    begin();
    start_cycle_counter();
    handle(LINE0 + LINE_A, finished);
    ISER = 1u << LINE_A;
    LENGTH = 4;
    BUFFER = (uint32_t)data;

    say("asleep\n");
    START = 100000;
    while (done == 0) {
        __asm volatile("wfi");
    }

    say("busy\n");
    const uint32_t before = REGISTER(CYCCNT);
    START = 5000;
    while (done == 1) {
    }
    const uint32_t took = interrupted_at - before;
    note("soon enough", took >= 5000 && took < 5020);

    say("polling\n");
    ICER = 1u << LINE_A;
    START = 777;
    uint32_t polls = 0;
    while (STATUS == 0) {
        ++polls;
    }
    note("polls", polls != 0);
    STATUS = 0;
    note("pending", ISPR);
    end();
}
