/* The largest value of a variation that fits a card. One thread. */
#pragma once

#include "cli/fit/session.h"
#include "cli/fit/table.h"

/* Finds it by bisection: values are expected to need more and more memory. Without a variation
 * there is one value, and the answer for it. */
struct spw_cli_fit_row spw_cli_fit_search(struct spw_cli_fit_session *session,
                                          const struct spw_gpu_profile *card);
