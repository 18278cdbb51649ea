/* NVIDIA's cuDNN, which the simulated one replaces. No locking. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Finds the library as the dynamic linker would find it for the object that contains the address
 * `caller`. Writes its path without symbolic links. False if it is not there. */
bool sim_cudnn_real_find(const void *caller, char ret_path[PATH_MAX]);
