/* The functions of cJSON that policies need. The command links them; the preloaded object opens the
 * library with dlopen, because its names must not be visible to the program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

/* cJSON_ParseWithLengthOpts and cJSON_Delete. */
struct spw_json {
    cJSON *(*parse)(const char *text, size_t length, const char **ret_end, cJSON_bool terminated);
    void (*destroy)(cJSON *tree);
    void *handle; /* of the library; NULL when it is linked */
};

/* True when `node` has this type (cJSON_Object, ...); false for NULL. Replaces cJSON_IsObject and
 * the like, which are in the library. */
static inline bool spw_policy_json_is(const cJSON *node, int type)
{
    return node != NULL && (node->type & 0xFF) == type;
}

/* The number of items of a list, or of members of an object. */
size_t spw_policy_json_count(const cJSON *group);

/* The value of the first member named `key`; NULL when there is none. */
const cJSON *spw_policy_json_find(const cJSON *object, const char *key);

/* Opens libcjson.so.1 from `folder` or its lib/ (unless it is NULL), or from the system. Returns
 * false, with *ret_json empty, when there is none. Calls the dynamic loader: no lock may be
 * held. */
bool spw_policy_json_open(const char *folder, struct spw_json *ret_json);

/* Closes the library again. */
void spw_policy_json_close(struct spw_json *json);
