/* The commands, each in a file of its name, and the main function. It does not know the calls of
 * the program that runs.
 *
 *   advise    chooses memory that goes to the host, for a budget
 *   check     tests a program's memory against limits
 *   diff      compares two runs of a program
 *   doctor    examines the machine and its driver
 *   fit       finds the largest variation of a command that fits a card
 *   list      declares the commands
 *   main      finds the command, and runs it
 *   options   prints the table of options
 *   pause     pauses and resumes processes
 *   policy    checks, explains, suggests and describes policies
 *   ranks     merges the ranks of a job
 *   report    shows a recording in one of its forms
 *   run       runs a program under spillway
 *   sim       runs a program on the simulated GPU
 *   sites     prints call sites, of a process or a file
 *   top       shows running processes, live or once
 *
 * main.c calls the commands by a table. argv[0] is the command's name; the result is the exit code
 * (console/messages.h). Each runs on one thread. */
#pragma once

/* Runs a program on this machine's GPU under the memory pool. */
int spw_cli_command_run(int argc, char **argv);

/* Runs a program on a simulated GPU and reports if it fits. */
int spw_cli_command_sim(int argc, char **argv);

/* Lists the GPUs that a program fits on. */
int spw_cli_command_fit(int argc, char **argv);

/* Writes a policy that places memory of a program on the host. */
int spw_cli_command_advise(int argc, char **argv);

/* Lists the options. */
int spw_cli_command_options(int argc, char **argv);

/* Checks a policy file, explains its decisions, or describes the language. */
int spw_cli_command_policy(int argc, char **argv);

/* Shows the call sites in a statistics file. */
int spw_cli_command_sites(int argc, char **argv);

/* Shows a recording in one of several forms. */
int spw_cli_command_report(int argc, char **argv);

/* Tests the memory of a program against limits. */
int spw_cli_command_check(int argc, char **argv);

/* Compares the memory of two runs. */
int spw_cli_command_diff(int argc, char **argv);

/* Merges the memory of the ranks of a job. */
int spw_cli_command_ranks(int argc, char **argv);

/* Shows the memory of running processes. */
int spw_cli_command_top(int argc, char **argv);

/* Pauses running processes: moves their device memory, or a part of it, to the host or a file. */
int spw_cli_command_pause(int argc, char **argv);

/* Resumes paused processes. */
int spw_cli_command_resume(int argc, char **argv);

/* Reports the driver, its devices and the settings of this machine. */
int spw_cli_command_doctor(int argc, char **argv);
