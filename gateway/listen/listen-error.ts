/** Says in a sentence why the gateway cannot listen, and what to do. */
import { ListenError } from './listener.ts';

const PUBLIC_VARIABLES = { portVariable: 'GATEWAY_PORT', hostVariable: 'GATEWAY_HOST' };

/** @returns null if the error is not about listening */
export function listenErrorText(error: unknown): string | null {
  const isOther = error instanceof ListenError;
  const { code, port } = (isOther ? error.cause : error) as NodeJS.ErrnoException & { port?: number };
  const { portVariable, hostVariable } = isOther ? error : PUBLIC_VARIABLES;
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is taken; stop the program that has it, or set ${portVariable}`;
    case 'EACCES':
      return `port ${port} needs more rights; set ${portVariable} to 1024 or above`;
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'EAI_AGAIN':
    case 'EINVAL':
    case 'ENOTFOUND':
      return `this machine does not have the address in ${hostVariable}`;
    default:
      return null;
  }
}
