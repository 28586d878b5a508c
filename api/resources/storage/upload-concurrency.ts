/**
 * How many uploads run at the same time, in all and under one grant. A grant can be had five times a minute from one
 * address, so a few addresses that send a byte now and then could hold every slot for minutes. Where all are taken, the
 * slowest upload makes room for the next one, if it is slower than honest ones are. Pure.
 */
import type { Clock, Millis } from '#shared/clock.ts';

/** Slower uploads make room. One of 10 MiB would not end within the time of a request. */
const SLOW_BYTES_PER_MS = (20 * 1_024) / 1_000;
/** An upload is given so long before its speed is looked at: small files are there by then. */
const PATIENCE: Millis = 5_000;

export interface UploadSlot {
  /** So much more of the file has come. */
  count(bytes: number): void;
  /** Gives the slot back; again, or after it was taken away, does nothing. */
  release(): void;
}

export interface UploadLimits {
  /**
   * @param onTakenAway called when the slot goes to somebody else; it counts no longer
   * @returns null when there is none
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
  /** At most `all`, in the order in which they began. */
  const running = new Set<Upload>();

  /** What an upload lacks to the speed of an honest one, in bytes. */
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
