/* SPDX-License-Identifier: Apache-2.0 */
/* A thermostat for the board mps2-an386: a sensor on the bus, and commands on uart0. */
#include <stdbool.h>
#include <stdint.h>

#include "ferrule/port.h"

enum { UART_DATA = 0x40004000, UART_STATE = 0x40004004, UART_CTRL = 0x40004008, UART_BAUD = 0x40004010 };
enum { UART_TX_FULL = 1, UART_RX_FULL = 2, UART_ENABLE = 3 };
#define SENSOR_CONTROL UINT32_C(0xA0000000) /* 1 starts a measurement */
#define SENSOR_STATUS  UINT32_C(0xA0000004) /* 1: the measurement is complete */
#define SENSOR_VALUE   UINT32_C(0xA0000008) /* degrees */
enum { SENSOR_PATIENCE = 10000 };

int main(void);
extern volatile uint32_t measurements;
volatile uint32_t measurements;

static void put(char byte)
{
    while ((ferrule_mmio_read32(UART_STATE) & UART_TX_FULL) != 0) {
    }
    ferrule_mmio_write32(UART_DATA, (uint8_t)byte);
}

static void print(const char *text)
{
    while (*text != '\0') {
        put(*text++);
    }
}

static void print_number(uint32_t number)
{
    if (number >= 10) {
        print_number(number / 10);
    }
    put((char)('0' + number % 10));
}

static bool measure(uint32_t *degrees)
{
    ferrule_mmio_write32(SENSOR_CONTROL, 1);
    for (uint32_t tries = 0; tries < SENSOR_PATIENCE; tries++) {
        if (ferrule_mmio_read32(SENSOR_STATUS) == 1) {
            *degrees = ferrule_mmio_read32(SENSOR_VALUE);
            measurements++;
            return true;
        }
    }
    return false;
}

static char get(void)
{
    while ((ferrule_mmio_read32(UART_STATE) & UART_RX_FULL) == 0) {
    }
    return (char)ferrule_mmio_read32(UART_DATA);
}

/* t: measure and compare; +: raise the wanted temperature; !: a mistake, for the report of a crash */
int main(void)
{
    uint32_t wanted = 20, degrees = 0;

    ferrule_mmio_write32(UART_BAUD, 217);
    ferrule_mmio_write32(UART_CTRL, UART_ENABLE);
    print("thermostat ready\r\n");
    for (;;) {
        char command = get();
        if (command == '+') {
            wanted++;
            print("wanted: ");
            print_number(wanted);
            print("\r\n");
        } else if (command == 't' && measure(&degrees)) {
            print_number(degrees);
            print(degrees < wanted ? " degrees, heater on\r\n" : " degrees, heater off\r\n");
        } else if (command == 't') {
            print("error: the sensor does not answer\r\n");
        } else if (command == '!') {
            ferrule_mmio_write32(0xDEAD0000u, 1);
        }
    }
}
