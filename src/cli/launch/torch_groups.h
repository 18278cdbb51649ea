/* The implementation of NCCL process groups that PyTorch uses.
 *
 * PyTorch 2.15 has a new one, which asks for a memory snapshot when a group is made. The allocator
 * backend of tensor mode refuses that, and the process ends (torch/distributed/
 * distributed_c10d.py reads the variable from Python's environment, where the object in the program
 * cannot answer). Older versions ignore the variable. */
#pragma once

/* Selects the older implementation in this process's environment, for the programs that it starts,
 * unless the user has chosen one or the mode leaves PyTorch its own allocator. Not thread-safe. */
void spw_cli_torch_groups_select(void);
