/* The sensors of a device. The clocks come from the profile. Utilisation, temperature and power are
 * constants of an idle device. The sensors do not change, because work takes no time by default. */
#include <stddef.h>

#include "sim/libs/nvml/device.h"

enum { REST_CELSIUS = 35, REST_MILLIWATTS = 60000, KILOHERTZ = 1000 };

/* Megahertz. */
EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                           unsigned int *clock)
{
    nvmlReturn_t result = sim_nvml_check(device, clock);

    if (result != NVML_SUCCESS || type >= NVML_CLOCK_COUNT) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    *clock = (unsigned int)(type == NVML_CLOCK_MEM ? device->facts.memory_clock_khz
                                                   : device->facts.clock_khz) /
             KILOHERTZ;
    return NVML_SUCCESS;
}

EXPORT_SAME(nvmlDeviceGetMaxClockInfo, nvmlDeviceGetClockInfo);

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device,
                                             nvmlTemperatureSensors_t sensorType,
                                             unsigned int *temp)
{
    nvmlReturn_t result = sim_nvml_check(device, temp);

    if (result != NVML_SUCCESS || sensorType != NVML_TEMPERATURE_GPU) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    *temp = REST_CELSIUS;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
    nvmlReturn_t result = sim_nvml_check(device, power);

    if (result != NVML_SUCCESS) {
        return result;
    }
    *power = REST_MILLIWATTS;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                  nvmlUtilization_t *utilization)
{
    nvmlReturn_t result = sim_nvml_check(device, utilization);

    if (result != NVML_SUCCESS) {
        return result;
    }
    *utilization = (nvmlUtilization_t){0};
    return NVML_SUCCESS;
}
