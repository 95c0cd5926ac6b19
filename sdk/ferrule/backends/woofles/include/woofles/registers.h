/* SPDX-License-Identifier: Apache-2.0 */
/** @file Registers of woofles, as offsets in bytes; made from its register table. */
#ifndef WOOFLES_REGISTERS_H
#define WOOFLES_REGISTERS_H

#define WOOFLES_WINDOW_BYTES 0x1000u

/* identification: the bytes WOFL in memory; read only */
#define WOOFLES_ID       0x00u
#define WOOFLES_ID_RESET 0x4c464f57u

/* version of the registers and the commands; read only */
#define WOOFLES_VERSION       0x04u
#define WOOFLES_VERSION_RESET 0x1u

/* control bits; read and write */
#define WOOFLES_CONTROL            0x08u
#define WOOFLES_CONTROL_ENABLE     (1u << 0)
#define WOOFLES_CONTROL_IRQ_ENABLE (1u << 1)
#define WOOFLES_CONTROL_RESET      (1u << 2)

/* status bits; read only */
#define WOOFLES_STATUS            0x0cu
#define WOOFLES_STATUS_BUSY       (1u << 0)
#define WOOFLES_STATUS_DONE       (1u << 1)
#define WOOFLES_STATUS_ERROR      (1u << 2)
#define WOOFLES_STATUS_CODE_SHIFT 8u
#define WOOFLES_STATUS_CODE_MASK  0xff00u

/* reasons of the interrupt; read; a one clears */
#define WOOFLES_INTERRUPT       0x10u
#define WOOFLES_INTERRUPT_DONE  (1u << 0)
#define WOOFLES_INTERRUPT_ERROR (1u << 1)

/* address of the command ring, a multiple of 4; read and write */
#define WOOFLES_QUEUE_BASE 0x14u

/* capacity of the ring in commands, 1 to 256; read and write */
#define WOOFLES_QUEUE_LENGTH 0x18u

/* index after the last command written; writing it is the doorbell; read and write */
#define WOOFLES_QUEUE_HEAD 0x1cu

/* index of the next command to execute; read only */
#define WOOFLES_QUEUE_TAIL 0x20u

/* number of commands executed since the reset; read only */
#define WOOFLES_COMPLETED 0x24u

/* sequence number of the last command executed; read only */
#define WOOFLES_SEQUENCE 0x28u

/* address of the bus error; read only */
#define WOOFLES_ERROR_ADDRESS 0x2cu

#endif /* WOOFLES_REGISTERS_H */
