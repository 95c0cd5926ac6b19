/* SPDX-License-Identifier: Apache-2.0 */
#include "tvm/platform/zephyr.h"

#include <zephyr/devicetree.h>
#include <zephyr/drivers/uart.h>

#define SOFT_NPU DEVICE_DT_GET(DT_NODELABEL(soft_npu))
#define WOOFLES  DEVICE_DT_GET(DT_NODELABEL(ferrule_device1))
#include "first_form.h"

int main(void)
{
    static struct result result;
    const struct device *uart = DEVICE_DT_GET(DT_CHOSEN(ferrule_link_uart));

    infer(&result);
    for (size_t i = 0; i < sizeof result; i++) {
        uart_poll_out(uart, ((const uint8_t *)&result)[i]);
    }
    return 0;
}
