/* SPDX-License-Identifier: Apache-2.0 */
/** @file The building blocks of fakes. */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule_fake.h"

#define FAKE_FOREVER UINT64_MAX

/** How long a thread that yields waits: long enough that the calls of the threads that run
 * meanwhile, of a microsecond each, do not end it before they wait, too. */
enum { FAKE_YIELD_US = 100 };

/** A call in progress: declared by FAKE_CALL, ended by fake_end. */
struct fake_call {
    const char *name;
    uint64_t serial;   /* number among all calls */
    bool replaced;     /* replaced by a rule: do nothing */
    uint32_t after;    /* number of the hook after the call, 0: none */
    bool interrupting; /* that hook runs in an interrupt */
    int64_t result;
};

/** Puts a pointer into the library's list of the functions that are recorded. */
#ifdef __APPLE__
#define FAKE_LISTED __attribute__((used, section("__DATA,ferrule_fakes")))
#else
#define FAKE_LISTED __attribute__((used, section("ferrule_fakes")))
#endif

/** Record a call of the enclosing function; `object` and the following values are its arguments. */
#define FAKE_CALL(call, object, ...) FAKE_CALL_OF(call, __func__, object, ##__VA_ARGS__)

/** Record a call under another name, a string literal. */
#define FAKE_CALL_OF(call, name, object, ...)                                                      \
    FAKE_LISTED static const char *const fake_name_of_##call = (name);                             \
    struct fake_call call =                                                                        \
        fake_begin((name), (object), (const int64_t[]){0, ##__VA_ARGS__},                          \
                   sizeof((const int64_t[]){0, ##__VA_ARGS__}) / sizeof(int64_t) - 1u)

/** `arguments` begins with one extra value. */
struct fake_call fake_begin(const char *name, const void *object, const int64_t *arguments,
                            uint32_t count);
/** Run the hook after the call, and return the call's result. */
int64_t fake_end(const struct fake_call *call);

/** Evaluate `value` with the lock of the fakes held, as the result of a call; a call replaced by a
 * rule keeps its result. */
#define FAKE_LOCKED(call, value)                                                                   \
    do {                                                                                           \
        if (!(call).replaced) {                                                                    \
            fake_lock();                                                                           \
            (call).result = (value);                                                               \
            fake_unlock();                                                                         \
        }                                                                                          \
    } while (false)

/** Report a misuse by the code under test. */
__attribute__((format(printf, 1, 2))) void fake_misuse(const char *format, ...);
/** Return whether this is an interrupt, and report the misuse: `name` must not be called in one. */
bool fake_refuses_interrupt(const char *name);

/* ---- the balance: what the code under test has taken and not given back; locked */

/** State that an object is held, such as a mutex: a sentence, which replaces an earlier one. */
__attribute__((format(printf, 2, 3))) void fake_hold(const void *object, const char *format, ...);
/** An object is no longer held; also if it never was. */
void fake_give_back(const void *object);
/** The storage of an object that may be held is used again. */
void fake_forget_object(const void *object);
void fake_reset_balance(void);

/* ---- threads and time; `locked` functions are called with the lock of the fakes */

/* Tells the test of a call of the device API. */
void fake_tell_device(const struct ferrule_fake_device *device);
void fake_lock(void);
void fake_unlock(void);
/** Let waiting threads check again; locked. */
void fake_wake(void);
/** Wait until `ready(object)`; returns false at the deadline, or if no event can ever occur.
 * Locked, except while it waits. */
bool fake_wait(const char *name, bool (*ready)(const void *object), const void *object,
               uint64_t deadline_us);
uint64_t fake_deadline_us(uint64_t wait_us);

uint64_t fake_tick(void); /* start of a call: advances the clock */
void fake_run_events(void);
uint32_t fake_thread(void);
bool fake_in_interrupt(void);
/** Number of interrupts of all threads so far. */
uint32_t fake_interrupts(void);
void fake_reset_threads(void);
void fake_call_hook(uint32_t number, bool as_interrupt);
/** Block interrupts of other threads, and defer those of this thread. */
void fake_mask_interrupts(void);
void fake_unmask_interrupts(void);
/** Nesting depth of this thread's masking. */
uint32_t fake_masks(void);

/* ---- the remote end of serial ports */

enum { FAKE_PORTS = 8, FAKE_OWN_EVENT = 0x40000000 };

/** Read at most `bytes` of the bytes that have arrived. */
uint32_t fake_port_read(uint32_t port, uint8_t *data, uint32_t bytes);
uint32_t fake_port_waiting(uint32_t port);
/** Send bytes to the remote end. */
void fake_port_write(uint32_t port, const uint8_t *data, uint32_t bytes);
void fake_reset_ports(void);

/* ---- defined by a platform's fakes */

void fake_reset_platform(void);
/** Interrupts are unmasked: a pending one may run. */
void fake_interrupts_unmasked(void);
/** Bytes have arrived at a port. */
void fake_port_received(uint32_t port);
/** An event scheduled with FAKE_OWN_EVENT in its number is due. In an interrupt. */
void fake_platform_event(uint32_t number);

#endif /* FAKE_H */
