/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the hooks, each tested alone, around a core that has registers and executes nothing.
 * The argument names the check; a failed check ends the process. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cortex_m.h"
#include "exceptions.h"
#include "uart.h"

#define CHECK(condition) check((condition), #condition, __LINE__)

enum {
    RAM = 0x20000000,
    RAM_BYTES = 0x100,
    FRAME = 0x40, /* offset in RAM of the frame of returning exceptions */
    LINE0 = 16,
    LAST_REGISTER = FERRULE_D0 + 8,
    DATA = 0x0,
    CTRL = 0x8,
    INTERRUPT = 0xC,
    BAUDDIV = 0x10,
    USAGE_INVPC = 1 << 18,
    CCR = 0xD14 / 4,
    CFSR = 0xD28 / 4,
    TO_THREAD = -7, /* 0xFFFFFFF9 */
};

static struct ferrule_guest guest;
static struct ferrule_core core;
static struct ferrule_uart uart;
static uint64_t registers[LAST_REGISTER];
static uint32_t ram[RAM_BYTES / 4];
static uint64_t limit_seen;
static uint32_t runs;

static void check(bool holds, const char *condition, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d: %s\n", line, condition);
        exit(1);
    }
}

static int same_register(int id)
{
    return id == FERRULE_XPSR_ALL || id == FERRULE_IEPSR || id == FERRULE_CPSR ? FERRULE_XPSR : id;
}

static int read_register(void *engine, int id, void *value)
{
    (void)engine;
    memcpy(value, &registers[same_register(id)], id >= FERRULE_D0 ? 8 : 4);
    return 0;
}

static int write_register(void *engine, int id, const void *value)
{
    (void)engine;
    memcpy(&registers[same_register(id)], value, id >= FERRULE_D0 ? 8 : 4);
    return 0;
}

/* Execute as far as the limit allows, and pause. */
static int start_emulation(void *engine, uint64_t begin, uint64_t until, uint64_t timeout,
                           uint64_t count)
{
    (void)engine;
    (void)begin;
    (void)until;
    (void)timeout;
    (void)count;
    limit_seen = guest.due < guest.limit ? guest.due : guest.limit;
    guest.entered = limit_seen;
    guest.elapsed = limit_seen;
    guest.paused = 1;
    CHECK(++runs < 10);
    return 0;
}

static int stop_emulation(void *engine)
{
    (void)engine;
    return 0;
}

static void reset(uint32_t architecture)
{
    struct ferrule_core_config config = {
        .architecture = architecture, .lines = 32, .priority_mask = 0xFF};
    guest = (struct ferrule_guest){.start_emulation = start_emulation,
                                   .stop_emulation = stop_emulation,
                                   .read_register = read_register,
                                   .write_register = write_register,
                                   .window_count = 1};
    guest.windows[0] = (struct ferrule_guest_window){
        .address = RAM, .bytes = RAM_BYTES, .data = (uint8_t *)ram, .executes = 1};
    for (int i = 0; i < FERRULE_REGISTERS; ++i) {
        guest.register_ids[i] = i;
    }
    for (int i = 0; i < FERRULE_FAULT_REGISTERS; ++i) {
        config.register_ids[i] = i;
    }
    memset(registers, 0, sizeof registers);
    memset(ram, 0, sizeof ram);
    runs = 0;
    ferrule_core_reset(&core, &guest, &config);
    uart = (struct ferrule_uart){.guest = &guest, .transmit_line = 3, .receive_line = 4};
}

static bool is_high(uint32_t line)
{
    return ferrule_set_has(&core.nvic.high, LINE0 + line);
}

static void write(uint32_t offset, uint32_t value)
{
    ferrule_uart_write(NULL, offset, 4, value, &uart);
}

