#include "sim/libs/cudnn/graph.h"

#include <string.h>

#include "sim/libs/common/matrix.h"

/* Attributes of cuDNN 9.20 and later, which older headers lack. */
enum {
    SDPA_FWD_DROPOUT_DUMP = 2817,
    SDPA_FWD_AMAX_S = 2828,
    SDPA_FWD_AMAX_O = 2829,
    SDPA_BWD_DSINK = 2864,
    SOFTMAX_Y = 3101,
    SOFTMAX_STATS = 3102,
    SOFTMAX_MAX = 3103,
    SOFTMAX_SUM_EXP = 3104
};

/* The attributes that operations write; they read all others. */
static const int written[] = {
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
    CUDNN_ATTR_OPERATION_POINTWISE_DXDESC,
    CUDNN_ATTR_OPERATION_MATMUL_CDESC,
    CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_YDESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC,
    SDPA_FWD_DROPOUT_DUMP,
    SDPA_FWD_AMAX_S,
    SDPA_FWD_AMAX_O,
    SDPA_BWD_DSINK,
    SOFTMAX_Y,
    SOFTMAX_STATS,
    SOFTMAX_MAX,
    SOFTMAX_SUM_EXP,
};

static bool is_written(cudnnBackendAttributeName_t name)
{
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        if (written[i] == (int)name) {
            return true;
        }
    }
    return false;
}

static int64_t element(const struct sim_cudnn_attribute *attribute, int64_t n)
{
    int64_t value;

    memcpy(&value, attribute->data + (size_t)n * sizeof(value), sizeof(value));
    return value;
}

/* Bytes from the first element to the last. */
static size_t tensor_bytes(const struct sim_cudnn_descriptor *tensor)
{
    const struct sim_cudnn_attribute *extents =
        sim_cudnn_descriptor_find(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const struct sim_cudnn_attribute *strides =
        sim_cudnn_descriptor_find(tensor, CUDNN_ATTR_TENSOR_STRIDES);
    int64_t type = sim_cudnn_descriptor_integer(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, -1);
    int64_t elements = 1;

    if (extents == NULL || strides == NULL || extents->count != strides->count) {
        return 0;
    }
    for (int64_t i = 0; i < extents->count; i++) {
        if (element(extents, i) <= 0) {
            return 0;
        }
        elements += (element(extents, i) - 1) * element(strides, i);
    }
    return ((size_t)elements * sim_cudnn_type_bits((cudnnDataType_t)type) + 7) / 8;
}

/* Calls visit() for every tensor of every operation of a graph. If visit() returns false, stops and
 * returns false. Some operations, such as attention, have operations or graphs as attributes. */
static bool for_each_tensor(const struct sim_cudnn_descriptor *holder,
                            bool (*visit)(const struct sim_cudnn_descriptor *operation,
                                          const struct sim_cudnn_descriptor *tensor, bool written,
                                          void *arg),
                            void *arg)
{
    for (const struct sim_cudnn_attribute *a = holder->attributes; a != NULL; a = a->next) {
        for (int64_t n = 0; n < a->count; n++) {
            const struct sim_cudnn_descriptor *child = sim_cudnn_descriptor_child(a, n);
            bool more = true;

            if (child != NULL && child->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
                more = visit(holder, child, is_written(a->name), arg);
            } else if (child != NULL) {
                more = for_each_tensor(child, visit, arg);
            }
            if (!more) {
                return false;
            }
        }
    }
    return true;
}

/* A search for a tensor by its unique id. */
struct search {
    int64_t number;
    const struct sim_cudnn_descriptor *tensor; /* NULL: not found */
    bool written;
};

static bool match(const struct sim_cudnn_descriptor *operation,
                  const struct sim_cudnn_descriptor *tensor, bool is_output, void *arg)
{
    struct search *search = arg;

    if (sim_cudnn_descriptor_integer(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, -1) == search->number) {
        search->tensor = tensor;
        search->written = search->written || is_output;
    }
    return true;
}

static cudnnStatus_t add_tensor(const struct sim_cudnn_descriptor *graph, int64_t number,
                                const void *data, struct sim_shim_work *work)
{
    struct search search = {.number = number};

    (void)for_each_tensor(graph, match, &search);
    if (search.tensor == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    if (sim_cudnn_descriptor_integer(search.tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0)) {
        return CUDNN_STATUS_SUCCESS;
    }
    if (search.written) {
        sim_shim_add_write(work, data, tensor_bytes(search.tensor));
    } else {
        sim_shim_add_read(work, data, tensor_bytes(search.tensor));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t sim_cudnn_graph_add(const struct sim_cudnn_descriptor *graph,
                                  const struct sim_cudnn_descriptor *pack,
                                  struct sim_shim_work *work)
{
    const struct sim_cudnn_attribute *numbers =
        sim_cudnn_descriptor_find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const struct sim_cudnn_attribute *pointers =
        sim_cudnn_descriptor_find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    if (numbers == NULL || pointers == NULL || numbers->count != pointers->count) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    for (int64_t i = 0; i < numbers->count && status == CUDNN_STATUS_SUCCESS; i++) {
        status = add_tensor(graph, element(numbers, i), (const void *)element(pointers, i), work);
    }
    return status;
}

const char *sim_cudnn_graph_kernel(const struct sim_cudnn_descriptor *graph)
{
    const struct sim_cudnn_attribute *operations =
        sim_cudnn_descriptor_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);

    for (int64_t i = 0; operations != NULL && i < operations->count; i++) {
        const struct sim_cudnn_descriptor *operation = sim_cudnn_descriptor_child(operations, i);

        switch (operation == NULL ? 0 : (int)operation->kind) {
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
            return "convolution_forward";
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
            return "convolution_backward_data";
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
            return "convolution_backward_filter";
        default:
            break;
        }
    }
    return "graph";
}

static bool add_copy(const struct sim_cudnn_descriptor *operation,
                     const struct sim_cudnn_descriptor *tensor, bool is_output, void *arg)
{
    const struct sim_cudnn_attribute *strides =
        sim_cudnn_descriptor_find(tensor, CUDNN_ATTR_TENSOR_STRIDES);
    int64_t *bytes = arg;
    bool convolution =
        operation->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
        operation->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
        operation->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;

    if (convolution && strides != NULL && strides->count > 1 && element(strides, 1) != 1) {
        *bytes += (int64_t)(tensor_bytes(tensor) + 255) / 256 * 256;
    }
    return true;
}

int64_t sim_cudnn_graph_workspace_bytes(const struct sim_cudnn_descriptor *graph)
{
    int64_t bytes = 0;

    (void)for_each_tensor(graph, add_copy, &bytes);
    return bytes;
}

/* ---- the demand of convolutions ---- */

/* The attributes of a convolution's tensors: those with the elements of its result, the filter. */
static const struct convolution {
    int kind, result, filter, data;
    enum sim_work plain, grouped;
} convolutions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, SIM_WORK_CONVOLUTION, SIM_WORK_GROUPED},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, SIM_WORK_CONVOLUTION_BACK,
     SIM_WORK_GROUPED_BACK},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, SIM_WORK_CONVOLUTION_BACK,
     SIM_WORK_GROUPED_BACK},
};

