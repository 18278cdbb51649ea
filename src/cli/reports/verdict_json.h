/* The verdict of a simulated run as JSON, for programs. One thread. */
#pragma once

#include <stdbool.h>

#include "cli/reports/sim_result.h"

/* Writes the verdict of a run whose command ended with exit code `code` to a file. False, with one
 * line of `command` on stderr, when that is not possible.
 *
 * {"verdict": "fits" | "fits too tightly" | "spills" | "continued" | "does not fit" | "failed" |
 *             "unused",
 *  "exit_code": N, "profile": ID, "host_peak_bytes": N,
 *  "devices": [{"process": NAME, "pid": N, "device": N, "pooled": BOOL, ... bytes ...,
 *               "last_oom": {...} or null}]} */
bool spw_cli_verdict_json_write(const char *command, const struct spw_cli_sim_result *result,
                                int code, const char *path);
