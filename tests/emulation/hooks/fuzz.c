/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks around a core that does anything: random blocks, accesses, traps and register
 * contents, in memories of exact size, so that sanitizers detect accesses beyond them.
 * Arguments: seed, rounds. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cortex_m.h"
#include "cycle_counter.h"
#include "system_control.h"
#include "systick.h"
#include "uart.h"
#include "uart_nrf.h"
#include "uart_stm32.h"
#include "uart_stm32f7.h"

enum {
    FLASH = 0x00000000,
    RAM = 0x20000000,
    FLASH_BYTES = 0x400,
    RAM_BYTES = 0x1FE, /* the last word is incomplete */
    LINES = 240,
    UARTS = 4,
    SITES = 64,
    LAST_REGISTER = FERRULE_D0 + 8,
};

static struct ferrule_guest guest;
static struct ferrule_core core;
static struct ferrule_cycle_counter counter;
static struct ferrule_uart *uarts[UARTS];
static uint64_t registers[LAST_REGISTER];
static void (*on_site)(void *engine, uint64_t address, uint32_t bytes, void *guest);
static uint32_t sites[SITES];
static uint32_t site_count;
static uint32_t state;
static int stopped;

static uint32_t random_word(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static uint32_t below(uint32_t limit)
{
    return random_word() % limit;
}

/* Return an address that is often near the limits of a memory or register range. */
static uint32_t random_address(void)
{
    static const uint32_t EDGES[] = {FLASH, FLASH + FLASH_BYTES, RAM,         RAM + RAM_BYTES,
                                     0,     0xE000E000,          0xFFFFFFFFu, 0x40000000};
    return below(8) == 0 ? random_word() : EDGES[below(8)] + below(256) - 128;
}

static int same_register(int id)
{
    switch (id) {
    case FERRULE_XPSR_ALL:
    case FERRULE_IEPSR:
    case FERRULE_CPSR:
        return FERRULE_XPSR;
    default:
        return id;
    }
}

static int read_register(void *engine, int id, void *value)
{
    (void)engine;
    assert(id >= 0 && id < LAST_REGISTER);
    memcpy(value, &registers[same_register(id)], id >= FERRULE_D0 ? 8 : 4);
    return 0;
}

static int write_register(void *engine, int id, const void *value)
{
    (void)engine;
    assert(id >= 0 && id < LAST_REGISTER);
    memcpy(&registers[same_register(id)], value, id >= FERRULE_D0 ? 8 : 4);
    return 0;
}

static int stop_emulation(void *engine)
{
    (void)engine;
    stopped = 1;
    return 0;
}

static int add_hook(void *engine, uintptr_t *hook, int type, void *callback, void *user_data,
                    uint64_t begin, uint64_t end, ...)
{
    (void)engine;
    (void)hook;
    assert(type == 4 && user_data == &guest && begin == end);
    on_site = callback;
    sites[site_count++ % SITES] = (uint32_t)begin;
    return below(4000) == 0;
}

static int control(void *engine, int what, ...)
{
    (void)engine;
    assert(what == 0x48000009 || what == 0x4000000B);
    return 0;
}

static void access_uart(void)
{
    static const uint32_t NORDIC[] = {0x000, 0x004, 0x008, 0x110, 0x200, 0x304, 0x500, 0x50C,
                                      0x514, 0x524, 0x534, 0x538, 0x544, 0x548, 0x120, 0x13C};
    const uint32_t offset = below(0x30);
    const unsigned bytes = 1u << below(3);
    const uint32_t value = random_word() >> below(32);
    const uint32_t nordic = below(4) != 0 ? NORDIC[below(16)] : below(0x1000);
    const uint32_t nordic_values[] = {value, 1, 8, 0, below(64), random_address()};
    (void)ferrule_uart_read(NULL, offset, bytes, uarts[0]);
    ferrule_uart_write(NULL, offset, bytes, value, uarts[0]);
    (void)ferrule_uart_stm32_read(NULL, offset, bytes, uarts[1]);
    ferrule_uart_stm32_write(NULL, offset, bytes, value, uarts[1]);
    (void)ferrule_uart_stm32f7_read(NULL, offset, bytes, uarts[3]);
    ferrule_uart_stm32f7_write(NULL, offset, bytes, value, uarts[3]);
    (void)ferrule_uart_nrf_read(NULL, nordic, bytes, uarts[2]);
    ferrule_uart_nrf_write(NULL, nordic, bytes, nordic_values[below(6)], uarts[2]);
}

static void access_core(void)
{
    static const uint32_t NAMED[] = {
        FERRULE_SYSTICK_CONTROL, FERRULE_SYSTICK_RELOAD, FERRULE_SYSTICK_VALUE, FERRULE_SCS_ICSR,
        FERRULE_SCS_SHCSR,       FERRULE_SCS_SCR,        FERRULE_SCS_CCR,       FERRULE_SCS_DEMCR,
        FERRULE_SCS_FPCCR,       FERRULE_SCS_STIR,       FERRULE_SCS_VTOR,      FERRULE_SCS_MPU_RNR,
    };
    const uint32_t offset = below(2) != 0 ? NAMED[below(12)] + below(4) : below(0x1000);
    const unsigned bytes = 1u << below(3);
    uint32_t value = random_word() >> below(32);
    if (offset == FERRULE_SCS_VTOR) {
        value = random_address();
    }
    (void)ferrule_cycle_counter_read(NULL, offset % 8, bytes, &counter);
    ferrule_cycle_counter_write(NULL, offset % 8, bytes, value, &counter);
    (void)ferrule_system_control_read(NULL, offset, bytes, &core);
    ferrule_system_control_write(NULL, offset, bytes, value, &core);
}

static void change_registers(void)
{
    registers[below(FERRULE_PC)] = below(2) != 0 ? random_address() : random_word();
    switch (below(8)) {
    case 0:
        registers[FERRULE_XPSR] ^= random_word() & 0xFF00FE00u;
        break;
    case 1:
        registers[FERRULE_PRIMASK + below(3)] = random_word() & 0xFFu;
        break;
    case 2:
        registers[FERRULE_PRIMASK] = registers[FERRULE_BASEPRI] = registers[FERRULE_FAULTMASK] = 0;
        break;
    case 3:
        registers[FERRULE_CONTROL] = below(16);
        break;
    case 4:
        registers[FERRULE_PSP] = random_address();
        break;
    case 5:
        registers[FERRULE_SP] = RAM + below(RAM_BYTES + 64);
        break;
    case 6:
        registers[FERRULE_XPSR] |= 1u << 24;
        break;
    default:
        break;
    }
}

/* As in unicorn: first the refusal, then the access. */
static bool access_memory(void)
{
    const bool ours = below(8) != 0;
    const uint32_t address = ours ? 0xE000E000u + below(0x1000) : random_address();
    const int type = ours ? 22 + (int)below(2) : 19 + (int)below(6);
    if (!ferrule_guest_on_refused(NULL, type, address, 1 << below(3), random_word(), &guest)) {
        return false;
    }
    if (below(2) != 0) {
        access_uart();
    } else {
        access_core();
    }
    return true;
}

static int start_emulation(void *engine, uint64_t begin, uint64_t until, uint64_t timeout,
                           uint64_t count)
{
    static const int ERRORS[] = {0, 0, 0, 10, 10, 3};
    (void)until;
    (void)timeout;
    (void)count;
    stopped = 0;
    registers[FERRULE_PC] = (uint32_t)begin & ~1u;
    for (uint32_t blocks = 1 + below(20); blocks != 0; --blocks) {
        const uint32_t address = random_address() & ~1u;
        const uint32_t bytes = 2 * below(40);
        ferrule_guest_on_block(engine, address, bytes, &guest);
        registers[FERRULE_PC] = address;
        if (stopped != 0) {
            return 0;
        }
        registers[FERRULE_PC] += below(2) != 0 ? bytes : 2 * below(1 + bytes / 2);
        change_registers();
        if (site_count != 0 && below(4) == 0) {
            on_site(engine, sites[below(site_count < SITES ? site_count : SITES)], 2 + 2 * below(2),
                    &guest);
        }
        if (!access_memory()) {
            return 6;
        }
    }
    switch (below(4)) {
    case 0:
        ferrule_guest_on_exception(engine, below(24), &guest);
        return 0;
    case 1:
        ferrule_guest_on_exception(engine, 8, &guest);
        registers[FERRULE_PC] = 0xFFFFFFE0u | (random_word() & 0x1Cu); /* EXC_RETURN */
        return 0;
    default:
        return ERRORS[below(6)];
    }
}

static int protect_memory(void *engine, uint64_t address, uint64_t bytes, uint32_t permissions)
{
    (void)engine;
    assert(bytes != 0 && permissions == 7);
    return address == FLASH ? 6 : 0;
}

/* Set the timer again, sometimes another timer, and sometimes to a time in the past. */
static void expire(void *context)
{
    const uint32_t own = (uint32_t)((struct ferrule_timer *)context - core.timers);
    const uint32_t timer = below(4) != 0 ? own : below(FERRULE_CORE_TIMERS);
    const uint64_t now = ferrule_core_time(&core);
    if (below(2) != 0) {
        const uint64_t due = below(8) != 0 || now < 50 ? now + 1 + below(50) : now - below(50);
        ferrule_core_set_timer(&core, timer, due, expire, &core.timers[timer]);
    }
    ferrule_core_set_line(&core, below(LINES + 8), below(2));
}

static void enable_trace(void *unit, uint32_t enabled)
{
    ferrule_cycle_counter_enable(unit, enabled);
}

static void make_core(uint8_t *flash, uint8_t *ram)
{
    struct ferrule_core_config config = {
        .architecture = 6 + below(3), .lines = LINES, .priority_mask = 0xFF};
    guest = (struct ferrule_guest){.start_emulation = start_emulation,
                                   .stop_emulation = stop_emulation,
                                   .read_register = read_register,
                                   .write_register = write_register,
                                   .add_hook = add_hook,
                                   .control = control,
                                   .protect_memory = protect_memory,
                                   .window_count = 2};
    guest.windows[0] = (struct ferrule_guest_window){
        .address = FLASH, .bytes = FLASH_BYTES, .data = flash, .constant = 1};
    guest.windows[1] =
        (struct ferrule_guest_window){.address = RAM, .bytes = RAM_BYTES, .data = ram};
    for (int i = 0; i < FERRULE_REGISTERS; ++i) {
        guest.register_ids[i] = i;
    }
    for (int i = 0; i < FERRULE_FAULT_REGISTERS; ++i) {
        config.register_ids[i] = i;
    }
    ferrule_core_reset(&core, &guest, &config);
    counter = (struct ferrule_cycle_counter){.guest = &guest};
    ferrule_core_attach_trace(&core, enable_trace, &counter);
    for (uint32_t i = 0; i < UARTS; ++i) {
        uarts[i]->guest = &guest;
        uarts[i]->transmit_line = (int32_t)below(LINES);
        uarts[i]->receive_line = i == 0 ? (int32_t)below(LINES) : FERRULE_UART_NO_LINE;
    }
}

/* Provide input of exact size, and take the output. */
static void serve(struct ferrule_uart *uart)
{
    assert(uart->output_bytes <= FERRULE_UART_OUTPUT);
    assert(uart->input_taken <= uart->input_bytes);
    free((void *)uart->input);
    uart->input_bytes = below(20);
    uart->input_taken = 0;
    uint8_t *input = malloc(uart->input_bytes + 1);
    assert(input != NULL);
    memset(input, 0x5A, uart->input_bytes + 1);
    uart->input = realloc(input, uart->input_bytes == 0 ? 1 : uart->input_bytes);
    if (below(4) != 0) {
        uart->output_bytes = below(4) != 0 ? 0 : FERRULE_UART_OUTPUT - below(4);
    }
}

static void check(void)
{
    for (uint32_t i = core.nvic.count; i < FERRULE_EXCEPTIONS; ++i) {
        assert(!ferrule_set_has(&core.nvic.pending, i));
        assert(!ferrule_set_has(&core.nvic.enabled, i));
        assert(!ferrule_set_has(&core.nvic.active, i));
    }
    assert(core.systick.reload <= 0xFFFFFF && core.systick.value <= 0xFFFFFF);
    assert(guest.window_count == 2);
}

/* Return a byte of code; half of it is WFE and WFI. */
static uint8_t random_code(uint32_t at)
{
    if (below(4) == 0) {
        return (uint8_t)random_word();
    }
    return at % 2 != 0 ? 0xBF : (uint8_t)(below(2) != 0 ? 0x20 : 0x30);
}

int main(int count, char **arguments)
{
    if (count != 3) {
        return 2;
    }
    state = (uint32_t)strtoul(arguments[1], NULL, 10) * 2654435761u + 1;
    const unsigned long rounds = strtoul(arguments[2], NULL, 10);
    uint8_t *flash = malloc(FLASH_BYTES);
    uint8_t *ram = malloc(RAM_BYTES);
    for (uint32_t i = 0; i < UARTS; ++i) {
        uarts[i] = calloc(1, sizeof *uarts[i]);
        assert(uarts[i] != NULL);
    }
    assert(flash != NULL && ram != NULL);
    for (uint32_t i = 0; i < FLASH_BYTES; ++i) {
        flash[i] = random_code(i);
        ram[i % RAM_BYTES] = (uint8_t)random_word();
    }
    ferrule_uart_stm32_reset(uarts[1]);
    ferrule_uart_nrf_reset(uarts[2]);
    ferrule_uart_stm32f7_reset(uarts[3]);
    uint32_t stops = 0;
    for (unsigned long round = 0; round < rounds; ++round) {
        if (round % 16 == 0) {
            make_core(flash, ram);
        }
        const uint32_t timer = below(FERRULE_CORE_TIMERS);
        ferrule_core_set_timer(&core, timer, ferrule_core_time(&core) + below(100), expire,
                               &core.timers[timer]);
        const uint64_t slept = core.slept;
        const enum ferrule_guest_stop stop =
            below(4) == 0 ? ferrule_core_step(&core) : ferrule_core_run(&core, below(2000));
        stops |= 1u << stop;
        assert(core.slept >= slept);
        check();
        for (uint32_t i = 0; i < UARTS; ++i) {
            serve(uarts[i]);
        }
    }
    printf("%x\n", stops);
    for (uint32_t i = 0; i < UARTS; ++i) {
        free((void *)uarts[i]->input);
        free(uarts[i]);
    }
    free(flash);
    free(ram);
    return 0;
}
