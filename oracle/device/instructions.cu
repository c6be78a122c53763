// The instructions themselves, one PTX statement each, and the launches around them.
#include <cuda_runtime.h>

#include <array>
#include <memory>

#include "oracle/device/instructions.h"
#include "oracle/error.h"

namespace assay {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw EnvironmentError(std::string("CUDA: ") + what + ": " + cudaGetErrorString(status));
}

struct DeviceFree {
  void operator()(void* memory) const { cudaFree(memory); }
};
template <class T>
std::unique_ptr<T[], DeviceFree> device_array(std::size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T)), "allocation");
  return std::unique_ptr<T[], DeviceFree>(static_cast<T*>(memory));
}

// One letter code per operand format, so that one template names every instruction.
enum Input { kBf16, kFp16, kTf32, kE4m3, kE5m2 };

using Fragment = std::uint32_t;

#define ASSAY_SYNC_F32(SHAPE, TYPE)                                    \
  asm volatile("mma.sync.aligned." SHAPE ".row.col.f32." TYPE "." TYPE \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "          \
               "{%0,%1,%2,%3};"                                        \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])        \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define ASSAY_SYNC_F16(SHAPE, TYPE)                                    \
  asm volatile("mma.sync.aligned." SHAPE ".row.col.f16." TYPE "." TYPE \
               ".f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, "                \
               "{%0,%1};"                                              \
               : "+r"(d[0]), "+r"(d[1])                                \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <Input kInput>
__device__ void sync_product(float (&d)[4], const Fragment (&a)[4], const Fragment (&b)[2]) {
  if constexpr (kInput == kBf16) ASSAY_SYNC_F32("m16n8k16", "bf16");
  if constexpr (kInput == kFp16) ASSAY_SYNC_F32("m16n8k16", "f16");
  if constexpr (kInput == kTf32) ASSAY_SYNC_F32("m16n8k8", "tf32");
#if __CUDA_ARCH__ >= 890
  if constexpr (kInput == kE4m3) ASSAY_SYNC_F32("m16n8k32", "e4m3");
  if constexpr (kInput == kE5m2) ASSAY_SYNC_F32("m16n8k32", "e5m2");
#endif
}
template <Input kInput>
__device__ void sync_product(Fragment (&d)[2], const Fragment (&a)[4], const Fragment (&b)[2]) {
  if constexpr (kInput == kFp16) ASSAY_SYNC_F16("m16n8k16", "f16");
#if __CUDA_ARCH__ >= 890
  if constexpr (kInput == kE4m3) ASSAY_SYNC_F16("m16n8k32", "e4m3");
  if constexpr (kInput == kE5m2) ASSAY_SYNC_F16("m16n8k32", "e5m2");
#endif
}

#define ASSAY_WGMMA_F32(SHAPE, TYPE, TRANSPOSE)                            \
  asm volatile("wgmma.mma_async.sync.aligned." SHAPE ".f32." TYPE "." TYPE \
               " {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, "                    \
               "1, 1" TRANSPOSE ";"                                        \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define ASSAY_WGMMA_F16(SHAPE, TYPE, TRANSPOSE)                            \
  asm volatile("wgmma.mma_async.sync.aligned." SHAPE ".f16." TYPE "." TYPE \
               " {%0,%1}, {%2,%3,%4,%5}, %6, 1, "                          \
               "1, 1" TRANSPOSE ";"                                        \
               : "+r"(d[0]), "+r"(d[1])                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <Input kInput>
__device__ void wgmma_product(float (&d)[4], const Fragment (&a)[4], std::uint64_t b) {
  if constexpr (kInput == kBf16) ASSAY_WGMMA_F32("m64n8k16", "bf16", ", 0");
  if constexpr (kInput == kFp16) ASSAY_WGMMA_F32("m64n8k16", "f16", ", 0");
  if constexpr (kInput == kTf32) ASSAY_WGMMA_F32("m64n8k8", "tf32", "");
  if constexpr (kInput == kE4m3) ASSAY_WGMMA_F32("m64n8k32", "e4m3", "");
  if constexpr (kInput == kE5m2) ASSAY_WGMMA_F32("m64n8k32", "e5m2", "");
}
template <Input kInput>
__device__ void wgmma_product(Fragment (&d)[2], const Fragment (&a)[4], std::uint64_t b) {
  if constexpr (kInput == kFp16) ASSAY_WGMMA_F16("m64n8k16", "f16", ", 0");
  if constexpr (kInput == kE4m3) ASSAY_WGMMA_F16("m64n8k32", "e4m3", "");
  if constexpr (kInput == kE5m2) ASSAY_WGMMA_F16("m64n8k32", "e5m2", "");
}
#endif

// The fragments of every format are the same in bytes (PTX ISA, "Matrix fragments for mma.m16n8k16" and its siblings):
// lane 4 g + t holds bytes 4 t .. 4 t + 3 and 4 t + 16 .. 4 t + 19 of rows g and g + 8 of A, and of column g of B;
// elements 2 t and 2 t + 1 of rows g and g + 8 of C and D.
struct Lane {
  int g, t, row;
  __device__ explicit Lane(int thread) : g(thread % 32 / 4), t(thread % 4), row(thread / 32 * 16 + thread % 32 / 4) {}
};

template <int kRows>
__device__ void load_a(Fragment (&a)[4], const Fragment* from, Lane lane) {
  const Fragment* row = from + lane.row * 8;
  a[0] = row[lane.t], a[1] = row[64 + lane.t], a[2] = row[4 + lane.t], a[3] = row[68 + lane.t];
}

__device__ void load_c(float (&d)[4], const std::uint32_t* from, Lane lane) {
  for (int i = 0; i < 4; ++i) d[i] = __uint_as_float(from[(lane.row + i / 2 * 8) * kMmaColumns + 2 * lane.t + i % 2]);
}
__device__ void store_d(const float (&d)[4], std::uint32_t* to, Lane lane) {
  for (int i = 0; i < 4; ++i) to[(lane.row + i / 2 * 8) * kMmaColumns + 2 * lane.t + i % 2] = __float_as_uint(d[i]);
}
__device__ void load_c(Fragment (&d)[2], const std::uint32_t* from, Lane lane) {
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t* pair = from + (lane.row + i * 8) * kMmaColumns + 2 * lane.t;
    d[i] = (pair[0] & 0xffffU) | pair[1] << 16;
  }
}
__device__ void store_d(const Fragment (&d)[2], std::uint32_t* to, Lane lane) {
  for (int i = 0; i < 2; ++i) {
    std::uint32_t* pair = to + (lane.row + i * 8) * kMmaColumns + 2 * lane.t;
    pair[0] = d[i] & 0xffffU, pair[1] = d[i] >> 16;
  }
}

template <bool kFp16Accumulator>
struct Accumulator {
  using Type = float[4];
};
template <>
struct Accumulator<true> {
  using Type = Fragment[2];
};

template <Input kInput, bool kFp16Accumulator>
__global__ void sync_tiles(const Fragment* a, const Fragment* b, const std::uint32_t* c, std::uint32_t* d) {
  const Lane lane(static_cast<int>(threadIdx.x));
  const std::size_t tile = blockIdx.x;
  Fragment af[4];
  load_a<16>(af, a + tile * 16 * 8, lane);
  const Fragment* column = b + (tile * kMmaColumns + static_cast<std::size_t>(lane.g)) * 8;
  const Fragment bf[2] = {column[lane.t], column[4 + lane.t]};
  typename Accumulator<kFp16Accumulator>::Type df;
  load_c(df, c + tile * 16 * kMmaColumns, lane);
  sync_product<kInput>(df, af, bf);
  store_d(df, d + tile * 16 * kMmaColumns, lane);
}

// B without swizzle: two core matrices of 8 columns by 16 bytes, one after the other.
template <Input kInput, bool kFp16Accumulator>
__global__ void wgmma_tiles(const Fragment* a, const Fragment* b, const std::uint32_t* c, std::uint32_t* d) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ alignas(128) Fragment columns[64];
  const Lane lane(static_cast<int>(threadIdx.x));
  const std::size_t tile = blockIdx.x;
  if (threadIdx.x < 64) {
    const unsigned column = threadIdx.x / 8, word = threadIdx.x % 8;
    columns[word / 4 * 32 + column * 4 + word % 4] = b[tile * 64 + threadIdx.x];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  Fragment af[4];
  load_a<64>(af, a + tile * 64 * 8, lane);
  typename Accumulator<kFp16Accumulator>::Type df;
  load_c(df, c + tile * 64 * kMmaColumns, lane);
  const std::uint64_t address = static_cast<std::uint64_t>(__cvta_generic_to_shared(columns));
  const std::uint64_t descriptor =
      (address & 0x3ffffU) >> 4 | std::uint64_t{128 >> 4} << 16 | std::uint64_t{256 >> 4} << 32;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  wgmma_product<kInput>(df, af, descriptor);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  store_d(df, d + tile * 64 * kMmaColumns, lane);
#endif
}

using TileKernel = void (*)(const Fragment*, const Fragment*, const std::uint32_t*, std::uint32_t*);
struct Family {
  MmaInstruction instruction;
  TileKernel kernel;
};
constexpr TensorCore kSync = TensorCore::kMmaSync, kGroup = TensorCore::kWgmma;
const std::array kFamilies{
    Family{{kSync, Format::kBf16, false}, sync_tiles<kBf16, false>},
    Family{{kSync, Format::kFp16, false}, sync_tiles<kFp16, false>},
    Family{{kSync, Format::kTf32, false}, sync_tiles<kTf32, false>},
    Family{{kSync, Format::kE4m3, false}, sync_tiles<kE4m3, false>},
    Family{{kSync, Format::kE5m2, false}, sync_tiles<kE5m2, false>},
    Family{{kSync, Format::kFp16, true}, sync_tiles<kFp16, true>},
    Family{{kSync, Format::kE4m3, true}, sync_tiles<kE4m3, true>},
    Family{{kSync, Format::kE5m2, true}, sync_tiles<kE5m2, true>},
    Family{{kGroup, Format::kBf16, false}, wgmma_tiles<kBf16, false>},
    Family{{kGroup, Format::kFp16, false}, wgmma_tiles<kFp16, false>},
    Family{{kGroup, Format::kTf32, false}, wgmma_tiles<kTf32, false>},
    Family{{kGroup, Format::kE4m3, false}, wgmma_tiles<kE4m3, false>},
    Family{{kGroup, Format::kE5m2, false}, wgmma_tiles<kE5m2, false>},
    Family{{kGroup, Format::kFp16, true}, wgmma_tiles<kFp16, true>},
    Family{{kGroup, Format::kE4m3, true}, wgmma_tiles<kE4m3, true>},
    Family{{kGroup, Format::kE5m2, true}, wgmma_tiles<kE5m2, true>},
};

template <Unary kFunction>
__global__ void unary_codes(std::uint32_t first, std::uint32_t* results, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = __uint_as_float(first + static_cast<std::uint32_t>(i));
  float y;
  if constexpr (kFunction == Unary::kEx2) asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  if constexpr (kFunction == Unary::kEx2Ftz) asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  if constexpr (kFunction == Unary::kLg2) asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  if constexpr (kFunction == Unary::kRcp) asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  if constexpr (kFunction == Unary::kRsqrt) asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  if constexpr (kFunction == Unary::kTanh) asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  results[i] = __float_as_uint(y);
}

using UnaryKernel = void (*)(std::uint32_t, std::uint32_t*, std::size_t);
UnaryKernel kernel_of(Unary f) {
  switch (f) {
    case Unary::kEx2: return unary_codes<Unary::kEx2>;
    case Unary::kEx2Ftz: return unary_codes<Unary::kEx2Ftz>;
    case Unary::kLg2: return unary_codes<Unary::kLg2>;
    case Unary::kRcp: return unary_codes<Unary::kRcp>;
    case Unary::kRsqrt: return unary_codes<Unary::kRsqrt>;
    case Unary::kTanh: return unary_codes<Unary::kTanh>;
  }
  return nullptr;
}

template <class T>
std::unique_ptr<T[], DeviceFree> uploaded(const void* from, std::size_t bytes) {
  auto to = device_array<T>(bytes / sizeof(T));
  check(cudaMemcpy(to.get(), from, bytes, cudaMemcpyHostToDevice), "copy to the device");
  return to;
}

}  // namespace

DeviceFacts device_facts() {
  DeviceFacts facts;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "no device");
  check(cudaDriverGetVersion(&facts.driver), "driver version");
  check(cudaRuntimeGetVersion(&facts.runtime), "runtime version");
  facts.name = properties.name;
  facts.major = properties.major, facts.minor = properties.minor;
  return facts;
}

