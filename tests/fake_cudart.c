/* A stand-in for libcudart.so.13 on a virtual clock: what the unmodified nvcc output of repro.cu calls, and no more.
 *
 * It tests host logic (nodes, edges, order, modes, search, output); its times say nothing of any GPU. Work put into
 * streams and graphs becomes tasks with dependencies; a synchronisation plays them. A kernel takes a time that is a
 * function of its Work, reads its inputs when it starts and writes one unit of its output when it ends, so that an
 * ordering that is broken computes something else.
 *
 * FAKE_CUDA_CULPRITS=3,7   kernels of these nodes run at a fraction of their speed while two of them run at once
 * FAKE_CUDA_SLOWDOWN=4     that fraction's denominator
 * FAKE_CUDA_LEAST=NS       what a kernel without work takes (1000)
 * FAKE_CUDA_MEMORY=BYTES   size of the device memory (16 GiB)
 * FAKE_CUDA_ERROR=NUMBER   what the first call of all returns
 * FAKE_CUDA_BROKEN=N       an edge into node N is not kept
 * FAKE_CUDA_LOG=FILE       instantiated graphs and the kernels that ran, a line each
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "work.inc"

#define PUBLIC __attribute__((visibility("default")))

enum { LAUNCH_NS = 2000, GRAPH_LAUNCH_NS = 5000, EDGE_NS = 500, STEP_NS = 100, BYTES_PER_NS = 200 };
enum { CLOCK_STEP_NS = 32, COPIED_AT_MOST = 1 << 20, SUMMED_AT_MOST = 1 << 12 };

/* ---- Registered kernels: their mangled names tell what they are. ---- */

static struct {
  const void* host;
  char name[128];
  int shared;
} functions[1024];
static int function_count;

static double setting(const char* name, double otherwise) {
  const char* text = getenv(name);
  return text ? atof(text) : otherwise;
}

static int function_index(const void* host) {
  for (int i = 0; i < function_count; ++i)
    if (functions[i].host == host) return i;
  abort();
}

static int template_argument(const char* name, int number) {
  for (const char* at = strchr(name, 'I'); at && (at = strstr(at, "Li")); at += 2)
    if (number-- == 0) return atoi(at + 2);
  return 0;
}

PUBLIC void** __cudaRegisterFatBinary(void* binary) {
  static void* handle;
  (void)binary;
  return &handle;
}
PUBLIC void __cudaRegisterFatBinaryEnd(void** handle) { (void)handle; }
PUBLIC void __cudaUnregisterFatBinary(void** handle) { (void)handle; }
PUBLIC char __cudaInitModule(void** handle) {
  (void)handle;
  return 1;
}
PUBLIC void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name, int limit,
                                   uint3* thread, uint3* block, dim3* block_dim, dim3* grid_dim, int* warp) {
  (void)handle, (void)device, (void)limit, (void)thread, (void)block, (void)block_dim, (void)grid_dim, (void)warp;
  functions[function_count].host = host;
  snprintf(functions[function_count].name, sizeof(functions[0].name), "%s", name);
  functions[function_count++].shared = 48 << 10;
}

/* ---- Tasks ---- */

typedef enum { KERNEL, CHECKSUM, COPY, SET, HOST, EMPTY, RECORD, CHILD } Kind;

typedef struct {
  Kind kind;
  int function;
  struct Work work; /* of a kernel */
  void* target;     /* of a copy, a set or a checksum; the event of a record */
  const void* source;
  size_t size;
  int value;
  double needs, since, start, end; /* ns; since: not before; start and end are -1 until then */
  int after_count, *after;         /* tasks (in a stream) or nodes (in a graph) that it waits for */
} Task;

static Task* tasks;
static int task_count, task_room;
static double host_ns, played_ns;

typedef struct {
  int last;
} Stream;
typedef struct {
  int task, batch;
  double ns;
} Event; /* task: of the batch of tasks that one synchronisation plays */
static int batch;

static FILE* log_file(void) {
  static FILE* file;
  const char* name = getenv("FAKE_CUDA_LOG");
  if (!file && name) file = fopen(name, "a");
  return file;
}

static void wait_for(Task* task, int before) {
  if (before < 0) return;
  task->after = realloc(task->after, sizeof(int) * (task->after_count + 1));
  task->after[task->after_count++] = before;
}

