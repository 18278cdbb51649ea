/* PyTorch's memory snapshots. */
#pragma once

#include "torch/library.h"

/* Adds the memory of the pool to a snapshot (SnapshotInfo): each tensor, and each free run, as a
 * segment with one block. */
void spw_torch_snapshot_add(const struct spw_torch_library *library,
                            struct spw_torch_snapshot *snapshot);
