/* SPDX-License-Identifier: Apache-2.0 */
/** @file Registers of ethos_u, as offsets in bytes; made from its register table. */
#ifndef ETHOS_U_REGISTERS_H
#define ETHOS_U_REGISTERS_H

#define ETHOS_U_WINDOW_BYTES 0x1000u

/* version of the product and of its architecture; read only */
#define ETHOS_U_ID                      0x00u
#define ETHOS_U_ID_VERSION_STATUS_SHIFT 0u
#define ETHOS_U_ID_VERSION_STATUS_MASK  0xfu
#define ETHOS_U_ID_VERSION_MINOR_SHIFT  4u
#define ETHOS_U_ID_VERSION_MINOR_MASK   0xf0u
#define ETHOS_U_ID_VERSION_MAJOR_SHIFT  8u
#define ETHOS_U_ID_VERSION_MAJOR_MASK   0xf00u
#define ETHOS_U_ID_PRODUCT_MAJOR_SHIFT  12u
#define ETHOS_U_ID_PRODUCT_MAJOR_MASK   0xf000u
#define ETHOS_U_ID_ARCH_PATCH_SHIFT     16u
#define ETHOS_U_ID_ARCH_PATCH_MASK      0xf0000u
#define ETHOS_U_ID_ARCH_MINOR_SHIFT     20u
#define ETHOS_U_ID_ARCH_MINOR_MASK      0xff00000u
#define ETHOS_U_ID_ARCH_MAJOR_SHIFT     28u
#define ETHOS_U_ID_ARCH_MAJOR_MASK      0xf0000000u

/* status bits; read only */
#define ETHOS_U_STATUS                         0x04u
#define ETHOS_U_STATUS_RUNNING                 (1u << 0)
#define ETHOS_U_STATUS_IRQ                     (1u << 1)
#define ETHOS_U_STATUS_BUS                     (1u << 2)
#define ETHOS_U_STATUS_RESETTING               (1u << 3)
#define ETHOS_U_STATUS_PARSE_ERROR             (1u << 4)
#define ETHOS_U_STATUS_END_REACHED             (1u << 5)
#define ETHOS_U_STATUS_PMU_IRQ                 (1u << 6)
#define ETHOS_U_STATUS_WEIGHT_FAULT            (1u << 7)
#define ETHOS_U_STATUS_ECC_FAULT               (1u << 8)
#define ETHOS_U_STATUS_FAULT_PORT              (1u << 11)
#define ETHOS_U_STATUS_FAULT_CHANNEL_SHIFT     12u
#define ETHOS_U_STATUS_FAULT_CHANNEL_MASK      0xf000u
#define ETHOS_U_STATUS_FAULT_CHANNEL_COMMAND   0x0u
#define ETHOS_U_STATUS_FAULT_CHANNEL_IFM       0x1000u
#define ETHOS_U_STATUS_FAULT_CHANNEL_WEIGHTS   0x2000u
#define ETHOS_U_STATUS_FAULT_CHANNEL_SCALES    0x3000u
#define ETHOS_U_STATUS_FAULT_CHANNEL_DMA_READ  0x4000u
#define ETHOS_U_STATUS_FAULT_CHANNEL_OFM       0x8000u
#define ETHOS_U_STATUS_FAULT_CHANNEL_DMA_WRITE 0x9000u
#define ETHOS_U_STATUS_IRQ_HISTORY_SHIFT       16u
#define ETHOS_U_STATUS_IRQ_HISTORY_MASK        0xffff0000u

/* commands; read and write */
#define ETHOS_U_CMD                     0x08u
#define ETHOS_U_CMD_RESET               0xcu
#define ETHOS_U_CMD_RUN                 (1u << 0)
#define ETHOS_U_CMD_CLEAR_IRQ           (1u << 1)
#define ETHOS_U_CMD_CLOCK_Q             (1u << 2)
#define ETHOS_U_CMD_POWER_Q             (1u << 3)
#define ETHOS_U_CMD_STOP_REQUEST        (1u << 4)
#define ETHOS_U_CMD_CLEAR_HISTORY_SHIFT 16u
#define ETHOS_U_CMD_CLEAR_HISTORY_MASK  0xffff0000u

