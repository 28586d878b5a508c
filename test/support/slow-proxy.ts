/** A TCP proxy in front of a store that delays some of its answers. */
import type { Owner } from './gateway.ts';
import { startRelay } from './relay.ts';

interface SlowProxy {
  readonly port: number;
  /** Number of pieces of the store's answers that were delayed. */
  readonly delayed: number;
}

/**
 * Each connection keeps its order: whatever follows a delayed answer waits for it.
 *
 * @param delayMs for how long a piece of an answer is held back; asked for each, 0: not at all
 */
export async function startSlowProxy(
  owner: Owner,
  port: number,
  delayMs: (piece: Buffer) => number,
): Promise<SlowProxy> {
  let delayed = 0;
  const relay = await startRelay(owner, port, (near, far) => {
    near.pipe(far);
    const waiting: Buffer[] = [];
    let isHeld = false;
    const passOn = (): void => {
      for (let piece = waiting.shift(); piece !== undefined; piece = waiting.shift()) near.write(piece);
    };
    far.on('data', (piece: Buffer) => {
      const ms = delayMs(piece);
      waiting.push(piece);
      if (isHeld) return;
      if (ms === 0) return passOn();
      delayed++;
      isHeld = true;
      setTimeout(() => {
        isHeld = false;
        passOn();
      }, ms);
    });
  });
  return {
    port: relay,
    get delayed() {
      return delayed;
    },
  };
}

/** Delays every hundredth answer by 30 to 300 ms. */
export function everyHundredth(random: () => number): () => number {
  let answers = 0;
  return () => (++answers % 100 === 0 ? 30 + Math.floor(random() * 271) : 0);
}
