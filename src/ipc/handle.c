#include "ipc/handle.h"

#include "system/pid.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x797770696c6c7073)

bool spw_ipc_random(void *data, unsigned bytes)
{
    return getrandom(data, bytes, GRND_NONBLOCK) == (ssize_t)bytes;
}

bool spw_ipc_handle_is_ours(const struct spw_ipc_handle *handle)
{
    return handle->magic == MAGIC;
}

/* The start of this process; 0: not known. */
static uint64_t own_start(void)
{
    uint64_t ticks = 0;
    char state;

    return spw_pid_start(0, &ticks, &state) ? ticks : 0;
}

bool spw_ipc_handle_is_mine(const struct spw_ipc_handle *handle)
{
    return handle->pid == (uint32_t)getpid() && handle->start == own_start();
}

void spw_ipc_handle_init(struct spw_ipc_handle *handle)
{
    memset(handle, 0, sizeof(*handle));
    handle->magic = MAGIC;
    handle->version = SPW_IPC_VERSION;
    handle->pid = (uint32_t)getpid();
    handle->start = own_start();
}
