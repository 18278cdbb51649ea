/* Reads the policy file, once, before the first call is served. */
#pragma once

#include <stdbool.h>

struct spw_stats;

/* Reads the file that SPILLWAY_POLICY names, and puts it into force. If the file is not valid,
 * writes one line, and no policy is in force. Later calls do nothing. Called without a lock,
 * because the dynamic loader is called. */
void spw_policy_open_once(void);

/* Returns true if the text of the file contains `word`, or if its policy is in force. Changes
 * nothing, and reports no mistake. */
bool spw_policy_open_mentions(const char *word);

/* Writes the names of the policy in force and of its rules to the statistics. Does nothing if no
 * policy is in force. */
void spw_policy_publish(struct spw_stats *stats);
