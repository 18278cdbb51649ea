/* Reading the policy that is to be in force: once, before the first call is served. */
#pragma once

/* Reads what SPILLWAY_POLICY names; a bad file is reported in one line, and there is no policy.
 * Does nothing when that was done. No lock: the dynamic loader is asked. */
void spw_serve_policy_open_once(void);

/* The file that is in force; empty: none. */
const char *spw_serve_policy_file_name(void);