std::span<const MmaInstruction> mma_instructions() {
  static const std::vector<MmaInstruction> all = [] {
    std::vector<MmaInstruction> list;
    for (const Family& family : kFamilies) list.push_back(family.instruction);
    return list;
  }();
  return all;
}

std::vector<std::uint32_t> run_mma(const MmaInstruction& wanted, std::span<const std::byte> a,
                                   std::span<const std::byte> b, std::span<const std::uint32_t> c) {
  const DeviceFacts device = device_facts();
  const bool hopper = device.major == 9;
  if (wanted.unit == TensorCore::kWgmma && !hopper)
    throw EnvironmentError(wanted.name() + ": " + device.name + " has no wgmma");
  for (const Family& family : kFamilies) {
    const MmaInstruction& f = family.instruction;
    if (f.unit != wanted.unit || f.input != wanted.input || f.fp16_accumulator != wanted.fp16_accumulator) continue;
    const std::size_t tiles = b.size() / (kMmaColumns * kMmaBytesOfK);
    const auto da = uploaded<Fragment>(a.data(), a.size()), db = uploaded<Fragment>(b.data(), b.size());
    const auto dc = uploaded<std::uint32_t>(c.data(), c.size_bytes());
    const auto dd = device_array<std::uint32_t>(c.size());
    family.kernel<<<static_cast<unsigned>(tiles), wanted.unit == TensorCore::kWgmma ? 128 : 32>>>(da.get(), db.get(),
                                                                                                  dc.get(), dd.get());
    check(cudaGetLastError(), "launch");
    std::vector<std::uint32_t> d(c.size());
    check(cudaMemcpy(d.data(), dd.get(), c.size_bytes(), cudaMemcpyDeviceToHost), wanted.name().c_str());
    return d;
  }
  throw EnvironmentError(wanted.name() + ": this build has no code for it");
}

std::string_view unary_name(Unary f) {
  switch (f) {
    case Unary::kEx2: return "ex2.approx.f32";
    case Unary::kEx2Ftz: return "ex2.approx.ftz.f32";
    case Unary::kLg2: return "lg2.approx.f32";
    case Unary::kRcp: return "rcp.approx.f32";
    case Unary::kRsqrt: return "rsqrt.approx.f32";
    case Unary::kTanh: return "tanh.approx.f32";
  }
  return {};
}

void run_unary(Unary f, std::uint32_t first, std::span<std::uint32_t> results) {
  const auto out = device_array<std::uint32_t>(results.size());
  constexpr unsigned kThreads = 256;
  const auto blocks = static_cast<unsigned>((results.size() + kThreads - 1) / kThreads);
  kernel_of(f)<<<blocks, kThreads>>>(first, out.get(), results.size());
  check(cudaGetLastError(), "launch");
  check(cudaMemcpy(results.data(), out.get(), results.size_bytes(), cudaMemcpyDeviceToHost), "copy from the device");
}

}  // namespace assay
