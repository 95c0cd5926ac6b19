/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RTE_COMPONENTS_H
#define RTE_COMPONENTS_H

#define CMSIS_device_header "host_device.h"

#endif /* RTE_COMPONENTS_H */
