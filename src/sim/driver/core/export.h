/* Marks the functions that libcuda.so.1 exports; all others are hidden. */
#pragma once

#define SIM_EXPORT __attribute__((visibility("default")))
