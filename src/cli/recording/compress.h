/* Compresses a recording that its process has ended. One thread. */
#pragma once

#include <stdbool.h>

/* Replaces the file by a compressed one; when anything fails, it stays as it is. Returns true when
 * it was replaced. A file that is no plain recording is left alone. */
bool spw_cli_recording_compress(const char *path);
