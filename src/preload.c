/* libspillway.so, built from the folders of the object. It does not know the command and the
 * simulator.
 *
 *   exports   the versions of exported symbols
 *   preload   the only file that knows every folder
 *
 * preload.c lists the calls at the initialisation of CUDA and at the first use of a device. Loading
 * the object only notes the current folder (system/start.h). */
#include "device/lookup.h"
#include "intercept/entry.h"
#include "intercept/fork.h"
#include "policy/open.h"
#include "process/process.h"
#include "service/control.h"
#include "service/share.h"
#include "setup/mode.h"
#include "setup/start.h"
#include "torch/torch.h"

static bool start(struct spw_process *process)
{
    if (!spw_device_find_all(spw_process_driver())) {
        return false;
    }
    spw_setup_settings(process);
    spw_setup_statistics(process);
    spw_policy_publish(process->stats);
    spw_setup_outputs(process);
    spw_intercept_fork_watch();
    return true;
}

static void opened(void)
{
    spw_setup_mode_announce();
    spw_service_control_start();
    spw_service_share_join();
}

void (*const *const spw_intercept_entries)(void) = spw_intercept_entry_table;

const struct spw_process_ops spw_process_ops = {
    .look = spw_torch_look,
    .start = start,
    .opened = opened,
};
