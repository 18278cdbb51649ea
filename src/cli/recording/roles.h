/* The role of an allocation in a PyTorch program, from its call site alone: PyTorch's functions on
 * the stack, and the thread. Pure; no locking. */
#pragma once

#include <stdbool.h>

#include "callsite/text.h"

enum spw_cli_role {
    SPW_CLI_ROLE_NONE,      /* the stack shows no role */
    SPW_CLI_ROLE_SETUP,     /* a module is made, moved or loaded */
    SPW_CLI_ROLE_INPUT,     /* a tensor is made or copied to the device, outside of modules */
    SPW_CLI_ROLE_FORWARD,   /* a module is called */
    SPW_CLI_ROLE_OTHER,     /* other Python code */
    SPW_CLI_ROLE_BACKWARD,  /* the autograd engine runs */
    SPW_CLI_ROLE_OPTIMIZER, /* an optimizer steps */
    SPW_CLI_ROLE_STATE,     /* an optimizer makes or loads its state */
    SPW_CLI_ROLE_SHARD,     /* fully sharded data parallel, outside of the modules that it wraps */
    SPW_CLI_ROLE_WORKSPACE, /* a library takes scratch memory, for a call or for its handle */
    SPW_CLI_ROLE_COMMUNICATION, /* buffers of torch.distributed */
};

/* The role of a site; its description (callsite/facts.h) must have native frames. */
enum spw_cli_role spw_cli_role_of(const struct spw_callsite_facts *site);

/* True for a thread of the autograd engine. */
bool spw_cli_role_is_autograd(const struct spw_callsite_facts *site);
