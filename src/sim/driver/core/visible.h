/* CUDA_VISIBLE_DEVICES: the machine's devices that a process sees, and their order.
 *
 * The format follows the CUDA programming guide: indices, or UUIDs (GPU-a0737069-..., or a unique
 * beginning of one), separated by commas; the list ends before the first entry that names no
 * device. The guide leaves some cases open. Here the code behaves as PyTorch expects: an index is
 * the number at the beginning of an entry; indices and UUIDs must not be mixed; and a list that
 * names a device twice is empty. Locking: none needed. The functions allocate no memory. */
#pragma once

#include <stddef.h>

/* A UUID in the form of GPU-a0737069-6c6c-7761-792d-73696d2d6770, with its terminator. */
#define SIM_UUID_TEXT 41

/* Write the UUID of a device, which is given by its index on the machine, as bytes or as text. */
void sim_uuid_of(int index, unsigned char ret_uuid[16]);
void sim_uuid_text(int index, char ret_text[SIM_UUID_TEXT]);

/* Writes the indices of the devices that `list` makes visible, in order, and returns their number.
 * If `list` is NULL, the variable is not set, and all `count` devices are visible. `ret_indices`
 * has room for `count`. */
int sim_visible_devices(const char *list, int count, int *ret_indices);
