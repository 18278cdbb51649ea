/* The two kernels of `spillway doctor --measure`, as PTX text that the driver translates for the
 * GPU at hand, so that no compiler is needed. The simulated GPU knows them by name. */
#pragma once

/* spw_spin(uint32_t *flag): runs until *flag is not 0.
 * spw_read(const uint4 *from, uint64_t count, uint32_t *sink): reads all, writes next to nothing.
 */
extern const char spw_cli_kernels[];
