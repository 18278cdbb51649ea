/* JSON files and JSON output of the command, by cJSON. No locking. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Reads a file of JSON. False, with errno set, when the file cannot be read. *ret_json is NULL when
 * the content is not JSON. The caller deletes *ret_json. */
bool spw_cli_json_read(const char *path, cJSON **ret_json);

/* The value of a member; 0 or NULL when it is missing or of another type. Numbers are at least 0;
 * an empty string counts as missing. */
uint64_t spw_cli_json_number(const cJSON *object, const char *key);
const char *spw_cli_json_text(const cJSON *object, const char *key);
const cJSON *spw_cli_json_list(const cJSON *object, const char *key);

/* Adds a number to an object. */
void spw_cli_json_add(cJSON *object, const char *key, uint64_t number);

/* Prints a value to stdout, on several lines or on one, and deletes it. Control characters and
 * bytes that are not UTF-8 are printed as '?', because names in the value may be hostile. */
void spw_cli_json_print(cJSON *json, bool one_line);

/* Writes a value likewise to the file of --json. False, with a line of `command` on stderr, when
 * the file cannot be written. */
bool spw_cli_json_save(const char *command, cJSON *json, const char *path);

/* Writes a value likewise to a file, in place of an older file. Deletes the value in any case.
 * False, with errno set, when the file cannot be written. */
bool spw_cli_json_write(cJSON *json, const char *path);
