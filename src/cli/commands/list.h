/* The commands, each in a file of the same name, and the main function. It does not know the calls
 * of the program that runs.
 *
 *   advise       chooses the memory that goes to the host to stay within a budget
 *   check        tests a program's memory against limits
 *   completion   prints the completions of a shell
 *   diff         compares two runs of a program
 *   doctor       examines the machine and its driver
 *   fit          finds the largest variation of a command that fits a card
 *   list         declares the commands
 *   main         finds the command, and runs it
 *   options      prints the table of options
 *   pause        pauses and resumes processes
 *   page         the page that `run` and `sim` write with --report
 *   policy       checks, explains, suggests, lists and describes policies
 *   ranks        merges the ranks of a job
 *   report       shows a recording in one of its forms
 *   run          runs a program under spillway
 *   sim          runs a program on the simulated GPU
 *   sites        prints call sites, of a process or a file
 *   top          shows running processes, live or once
 *
 * main.c looks a command up in a table and calls its function. argv[0] is the name of the command.
 * The function returns the exit code (console/messages.h). Each command runs on one thread. */
#pragma once

#define SPW_COMMAND(name, help) int spw_cli_command_##name(int argc, char **argv);
#include "cli/commands/list.def"
#undef SPW_COMMAND
