/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/pm/device.h>
#include <zephyr/pm/device_runtime.h>

#include "fake.h"
#include "ferrule_fake_zephyr.h"

/* The number of consecutive runs after which a handler is assumed to ignore its interrupt. */
enum { MAX_INTERRUPTS = 100000, FIFO_BYTES = 16 };

struct state {
    char name[FERRULE_FAKE_NAME];
    bool not_ready;
    int32_t power;
    uart_irq_callback_user_data_t handler;
    void *user_data;
    bool rx_enabled, tx_enabled, running;
    int32_t errors;
};

static struct state states[FERRULE_FAKE_DEVICES];
static struct device devices[FERRULE_FAKE_DEVICES];

_Static_assert((int)FERRULE_FAKE_DEVICES <= (int)FAKE_PORTS, "each device has a port");

static struct state *state_of(const struct device *dev, const char *name)
{
    for (uint32_t number = 0; number < FERRULE_FAKE_DEVICES; number++) {
        if (dev == &devices[number]) {
            return &states[number];
        }
    }
    fake_misuse("%s of %s", name,
                dev == NULL ? "a null pointer" : "a pointer that is not a device");
    return &states[0];
}

static uint32_t port_of(const struct state *state)
{
    return (uint32_t)(state - states);
}

const struct device *ferrule_fake_device(uint32_t number, const char *name)
{
    (void)snprintf(states[number].name, sizeof states[number].name, "%s", name);
    devices[number] = (struct device){.name = states[number].name, .data = &states[number]};
    return &devices[number];
}

void ferrule_fake_set_ready(uint32_t number, uint32_t ready)
{
    states[number].not_ready = ready == 0u;
}

int32_t ferrule_fake_power_count(uint32_t number)
{
    return states[number].power;
}

void ferrule_fake_set_uart_errors(uint32_t number, int32_t errors)
{
    states[number].errors = errors;
}

void fake_reset_platform(void)
{
    for (uint32_t number = 0; number < FERRULE_FAKE_DEVICES; number++) {
        states[number] = (struct state){0};
    }
    ferrule_fake_log_clear();
    ferrule_fake_set_clocks(1, USEC_PER_SEC);
}

void fake_platform_event(uint32_t number)
{
    (void)number;
}

bool device_is_ready(const struct device *dev)
{
    FAKE_CALL(call, dev);
    if (!call.replaced) {
        call.result = !state_of(dev, "device_is_ready")->not_ready;
    }
    return fake_end(&call) != 0;
}

static void change_power(struct state *state, int32_t change)
{
    fake_lock();
    state->power += change;
    if (state->power <= 0) {
        fake_give_back(state);
    } else {
        fake_hold(state,
                  "%s is powered: pm_device_runtime_get() was called %d times more often than "
                  "pm_device_runtime_put()",
                  state->name, (int)state->power);
    }
    fake_unlock();
}

int pm_device_runtime_get(const struct device *dev)
{
    FAKE_CALL(call, dev);
    if (!call.replaced) {
        change_power(state_of(dev, "pm_device_runtime_get"), 1);
    }
    return (int)fake_end(&call);
}

int pm_device_runtime_put(const struct device *dev)
{
    FAKE_CALL(call, dev);
    struct state *state = state_of(dev, "pm_device_runtime_put");
    if (!call.replaced && state->power == 0) {
        call.result = -EALREADY;
    } else if (!call.replaced) {
        change_power(state, -1);
    }
    return (int)fake_end(&call);
}

int pm_device_state_get(const struct device *dev, enum pm_device_state *state)
{
    FAKE_CALL(call, dev);
    if (!call.replaced) {
        *state = state_of(dev, "pm_device_state_get")->power > 0 ? PM_DEVICE_STATE_ACTIVE
                                                                 : PM_DEVICE_STATE_OFF;
    }
    return (int)fake_end(&call);
}

bool pm_device_on_power_domain(const struct device *dev)
{
    FAKE_CALL(call, dev);
    if (!call.replaced) {
        call.result = state_of(dev, "pm_device_on_power_domain") != NULL;
    }
    return fake_end(&call) != 0;
}

static pm_device_action_cb_t power_callback;

int pm_device_driver_init(const struct device *dev, pm_device_action_cb_t action_cb)
{
    FAKE_CALL(call, dev);
    power_callback = action_cb;
    if (!call.replaced) {
        call.result = action_cb(dev, PM_DEVICE_ACTION_RESUME);
    }
    return (int)fake_end(&call);
}

int ferrule_fake_power_action(const struct device *dev, enum pm_device_action action)
{
    return power_callback(dev, action);
}

static bool is_pending(const struct state *state)
{
    return state->tx_enabled || (state->rx_enabled && fake_port_waiting(port_of(state)) > 0u);
}

/* Runs the handler while its interrupt is pending. */
static void interrupt(struct state *state)
{
    if (state->handler == NULL || state->running || fake_masks() > 0u) {
        return; /* for now: unmasking checks again */
    }
    state->running = true;
    ferrule_fake_enter_interrupt();
    uint32_t runs = 0;
    while (is_pending(state) && runs < MAX_INTERRUPTS) {
        state->handler(&devices[port_of(state)], state->user_data);
        runs++;
    }
    ferrule_fake_leave_interrupt();
    state->running = false;
    if (runs == MAX_INTERRUPTS) {
        fake_misuse("the handler of %s neither serves nor disables its interrupt", state->name);
        state->tx_enabled = false;
        state->rx_enabled = false;
    }
}