/* writing it resets all registers and sets PROT; read and write */
#define ETHOS_U_RESET     0x0cu
#define ETHOS_U_RESET_CPL (1u << 0)
#define ETHOS_U_RESET_CSL (1u << 1)

/* address of the command stream, bits 31 to 0; read and write */
#define ETHOS_U_QBASE 0x10u

/* bits 63 to 32; zero on Ethos-U55; read and write */
#define ETHOS_U_QBASE_HIGH 0x14u

/* bytes of the command stream that were read; read only */
#define ETHOS_U_QREAD 0x18u

/* AXI configuration of the command stream, 0 to 3; read and write */
#define ETHOS_U_QCONFIG 0x1cu

/* size of the command stream in bytes; read and write */
#define ETHOS_U_QSIZE 0x20u

/* the active levels; read only */
#define ETHOS_U_PROT     0x24u
#define ETHOS_U_PROT_CPL (1u << 0)
#define ETHOS_U_PROT_CSL (1u << 1)

/* configuration of the product; read only */
#define ETHOS_U_CONFIG                      0x28u
#define ETHOS_U_CONFIG_MACS_LOG2_SHIFT      0u
#define ETHOS_U_CONFIG_MACS_LOG2_MASK       0xfu
#define ETHOS_U_CONFIG_STREAM_VERSION_SHIFT 4u
#define ETHOS_U_CONFIG_STREAM_VERSION_MASK  0xf0u
#define ETHOS_U_CONFIG_SHRAM_KIB_SHIFT      8u
#define ETHOS_U_CONFIG_SHRAM_KIB_MASK       0xff00u
#define ETHOS_U_CONFIG_SAFETY               (1u << 26)
#define ETHOS_U_CONFIG_CUSTOM_DMA           (1u << 27)
#define ETHOS_U_CONFIG_PRODUCT_SHIFT        28u
#define ETHOS_U_CONFIG_PRODUCT_MASK         0xf0000000u

/* a number without an effect, for software; read and write */
#define ETHOS_U_LOCK 0x2cu

/* AXI configuration of each region, 2 bits each; read and write */
#define ETHOS_U_REGIONCFG 0x3cu

/* limits of an AXI configuration; read and write */
#define ETHOS_U_AXI_LIMIT_COUNT           4u
#define ETHOS_U_AXI_LIMIT(index)          (0x40u + 0x4u * (index))
#define ETHOS_U_AXI_LIMIT_MAX_BEATS_SHIFT 0u
#define ETHOS_U_AXI_LIMIT_MAX_BEATS_MASK  0x3u
#define ETHOS_U_AXI_LIMIT_MEMTYPE_SHIFT   4u
#define ETHOS_U_AXI_LIMIT_MEMTYPE_MASK    0xf0u
#define ETHOS_U_AXI_LIMIT_READS_M1_SHIFT  16u
#define ETHOS_U_AXI_LIMIT_READS_M1_MASK   0xff0000u
#define ETHOS_U_AXI_LIMIT_WRITES_M1_SHIFT 24u
#define ETHOS_U_AXI_LIMIT_WRITES_M1_MASK  0xff000000u

/* address of a region, bits 31 to 0; read and write */
#define ETHOS_U_BASEP_COUNT  8u
#define ETHOS_U_BASEP(index) (0x80u + 0x8u * (index))

/* bits 63 to 32; zero on Ethos-U55; read and write */
#define ETHOS_U_BASEP_HIGH_COUNT  8u
#define ETHOS_U_BASEP_HIGH(index) (0x84u + 0x8u * (index))

