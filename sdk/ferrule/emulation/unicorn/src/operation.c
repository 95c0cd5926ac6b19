/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

bool ferrule_operation_accesses(uint32_t kind)
{
    return (kind >= FERRULE_LOAD && kind <= FERRULE_STORE_MULTIPLE) || kind == FERRULE_TABLE ||
           (kind >= FERRULE_FLOAT_LOAD && kind <= FERRULE_FLOAT_STORE_MULTIPLE);
}

bool ferrule_operation_is_load(uint32_t kind)
{
    return kind == FERRULE_LOAD || kind == FERRULE_LOAD_NARROW || kind == FERRULE_FLOAT_LOAD ||
           kind == FERRULE_EXCLUSIVE;
}

bool ferrule_operation_is_store(uint32_t kind)
{
    return kind == FERRULE_STORE || kind == FERRULE_STORE_REGISTER || kind == FERRULE_FLOAT_STORE;
}

bool ferrule_operation_is_product(uint32_t kind)
{
    return kind >= FERRULE_MULTIPLY && kind <= FERRULE_ACCUMULATE_LONG;
}

bool ferrule_operation_is_float(uint32_t kind)
{
    return (kind >= FERRULE_FLOAT_ADD && kind <= FERRULE_FLOAT_ROOT) || kind >= FERRULE_DOUBLE_ADD;
}
