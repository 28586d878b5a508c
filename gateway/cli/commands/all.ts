/** All commands, in the order of the help text. Only the called one is loaded. */
import type { AddCommand } from '#gateway/cli/command/command.ts';

type Loaders = Readonly<Record<string, () => Promise<AddCommand>>>;

export const COMMAND_GROUPS = {
  'Set up a gateway': {
    start: async () => (await import('./start.ts')).addStart,
    init: async () => (await import('./init.ts')).addInit,
    doctor: async () => (await import('./doctor.ts')).addDoctor,
  },
  'Try limits': {
    check: async () => (await import('./check.ts')).addCheck,
    explain: async () => (await import('./explain.ts')).addExplain,
    replay: async () => (await import('./replay.ts')).addReplay,
    shadow: async () => (await import('./shadows.ts')).addShadow,
    unshadow: async () => (await import('./shadows.ts')).addUnshadow,
  },
  'Look at traffic': {
    top: async () => (await import('./top.ts')).addTop,
    why: async () => (await import('./why.ts')).addWhy,
  },
  'Act on a client': {
    inspect: async () => (await import('./clients.ts')).addInspect,
    digest: async () => (await import('./clients.ts')).addDigest,
    reset: async () => (await import('./clients.ts')).addReset,
    ban: async () => (await import('./clients.ts')).addBan,
    unban: async () => (await import('./clients.ts')).addUnban,
    bans: async () => (await import('./bans.ts')).addBans,
  },
} satisfies Readonly<Record<string, Loaders>>;

export const COMMANDS: Loaders = Object.assign({}, ...Object.values(COMMAND_GROUPS));

/** Names that other programs give to these commands. They differ too much from ours for a guess by letters. */
export const OTHER_NAMES: Readonly<Record<string, string>> = {
  test: 'check',
  validate: 'check',
  lint: 'check',
  whois: 'inspect',
  who: 'inspect',
  status: 'doctor',
  block: 'ban',
  unblock: 'unban',
  clear: 'reset',
  run: 'start',
  serve: 'start',
};
