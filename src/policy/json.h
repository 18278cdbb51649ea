/* The functions of cJSON that policies need. The command is linked with cJSON. The preloaded object
 * opens the library with dlopen, because the library's names must not be visible to the program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

/* cJSON_ParseWithLengthOpts and cJSON_Delete. */
struct spw_json {
    cJSON *(*parse)(const char *text, size_t length, const char **ret_end, cJSON_bool terminated);
    void (*destroy)(cJSON *tree);
    void *handle; /* handle of the library; NULL if it is linked */
};

/* Returns true if `node` has this type (cJSON_Object, ...), and false for NULL. It replaces
 * cJSON_IsObject and its relatives, which are functions of the library. */
static inline bool spw_policy_json_is(const cJSON *node, int type)
{
    return node != NULL && (node->type & 0xFF) == type;
}

/* Returns the number of items of a list, or of members of an object. */
size_t spw_policy_json_count(const cJSON *group);

/* Returns the value of the first member called `key`; NULL if there is none. */
const cJSON *spw_policy_json_find(const cJSON *object, const char *key);

/* Opens libcjson.so.1, from `folder` or its subfolder lib/ (unless `folder` is NULL), or from the
 * system. If there is none, returns false and clears *ret_json. Calls the dynamic loader, so no
 * lock may be held. */
bool spw_policy_json_open(const char *folder, struct spw_json *ret_json);

/* Closes the library. */
void spw_policy_json_close(struct spw_json *json);
