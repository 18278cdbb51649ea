/* The verdict of a simulated run as JSON, for programs. One thread. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "cli/verdict/sim_result.h"

/* The verdict of a run whose command ended with exit code `code`, which the caller deletes:
 *
 * {"verdict": "fits" | "fits too tightly" | "spills" | "continued" | "does not fit" | "failed" |
 *             "unused" | "not recorded",
 *  "problem": WHY, if it is "not recorded",
 *  "exit_code": N, "profile": ID, "host_peak_bytes": N,
 *  "devices": [{"process": NAME, "pid": N, "device": N, "pooled": BOOL, ... bytes ...,
 *               "last_oom": {...} or null}]} */
cJSON *spw_cli_verdict_json(const struct spw_cli_sim_result *result, int code);

/* Its "verdict"; static. */
const char *spw_cli_verdict_json_name(const struct spw_cli_sim_result *result, int code);

/* Writes `json` to a file and deletes it. False, with a line of `command` on stderr, on failure. */
bool spw_cli_verdict_json_write(const char *command, cJSON *json, const char *path);
