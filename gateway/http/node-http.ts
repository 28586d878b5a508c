/**
 * The values that the gateway uses of `node:http`. An import of the module would evaluate all its exports, and so load
 * the WebSocket client, which takes 14 MB in each process. Types can be imported directly.
 */
export const { createServer, IncomingMessage, METHODS, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');
