/* SPDX-License-Identifier: Apache-2.0 */
#include "first_host.h"

#include <stddef.h>

#include "tvm/platform/bare_metal.h"

#define SOFT_NPU NULL
#define WOOFLES  ((void *)0x40080000u)
#include "first_form.h"

static struct result result;

int8_t *first_result(void)
{
    return (int8_t *)&result;
}

void first_infer(void)
{
    infer(&result);
}
