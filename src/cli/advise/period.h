/* Finds the step in what repeats. Pure; no locking. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The shortest distance after which nearly all of the second half of a sequence repeats; 0: none
 * that occurs at least twice. */
size_t spw_cli_advise_period(const uint32_t *sequence, size_t count);