/* control of the performance monitor; read and write; EVENT_COUNTERS: read only */
#define ETHOS_U_PMCR                      0x180u
#define ETHOS_U_PMCR_RESET                0x2000u
#define ETHOS_U_PMCR_ENABLE               (1u << 0)
#define ETHOS_U_PMCR_RESET_EVENTS         (1u << 1)
#define ETHOS_U_PMCR_RESET_CYCLES         (1u << 2)
#define ETHOS_U_PMCR_MASK_ENABLE          (1u << 3)
#define ETHOS_U_PMCR_EVENT_COUNTERS_SHIFT 11u
#define ETHOS_U_PMCR_EVENT_COUNTERS_MASK  0xf800u

/* enables counters; read; a one sets */
#define ETHOS_U_PMCNTENSET              0x184u
#define ETHOS_U_PMCNTENSET_EVENTS_SHIFT 0u
#define ETHOS_U_PMCNTENSET_EVENTS_MASK  0xfu
#define ETHOS_U_PMCNTENSET_CYCLES       (1u << 31)

/* disables counters; read; a one clears */
#define ETHOS_U_PMCNTENCLR              0x188u
#define ETHOS_U_PMCNTENCLR_EVENTS_SHIFT 0u
#define ETHOS_U_PMCNTENCLR_EVENTS_MASK  0xfu
#define ETHOS_U_PMCNTENCLR_CYCLES       (1u << 31)

/* sets overflows; read; a one sets */
#define ETHOS_U_PMOVSSET              0x18cu
#define ETHOS_U_PMOVSSET_EVENTS_SHIFT 0u
#define ETHOS_U_PMOVSSET_EVENTS_MASK  0xfu
#define ETHOS_U_PMOVSSET_CYCLES       (1u << 31)

/* clears overflows; read; a one clears */
#define ETHOS_U_PMOVSCLR              0x190u
#define ETHOS_U_PMOVSCLR_EVENTS_SHIFT 0u
#define ETHOS_U_PMOVSCLR_EVENTS_MASK  0xfu
#define ETHOS_U_PMOVSCLR_CYCLES       (1u << 31)

/* enables overflow interrupts; read; a one sets */
#define ETHOS_U_PMINTSET              0x194u
#define ETHOS_U_PMINTSET_EVENTS_SHIFT 0u
#define ETHOS_U_PMINTSET_EVENTS_MASK  0xfu
#define ETHOS_U_PMINTSET_CYCLES       (1u << 31)

/* disables overflow interrupts; read; a one clears */
#define ETHOS_U_PMINTCLR              0x198u
#define ETHOS_U_PMINTCLR_EVENTS_SHIFT 0u
#define ETHOS_U_PMINTCLR_EVENTS_MASK  0xfu
#define ETHOS_U_PMINTCLR_CYCLES       (1u << 31)

/* cycle counter, bits 31 to 0; read and write */
#define ETHOS_U_PMCCNTR 0x1a0u

/* bits 47 to 32; read and write */
#define ETHOS_U_PMCCNTR_HIGH 0x1a4u

/* read and write */
#define ETHOS_U_PMCCNTR_CFG             0x1a8u
#define ETHOS_U_PMCCNTR_CFG_START_SHIFT 0u
#define ETHOS_U_PMCCNTR_CFG_START_MASK  0x3ffu
#define ETHOS_U_PMCCNTR_CFG_STOP_SHIFT  16u
#define ETHOS_U_PMCCNTR_CFG_STOP_MASK   0x3ff0000u

/* choice of AXI events; the model only stores it; read and write */
#define ETHOS_U_PMCAXI_CHAN 0x1acu

/* event counter; read and write */
#define ETHOS_U_PMEVCNTR_COUNT  4u
#define ETHOS_U_PMEVCNTR(index) (0x300u + 0x4u * (index))

/* number of the counted event; read and write */
#define ETHOS_U_PMEVTYPER_COUNT  4u
#define ETHOS_U_PMEVTYPER(index) (0x380u + 0x4u * (index))

#endif /* ETHOS_U_REGISTERS_H */
