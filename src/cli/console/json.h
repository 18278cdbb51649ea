/* Reads and writes JSON with cJSON. No locking. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Reads a JSON file. If the file cannot be read, sets errno and returns false. If the content is
 * not JSON, returns true and sets *ret_json to NULL. The caller deletes *ret_json. */
bool spw_cli_json_read(const char *path, cJSON **ret_json);

/* Return the value of a member. If the member is missing or has another type, the result is 0 or
 * NULL. A negative number is returned as 0. An empty string counts as missing. */
uint64_t spw_cli_json_number(const cJSON *object, const char *key);
const char *spw_cli_json_text(const cJSON *object, const char *key);
const cJSON *spw_cli_json_list(const cJSON *object, const char *key);

/* Adds a number to an object. */
void spw_cli_json_add(cJSON *object, const char *key, uint64_t number);

/* Prints a JSON value to stdout and deletes the value. `one_line` prints it on one line instead of
 * several. Control characters and bytes that are not UTF-8 are printed as '?', because the value
 * may contain hostile names. */
void spw_cli_json_print(cJSON *json, bool one_line);

/* Writes a JSON value to the file given with --json, in the form of spw_cli_json_print, and deletes
 * the value. If the file cannot be written, writes one line for `command` to stderr and returns
 * false. */
bool spw_cli_json_save(const char *command, cJSON *json, const char *path);

/* Writes a JSON value to a file, in the form of spw_cli_json_print, and replaces an existing file.
 * Always deletes the value. If the file cannot be written, sets errno and returns false. */
bool spw_cli_json_write(cJSON *json, const char *path);
