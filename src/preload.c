/* libspillway.so: the only file that knows every folder. It lists the calls at the initialisation
 * of CUDA and at the first use of a device. Loading the object only notes the current folder
 * (common/start.h). */
#include "device/open.h"
#include "intercept/entry.h"
#include "intercept/fork.h"
#include "serve/control.h"
#include "serve/policy_file.h"
#include "serve/share.h"
#include "setup/mode.h"
#include "setup/start.h"
#include "torch/torch.h"
#include "track/process.h"

static void prepare(void)
{
    spw_torch_look();
    spw_serve_policy_open_once();
}

static void start(struct spw_process *process)
{
    spw_setup_settings(process);
    spw_setup_statistics(process);
    spw_serve_policy_file_publish();
    spw_setup_outputs(process);
    spw_intercept_fork_watch();
}

static void opened(void)
{
    spw_setup_mode_announce();
    spw_serve_control_start();
    spw_serve_share_join();
}

void (*const *const spw_intercept_entries)(void) = spw_intercept_entry_table;

const struct spw_track_ops spw_track_ops = {
    .prepare = prepare,
    .look = spw_torch_look,
    .start = start,
    .open = spw_device_open,
    .opened = opened,
    .ask_others = spw_serve_share_ask,
};
