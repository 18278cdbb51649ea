/* Converts copies of rows and volumes to boxes (cut.h), and parts of boxes back to such copies.
 *
 * A side that is an array has address 0 in its box. Extents are in bytes. No lock. */
#pragma once

#include "driver/cuda_api.h"
#include "program/peer.h"
#include "submit/cut.h"

/* Return the box of a copy. */
struct spw_cut_box spw_submit_rows_2d(const CUDA_MEMCPY2D *copy);
struct spw_cut_box spw_submit_rows_3d(const CUDA_MEMCPY3D *copy);
struct spw_cut_box spw_submit_rows_3d_peer(const CUDA_MEMCPY3D_PEER *copy);
struct spw_cut_box spw_submit_rows_batched(const CUDA_MEMCPY3D_BATCH_OP *copy);

/* Return the copy as a peer copy. */
CUDA_MEMCPY3D_PEER spw_submit_rows_peer_of_2d(const CUDA_MEMCPY2D *copy,
                                              const struct spw_peer *peer);
CUDA_MEMCPY3D_PEER spw_submit_rows_peer_of_3d(const CUDA_MEMCPY3D *copy,
                                              const struct spw_peer *peer);

/* Reduce a copy to a part of its box. */
void spw_submit_rows_cut_2d(CUDA_MEMCPY2D *copy, const struct spw_cut_part *part);
void spw_submit_rows_cut_3d(CUDA_MEMCPY3D *copy, const struct spw_cut_part *part);
void spw_submit_rows_cut_3d_peer(CUDA_MEMCPY3D_PEER *copy, const struct spw_cut_part *part);
void spw_submit_rows_cut_batched(CUDA_MEMCPY3D_BATCH_OP *copy, const struct spw_cut_box *box,
                                 const struct spw_cut_part *part);