static int add_task(Task task) {
  if (task_count == task_room) tasks = realloc(tasks, sizeof(Task) * (task_room = 2 * task_room + 64));
  task.start = task.end = -1;
  task.since = host_ns;
  tasks[task_count] = task;
  return task_count++;
}

static int add_to_stream(Task task, Stream* stream) {
  wait_for(&task, stream->last);
  return stream->last = add_task(task);
}

static int is_culprit(const Task* task) {
  const char* list = task->kind == KERNEL ? getenv("FAKE_CUDA_CULPRITS") : NULL;
  for (; list && *list; list += strcspn(list, ","), list += *list == ',')
    if ((unsigned)atoi(list) == task->work.node) return 1;
  return 0;
}

static uint64_t mix(uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15ull ^ (a >> 29); }

static unsigned long long stamp(double ns) { return (unsigned long long)(ns / CLOCK_STEP_NS) * CLOCK_STEP_NS; }

static void begin(Task* task, double now) {
  task->start = now;
  if (task->kind != KERNEL) return;
  uint64_t value = mix(task->work.node, *(const uint64_t*)task->work.source);
  for (int i = 0; i < WORK_INPUTS; ++i) value = mix(value, *(const uint64_t*)task->work.inputs[i]);
  task->size = (size_t)value;
  if (stamp(now) < *task->work.first) *task->work.first = stamp(now);
}

static void finish(Task* task, double now) {
  const size_t size = task->size < COPIED_AT_MOST ? task->size : COPIED_AT_MOST;
  task->end = now;
  switch (task->kind) {
    case KERNEL:
      memcpy(task->work.output, &task->size, sizeof(task->size));
      if (stamp(now) > *task->work.last) *task->work.last = stamp(now);
      if (log_file()) fprintf(log_file(), "ran %u %.0f %.0f\n", task->work.node, task->start, now);
      break;
    case CHECKSUM:
      for (size_t i = 0; i < 2 * task->size && i < SUMMED_AT_MOST; ++i)
        *(uint64_t*)task->target += mix(((const uint64_t*)task->source)[i], i);
      break;
    case COPY:
      memmove(task->target, task->source, size);
      break;
    case SET:
      memset(task->target, task->value, size);
      break;
    case RECORD:
      ((Event*)task->target)->ns = now;
      break;
    default:
      break;
  }
}

static int is_ready(const Task* task, double* at) {
  *at = task->since;
  for (int i = 0; i < task->after_count; ++i) {
    const Task* before = &tasks[task->after[i]];
    if (before->end < 0) return 0;
    if (before->end > *at) *at = before->end;
  }
  if (task->kind == KERNEL && task->after_count) *at += EDGE_NS;
  return 1;
}

/* Play all tasks: a task runs as soon as those before it have ended; speeds change as tasks begin and end. */
static void play(void) {
  int ended = 0;
  double now = played_ns;
  const double slowdown = setting("FAKE_CUDA_SLOWDOWN", 4);
  while (ended < task_count) {
    int culprits = 0;
    double next = 1e300;
    for (int i = 0; i < task_count; ++i) culprits += tasks[i].start >= 0 && tasks[i].end < 0 && is_culprit(&tasks[i]);
    const double slow = culprits > 1 ? slowdown : 1;
    for (int i = 0; i < task_count; ++i) {
      double at = 1e300;
      if (tasks[i].end >= 0) continue;
      if (tasks[i].start >= 0)
        at = now + tasks[i].needs * (is_culprit(&tasks[i]) ? slow : 1);
      else if (!is_ready(&tasks[i], &at))
        continue;
      if (at < now) at = now;
      if (at < next) next = at;
    }
    for (int i = 0; i < task_count; ++i)
      if (tasks[i].start >= 0 && tasks[i].end < 0) tasks[i].needs -= (next - now) / (is_culprit(&tasks[i]) ? slow : 1);
    now = next;
    for (int i = 0; i < task_count; ++i)
      if (tasks[i].start >= 0 && tasks[i].end < 0 && tasks[i].needs < 1e-6) finish(&tasks[i], now), ++ended;
    for (int i = 0; i < task_count; ++i) {
      double at;
      if (tasks[i].start < 0 && is_ready(&tasks[i], &at) && at <= now + 1e-6) begin(&tasks[i], now);
    }
  }
  played_ns = now > host_ns ? now : host_ns;
  host_ns = played_ns;
}

