/* Joins the policies that are chosen for the ranks of a job, since all ranks run with one. Pure. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

/* Adds to `policy` the rules of `other` that it lacks. Of two rules for the same memory, the one
 * that places more on the host stays. Takes ownership of both; one may be NULL. Returns the result,
 * or NULL if both are NULL, if memory runs out, or if there are too many rules for a policy. */
cJSON *spw_cli_keep_merge(cJSON *policy, cJSON *other);
