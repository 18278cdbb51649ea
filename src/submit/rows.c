#include "submit/rows.h"

/* The address of one end of a copy, `src` or `dst`; 0 for an array. */
#define FIRST_OF(copy, end)                                                                        \
    ((copy)->end##MemoryType == CU_MEMORYTYPE_ARRAY  ? 0                                           \
     : (copy)->end##MemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)(copy)->end##Host      \
                                                     : (uint64_t)(copy)->end##Device)
#define AT_2D(copy, end)                                                                           \
    (FIRST_OF(copy, end) == 0                                                                      \
         ? 0                                                                                       \
         : FIRST_OF(copy, end) + (copy)->end##Y * (copy)->end##Pitch + (copy)->end##XInBytes)
#define AT_3D(copy, end)                                                                           \
    (AT_2D(copy, end) == 0                                                                         \
         ? 0                                                                                       \
         : AT_2D(copy, end) + (copy)->end##Z * (copy)->end##Height * (copy)->end##Pitch)
#define SIDE_3D(copy, end)                                                                         \
    {                                                                                              \
        AT_3D(copy, end), (copy)->end##Pitch, (copy)->end##Height *(copy)->end##Pitch              \
    }
#define BOX_3D(copy)                                                                               \
    ((struct spw_cut_box){.to = SIDE_3D(copy, dst),                                                \
                          .from = SIDE_3D(copy, src),                                              \
                          .unit = 1,                                                               \
                          .width = (copy)->WidthInBytes,                                           \
                          .height = (copy)->Height,                                                \
                          .depth = (copy)->Depth})

struct spw_cut_box spw_submit_rows_2d(const CUDA_MEMCPY2D *copy)
{
    return (struct spw_cut_box){.to = {.address = AT_2D(copy, dst), .pitch = copy->dstPitch},
                                .from = {.address = AT_2D(copy, src), .pitch = copy->srcPitch},
                                .unit = 1,
                                .width = copy->WidthInBytes,
                                .height = copy->Height,
                                .depth = 1};
}

struct spw_cut_box spw_submit_rows_3d(const CUDA_MEMCPY3D *copy)
{
    return BOX_3D(copy);
}

struct spw_cut_box spw_submit_rows_3d_peer(const CUDA_MEMCPY3D_PEER *copy)
{
    return BOX_3D(copy);
}

/* Row length and layer height of 0 mean: without gaps. */
static struct spw_cut_side side_of(const CUmemcpy3DOperand *operand, const CUextent3D *extent)
{
    size_t row = operand->op.ptr.rowLength, layer = operand->op.ptr.layerHeight;

    row = row > 0 ? row : extent->width;
    return (struct spw_cut_side){operand->op.ptr.ptr, row,
                                 (layer > 0 ? layer : extent->height) * row};
}

struct spw_cut_box spw_submit_rows_batched(const CUDA_MEMCPY3D_BATCH_OP *copy)
{
    /* With an array, the extent is in elements of the array. */
    if (copy->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
        copy->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER) {
        return (struct spw_cut_box){.unit = 1,
                                    .width = copy->extent.width,
                                    .height = copy->extent.height,
                                    .depth = copy->extent.depth};
    }
    return (struct spw_cut_box){.to = side_of(&copy->dst, &copy->extent),
                                .from = side_of(&copy->src, &copy->extent),
                                .unit = 1,
                                .width = copy->extent.width,
                                .height = copy->extent.height,
                                .depth = copy->extent.depth};
}

/* The members of one end, `src` or `dst`, that descriptors of all kinds have. */
#define SAME_2D(copy, end)                                                                         \
    .end##XInBytes = (copy)->end##XInBytes, .end##Y = (copy)->end##Y,                              \
    .end##MemoryType = (copy)->end##MemoryType, .end##Host = (copy)->end##Host,                    \
    .end##Device = (copy)->end##Device, .end##Array = (copy)->end##Array,                          \
    .end##Pitch = (copy)->end##Pitch

CUDA_MEMCPY3D_PEER spw_submit_rows_peer_of_2d(const CUDA_MEMCPY2D *copy,
                                              const struct spw_peer *peer)
{
    return (CUDA_MEMCPY3D_PEER){SAME_2D(copy, src),
                                SAME_2D(copy, dst),
                                .srcContext = peer->from,
                                .dstContext = peer->to,
                                .WidthInBytes = copy->WidthInBytes,
                                .Height = copy->Height,
                                .Depth = 1};
}

CUDA_MEMCPY3D_PEER spw_submit_rows_peer_of_3d(const CUDA_MEMCPY3D *copy,
                                              const struct spw_peer *peer)
{
    return (CUDA_MEMCPY3D_PEER){SAME_2D(copy, src),
                                SAME_2D(copy, dst),
                                .srcZ = copy->srcZ,
                                .srcLOD = copy->srcLOD,
                                .srcHeight = copy->srcHeight,
                                .srcContext = peer->from,
                                .dstZ = copy->dstZ,
                                .dstLOD = copy->dstLOD,
                                .dstHeight = copy->dstHeight,
                                .dstContext = peer->to,
                                .WidthInBytes = copy->WidthInBytes,
                                .Height = copy->Height,
                                .Depth = copy->Depth};
}

#define CUT_2D(copy, part)                                                                         \
    do {                                                                                           \
        (copy)->dstXInBytes += (part)->x;                                                          \
        (copy)->srcXInBytes += (part)->x;                                                          \
        (copy)->dstY += (part)->y;                                                                 \
        (copy)->srcY += (part)->y;                                                                 \
        (copy)->WidthInBytes = (part)->width;                                                      \
        (copy)->Height = (part)->height;                                                           \
    } while (0)
#define CUT_3D(copy, part)                                                                         \
    do {                                                                                           \
        CUT_2D(copy, part);                                                                        \
        (copy)->dstZ += (part)->z;                                                                 \
        (copy)->srcZ += (part)->z;                                                                 \
        (copy)->Depth = (part)->depth;                                                             \
    } while (0)

void spw_submit_rows_cut_2d(CUDA_MEMCPY2D *copy, const struct spw_cut_part *part)
{
    CUT_2D(copy, part);
}

void spw_submit_rows_cut_3d(CUDA_MEMCPY3D *copy, const struct spw_cut_part *part)
{
    CUT_3D(copy, part);
}

void spw_submit_rows_cut_3d_peer(CUDA_MEMCPY3D_PEER *copy, const struct spw_cut_part *part)
{
    CUT_3D(copy, part);
}

static void cut_operand(CUmemcpy3DOperand *operand, const struct spw_cut_side *side,
                        const struct spw_cut_box *box, const struct spw_cut_part *part)
{
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
        operand->op.ptr.ptr += part->z * side->slice + part->y * side->pitch + part->x;
        operand->op.ptr.layerHeight = side->pitch > 0 ? side->slice / side->pitch : box->height;
        operand->op.ptr.rowLength = side->pitch;
    }
}

void spw_submit_rows_cut_batched(CUDA_MEMCPY3D_BATCH_OP *copy, const struct spw_cut_box *box,
                                 const struct spw_cut_part *part)
{
    cut_operand(&copy->dst, &box->to, box, part);
    cut_operand(&copy->src, &box->from, box, part);
    copy->extent = (CUextent3D){part->width, part->height, part->depth};
}
