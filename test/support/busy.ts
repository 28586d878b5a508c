/** Blocks the process, so that timers are late and data waits in the kernel, as on a busy machine. */
export function busyFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