static Stream* streams[256];
static int stream_count;

static cudaError_t synchronize(void) {
  play();
  for (int i = 0; i < task_count; ++i) free(tasks[i].after);
  task_count = 0, ++batch;
  for (int i = 0; i < stream_count; ++i) streams[i]->last = -1;
  return cudaSuccess;
}

static Stream* stream_of(cudaStream_t stream) {
  static Stream* legacy;
  if (stream) return (Stream*)stream;
  if (!legacy) {
    legacy = streams[stream_count++] = malloc(sizeof(Stream));
    legacy->last = -1;
  }
  return legacy;
}

static Task kernel_task(const void* host, void** arguments) {
  Task task = {.kind = KERNEL, .function = function_index(host)};
  const char* name = functions[task.function].name;
  if (strstr(name, "checksum")) {
    task.kind = CHECKSUM;
    task.source = *(void**)arguments[0];
    task.size = *(unsigned long long*)arguments[1];
    task.target = *(void**)arguments[2];
    return task;
  }
  task.work = *(const struct Work*)arguments[0];
  task.needs = setting("FAKE_CUDA_LEAST", 1000) + (strstr(name, "matmul")
                                                       ? (double)task.work.iterations * STEP_NS
                                                       : 16.0 * task.work.units * task.work.iterations / BYTES_PER_NS);
  return task;
}

/* ---- Device, memory ---- */

static unsigned long long used;
static struct {
  void* at;
  size_t size;
} blocks[4096];
static int block_count;

static unsigned long long memory_size(void) { return (unsigned long long)setting("FAKE_CUDA_MEMORY", 16ull << 30); }

PUBLIC cudaError_t cudaSetDevice(int device) {
  (void)device;
  return (cudaError_t)setting("FAKE_CUDA_ERROR", cudaSuccess);
}
PUBLIC cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  (void)id, (void)size, (void)device;
  return cudaErrorNotSupported;
}
PUBLIC cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* gpu, int device) {
  (void)device;
  memset(gpu, 0, sizeof(*gpu));
  strcpy(gpu->name, "no GPU (virtual clock)");
  gpu->major = 12, gpu->minor = 1, gpu->multiProcessorCount = 48;
  gpu->regsPerMultiprocessor = 65536, gpu->maxThreadsPerMultiProcessor = 1536, gpu->maxBlocksPerMultiProcessor = 24;
  gpu->sharedMemPerMultiprocessor = 102400, gpu->sharedMemPerBlockOptin = 101376, gpu->reservedSharedMemPerBlock = 1024;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = memory_size();
  *free = *total - used;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaMalloc(void** at, size_t size) {
  if (size > memory_size() - used) return cudaErrorMemoryAllocation;
  *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  blocks[block_count].at = *at;
  blocks[block_count++].size = size;
  used += size;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaHostAlloc(void** at, size_t size, unsigned flags) {
  (void)flags;
  *at = calloc(1, size);
  return cudaSuccess;
}
PUBLIC cudaError_t cudaFree(void* at) {
  for (int i = 0; i < block_count; ++i) {
    if (blocks[i].at != at) continue;
    munmap(at, blocks[i].size);
    used -= blocks[i].size;
    blocks[i] = blocks[--block_count];
  }
  return cudaSuccess;
}
PUBLIC cudaError_t cudaMemcpy(void* to, const void* from, size_t size, enum cudaMemcpyKind kind) {
  (void)kind;
  synchronize();
  memmove(to, from, size < COPIED_AT_MOST ? size : COPIED_AT_MOST);
  return cudaSuccess;
}
PUBLIC cudaError_t cudaMemset(void* at, int value, size_t size) {
  synchronize();
  memset(at, value, size < COPIED_AT_MOST ? size : COPIED_AT_MOST);
  return cudaSuccess;
}
PUBLIC cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* found, const void* function) {
  const int index = function_index(function);
  memset(found, 0, sizeof(*found));
  found->numRegs = template_argument(functions[index].name, 0);
  found->sharedSizeBytes = template_argument(functions[index].name, 2);
  found->maxDynamicSharedSizeBytes = functions[index].shared;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaFuncSetAttribute(const void* function, enum cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) functions[function_index(function)].shared = value;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* found, const void* function, int threads,
                                                                 size_t shared) {
  const char* name = functions[function_index(function)].name;
  const int warps = (threads + 31) / 32, registers = (template_argument(name, 0) * 32 + 255) / 256 * 256 * warps;
  const int bytes = (template_argument(name, 2) + (int)shared + 1024 + 127) / 128 * 128;
  *found = 1536 / (warps * 32);
  if (65536 / registers < *found) *found = 65536 / registers;
  if (102400 / bytes < *found) *found = 102400 / bytes;
  if (24 < *found) *found = 24;
  return cudaSuccess;
}

/* ---- Streams and events ---- */

PUBLIC cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  Stream* made = streams[stream_count++] = malloc(sizeof(Stream));
  (void)flags;
  made->last = -1;
  *stream = (cudaStream_t)made;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof(Event));
  return cudaSuccess;
}
PUBLIC cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Event* recorded = (Event*)event;
  recorded->task = add_to_stream((Task){.kind = RECORD, .target = recorded}, stream_of(stream));
  recorded->batch = batch;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  Task task = {.kind = EMPTY};
  (void)flags;
  if (((Event*)event)->batch == batch) wait_for(&task, ((Event*)event)->task);
  add_to_stream(task, stream_of(stream));
  return cudaSuccess;
}
PUBLIC cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = (float)((((Event*)to)->ns - ((Event*)from)->ns) / 1e6);
  return cudaSuccess;
}
PUBLIC cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  (void)stream;
  return synchronize();
}
PUBLIC cudaError_t cudaDeviceSynchronize(void) { return synchronize(); }
PUBLIC cudaError_t cudaGetLastError(void) { return cudaSuccess; }
PUBLIC const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "an error that was asked for";
}
PUBLIC const char* cudaGetErrorName(cudaError_t error) {
  (void)error;
  return "cudaErrorAskedFor";
}

