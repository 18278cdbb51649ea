/* The largest value of a variation that fits a card. One thread. */
#pragma once

#include "cli/fit/session.h"
#include "cli/fit/table.h"

/* Searches by bisection: later values should need more memory. Without a variation, returns the
 * answer for the only value. */
struct spw_cli_fit_row spw_cli_fit_search(struct spw_cli_fit_session *session,
                                          const struct spw_gpu_profile *card);
