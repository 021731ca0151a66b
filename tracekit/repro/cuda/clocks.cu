// ---- The GPU's state ------------------------------------------------------------------------------------------------

// Clocks, temperature and what holds the clocks back, by NVML, which is loaded where there is one (it is part of the
// driver, but containers may lack it). Declared here so that building needs no more than the CUDA runtime.
class Nvml {
 public:
  struct State {
    unsigned sm_mhz, memory_mhz, celsius;
    unsigned long long throttle;
  };

  explicit Nvml(int device) {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library_) return;
    char bus[32] = {};
    const auto initialise = symbol<int (*)()>("nvmlInit_v2");
    const auto find = symbol<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    clock_ = symbol<int (*)(void*, int, unsigned*)>("nvmlDeviceGetClockInfo");
    temperature_ = symbol<int (*)(void*, int, unsigned*)>("nvmlDeviceGetTemperature");
    throttle_ = symbol<int (*)(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
    known = initialise && find && clock_ && temperature_ && throttle_ && initialise() == 0 &&
            cudaDeviceGetPCIBusId(bus, sizeof(bus), device) == cudaSuccess && find(bus, &gpu_) == 0;
  }

  State now() const {
    State state = {};
    if (!known) return state;
    clock_(gpu_, 1, &state.sm_mhz);
    clock_(gpu_, 2, &state.memory_mhz);
    temperature_(gpu_, 0, &state.celsius);
    throttle_(gpu_, &state.throttle);
    return state;
  }

  bool known = false;

 private:
  template <class Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  void *library_ = nullptr, *gpu_ = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*throttle_)(void*, unsigned long long*) = nullptr;
};

// nvml.h: nvmlClocksEventReason*
const std::pair<unsigned long long, const char*> kThrottleReasons[] = {
    {0x1, "idle"},
    {0x2, "application clocks"},
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "thermal (software)"},
    {0x40, "thermal (hardware)"},
    {0x80, "power brake"},
    {0x100, "display clocks"},
};

std::string throttle_reasons(unsigned long long bits) {
  std::string names;
  for (const auto& [bit, name] : kThrottleReasons) {
    if (bits & bit) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names.empty() ? "none" : names;
}
