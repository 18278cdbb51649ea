/* `spillway sim --profile list`: the GPUs that can be simulated. One thread. */
#pragma once

/* Prints a table to stdout. */
void spw_cli_profiles_print(void);
