/* Waiting for the device on behalf of the program. */
#pragma once

#include "track/process.h"

/* Waits for all work of the context that a block was allocated in, and tells the pools. Nothing is
 * done for an address that is no block, or while a capture is open. Returns the driver's answer,
 * which may be an error of earlier work. Called with a lease, which is given up meanwhile, and
 * without a lock. */
CUresult spw_serve_synchronize_block(CUdeviceptr address);
