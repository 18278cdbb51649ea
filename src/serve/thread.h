/* Threads of spillway's own in the program's process. */
#pragma once

#include <stdbool.h>

/* Starts a detached thread in which all signals are blocked, so that none of the program's reaches
 * it. False when the process cannot have one. */
bool spw_serve_thread_start(void *(*run)(void *argument), void *argument);
