/* The two kernels of `spillway doctor --measure` as PTX text: the driver compiles it for the
 * device. The simulated GPU knows them by name. */
#pragma once

/* spw_spin(uint32_t *flag): runs until *flag is not 0.
 * spw_read(const uint4 *from, uint64_t count, uint32_t *sink): reads `count` elements and writes
 * *sink only if their sum has one certain value. */
extern const char spw_cli_kernels[];
