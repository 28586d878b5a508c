/** All commands, in the order of the help text. Only the called one is loaded. */
import type { CommandContext } from '#gateway/cli/command/command.ts';
import type { Commands } from '#shared/cli/command.ts';

export const COMMAND_GROUPS = {
  'Set up a gateway': {
    start: async () => (await import('./start.ts')).START,
    init: async () => (await import('./init.ts')).INIT,
    doctor: async () => (await import('./doctor.ts')).DOCTOR,
  },
  'Try limits': {
    check: async () => (await import('./check.ts')).CHECK,
    explain: async () => (await import('./explain.ts')).EXPLAIN,
    replay: async () => (await import('./replay.ts')).REPLAY,
    shadow: async () => (await import('./shadows.ts')).SHADOW,
    unshadow: async () => (await import('./shadows.ts')).UNSHADOW,
  },
  'Look at traffic': {
    top: async () => (await import('./top.ts')).TOP,
    why: async () => (await import('./why.ts')).WHY,
  },
  'Act on a client': {
    inspect: async () => (await import('./clients.ts')).INSPECT,
    digest: async () => (await import('./clients.ts')).DIGEST,
    reset: async () => (await import('./clients.ts')).RESET,
    ban: async () => (await import('./clients.ts')).BAN,
    unban: async () => (await import('./clients.ts')).UNBAN,
    bans: async () => (await import('./clients.ts')).BANS,
  },
} satisfies Readonly<Record<string, Commands<CommandContext>>>;

export const COMMANDS: Commands<CommandContext> = Object.assign({}, ...Object.values(COMMAND_GROUPS));
