/* SPDX-License-Identifier: Apache-2.0 */
/** @file A devicetree with one node of each kind that becomes a device, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_DEVICETREE_H
#define FERRULE_FAKE_ZEPHYR_DEVICETREE_H

#include <zephyr/device.h>
#include <zephyr/sys/util.h>

#define DT_FOREACH_STATUS_OKAY(compatible, macro) FAKE_NODES_##compatible(macro)

#define FAKE_NODES_ferrule_mmio_accelerator(macro) macro(mmio)
#define FAKE_NODES_ferrule_soft_device(macro)      macro(soft)

#define DT_REG_ADDR(node) 0x40090000u
#define DT_REG_SIZE(node) 0x1000u
#define DT_DEP_ORD(node)  node

/** The data that Zephyr generates for a node at build time; the test runs the initialisation. */
struct ferrule_fake_node {
    int (*init)(const struct device *dev);
    struct device device;
};

extern const struct ferrule_fake_node ferrule_fake_node_mmio;
extern const struct ferrule_fake_node ferrule_fake_node_soft;

#define DEVICE_DT_DEFINE(node, init_fn, pm, data_ptr, config_ptr, level, priority, api_ptr)        \
    const struct ferrule_fake_node ferrule_fake_node_##node = {                                    \
        .init = (init_fn),                                                                         \
        .device = {.name = #node, .config = (config_ptr), .api = (api_ptr), .data = (data_ptr)}}

#endif /* FERRULE_FAKE_ZEPHYR_DEVICETREE_H */
