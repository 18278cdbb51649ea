/* The launcher of a job in a command, such as torchrun: a program that starts the ranks of the job.
 * One thread. */
#pragma once

#include <stdbool.h>

/* Returns the name of the launcher if `argument` is one, also as a module of Python (python -m
 * torch.distributed.run). Returns NULL otherwise. */
const char *spw_cli_job_launcher(const char *argument);

/* Simulates a device for each rank that the launcher in `arguments` starts, and writes one line to
 * stderr. Does nothing if there is no launcher, if its arguments do not contain the number of
 * ranks, or if the user has set the number of devices. */
void spw_cli_job_set_devices(char *const *arguments);
