/* CUDA_VISIBLE_DEVICES: which of the machine's devices a process sees, and in which order.
 *
 * As the CUDA programming guide describes it: indices, or UUIDs (GPU-a0737069-..., or enough of one
 * to tell the device from the others), separated by commas; the list ends before the first entry
 * that is no device. Where the guide is silent, this follows what PyTorch expects of the driver: an
 * index is the number an entry begins with, indices and UUIDs do not mix, and a device that is
 * named twice makes the list empty. No locking, no allocation. */
#pragma once

#include <stddef.h>

/* A UUID in the form of GPU-a0737069-6c6c-7761-792d-73696d2d6770, with its terminator. */
#define SIM_UUID_TEXT 41

/* Writes the UUID of a device, by its index on the machine. */
void sim_uuid_of(int index, unsigned char ret_uuid[16]);
void sim_uuid_text(int index, char ret_text[SIM_UUID_TEXT]);

/* The indices of the devices that `list` (NULL: not set) makes visible of `count`, in order; how
 * many there are. `ret_indices` has room for `count`. */
int sim_visible_devices(const char *list, int count, int *ret_indices);
