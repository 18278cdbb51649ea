/* Finds the role of an allocation in a PyTorch program from its call site alone, that is from
 * PyTorch's functions on the stack and from the thread. Pure; no locking. */
#pragma once

#include <stdbool.h>

#include "callsite/text.h"

enum spw_cli_role {
    SPW_CLI_ROLE_NONE,      /* the stack shows no role */
    SPW_CLI_ROLE_SETUP,     /* a module is created, moved or loaded */
    SPW_CLI_ROLE_INPUT,     /* a tensor is created on or copied to the device, outside of modules */
    SPW_CLI_ROLE_FORWARD,   /* a module is called */
    SPW_CLI_ROLE_OTHER,     /* other Python code */
    SPW_CLI_ROLE_BACKWARD,  /* the autograd engine runs */
    SPW_CLI_ROLE_OPTIMIZER, /* an optimizer steps */
    SPW_CLI_ROLE_STATE,     /* an optimizer creates or loads its state */
    SPW_CLI_ROLE_SHARD,     /* fully sharded data parallel (FSDP), outside of the wrapped modules */
    SPW_CLI_ROLE_WORKSPACE, /* a library allocates scratch memory, for a call or for its handle */
    SPW_CLI_ROLE_COMMUNICATION, /* buffers of torch.distributed */
};

/* Returns the role of a site. The site's description (callsite/facts.h) must have native frames. */
enum spw_cli_role spw_cli_role_of(const struct spw_callsite_facts *site);

/* Returns true for a thread of the autograd engine. */
bool spw_cli_role_is_autograd(const struct spw_callsite_facts *site);
