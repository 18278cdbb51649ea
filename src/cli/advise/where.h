/* The part of a call site that a rule of a policy matches: the innermost Python frame or, on the
 * threads of the backward pass, which have no Python frame, the autograd node. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

enum { SPW_CLI_ADVISE_NAME = 192 };

struct spw_cli_advise_where {
    char file[SPW_CLI_ADVISE_NAME]; /* the end of a path; "": there is no Python frame */
    char function[SPW_CLI_ADVISE_NAME];
    uint32_t line;
    char node[SPW_CLI_ADVISE_NAME]; /* "": matched by the Python frame */
};

/* False when no rule can match the site. */
bool spw_cli_advise_where_of(uint32_t site, struct spw_cli_advise_where *ret_where);

/* True if the same rule matches both. */
bool spw_cli_advise_where_is_same(const struct spw_cli_advise_where *one,
                                  const struct spw_cli_advise_where *other);

/* Adds the conditions to the `match` of a rule. False without memory. */
bool spw_cli_advise_where_match(const struct spw_cli_advise_where *where, cJSON *match);

/* Writes a name for a rule, of letters, digits, '-', '_' and '.', at most 48 bytes. */
void spw_cli_advise_where_name(const struct spw_cli_advise_where *where, char ret_name[64]);
