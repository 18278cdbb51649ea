/* The counters of processes as a text file for the textfile collector of Prometheus' node exporter,
 * which reads files named *.prom. The form is the text format of Prometheus, version 0.0.4. One
 * thread. */
#pragma once

#include "cli/inspect/watched.h"

/* Writes a new file under another name in the same folder, and renames it to `path`, so that a
 * reader never sees a part of it. False with errno set on failure. */
bool spw_cli_prometheus_write(const char *path, struct spw_cli_watched *const *list, int count);