void fake_port_received(uint32_t port)
{
    interrupt(&states[port]);
}

void fake_interrupts_unmasked(void)
{
    for (uint32_t number = 0; number < FERRULE_FAKE_DEVICES; number++) {
        if (is_pending(&states[number])) {
            interrupt(&states[number]);
        }
    }
}

int uart_irq_callback_user_data_set(const struct device *dev, uart_irq_callback_user_data_t cb,
                                    void *user_data)
{
    FAKE_CALL(call, dev);
    struct state *state = state_of(dev, "uart_irq_callback_user_data_set");
    if (!call.replaced) {
        state->handler = cb;
        state->user_data = user_data;
    }
    return (int)fake_end(&call);
}

static void enable(bool *which, struct state *state, bool enabled)
{
    *which = enabled;
    if (enabled) {
        interrupt(state);
    }
}

void uart_irq_rx_enable(const struct device *dev)
{
    FAKE_CALL(call, dev);
    struct state *state = state_of(dev, "uart_irq_rx_enable");
    if (!call.replaced) {
        enable(&state->rx_enabled, state, true);
    }
    (void)fake_end(&call);
}

void uart_irq_rx_disable(const struct device *dev)
{
    FAKE_CALL(call, dev);
    struct state *state = state_of(dev, "uart_irq_rx_disable");
    if (!call.replaced) {
        enable(&state->rx_enabled, state, false);
    }
    (void)fake_end(&call);
}

void uart_irq_tx_enable(const struct device *dev)
{
    FAKE_CALL(call, dev);
    struct state *state = state_of(dev, "uart_irq_tx_enable");
    if (!call.replaced) {
        enable(&state->tx_enabled, state, true);
    }
    (void)fake_end(&call);
}

void uart_irq_tx_disable(const struct device *dev)
{
    FAKE_CALL(call, dev);
    struct state *state = state_of(dev, "uart_irq_tx_disable");
    if (!call.replaced) {
        enable(&state->tx_enabled, state, false);
    }
    (void)fake_end(&call);
}

int uart_irq_update(const struct device *dev)
{
    FAKE_CALL(call, dev);
    if (!call.replaced) {
        call.result = 1;
    }
    return (int)fake_end(&call);
}

int uart_irq_is_pending(const struct device *dev)
{
    FAKE_CALL(call, dev);
    if (!call.replaced) {
        call.result = is_pending(state_of(dev, "uart_irq_is_pending"));
    }
    return (int)fake_end(&call);
}

int uart_irq_rx_ready(const struct device *dev)
{
    FAKE_CALL(call, dev);
    const struct state *state = state_of(dev, "uart_irq_rx_ready");
    if (!call.replaced) {
        call.result = state->rx_enabled && fake_port_waiting(port_of(state)) > 0u;
    }
    return (int)fake_end(&call);
}

int uart_irq_tx_ready(const struct device *dev)
{
    FAKE_CALL(call, dev);
    if (!call.replaced) {
        call.result = state_of(dev, "uart_irq_tx_ready")->tx_enabled ? FIFO_BYTES : 0;
    }
    return (int)fake_end(&call);
}

int uart_irq_tx_complete(const struct device *dev)
{
    FAKE_CALL(call, dev);
    if (!call.replaced) {
        call.result = 1;
    }
    return (int)fake_end(&call);
}

int uart_fifo_read(const struct device *dev, uint8_t *rx_data, const int size)
{
    FAKE_CALL(call, dev, size);
    const struct state *state = state_of(dev, "uart_fifo_read");
    if (!call.replaced && !fake_in_interrupt()) {
        fake_misuse("uart_fifo_read was called outside of the interrupt's handler");
    } else if (!call.replaced) {
        const uint32_t room = size < FIFO_BYTES ? (uint32_t)size : FIFO_BYTES;
        call.result = fake_port_read(port_of(state), rx_data, room);
    }
    return (int)fake_end(&call);
}

int uart_fifo_fill(const struct device *dev, const uint8_t *tx_data, int size)
{
    FAKE_CALL(call, dev, size);
    const struct state *state = state_of(dev, "uart_fifo_fill");
    if (!call.replaced && !fake_in_interrupt()) {
        fake_misuse("uart_fifo_fill was called outside of the interrupt's handler");
    } else if (!call.replaced) {
        call.result = size < FIFO_BYTES ? size : FIFO_BYTES;
        fake_port_write(port_of(state), tx_data, (uint32_t)call.result);
    }
    return (int)fake_end(&call);
}

int uart_err_check(const struct device *dev)
{
    FAKE_CALL(call, dev);
    struct state *state = state_of(dev, "uart_err_check");
    if (!call.replaced) {
        call.result = state->errors;
        state->errors = 0;
    }
    return (int)fake_end(&call);
}

int uart_poll_in(const struct device *dev, unsigned char *p_char)
{
    FAKE_CALL(call, dev);
    const struct state *state = state_of(dev, "uart_poll_in");
    if (!call.replaced) {
        call.result = fake_port_read(port_of(state), p_char, 1) == 1u ? 0 : -1;
    }
    return (int)fake_end(&call);
}

void uart_poll_out(const struct device *dev, unsigned char out_char)
{
    FAKE_CALL(call, dev, out_char);
    const struct state *state = state_of(dev, "uart_poll_out");
    if (!call.replaced) {
        fake_port_write(port_of(state), &out_char, 1);
    }
    (void)fake_end(&call);
}
