/**
 * Limits concurrent uploads, in total and for one grant. An address gets five grants a minute, so a few addresses that
 * send a byte now and then could hold every slot for minutes. If all slots are taken, the slowest upload loses its slot
 * to the next one, if it is slower than real uploads are. Pure.
 */
import type { Clock, Millis } from '#shared/clock.ts';

/** Slower uploads may lose their slot. At this speed 10 MiB would not arrive within the time limit of a request. */
const SLOW_BYTES_PER_MS = (20 * 1_024) / 1_000;
/** The speed of an upload is not checked before this time. Small files are complete by then. */
const PATIENCE: Millis = 5_000;

export interface UploadSlot {
  /** Records that more bytes of the file arrived. */
  count(bytes: number): void;
  /** Gives the slot back. Does nothing if that happened before, or if the slot was taken away. */
  release(): void;
}

export interface UploadLimits {
  /**
   * @param onTakenAway called when another upload gets the slot; the slot no longer counts
   * @returns null if there is none
   */
  acquire(key: string, onTakenAway: () => void): UploadSlot | null;
}

interface Upload {
  readonly key: string;
  readonly begunAt: Millis;
  readonly onTakenAway: () => void;
  bytes: number;
}

export function createUploadLimits(
  limits: { readonly all: number; readonly perKey: number },
  clock: Clock,
): UploadLimits {
  /** Uploads in the order in which they began; at most `all`. */
  const running = new Set<Upload>();

  /** Returns how many bytes an upload is behind the speed of a real one. */
  const lagOf = ({ begunAt, bytes }: Upload): number => {
    const age = clock() - begunAt;
    return age < PATIENCE ? 0 : age * SLOW_BYTES_PER_MS - bytes;
  };

  const makeRoom = (): void => {
    let slowest: Upload | null = null;
    for (const upload of running) {
      if (lagOf(upload) > (slowest === null ? 0 : lagOf(slowest))) slowest = upload;
    }
    if (slowest === null) return;
    running.delete(slowest);
    slowest.onTakenAway();
  };

  return {
    acquire(key, onTakenAway) {
      const ofKey = running.values().filter((upload) => upload.key === key);
      if ([...ofKey].length >= limits.perKey) return null;
      if (running.size >= limits.all) makeRoom();
      if (running.size >= limits.all) return null;
      const upload: Upload = { key, begunAt: clock(), onTakenAway, bytes: 0 };
      running.add(upload);
      return {
        count(bytes) {
          upload.bytes += bytes;
        },
        release: () => void running.delete(upload),
      };
    },
  };
}
