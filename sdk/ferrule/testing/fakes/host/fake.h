/* SPDX-License-Identifier: Apache-2.0 */
/** @file What fakes are made from. */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule_fake.h"

#define FAKE_FOREVER UINT64_MAX

/** One call on its way: declared by FAKE_CALL, returned through fake_end. */
struct fake_call {
    const char *name;
    uint64_t serial;   /* of all calls ever */
    bool replaced;     /* by a rule: do nothing */
    uint32_t after;    /* number of the hook that follows, 0: none */
    bool interrupting; /* that hook is an interrupt */
    int64_t result;
};

/** Record a call of the function this stands in; `object` and what follows are its arguments. */
#define FAKE_CALL(call, object, ...) FAKE_CALL_OF(call, __func__, object, ##__VA_ARGS__)

/** The same under another name. */
#define FAKE_CALL_OF(call, name, object, ...)                                                      \
    struct fake_call call =                                                                        \
        fake_begin((name), (object), (const int64_t[]){0, ##__VA_ARGS__},                          \
                   sizeof((const int64_t[]){0, ##__VA_ARGS__}) / sizeof(int64_t) - 1u)

/** `arguments` has one value more in front. */
struct fake_call fake_begin(const char *name, const void *object, const int64_t *arguments,
                            uint32_t count);
/** Returns the call's result. */
int64_t fake_end(const struct fake_call *call);

/** Evaluate `value` with the lock of the fakes held, as the result of a call; a call that a rule
 * has replaced keeps its result. */
#define FAKE_LOCKED(call, value)                                                                   \
    do {                                                                                           \
        if (!(call).replaced) {                                                                    \
            fake_lock();                                                                           \
            (call).result = (value);                                                               \
            fake_unlock();                                                                         \
        }                                                                                          \
    } while (false)

/** Say what the code under test must not do. */
__attribute__((format(printf, 1, 2))) void fake_misuse(const char *format, ...);
/** Whether this is an interrupt; says so, since `name` must not be called in one. */
bool fake_refuses_interrupt(const char *name);

/* ---- threads and time; `locked` functions are called with the lock of the fakes */

void fake_lock(void);
void fake_unlock(void);
/** Let waiting threads look again; locked. */
void fake_wake(void);
/** Wait until `ready(object)`; false if the time came first, or if nothing can ever happen; locked,
 * and not while it waits. */
bool fake_wait(const char *name, bool (*ready)(const void *object), const void *object,
               uint64_t deadline_us);
uint64_t fake_deadline_us(uint64_t wait_us);

uint64_t fake_tick(void); /* a call begins: the clock's time */
void fake_run_events(void);
uint32_t fake_thread(void);
bool fake_in_interrupt(void);
void fake_reset_threads(void);
void fake_call_hook(uint32_t number, bool as_interrupt);
/** Interrupts of other threads wait, those of this one come later. */
void fake_mask_interrupts(void);
void fake_unmask_interrupts(void);
/** How often this thread has masked them. */
uint32_t fake_masks(void);

/* ---- the far end of serial ports */

enum { FAKE_PORTS = 8, FAKE_OWN_EVENT = 0x40000000 };

/** At most so many bytes that came and were not read yet. */
uint32_t fake_port_read(uint32_t port, uint8_t *data, uint32_t bytes);
uint32_t fake_port_waiting(uint32_t port);
/** Bytes reach the far end. */
void fake_port_write(uint32_t port, const uint8_t *data, uint32_t bytes);
void fake_reset_ports(void);

/* ---- what a platform's fakes define */

void fake_reset_platform(void);
/** An interrupt that was raised meanwhile may come. */
void fake_interrupts_unmasked(void);
/** There are bytes to read. */
void fake_port_received(uint32_t port);
/** An event that was scheduled with FAKE_OWN_EVENT in its number. In an interrupt. */
void fake_platform_event(uint32_t number);

#endif /* FAKE_H */
