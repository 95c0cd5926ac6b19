/* SPDX-License-Identifier: Apache-2.0 */
#include "cmsdk_bench.h"

#include <string.h>

#include "RTE_Components.h"
#include CMSIS_device_header

#include "usart_cmsdk.h"

enum { LINES = 64 };

FERRULE_USART_CMSDK(0, 0x40004000u, 25000000u, 0, 1, UART0_RX_Handler, UART0_TX_Handler);
FERRULE_USART_CMSDK(1, 0x50200000u, 20000000u, 32, 33, UART1_RX_Handler, UART1_TX_Handler);

static struct cmsdk_line lines[LINES];
static uint32_t masked;
static uint32_t due = LINES; /* the line to interrupt once interrupts are unmasked; LINES for
                              * none */

ARM_DRIVER_USART *cmsdk_driver(uint32_t number)
{
    return number == 0u ? &Driver_USART0 : &Driver_USART1;
}

void cmsdk_handle(uint32_t line)
{
    switch (line) {
    case 0:
        UART0_RX_Handler();
        break;
    case 1:
        UART0_TX_Handler();
        break;
    case 32:
        UART1_RX_Handler();
        break;
    default:
        UART1_TX_Handler();
        break;
    }
}

struct cmsdk_line *cmsdk_line(uint32_t line)
{
    return &lines[line];
}

uint32_t cmsdk_masked(void)
{
    return masked;
}

void NVIC_EnableIRQ(IRQn_Type line)
{
    lines[line].enabled = 1;
}

void NVIC_DisableIRQ(IRQn_Type line)
{
    lines[line].enabled = 0;
}

void NVIC_SetPendingIRQ(IRQn_Type line)
{
    lines[line].pending = 1;
}

void NVIC_ClearPendingIRQ(IRQn_Type line)
{
    lines[line].pending = 0;
}

void NVIC_SetPriority(IRQn_Type line, uint32_t priority)
{
    lines[line].priority = priority;
}

uint32_t __get_PRIMASK(void)
{
    return masked;
}

void cmsdk_interrupt_when_unmasked(uint32_t line)
{
    due = line;
}

void __set_PRIMASK(uint32_t value)
{
    masked = value;
    if (due < LINES) {
        const uint32_t line = due;
        due = LINES;
        cmsdk_handle(line);
    }
}

void __disable_irq(void)
{
    masked = 1;
}

uint32_t cmsdk_status(uint32_t number)
{
    const ARM_USART_STATUS status = cmsdk_driver(number)->GetStatus();
    uint32_t bits;
    memcpy(&bits, &status, sizeof bits);
    return bits;
}

uint32_t cmsdk_capabilities(uint32_t number)
{
    const ARM_USART_CAPABILITIES capabilities = cmsdk_driver(number)->GetCapabilities();
    uint32_t bits;
    memcpy(&bits, &capabilities, sizeof bits);
    return bits;
}

uint32_t cmsdk_modem(uint32_t number)
{
    const ARM_USART_MODEM_STATUS status = cmsdk_driver(number)->GetModemStatus();
    uint32_t bits;
    memcpy(&bits, &status, sizeof bits);
    return bits;
}

uint32_t cmsdk_api(uint32_t number)
{
    return cmsdk_driver(number)->GetVersion().api;
}
