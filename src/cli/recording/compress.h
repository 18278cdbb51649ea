/* Compresses the recording of a process that has ended. One thread. */
#pragma once

#include <stdbool.h>

/* Replaces the file by a compressed one. False, and the file stays, on any failure or if it is no
 * plain recording. */
bool spw_cli_recording_compress(const char *path);
