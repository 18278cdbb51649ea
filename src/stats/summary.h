/* The summary: a few lines for people, at the end of the program. No lock, no allocation, no
 * floating point. */
#pragma once

#include "stats/stats.h"

/* Writes the summary of this `extent` to the descriptor `fd`. Writes nothing if no device was
 * used. */
void spw_stats_summary(const struct spw_stats *stats, enum spw_summary extent, int fd);
