/* Reading the policy file, once, before the first call is served. */
#pragma once

struct spw_stats;

/* Reads the file that SPILLWAY_POLICY names and puts it into force. A bad file is reported in one
 * line, and there is no policy then. Later calls do nothing. To be called without a lock, since it
 * calls the dynamic loader. */
void spw_policy_open_once(void);

/* Writes the names of the policy in force and of its rules to the statistics. Does nothing without
 * a policy. */
void spw_policy_publish(struct spw_stats *stats);
