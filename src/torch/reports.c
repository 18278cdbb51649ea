#include "torch/reports.h"

#include "common/grow.h"
#include "process/process.h"
#include "system/lock.h"
#include "torch/state.h"

struct spw_torch_report {
    uint64_t address, bytes;
};

enum { REPORTS_MOST = 1024 };

static struct spw_torch_reports *const reports = &spw_torch.reports;

static uint64_t count(void)
{
    return atomic_load_explicit(&reports->count, memory_order_relaxed);
}

static void set_count(uint64_t value)
{
    atomic_store_explicit(&reports->count, value, memory_order_relaxed);
}

/* Called by the simulator. */
static void hand_over(void (*take)(unsigned long long address, unsigned long long bytes))
{
    spw_lock(&spw_locks.tensors);
    for (uint64_t i = 0; i < count(); i++) {
        take(reports->list[i].address, reports->list[i].bytes);
    }
    set_count(0);
    spw_unlock(&spw_locks.tensors);
}

/* The simulator takes the reports when it is given their source. */
static void give_source(void)
{
    spw_process_driver()->simulated_blocks(&reports->count, hand_over);
}

void spw_torch_reports_begin(void)
{
    reports->wanted = spw_process_driver()->simulated_blocks != NULL;
    if (reports->wanted) {
        give_source();
    }
}

/* Returns true if the last report is that of a tensor at the address. The first report stays,
 * because the simulator must learn that the program has had a tensor. */
static bool is_last(uint64_t address)
{
    const struct spw_torch_report *end = &reports->list[count()];

    return count() > 1 && end[-1].address == address && end[-1].bytes > 0;
}

void spw_torch_reports_add(uint64_t address, uint64_t bytes)
{
    if (!reports->wanted) {
        return;
    }
    if (bytes == 0 && is_last(address)) {
        set_count(count() - 1);
    } else if (SPW_GROW(&reports->list, &reports->capacity, count() + 1)) {
        reports->list[count()] = (struct spw_torch_report){address, bytes};
        set_count(count() + 1);
    }
}

void spw_torch_reports_limit(void)
{
    if (SPW_UNLIKELY(count() >= REPORTS_MOST)) {
        give_source();
    }
}
