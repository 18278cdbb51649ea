/* Of arrays and textures, which are not simulated, the part that is arithmetic. */
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) struct cudaChannelFormatDesc CUDARTAPI
cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