static cudaError_t launch(Task task, cudaStream_t stream) {
  host_ns += LAUNCH_NS;
  add_to_stream(task, stream_of(stream));
  return cudaSuccess;
}
PUBLIC cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                                    cudaStream_t stream) {
  (void)grid, (void)block, (void)shared;
  return launch(kernel_task(function, arguments), stream);
}
PUBLIC cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return launch(kernel_task(function, arguments), config->stream);
}
PUBLIC cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, enum cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  (void)kind;
  return launch((Task){.kind = COPY, .target = to, .source = from, .size = size, .needs = size / BYTES_PER_NS}, stream);
}
PUBLIC cudaError_t cudaMemsetAsync(void* at, int value, size_t size, cudaStream_t stream) {
  return launch((Task){.kind = SET, .target = at, .value = value, .size = size, .needs = size / BYTES_PER_NS}, stream);
}
PUBLIC cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  (void)function, (void)data;
  return launch((Task){.kind = HOST}, stream);
}
/* What nvcc makes of kernel<<<...>>>(...). */
static struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} pushed;
PUBLIC unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st* stream) {
  pushed.grid = grid, pushed.block = block, pushed.shared = shared, pushed.stream = stream;
  return 0;
}
PUBLIC cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared, *(cudaStream_t*)stream = pushed.stream;
  return cudaSuccess;
}
PUBLIC cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = (cudaKernel_t)function;
  return cudaSuccess;
}
PUBLIC cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                      cudaStream_t stream) {
  return cudaLaunchKernel((const void*)kernel, grid, block, arguments, shared, stream);
}

/* ---- Graphs: nodes are handed out as pointers to their place; a child graph keeps its own nodes. ---- */

typedef struct Graph Graph;
typedef struct {
  Task task;
  Graph* child;
  dim3 grid, block;
  unsigned shared, cluster;
  int place;
} Node;
struct Graph {
  int count;
  Node* nodes[8192];
};

