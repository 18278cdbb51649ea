/* A kernel that copies memory of the device again and again, beside other work: what it loses by
 * it shows what the work takes of the memory's bandwidth. One at a time. */
#pragma once

#include "probe.h"

/* Takes its memory, 1 GiB, and measures the kernel alone. */
void background_open(void);

/* Launches as much as runs for so long alone, at most 0.3 s. */
void background_begin(double microseconds);

/* Waits for it. How many times slower it ran during the work, which began when background_begin
 * returned and lasted so long; 0 if that cannot be told. */
double background_end(double microseconds);

void background_close(void);
