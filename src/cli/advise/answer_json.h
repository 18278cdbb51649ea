/* The advice as JSON, and on the page of a recording. One thread. */
#pragma once

#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/advise/settings.h"

/* Makes the beginning of an answer: the budget, the peak, and the curve of memory against time.
 * The caller deletes it. */
cJSON *spw_cli_advise_json_make(const struct spw_cli_advise_settings *settings,
                                enum spw_cli_advise_answer answer, uint64_t peak_bytes);

/* Adds the figures of a run, or the predicted figures of a plan. */
void spw_cli_advise_json_figures(cJSON *json, const char *key, uint64_t device_bytes,
                                 uint64_t host_bytes, uint64_t moved_bytes, double ratio);

/* Adds the predicted figures of a plan, in an object with the name `way`. Returns this object. */
cJSON *spw_cli_advise_json_plan(cJSON *json, const char *way,
                                const struct spw_cli_advise_settings *settings,
                                const struct spw_cli_advise_plan *plan);

/* Writes the page with a recording and an answer, and says where it is. Returns false, after a line
 * on stderr, if it cannot be written. */
bool spw_cli_advise_json_page(const struct spw_cli_advise_settings *settings, const char *recording,
                              const cJSON *answer);
