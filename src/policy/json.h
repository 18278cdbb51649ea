/* cJSON, as the few functions that are needed of it: linked into the command, opened with dlopen in
 * the preloaded object, where its names must not join the program's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

/* The functions of cJSON that policies need. */
struct spw_json {
    cJSON *(*parse)(const char *text, size_t length, const char **ret_end, cJSON_bool terminated);
    void (*destroy)(cJSON *tree);
    void *handle; /* of the library; NULL when it is linked */
};

/* Whether a value is of this type (cJSON_Object, ...); NULL is of none. The macros and functions of
 * cJSON's header that ask are part of the library. */
static inline bool spw_policy_json_is(const cJSON *node, int type)
{
    return node != NULL && (node->type & 0xFF) == type;
}

/* The number of items of a list, or of members of an object. */
size_t spw_policy_json_count(const cJSON *group);

/* The value of the first member named `key`; NULL when there is none. */
const cJSON *spw_policy_json_find(const cJSON *object, const char *key);

/* Opens libcjson.so.1 for this object alone: first in `folder`, if that is not NULL, and its lib/,
 * then from the system. False when there is none; *ret_json is then empty. Takes the loader's lock:
 * never to be called under one of ours. */
bool spw_policy_json_open(const char *folder, struct spw_json *ret_json);

/* Closes what spw_policy_json_open opened. */
void spw_policy_json_close(struct spw_json *json);
