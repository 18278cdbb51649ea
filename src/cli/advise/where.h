/* The part of a call site that a rule of a policy matches. Usually this is the innermost Python
 * frame. The threads of the backward pass have no Python frame, so their call sites are matched by
 * the autograd node. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

enum { SPW_CLI_ADVISE_NAME = 192 };

struct spw_cli_advise_where {
    char file[SPW_CLI_ADVISE_NAME]; /* end of the path; "": there is no Python frame */
    char function[SPW_CLI_ADVISE_NAME];
    uint32_t line;
    char node[SPW_CLI_ADVISE_NAME]; /* "": the site is matched by the Python frame */
};

/* Finds the part of a site that a rule matches. Returns false if no rule can match the site. */
bool spw_cli_advise_where_of(uint32_t site, struct spw_cli_advise_where *ret_where);

/* Returns true if the same rule matches both sites. */
bool spw_cli_advise_where_is_same(const struct spw_cli_advise_where *one,
                                  const struct spw_cli_advise_where *other);

/* Copies a name as a pattern of policies that matches only this name. Returns false if the pattern
 * does not fit in the buffer. */
bool spw_cli_advise_where_pattern(const char *name, char ret_pattern[SPW_CLI_ADVISE_NAME]);

/* Adds the conditions that match the site to the `match` object of a rule. Returns false if memory
 * runs out. */
bool spw_cli_advise_where_match(const struct spw_cli_advise_where *where, cJSON *match);

/* Writes a name for a rule. The name has at most 48 bytes: letters, digits, '-', '_' and '.'. */
void spw_cli_advise_where_name(const struct spw_cli_advise_where *where, char ret_name[64]);
