/** CPU and memory of a process, under the names of Prometheus' own client libraries. */
import { counter, gauge, type Sample } from '#gateway/observe/metrics/metrics.ts';

export function processSamples(): Sample[] {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return [
    counter('process_cpu_seconds_total', 'CPU time of all processes.', (user + system) / 1e6),
    gauge('process_resident_memory_bytes', 'Resident memory of all processes.', rss),
    gauge('nodejs_heap_size_used_bytes', 'Memory in use by objects.', heapUsed),
  ];
}
