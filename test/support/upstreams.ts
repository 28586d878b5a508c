/** Applications that several tests put behind a gateway. */
import { type Owner, startUpstream, type TestUpstream } from './gateway.ts';

/** An application whose event streams do not end. Its tunnels send `open`, and then echo. */
export async function startOpenEnded(owner: Owner): Promise<TestUpstream> {
  const upstream = await startUpstream(owner, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write('data: 1\n\n');
  });
  upstream.server.on('upgrade', (_req, socket) => {
    socket.on('error', () => socket.destroy());
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nopen');
    socket.pipe(socket);
  });
  return upstream;
}

/** An application that replies with `whole`, a moment after a request has arrived. */
export async function startSlow(owner: Owner): Promise<TestUpstream & { arrived(): number }> {
  let arrived = 0;
  const upstream = await startUpstream(owner, (_req, res) => {
    arrived++;
    setTimeout(() => res.end('whole'), 50);
  });
  return { ...upstream, arrived: () => arrived };
}
