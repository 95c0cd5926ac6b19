/* SPDX-License-Identifier: Apache-2.0 */
#include_next <zephyr/devicetree.h>

#ifndef STAND_IN_DEVICETREE_H
#define STAND_IN_DEVICETREE_H

#define DT_NODELABEL(label) stand_in_##label
#define DEVICE_DT_GET(node) (&(node))

extern const struct device stand_in_npu;

#endif /* STAND_IN_DEVICETREE_H */
