/* Threads of spillway's own in the program's process. */
#pragma once

#include <stdbool.h>

/* Starts a detached thread with all signals blocked. False when it cannot be created. */
bool spw_service_thread_start(void *(*run)(void *argument), void *argument);
