/* Waiting for the device on behalf of the program. */
#pragma once

#include "process/process.h"

/* Waits for all work of the device that has the block, and reports the wait to the device's pool.
 * Does nothing if there is no block at the address, or while a capture is open. Returns the
 * driver's result, which may be an error of earlier work. Called with a lease, which is kept, and
 * without a lock. */
CUresult spw_serve_synchronize_block(CUdeviceptr address);
