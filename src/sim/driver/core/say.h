/* Messages to the user of the simulator. */
#pragma once

/* The beginning of each line. */
#define SIM_SAY_PREFIX "spillway sim: "

/* Writes a line "spillway sim: text" to stderr. No lock is needed. */
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
