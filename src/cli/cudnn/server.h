/* Answers the questions of the simulated cuDNN with the program's own cuDNN. It does not know the
 * verdict.
 *
 *   answers   answers of earlier runs, in a file
 *   choice    the library that the user names in its place
 *   library   NVIDIA's library
 *   server    the process that asks it
 *
 * cuDNN 9.8 and later choose engines for a device that is described in JSON, without a driver and a
 * device (NVIDIA's documentation: "Deviceless Ahead-of-time Compilation"). One process asks the
 * library for all processes of a run, because loading the library takes 0.5 s and 300 MiB. It is a
 * process of its own, because a defect of the library must not end the launcher. One thread. */
#pragma once

/* Starts the process and names its socket in the environment, unless it runs for the library that
 * SIM_CUDNN_LIBRARY names. It loads the library at the first question, and ends with this process.
 * Without it, the simulated cuDNN guesses. */
void spw_cli_cudnn_server_start(void);

/* The name of the hidden command that the process executes. */
#define SPW_CLI_CUDNN_SERVER "_cudnn"

/* The hidden command: answers until it is killed. Returns an exit code if there is no socket. */
int spw_cli_cudnn_server_child(int argc, char **argv);
