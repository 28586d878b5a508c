/**
 * How many uploads run at the same time, in all and under one grant. A grant can be had five times a minute from one
 * address, so the second bound keeps a single address from holding every slot. Pure.
 */

export interface UploadLimits {
  /** @returns how to give the slot back, once; null when there is none */
  acquire(key: string): (() => void) | null;
}

export function createUploadLimits(limits: { readonly all: number; readonly perKey: number }): UploadLimits {
  /** At most `all` entries. */
  const takenByKey = new Map<string, number>();
  let taken = 0;
  return {
    acquire(key) {
      const ofKey = takenByKey.get(key) ?? 0;
      if (taken >= limits.all || ofKey >= limits.perKey) return null;
      taken += 1;
      takenByKey.set(key, ofKey + 1);
      return () => {
        taken -= 1;
        const left = (takenByKey.get(key) ?? 1) - 1;
        if (left === 0) takenByKey.delete(key);
        else takenByKey.set(key, left);
      };
    },
  };
}