/* Writing any register on which an interrupt depends drives the interrupt's line. */
static void lines(void)
{
    static const uint8_t input[] = {1, 2};
    reset(7);
    uart.input = input;
    uart.input_bytes = sizeof input;
    CHECK(!is_high(4));
    write(CTRL, 1 << 1 | 1 << 3); /* receive, with interrupts */
    CHECK(is_high(4) && !is_high(3));
    write(CTRL, 1 << 1);
    CHECK(!is_high(4));
    write(CTRL, 1 << 3);
    CHECK(!is_high(4));
    write(CTRL, 1 << 1 | 1 << 3);
    CHECK(ferrule_uart_read(NULL, DATA, 4, &uart) == 1 && is_high(4));
    CHECK(ferrule_uart_read(NULL, DATA, 4, &uart) == 2 && !is_high(4));
    write(BAUDDIV, 16);
    write(CTRL, 1 << 0 | 1 << 2); /* send, with interrupts */
    write(DATA, 'x');
    CHECK(is_high(3) && uart.output_bytes == 1);
    write(INTERRUPT, 1 << 1);
    CHECK(is_high(3));
    write(INTERRUPT, 1 << 0);
    CHECK(!is_high(3));
}

static void expire(void *context)
{
    ++*(uint32_t *)context;
}

/* The budget and the next timer limit how much is executed without a check. */
static void limit(void)
{
    uint32_t expired = 0;
    reset(7);
    CHECK(ferrule_core_run(&core, 100) == FERRULE_GUEST_BUDGET);
    CHECK(limit_seen == 100 && guest.entered == 100 && runs == 1);
    CHECK(ferrule_core_run(&core, 50) == FERRULE_GUEST_BUDGET);
    CHECK(limit_seen == 150 && guest.entered == 150 && runs == 2);
    ferrule_core_set_timer(&core, 0, 170, expire, &expired);
    CHECK(ferrule_core_run(&core, 100) == FERRULE_GUEST_BUDGET);
    CHECK(limit_seen == 250 && expired == 1 && runs == 4);
    guest.limit = 0;
    registers[FERRULE_PC] = RAM;
    (void)ferrule_core_step(&core);
    CHECK(limit_seen == UINT64_MAX && runs == 5);
}

/* Return whether an exception may return to thread mode; with `others` active, too, CCR must
 * allow it. */
static bool returns(uint32_t architecture, uint32_t allowed, bool others)
{
    reset(architecture);
    core.words[CCR] = allowed;
    ferrule_set_put(&core.nvic.enabled, FERRULE_USAGE_FAULT, true);
    core.nvic.priority[LINE0] = 0x80;
    core.nvic.priority[LINE0 + 1] = 0x40;
    if (others) {
        ferrule_nvic_activate(&core.nvic, LINE0);
    }
    ferrule_nvic_activate(&core.nvic, LINE0 + 1);
    registers[FERRULE_XPSR] = (1u << 24) | (LINE0 + 1);
    registers[FERRULE_SP] = RAM + FRAME;
    ram[FRAME / 4 + 6] = RAM;
    ram[FRAME / 4 + 7] = 1u << 24;
    ferrule_exception_return(&core, (uint32_t)TO_THREAD);
    const bool refused = (core.words[CFSR] & USAGE_INVPC) != 0;
    CHECK(refused == ((registers[FERRULE_XPSR] & 0x1FF) != 0));
    return !refused;
}

static void exception_returns(void)
{
    for (uint32_t architecture = 7; architecture <= 8; ++architecture) {
        CHECK(returns(architecture, 0, false));
        CHECK(!returns(architecture, 0, true));
        CHECK(returns(architecture, 1, false));
        CHECK(returns(architecture, 1, true));
    }
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } CHECKS[] = {{"lines", lines}, {"limit", limit}, {"exception returns", exception_returns}};

    for (size_t i = 0; count == 2 && i < sizeof CHECKS / sizeof CHECKS[0]; ++i) {
        if (strcmp(arguments[1], CHECKS[i].name) == 0) {
            CHECKS[i].run();
            return 0;
        }
    }
    return 2;
}
