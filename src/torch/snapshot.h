/* PyTorch's memory snapshots. */
#pragma once

#include "torch/library.h"

/* Adds the pool's memory to a snapshot (SnapshotInfo). Each tensor, and each free run, becomes a
 * segment with one block. */
void spw_torch_snapshot_add(const struct spw_torch_library *library,
                            struct spw_torch_snapshot *snapshot);
