/* Channel descriptors. Arrays and textures are not simulated. */
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) struct cudaChannelFormatDesc CUDARTAPI
cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
