/**
 * What the gateway needs of `node:http` at run time. An import of that module reads everything it exports, and one of that is
 * the WebSocket client, which Node loads when it is first read: 14 MB in each process. Types are imported from there.
 */
export const { createServer, IncomingMessage, METHODS, request, ServerResponse } =
  process.getBuiltinModule('node:http');
