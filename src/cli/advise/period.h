/* Finds the period of a sequence. Pure; no locking. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The shortest period that nearly all of the second half of a sequence has; 0: no period fits in it
 * twice. */
size_t spw_cli_advise_period(const uint32_t *sequence, size_t count);