/* Groups of fewer channels do not fill the tensor cores. */
enum { FEW_CHANNELS = 16 };

static const struct sim_cudnn_descriptor *tensor_of(const struct sim_cudnn_descriptor *operation,
                                                    int name)
{
    return sim_cudnn_descriptor_child(
        sim_cudnn_descriptor_find(operation, (cudnnBackendAttributeName_t)name), 0);
}

/* The product of a tensor's extents from dimension `first` on; 0 without a tensor. */
static double elements_from(const struct sim_cudnn_descriptor *tensor, int64_t first)
{
    const struct sim_cudnn_attribute *extents =
        tensor == NULL ? NULL : sim_cudnn_descriptor_find(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
    double product = 1;

    for (int64_t i = first; extents != NULL && i < extents->count; i++) {
        product *= (double)element(extents, i);
    }
    return extents == NULL ? 0 : product;
}

/* The extent of a dimension; 0 without a tensor. */
static int64_t extent_of(const struct sim_cudnn_descriptor *tensor, int64_t dimension)
{
    const struct sim_cudnn_attribute *extents =
        tensor == NULL ? NULL : sim_cudnn_descriptor_find(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);

    return extents == NULL || extents->count <= dimension ? 0 : element(extents, dimension);
}

/* Adds the arithmetic of an operation, if it is a convolution: for each element of the result, a
 * multiplication and an addition for each element of a filter. PyTorch lets cuDNN round float32. */
static void add_convolution(const struct sim_cudnn_descriptor *operation, struct sim_demand *demand)
{
    for (size_t i = 0; i < sizeof(convolutions) / sizeof(convolutions[0]); i++) {
        const struct convolution *convolution = &convolutions[i];
        const struct sim_cudnn_descriptor *data;
        int64_t type, channels;

        if ((int)operation->kind != convolution->kind) {
            continue;
        }
        data = tensor_of(operation, convolution->data);
        type =
            data == NULL ? -1 : sim_cudnn_descriptor_integer(data, CUDNN_ATTR_TENSOR_DATA_TYPE, -1);
        channels = extent_of(tensor_of(operation, convolution->filter), 1);
        demand->work = channels < FEW_CHANNELS && channels < extent_of(data, 1)
                           ? convolution->grouped
                           : convolution->plain;
        demand->type = sim_shim_type_of_bits(sim_cudnn_type_bits((cudnnDataType_t)type), true);
        demand->operations +=
            (float)(2 * elements_from(tensor_of(operation, convolution->result), 0) *
                    elements_from(tensor_of(operation, convolution->filter), 1));
    }
}

void sim_cudnn_graph_demand(const struct sim_cudnn_descriptor *graph, size_t workspace_bytes,
                            struct sim_shim_work *work)
{
    const struct sim_cudnn_attribute *operations =
        sim_cudnn_descriptor_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    double bytes = 0;

    for (int64_t i = 0; operations != NULL && i < operations->count; i++) {
        const struct sim_cudnn_descriptor *operation = sim_cudnn_descriptor_child(operations, i);

        if (operation != NULL) {
            add_convolution(operation, &work->demand);
        }
    }
    for (size_t i = 0; i < work->count; i++) {
        bytes += (double)work->ranges[i].bytes;
    }
    work->demand.bytes = (float)bytes;
    /* The workspace holds tensors in another order, for example. */
    work->demand.besides =
        (float)(2 * ((double)workspace_bytes < bytes ? (double)workspace_bytes : bytes));
}
