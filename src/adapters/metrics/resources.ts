import type { Registry } from 'prom-client'
import memory from 'prom-client/lib/metrics/osMemoryHeap.js'
import cpu from 'prom-client/lib/metrics/processCpuTotal.js'
import maxFiles from 'prom-client/lib/metrics/processMaxFileDescriptors.js'
import openFiles from 'prom-client/lib/metrics/processOpenFileDescriptors.js'
import startTime from 'prom-client/lib/metrics/processStartTime.js'

export function registerResources(registry: Registry): void {
  for (const register of [cpu, startTime, memory, openFiles, maxFiles]) register(registry)
  // Reserved virtual memory, which is gigabytes from the start.
  for (const name of ['process_heap_bytes', 'process_virtual_memory_bytes']) registry.removeSingleMetric(name)
}
