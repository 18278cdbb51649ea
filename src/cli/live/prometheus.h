/* The counters of processes as a text file that Prometheus' node exporter collects (its textfile
 * collector, which reads files with names that end in .prom). The form is the text format of
 * Prometheus, version 0.0.4. One thread. */
#pragma once

#include "cli/inspect/watched.h"

/* Replaces the file, so that a reader never sees a part of it: it is written beside it under
 * another name, and renamed. False with errno set when that fails. */
bool spw_cli_prometheus_write(const char *path, struct spw_cli_watched *const *list, int count);