static Node* add_node(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                      Task task) {
  Graph* into = (Graph*)graph;
  Node* node = calloc(1, sizeof(Node));
  const int broken = (int)setting("FAKE_CUDA_BROKEN", -1);
  for (size_t i = 0; i < count; ++i) {
    if (task.kind == KERNEL && (int)task.work.node == broken) continue;
    wait_for(&task, ((Node*)after[i])->place);
  }
  node->task = task;
  node->place = into->count;
  into->nodes[into->count++] = node;
  *added = (cudaGraphNode_t)node;
  return node;
}
PUBLIC cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  (void)flags;
  *graph = calloc(1, sizeof(Graph));
  return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after,
                                          size_t count, const struct cudaKernelNodeParams* params) {
  Node* node = add_node(added, graph, after, count, kernel_task(params->func, params->kernelParams));
  node->grid = params->gridDim, node->block = params->blockDim, node->shared = params->sharedMemBytes,
  node->cluster = 1;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                                   const cudaLaunchAttributeValue* value) {
  if (id == cudaLaunchAttributeClusterDimension)
    ((Node*)node)->cluster = value->clusterDim.x * value->clusterDim.y * value->clusterDim.z;
  return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after,
                                            size_t count, void* to, const void* from, size_t size,
                                            enum cudaMemcpyKind kind) {
  (void)kind;
  add_node(added, graph, after, count,
           (Task){.kind = COPY, .target = to, .source = from, .size = size, .needs = size / BYTES_PER_NS});
  return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after,
                                          size_t count, const struct cudaMemsetParams* params) {
  const size_t size = params->width * params->height * params->elementSize;
  add_node(
      added, graph, after, count,
      (Task){.kind = SET, .target = params->dst, .value = params->value, .size = size, .needs = size / BYTES_PER_NS});
  return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after,
                                        size_t count, const struct cudaHostNodeParams* params) {
  (void)params;
  add_node(added, graph, after, count, (Task){.kind = HOST});
  return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after,
                                         size_t count) {
  add_node(added, graph, after, count, (Task){.kind = EMPTY});
  return cudaSuccess;
}
static Graph* cloned(const Graph* graph) {
  Graph* clone = malloc(sizeof(Graph));
  *clone = *graph;
  return clone;
}
PUBLIC cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* added, cudaGraph_t graph, const cudaGraphNode_t* after,
                                              size_t count, cudaGraph_t child) {
  add_node(added, graph, after, count, (Task){.kind = CHILD})->child = cloned((Graph*)child);
  return cudaSuccess;
}
static void log_graph(const Graph* graph, int depth) {
  static const char* const kinds[] = {"kernel", "checksum", "memcpy", "memset", "host", "empty", "record", "child"};
  for (int i = 0; i < graph->count; ++i) {
    const Node* node = graph->nodes[i];
    fprintf(log_file(), "node %d %d %s %d grid %u block %u shared %u cluster %u after", depth, i,
            kinds[node->task.kind], node->task.kind == KERNEL ? (int)node->task.work.node : -1,
            node->grid.x * node->grid.y * node->grid.z, node->block.x * node->block.y * node->block.z, node->shared,
            node->cluster);
    for (int k = 0; k < node->task.after_count; ++k) fprintf(log_file(), " %d", node->task.after[k]);
    fprintf(log_file(), "\n");
    if (node->child) log_graph(node->child, depth + 1);
  }
}
PUBLIC cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  (void)flags;
  *executable = (cudaGraphExec_t)cloned((Graph*)graph);
  if (log_file()) {
    fprintf(log_file(), "graph %d\n", ((Graph*)graph)->count);
    log_graph((Graph*)graph, 0);
  }
  return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  free(graph);
  return cudaSuccess;
}
PUBLIC cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  free(executable);
  return cudaSuccess;
}

/* The graph's nodes as tasks after task `before`; returns a task that ends when all of them have. */
static int add_graph(const Graph* graph, int before) {
  int placed[8192];
  Task join = {.kind = EMPTY};
  for (int i = 0; i < graph->count; ++i) {
    const Node* node = graph->nodes[i];
    Task task = node->task;
    task.after = NULL, task.after_count = 0;
    for (int k = 0; k < node->task.after_count; ++k) wait_for(&task, placed[node->task.after[k]]);
    if (!node->task.after_count) wait_for(&task, before);
    placed[i] = add_task(task);
    if (node->child) placed[i] = add_graph(node->child, placed[i]);
    wait_for(&join, placed[i]);
  }
  wait_for(&join, before);
  return add_task(join);
}
PUBLIC cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  Stream* into = stream_of(stream);
  host_ns += GRAPH_LAUNCH_NS;
  into->last = add_graph((Graph*)executable, into->last);
  return cudaSuccess;
}
